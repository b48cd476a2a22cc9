"""Answers that follow from a recorded one by the rules of HTTP: HEAD, ranges, 304 and 412, another coding, the `.metadata` of a wheel.

Only from what is whole: a GET that ended complete with 200, or 206 answers that say which bytes they hold and by which validator. A derived
answer carries the recorded fields, with those that no longer hold corrected; it is always marked `derived`, and says how in a note.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b

from secondtake.cassettes.catalogue import Catalogue, Kept
from secondtake.cassettes.conditional import (
    Conditions,
    Outcome,
    Unsatisfiable,
    Validators,
    content_range,
    evaluate,
    parse_range,
    range_applies,
)
from secondtake.cassettes.derived import ABOUT_BYTES, NO_BYTES, Derived, Whole, made, with_changes
from secondtake.cassettes.errors import BadInput
from secondtake.cassettes.exchange import Answer, Bytes, Channel, Fields, Request, Slice, Source
from secondtake.cassettes.negotiation import field, reads_codings, same_variant
from secondtake.cassettes.recoding import readable
from secondtake.cassettes.sources import Joined
from secondtake.cassettes.wheels import metadata

_KEPT_BY_304 = frozenset((b"etag", b"date", b"cache-control", b"vary", b"expires", b"content-location", b"last-modified", b"set-cookie"))
_ANY_FORM = frozenset((301, 302, 303, 307, 308, 401, 403, 404, 410, 451))
"""Answers that do not depend on the form asked for."""


def same_form(kept: Kept, request: Request) -> bool:
    """Whether the recorded answer is the representation this request would have got, as far as media types go (RFC 9110 12.5.1)."""
    live = field(request.fields, b"accept") or b"*/*"
    if live == kept.terms.accept or kept.answer.status in _ANY_FORM:
        return True
    if not kept.terms.varies_accept:
        # An index page comes in several forms whether or not the index says so; a file does not.
        kind = kept.terms.content_type.lower()
        if kept.exchange.channel is not Channel.INDEX or not (b"json" in kind or b"html" in kind):
            return True
    return same_variant(kept.terms.accept, live, kept.terms.content_type)


def still_holds(answer: Answer, conditions: Conditions, asked: Conditions) -> bool:
    """Whether a recorded 304 or 206 is right for a request with these conditions; `asked` were those it was recorded for."""
    if answer.status == 304:
        if not conditions.cached:
            return False
        same = (conditions.none_match, conditions.modified_since) == (asked.none_match, asked.modified_since)
        return same or evaluate(conditions, Validators.of(answer.fields)) is Outcome.NOT_MODIFIED
    if answer.status == 206:
        return conditions.if_range == asked.if_range or range_applies(conditions, Validators.of(answer.fields))
    return True


def conditional(kept: Kept, conditions: Conditions) -> Derived | None:
    """The 304 or 412 that the preconditions of a request make of a recorded 200; None where they let it pass."""
    note = f"from exchange {kept.exchange.seq}"
    match evaluate(conditions, Validators.of(kept.answer.fields)):
        case Outcome.NOT_MODIFIED:
            return _not_modified(kept, kept.answer.fields, note)
        case Outcome.FAILED:
            return _failed(kept, kept.answer.fields, note)
        case Outcome.GO_ON:
            return None


def _not_modified(kept: Kept, fields: Fields, note: str) -> Derived:
    """A 304 with the same ETag: a cache throws away one without."""
    left = tuple((name, value) for name, value in fields if name.lower() in _KEPT_BY_304)
    return Derived(kept.position, made(kept, 304, b"Not Modified", left, 0), Bytes(b""), (f"304 {note}",), plays=True)


def _failed(kept: Kept, fields: Fields, note: str) -> Derived:
    left = with_changes(_plain_fields(fields), {b"content-length": b"0"})
    return Derived(kept.position, made(kept, 412, b"Precondition Failed", left, 0), Bytes(b""), (f"412 {note}",))


# --- from the whole


def _whole(kept: Kept, request: Request, catalogue: Catalogue) -> Whole | None:
    """A recorded 200 as this client can read it."""
    found = readable(kept, request, catalogue)
    if found is None:
        return None
    if isinstance(found, Derived):
        return Whole(kept, found.answer.fields, found.body, found.notes)
    return Whole(kept, kept.answer.fields, catalogue.body(kept.answer), ())


def respond(whole: Whole, method: str, conditions: Conditions) -> Derived:
    """What an origin that holds this representation answers: preconditions first, then ranges (RFC 9110 13.2.2, 14.2)."""
    kept, size = whole.kept, whole.body.size_bytes
    validators = Validators.of(whole.fields)
    origin = f"from exchange {kept.exchange.seq}"
    match evaluate(conditions, validators):
        case Outcome.NOT_MODIFIED:
            return _not_modified(kept, whole.fields, origin)
        case Outcome.FAILED:
            return _failed(kept, whole.fields, origin)
        case Outcome.GO_ON:
            pass
    ranges = None
    refuses = (field(whole.fields, b"accept-ranges") or b"").strip().lower() == b"none"
    if method == "GET" and not refuses and range_applies(conditions, validators):
        ranges = parse_range(conditions.range, size)
    if isinstance(ranges, Unsatisfiable):
        fields = with_changes(_plain_fields(whole.fields), {b"content-length": b"0", b"content-range": b"bytes */%d" % size})
        return Derived(kept.position, made(kept, 416, b"Range Not Satisfiable", fields, 0), Bytes(b""), (f"416 {origin}",))
    if ranges is None:
        body: Source = Bytes(b"") if method == "HEAD" else whole.body
        fields = whole.fields
        if field(fields, b"content-length") is not None:
            fields = with_changes(fields, {b"content-length": b"%d" % size})
        elif method == "HEAD":
            fields = with_changes(fields, {b"content-length": b"%d" % size, b"transfer-encoding": None})
        answer = made(kept, 200, kept.answer.reason, fields, body.size_bytes)
        note = "HEAD" if method == "HEAD" else "whole"
        return Derived(kept.position, answer, body, (*whole.notes, f"{note} {origin}"), plays=method == "GET")
    if len(ranges) == 1:
        return _one_range(whole, *ranges[0], size, Slice(whole.body, *ranges[0]), (*whole.notes, f"range {origin}"))
    return _many_ranges(whole, ranges, size, (*whole.notes, f"ranges {origin}"))


_ABOUT_CONTENT = frozenset((b"content-type", b"content-encoding", b"content-language", b"content-disposition", b"transfer-encoding"))


def _plain_fields(fields: Fields) -> Fields:
    return tuple((name, value) for name, value in fields if name.lower() not in _ABOUT_CONTENT and name.lower() not in ABOUT_BYTES)


def _one_range(whole: Whole, start: int, stop: int, size: int, body: Source, notes: tuple[str, ...]) -> Derived:
    changes = {**NO_BYTES, b"transfer-encoding": None}
    changes |= {b"content-length": b"%d" % (stop - start), b"content-range": b"bytes %d-%d/%d" % (start, stop - 1, size)}
    answer = made(whole.kept, 206, b"Partial Content", with_changes(whole.fields, changes), stop - start)
    return Derived(whole.kept.position, answer, body, notes)


def _many_ranges(whole: Whole, ranges: Sequence[tuple[int, int]], size: int, notes: tuple[str, ...]) -> Derived:
    """A multipart/byteranges body. Its boundary is made from what is asked, so that two replays are byte-equal."""
    mark = blake2b(repr((ranges, size, whole.kept.answer.body.digest)).encode(), digest_size=15).hexdigest().encode()
    kind = field(whole.fields, b"content-type")
    pieces: list[Source] = []
    for index, (start, stop) in enumerate(ranges):
        head = (b"\r\n" if index else b"") + b"--" + mark + b"\r\n"
        if kind is not None:
            head += b"Content-Type: " + kind + b"\r\n"
        head += b"Content-Range: bytes %d-%d/%d\r\n\r\n" % (start, stop - 1, size)
        pieces += [Bytes(head), Slice(whole.body, start, stop)]
    body = Joined([*pieces, Bytes(b"\r\n--" + mark + b"--\r\n")])
    changes = {**NO_BYTES, b"transfer-encoding": None}
    changes |= {b"content-length": b"%d" % body.size_bytes, b"content-type": b"multipart/byteranges; boundary=" + mark}
    answer = made(whole.kept, 206, b"Partial Content", with_changes(whole.fields, changes), body.size_bytes)
    return Derived(whole.kept.position, answer, body, notes)


# --- the front


def derive(request: Request, catalogue: Catalogue, used: bytearray) -> Derived | None:
    """An answer to a redacted GET or HEAD from what was recorded of the same resource, or None."""
    positions = catalogue.resource(catalogue.resource_name(request))
    conditions = Conditions.of(request.fields)
    if positions:
        found = _from_whole(request, conditions, positions, catalogue, used) or _from_tiles(request, conditions, positions, catalogue)
        if found is not None:
            return found
    path, mark, query = request.path.partition(b"?")
    if path.endswith(b".whl.metadata"):
        return _metadata(request, conditions, path.removesuffix(b".metadata") + mark + query, catalogue, used)
    return None


def _fitting(request: Request, positions: Iterable[int], catalogue: Catalogue) -> list[Kept]:
    """Whole answers to a GET that this client could have got."""
    found: list[Kept] = []
    for position in positions:
        row = catalogue.rows[position]
        if row.method != "GET" or (row.status != 200 and row.status not in _ANY_FORM):
            continue
        kept = catalogue.kept(position)
        if kept.complete and same_form(kept, request):
            found.append(kept)
    return found


def _preferred(found: list[Kept], used: bytearray, *, next_one: bool) -> Kept | None:
    """The one in turn: the next that was not played where a turn is taken, else the last that was."""
    unused = [kept for kept in found if not used[kept.position]]
    played = [kept for kept in found if used[kept.position]]
    if next_one and unused:
        return unused[0]
    return played[-1] if played else (unused[0] if unused else None)


def _from_whole(
    request: Request, conditions: Conditions, positions: Sequence[int], catalogue: Catalogue, used: bytearray
) -> Derived | None:
    bare = request.method == "GET" and conditions.range is None
    fitting = _fitting(request, positions, catalogue)
    if not bare:
        # A range or a HEAD is of the file, where there is one; a redirect or a 404 is the same answer to both.
        fitting = [kept for kept in fitting if kept.answer.status == 200] or fitting
    kept = _preferred(fitting, used, next_one=bare)
    if kept is not None and kept.answer.status != 200:
        return _other_status(kept, request, catalogue)
    whole = None if kept is None else _whole(kept, request, catalogue)
    return None if whole is None else respond(whole, request.method, conditions)


def _other_status(kept: Kept, request: Request, catalogue: Catalogue) -> Derived | None:
    """A recorded redirect or error, for a HEAD, a range or another form of the same resource."""
    found = readable(kept, request, catalogue)
    if found is None:
        return None
    notes = (f"answered as recorded in exchange {kept.exchange.seq}",)
    if request.method == "HEAD":
        return Derived(kept.position, made(kept, kept.answer.status, kept.answer.reason, found.answer.fields, 0), Bytes(b""), notes)
    body = found.body if isinstance(found, Derived) else catalogue.body(kept.answer)
    return Derived(kept.position, found.answer, body, notes, plays=True)


def _metadata(request: Request, conditions: Conditions, target: bytes, catalogue: Catalogue, used: bytearray) -> Derived | None:
    """The core metadata of a recorded wheel (PEP 658), read from its zip directory."""
    wheel = replace(request, path=target)
    fitting = _fitting(wheel, catalogue.resource(catalogue.resource_name(wheel)), catalogue)
    kept = _preferred([kept for kept in fitting if kept.answer.status == 200], used, next_one=False)
    whole = None if kept is None else _whole(kept, replace(request, fields=()), catalogue)
    if whole is None:
        return None
    content = metadata(whole.body, target)
    if content is None:
        return None
    changes = {**NO_BYTES, **dict.fromkeys(_ABOUT_CONTENT), b"etag": None, b"accept-ranges": None}
    changes |= {b"content-type": b"application/octet-stream", b"content-length": b"%d" % len(content)}
    notes = (f"metadata out of the wheel of exchange {whole.kept.exchange.seq}",)
    return respond(replace(whole, fields=with_changes(whole.fields, changes), body=Bytes(content), notes=notes), request.method, conditions)


# --- from ranges


@dataclass(frozen=True, slots=True)
class Tile:
    kept: Kept
    start: int
    stop: int
    size: int


def _tiles(request: Request, positions: Sequence[int], catalogue: Catalogue) -> list[list[Tile]]:
    """Recorded single ranges in groups that belong to one file: same strong validator, length and coding.

    Without a validator each stands alone.
    """
    groups: dict[object, list[Tile]] = {}
    for position in positions:
        row = catalogue.rows[position]
        if row.method != "GET" or row.status != 206:
            continue
        kept = catalogue.kept(position)
        found = content_range(field(kept.answer.fields, b"content-range"))
        if found is None or kept.plain or kept.withheld or not kept.complete or not same_form(kept, request):
            continue
        start, stop, size = found
        if kept.answer.body.size_bytes != stop - start:
            continue
        if kept.terms.codings and not reads_codings(field(request.fields, b"accept-encoding"), kept.terms.codings):
            continue
        validator = Validators.of(kept.answer.fields).strong
        name = (validator, size, kept.terms.codings) if validator is not None else position
        groups.setdefault(name, []).append(Tile(kept, start, stop, size))
    return list(groups.values())


def _cover(tiles: Sequence[Tile], start: int, stop: int, catalogue: Catalogue) -> Source | None:
    """The bytes `start:stop` out of tiles, or None when some are in none."""
    pieces: list[Source] = []
    at = start
    for tile in sorted(tiles, key=lambda tile: (tile.start, -tile.stop)):
        if tile.start <= at < tile.stop:
            end = min(tile.stop, stop)
            pieces.append(Slice(catalogue.body(tile.kept.answer), at - tile.start, end - tile.start))
            at = end
            if at == stop:
                return pieces[0] if len(pieces) == 1 else Joined(pieces)
    return None


def _from_tiles(request: Request, conditions: Conditions, positions: Sequence[int], catalogue: Catalogue) -> Derived | None:
    for tiles in reversed(_tiles(request, positions, catalogue)):
        kept, size = tiles[0].kept, tiles[0].size
        seqs = ", ".join(str(tile.kept.exchange.seq) for tile in tiles[:8])
        notes = (f"out of the ranges of exchanges {seqs}",)
        fields = with_changes(kept.answer.fields, {b"content-range": None, b"content-length": b"%d" % size})
        every = _cover(tiles, 0, size, catalogue)
        if every is not None:
            return replace(respond(Whole(kept, fields, every, notes), request.method, conditions), plays=False)
        if evaluate(conditions, Validators.of(fields)) is not Outcome.GO_ON or request.method == "HEAD":
            return respond(Whole(kept, fields, _Sized(size), notes), "HEAD", conditions)
        ranges = parse_range(conditions.range, size) if range_applies(conditions, Validators.of(fields)) else None
        if isinstance(ranges, Unsatisfiable):
            return respond(Whole(kept, fields, _Sized(size), notes), "GET", conditions)
        if ranges is not None and len(ranges) == 1:
            body = _cover(tiles, *ranges[0], catalogue)
            if body is not None:
                return _one_range(Whole(kept, fields, body, notes), *ranges[0], size, body, notes)
    return None


@dataclass(frozen=True, slots=True)
class _Sized:
    """A length without bytes, for answers that have no body."""

    size_bytes: int

    def read(self, offset: int, size: int) -> bytes:
        raise BadInput("these bytes were not recorded")

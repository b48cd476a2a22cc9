"""The last resorts of a player, each with its own label: an endpoint's answer whatever was sent, a model call by its position.

Used only after content found nothing, and only for the channels that `Session` names.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from http import HTTPStatus

from secondtake.cassettes.catalogue import Catalogue
from secondtake.cassettes.control import is_transient, question
from secondtake.cassettes.derived import Derived
from secondtake.cassettes.differences import Found, body_differences
from secondtake.cassettes.exchange import Answered, Channel, Digest, Ending, Request
from secondtake.cassettes.grants import form_of, grant
from secondtake.cassettes.indexes import Kind, index_path, normal_name
from secondtake.cassettes.match import PARTIAL, exact_key, meaning
from secondtake.cassettes.memory import Row
from secondtake.cassettes.misses import printable, shown_on_a_line
from secondtake.cassettes.normalise import turns
from secondtake.cassettes.recoding import readable
from secondtake.cassettes.served import Serve

POSITIONS = 8
"""Unplayed calls that are looked at when a model call is placed by its position."""


@dataclass(frozen=True, slots=True)
class Beginning:
    """How a recorded request begins that was answered before it was whole, and what of it was kept."""

    position: int
    size_bytes: int
    digest: Digest
    next: bool
    """Nothing else is left that was asked for the same way before it: the answer may be given as soon as so much has come."""


def beginnings(catalogue: Catalogue, used: bytearray, request: Request) -> tuple[Beginning, ...]:
    """Those of requests with this head that were not played yet, the shortest first."""
    found = [position for position in catalogue.exact(exact_key(request, PARTIAL)) if not used[position]]
    if not found:
        return ()
    rows = catalogue.rows
    first = next(position for position, row in enumerate(rows) if not used[position] and _head(row) == _head(rows[found[0]]))
    made = [Beginning(one, rows[one].request_size, rows[one].request_digest, one == first) for one in found]
    return tuple(sorted(made, key=lambda one: (one.size_bytes, one.position)))


def _head(row: Row) -> tuple[str, str, str, int, bytes]:
    return row.method, row.scheme, row.host, row.port, row.path


BY_ENDPOINT = frozenset((Channel.AUTH, Channel.CONTROL, Channel.TELEMETRY))


def by_endpoint(
    catalogue: Catalogue, used: bytearray, request: Request, content: bytes | None, channel: Channel, *, repeat: bool = True
) -> Serve | None:
    """A recorded answer of the same endpoint whatever else was sent.

    Flags and settings (`control`): those of the same question in the order they were given, then the last again; `normalised`, because
    what is left out is named (control.py). Logins: a success of the same grant, in order, then the last again. Telemetry: a success,
    always; a refusal that makes clients try again is not repeated. Both count as `local`. Without `repeat` no answer of `control` is
    given twice.
    """
    found = catalogue.endpoint(channel, request)
    match channel:
        case Channel.CONTROL:
            asked = question(request.path, content)
            found = [position for position in found if question(catalogue.rows[position].path, _sent(catalogue, position)) == asked]
            how, order = Answered.NORMALISED, _lasting(catalogue, found) if repeat else []
        case Channel.AUTH:
            named = _grant(request, content)
            same = [position for position in found if _grant(_request(catalogue, position), _sent(catalogue, position)) == named]
            how, order = Answered.LOCAL, _successes(catalogue, same) or _successes(catalogue, found)
            found = order or same or found
        case _:
            how, order = Answered.LOCAL, _successes(catalogue, found) or _lasting(catalogue, found)
            found = order
    best = next((position for position in found if not used[position]), order[-1] if order else None)
    if best is None:
        return None
    kept = catalogue.kept(best)
    answer = readable(kept, request, catalogue)
    if answer is None:
        return None
    body = answer.body if isinstance(answer, Derived) else catalogue.body(answer.answer)
    note = f"answered as {channel} of exchange {kept.exchange.seq}, whatever was sent"
    reused, used[best] = bool(used[best]), 1
    return Serve(answer.answer, body, Ending.COMPLETE, how, kept.exchange.seq, reused, (note,), channel, kept.exchange.details)


def _successes(catalogue: Catalogue, positions: Sequence[int]) -> Sequence[int]:
    return [position for position in positions if (catalogue.rows[position].status or 0) < HTTPStatus.MULTIPLE_CHOICES]


def _lasting(catalogue: Catalogue, positions: Sequence[int]) -> Sequence[int]:
    return [position for position in positions if not is_transient(catalogue.rows[position].status or 0)]


def _request(catalogue: Catalogue, position: int) -> Request:
    return catalogue.kept(position).exchange.request


def _sent(catalogue: Catalogue, position: int) -> bytes | None:
    return catalogue.request_content(_request(catalogue, position))


def _grant(request: Request, content: bytes | None) -> str | None:
    form = form_of(request, content)
    return grant(form) or form.get("Action")


def by_position(catalogue: Catalogue, used: bytearray, request: Request, content: bytes) -> Serve | None:
    """The next unplayed call to the same model endpoint at the same turn of its conversation. What differs becomes notes."""
    rules = catalogue.rules
    live = meaning(request, content, rules)
    tried = 0
    for position, row in enumerate(catalogue.rows):
        if used[position] or row.status is None or row.channel is not Channel.MODEL:
            continue
        if (row.method, row.host, row.path) != (request.method, request.host, request.path) or tried >= POSITIONS:
            continue
        tried += 1
        kept = catalogue.kept(position)
        recorded = catalogue.request_content(kept.exchange.request)
        if recorded is None:
            continue
        found = meaning(kept.exchange.request, recorded, rules)
        if turns(found.json) != turns(live.json) or turns(live.json) is None:
            continue
        answer = readable(kept, request, catalogue)
        if answer is None:
            continue
        differing = Found()
        body_differences(catalogue.told(found, recorded=True), catalogue.told(live), differing)
        notes = tuple(f"differs at {item.where} `{printable(item.path, 200)}`" for item in differing.items)
        used[position] = 1
        body = answer.body if isinstance(answer, Derived) else catalogue.body(kept.answer)
        answered, ended, more = Answered.POSITIONAL, kept.exchange.ended, differing.count - len(differing.items)
        shown = tuple(map(shown_on_a_line, differing.items))
        return Serve(answer.answer, body, ended, answered, row.seq, False, notes, row.channel, differences=shown, more=more)
    return None


def known_index(catalogue: Catalogue, request: Request) -> bool:
    """Whether this is a file of a package of which a page or a file was recorded."""
    asked = index_path(request.path.partition(b"?")[0])
    if asked is None or asked.kind is not Kind.FILE:
        return False
    word = asked.project.rpartition("/")[2].partition("-")[0].encode()
    for row in catalogue.rows:
        if row.channel is Channel.INDEX and word in row.path.lower():
            if not asked.project and row.host == request.host:
                return True
            found = index_path(row.path.partition(b"?")[0])
            project = found.project if found is not None else normal_name(row.path.partition(b"?")[0].strip(b"/"))
            if asked.project and project.endswith(asked.project) and (row.status or 0) < 400:
                return True
    return False

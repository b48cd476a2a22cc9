"""Reading a cassette to find out whether it is whole. Names each fault; changes nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from secondtake.cassettes import artifacts, index, layout, objects, repositories, stages, takes, trees
from secondtake.cassettes.cassette import Parts
from secondtake.cassettes.codec import BodyDecoder
from secondtake.cassettes.digest import digest_of
from secondtake.cassettes.errors import BadInput, Corrupt, NotFound, RecordedError, TooNew
from secondtake.cassettes.exchange import EMPTY, Body, Digest, Exchange
from secondtake.cassettes.index import NOWHERE, PACKED_OBJECT, PLAIN_OBJECT
from secondtake.cassettes.journal import Frame, FrameReader, Kind, Place
from secondtake.cassettes.limits import ARTIFACT_BYTES
from secondtake.cassettes.scanning import EndRecord, Fault, Scan, Severity, State, scan

FAULTS = {
    "unreadable": "the journal is missing, or is not a cassette's",
    "too_new": "the journal was written in a later format version",
    "incomplete_tail": "the last record is torn: the recorder died while it wrote. An error when part of it had been durable",
    "damaged_frame": "bytes of the journal are not what their checksum, or the format, says",
    "root_mismatch": "the exchanges are not those under the root in the closing record",
    "root_differs": "the exchanges are not those under the root that was asked for",
    "repeated_seq": "two exchanges have one number",
    "not_canonical": "a record is not in its one encoding: another program wrote it",
    "body_missing": "an exchange names a body of which no bytes are kept",
    "body_damaged": "a body in the journal is not what its digest says",
    "object_missing": "the file of a large body is not there",
    "object_damaged": "the file of a large body is not what its digest says, or has another size",
    "artifact_damaged": "a tree, file or other artifact in the journal is not what its digest says, or cannot be read",
    "artifact_missing": "the recording's stage, or one of its trees, names an artifact of which no bytes are kept; of a take, what changed",
    "index_stale": "the index is not what the journal makes of it; it is a cache, delete it",
    "sums_differ": "an exported file's SHA256SUMS or README.txt is not what its content makes",
}
"""Every fault by its stable name."""


@dataclass(frozen=True, slots=True)
class Report:
    """What a check found. `exit_code` is 0 clean (warnings included), 1 damaged, 2 unreadable."""

    name: str
    state: State | None
    root: str | None
    """Computed from the exchanges, not taken from the closing record."""
    exchanges: int
    bodies: int
    """Different bodies whose bytes were read (with `quick`: looked for)."""
    checked_bytes: int
    faults: tuple[Fault, ...]

    @property
    def readable(self) -> bool:
        return all(fault.severity is not Severity.FATAL for fault in self.faults)

    @property
    def damaged(self) -> bool:
        return any(fault.severity is not Severity.WARNING for fault in self.faults)

    @property
    def exit_code(self) -> int:
        return (1 if self.damaged else 0) if self.readable else 2


@dataclass(frozen=True, slots=True)
class _Use:
    """Where a body is first used. `seq` is None for an artifact."""

    seq: int | None
    offset: int
    place: Place
    size_bytes: int


@dataclass(slots=True)
class _Found:
    uses: dict[Digest, _Use] = field(default_factory=dict)
    seqs: set[int] = field(default_factory=set)
    faults: list[Fault] = field(default_factory=list)

    def end(self, frame: Frame, end: EndRecord, exchange: Exchange) -> None:
        offset = frame.place.offset
        if exchange.seq in self.seqs:
            self.faults.append(Fault("repeated_seq", Severity.ERROR, "another exchange has this number", exchange.seq, offset))
        self.seqs.add(exchange.seq)
        if layout.LATER not in exchange.details and layout.pack_exchange(exchange) != end.record:
            self.faults.append(Fault("not_canonical", Severity.WARNING, FAULTS["not_canonical"], exchange.seq, offset))
        self._use(exchange, exchange.request.body, end.request_at, offset)
        if exchange.answer is not None:
            self._use(exchange, exchange.answer.body, end.response_at, offset)

    def _use(self, exchange: Exchange, body: Body, place: Place, offset: int) -> None:
        if body.digest == EMPTY:
            return
        before = self.uses.get(body.digest)
        use = _Use(exchange.seq, offset, place, body.size_bytes)
        if before is None:
            self.uses[body.digest] = use
        elif before.place != place or before.size_bytes != body.size_bytes:
            message = f"body {body.digest} stands in two places or has two sizes"
            self.faults.append(Fault("body_damaged", Severity.ERROR, message, exchange.seq, offset))


def check(
    name: str,
    open_parts: Callable[[], Parts],
    *,
    quick: bool = False,
    subset: tuple[int, int] | None = None,
    root: str | None = None,
) -> Report:
    """Check the cassette that `open_parts` opens: the whole journal, and every body (`quick`: only that it is there; `subset` n of t:
    every t-th by digest, so that t runs read all). `root` is one kept elsewhere. Raises NotFound, BadInput."""
    if subset is not None and not 1 <= subset[0] <= subset[1]:
        raise BadInput(f"no such part: {subset[0]}/{subset[1]}", hint="give n/t with n from 1 to t")
    if root is not None and (len(root) != 64 or not set(root.lower()) <= set("0123456789abcdef")):
        raise BadInput(f"not a root: {root[:80]!r}", hint="a root has 64 hexadecimal digits")
    try:
        parts = open_parts()
    except NotFound:
        raise
    except (RecordedError, OSError) as error:
        return _unreadable(name, error)
    try:
        return _check(name, parts, quick, subset, root)
    except (RecordedError, OSError) as error:
        return _unreadable(name, error)
    finally:
        parts.close()


def _unreadable(name: str, error: Exception) -> Report:
    fault = Fault("too_new" if isinstance(error, TooNew) else "unreadable", Severity.FATAL, str(error))
    return Report(name, None, None, 0, 0, 0, (fault,))


def _check(name: str, parts: Parts, quick: bool, subset: tuple[int, int] | None, root: str | None) -> Report:
    found = _Found()
    scanned = scan(parts.journal, mark=parts.mark, each_end=found.end)
    faults = [*scanned.faults, *found.faults]
    state = scanned.closing.state if scanned.closing else (State.RECORDING if parts.recording else State.DIED)
    if state is State.RECORDING:
        faults = [fault for fault in faults if fault.name != "incomplete_tail"]
    computed = scanned.tree.root()
    if scanned.closing is not None:
        closing = scanned.closing
        if closing.root != computed or closing.exchanges != scanned.tree.size:
            message = f"{scanned.tree.size} exchanges with root {computed.hex()}, closed with {closing.exchanges} and {closing.root.hex()}"
            faults.append(Fault("root_mismatch", Severity.ERROR, message, offset=scanned.close.offset))
    faults += _index_faults(parts, scanned, sound=not faults)
    if root is not None and root.lower() != computed.hex():
        faults.append(Fault("root_differs", Severity.ERROR, f"the root is {computed.hex()}, not {root}"))
    for row in scanned.index.artifacts:
        if row.content_at != artifacts.INSIDE:
            found.uses.setdefault(row.artifact.digest, _Use(None, row.at.offset, row.content_at, row.artifact.size_bytes))
    uses = _chosen(found, subset)
    faults += _body_faults(parts, uses, quick)
    faults += _artifact_faults(parts, scanned, subset, quick)
    size = sum(use.size_bytes for _, use in uses)
    read_bytes = parts.journal.size_bytes + (0 if quick else size)
    return Report(name, state, computed.hex(), scanned.tree.size, len(uses), read_bytes, tuple(faults))


def _index_faults(parts: Parts, scanned: Scan, *, sound: bool) -> Iterator[Fault]:
    if parts.index_bytes is None:
        return
    if scanned.closing is not None and sound:
        made = scanned.index.index().pack(parts.journal.size_bytes, scanned.close, scanned.close_checksum)
        if made == parts.index_bytes:
            return
    message = FAULTS["index_stale"]
    try:
        size = index.unpack(parts.index_bytes)[1][0]
    except Corrupt as error:
        message = str(error)
    else:
        if scanned.closing is None:
            message = f"the index was made of a journal of {size} bytes with a closing record; that record is lost"
            yield Fault("incomplete_tail", Severity.ERROR, message, offset=scanned.whole_bytes)
            return
    yield Fault("index_stale", Severity.WARNING, message)


def _chosen(found: _Found, subset: tuple[int, int] | None) -> list[tuple[Digest, _Use]]:
    """The bodies to read, in the order of the journal: so a chain of deltas is decoded once, one step a body."""
    uses = sorted(found.uses.items(), key=lambda item: (item[1].place.offset, item[0]))
    return [(digest, use) for digest, use in uses if _in(subset, digest)]


def _in(subset: tuple[int, int] | None, digest: Digest) -> bool:
    return subset is None or int(digest[:8], 16) % subset[1] == subset[0] - 1


def _body_faults(parts: Parts, uses: list[tuple[Digest, _Use]], quick: bool) -> Iterator[Fault]:
    decoder = BodyDecoder(FrameReader(parts.journal))
    for digest, use in uses:
        if use.place == NOWHERE:
            yield Fault("body_missing", Severity.ERROR, f"no bytes are kept of {digest}", use.seq, use.offset)
        elif use.place in (PLAIN_OBJECT, PACKED_OBJECT):
            yield from _object_faults(parts, digest, use, quick)
        elif not quick:
            try:
                if len(decoder.decode(use.place, digest)) != use.size_bytes:
                    raise Corrupt(f"body {digest} has another size than its exchange says")
            except RecordedError as error:
                name = "artifact_damaged" if use.seq is None else "body_damaged"
                yield Fault(name, Severity.ERROR, str(error), use.seq, use.place.offset)


def _object_faults(parts: Parts, digest: Digest, use: _Use, quick: bool) -> Iterator[Fault]:
    packed = use.place == PACKED_OBJECT
    try:
        region = parts.object_region(digest, packed)
    except OSError as error:
        yield Fault("object_missing", Severity.ERROR, f"object {digest}: {error.strerror or error}", use.seq, use.offset)
        return
    try:
        stored = objects.open_object(region, digest, packed, use.size_bytes)
        if not quick:
            objects.check(stored, digest)
    except RecordedError as error:
        yield Fault("object_damaged", Severity.ERROR, str(error), use.seq, use.offset)
    finally:
        parts.release(region)


_NAMING: Mapping[str, Callable[[bytes], Iterable[Digest]]] = {
    artifacts.TREE: lambda content: trees.decode(content).blobs(),
    artifacts.REPOSITORY: lambda content: repositories.decode(content).named(),
}
"""Artifacts that name others."""


def _artifact_faults(parts: Parts, scanned: Scan, subset: tuple[int, int] | None, quick: bool) -> Iterator[Fault]:
    """Artifacts inside their records, and what trees and the closing record name. The content of others is checked as bodies are."""
    table, frames = scanned.index.artifacts, FrameReader(parts.journal)
    decoder = BodyDecoder(frames)
    begun_with: frozenset[Digest] | None = None if scanned.meta.get("kind") == takes.KIND else frozenset()
    for row in table:
        kind, digest, _ = row.artifact
        if quick or (kind not in _NAMING and not _in(subset, digest)):
            continue
        offset = row.at.offset
        try:
            content = artifacts.unpack(frames.at(row.at, Kind.OBJECT)).content
            if content is not None and digest_of(content) != digest:
                raise Corrupt(f"the {kind} {digest} holds other bytes")
            if kind not in _NAMING:
                continue
            if content is None and row.content_at in (PLAIN_OBJECT, PACKED_OBJECT):
                content = _object_content(parts, digest, row.content_at == PACKED_OBJECT)
            content = decoder.decode(row.content_at, digest) if content is None else content
            named = frozenset(_NAMING[kind](content))
        except (RecordedError, OSError) as error:
            if row.content_at == artifacts.INSIDE:  # of others the check of bodies says so
                yield Fault("artifact_damaged", Severity.ERROR, str(error), offset=offset)
            continue
        if begun_with is None and kind == artifacts.TREE:
            begun_with = named  # a take's first tree: its fixture holds the content
        for one in sorted(named - (begun_with or frozenset())):
            if table.find(one) is None:
                yield Fault("artifact_missing", Severity.ERROR, f"the {kind} {digest} names {one}; no bytes of it are kept", offset=offset)
    yield from _stage_faults(scanned)


def _object_content(parts: Parts, digest: Digest, packed: bool) -> bytes:
    region = parts.object_region(digest, packed)
    try:
        stored = objects.open_object(region, digest, packed)
        return stored.read(0, min(stored.size_bytes, ARTIFACT_BYTES))
    finally:
        parts.release(region)


def _stage_faults(scanned: Scan) -> Iterator[Fault]:
    if scanned.closing is None:
        return
    try:
        said = scanned.closing.meta.get(stages.META)
        staged = stages.Staged() if said is None else stages.unpack(said)
    except Corrupt as error:
        yield Fault("artifact_missing", Severity.ERROR, str(error), offset=scanned.close.offset)
        return
    for one in staged.named():
        if scanned.index.artifacts.find(one) is None:
            message = f"the recording's stage names {one}; no bytes of it are kept"
            yield Fault("artifact_missing", Severity.ERROR, message, offset=scanned.close.offset)

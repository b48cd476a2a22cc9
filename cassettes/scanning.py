"""One walk over a journal: what it holds, and what of it is torn or damaged."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from secondtake.cassettes import artifacts, journal, layout, merkle
from secondtake.cassettes.errors import Corrupt, RecordedError
from secondtake.cassettes.exchange import Exchange
from secondtake.cassettes.index import NOWHERE, IndexBuilder
from secondtake.cassettes.journal import HEADER_BYTES, PREFACE_BYTES, Frame, FrameReader, Gap, Kind, Place, Readable


class State(StrEnum):
    """What became of a recording."""

    RECORDING = "recording"
    CLOSED = "closed"
    DIED = "died"
    FAILED = "record-failed"
    DAMAGED = "damaged"
    """Only in a list: the cassette cannot be opened."""


class Severity(StrEnum):
    """How much a fault matters. A warning costs no exchange; `error` does, or may; `fatal` means nothing can be read."""

    WARNING = "warning"
    ERROR = "error"
    FATAL = "fatal"


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that is wrong. `name` is stable (docs/format.md lists all); `offset` is into the journal."""

    name: str
    severity: Severity
    message: str
    seq: int | None = None
    offset: int | None = None

    def __str__(self) -> str:
        where = "".join((f" seq={self.seq}" if self.seq is not None else "", f" offset={self.offset}" if self.offset is not None else ""))
        return f"{self.severity} {self.name}{where}: {self.message}"


@dataclass(frozen=True, slots=True)
class EndRecord:
    """An end frame taken apart."""

    record: bytes
    request_at: Place
    response_at: Place


def unpack_end(payload: bytes) -> EndRecord:
    """Raises Corrupt."""
    match layout.unpack(payload):
        case [bytes() as record, [int() as a, int() as b], [int() as c, int() as d], *_]:
            return EndRecord(record, Place(a, b), Place(c, d))
        case _:
            raise Corrupt("an end record is not one")


@dataclass(frozen=True, slots=True)
class Closing:
    """What the closing record says."""

    state: State
    exchanges: int
    root: bytes
    meta: Mapping[str, object]
    reason: str | None


def unpack_close(payload: bytes) -> Closing:
    """Raises Corrupt."""
    made = layout.mapping(layout.unpack(payload))
    try:
        state = State(layout.take(made, "state", str))
    except ValueError as error:
        raise Corrupt(f"the closing record's state is {made.get('state')!r}") from error
    root = layout.take(made, "root", bytes)
    reason = made.get("reason")
    meta = layout.mapping(made.get("meta", {}))
    return Closing(state, layout.take(made, "exchanges", int), root, meta, reason if isinstance(reason, str) else None)


@dataclass(slots=True)
class Scan:
    """What one walk over a journal found."""

    meta: Mapping[str, object] = field(default_factory=dict)
    index: IndexBuilder = field(default_factory=IndexBuilder)
    tree: merkle.Tree = field(default_factory=merkle.Tree)
    heads: dict[int, tuple[bytes, Place]] = field(default_factory=dict)
    """Of exchanges that did not end: the head's record and its place."""
    closing: Closing | None = None
    close: Place = NOWHERE
    close_checksum: int = 0
    whole_bytes: int = PREFACE_BYTES
    """Up to here every frame is whole."""
    faults: list[Fault] = field(default_factory=list)


def scan(region: Readable, *, mark: int | None = None, each_end: Callable[[Frame, EndRecord, Exchange], None] | None = None) -> Scan:
    """Walk a journal from its first byte to the end of its last whole frame.

    `mark` is how much is known to have been durable: bytes beyond that are not whole are a torn tail, whatever follows them, because
    nothing there was acknowledged. Without it, what is not whole and has nothing whole behind it is a torn tail. Everything else that
    is not whole is a fault. Raises TooNew, and Corrupt when this is no journal at all.
    """
    journal.check_preface(region.read(0, PREFACE_BYTES))
    reader = FrameReader(region)
    found = Scan()
    gap: Gap | None = None
    for frame in journal.walk(region):
        if isinstance(frame, Gap):
            if frame.stop >= region.size_bytes or (mark is not None and frame.start >= mark and not _closed_behind(region, frame.stop)):
                gap = frame
                break
            found.faults.append(_damaged(frame.start, f"{frame.stop - frame.start} bytes are no whole frame"))
            continue
        if found.closing is not None:
            found.faults.append(_damaged(frame.place.offset, "a frame stands behind the closing record"))
        try:
            _note(found, reader, frame, each_end)
        except (RecordedError, OverflowError) as error:
            found.faults.append(_damaged(frame.place.offset, str(error)))
        found.whole_bytes = frame.place.offset + frame.place.length
    if gap is not None:
        if found.closing is not None:
            found.faults.append(_damaged(gap.start, "bytes stand behind the closing record"))
        else:
            lost = mark is not None and gap.start < mark
            message = f"{gap.stop - gap.start} bytes at the end are no whole frame" + (", of which some had been durable" if lost else "")
            found.faults.append(Fault("incomplete_tail", Severity.ERROR if lost else Severity.WARNING, message, offset=gap.start))
    elif found.closing is None and mark is not None and found.whole_bytes < mark:
        message = f"{mark - found.whole_bytes} bytes that had been durable are missing at the end"
        found.faults.append(Fault("incomplete_tail", Severity.ERROR, message, offset=found.whole_bytes))
    return found


def _closed_behind(region: Readable, offset: int) -> bool:
    """Whether a closing record stands behind `offset`: it is written when all before it is durable, so what is not whole was damaged."""
    return any(isinstance(frame, Frame) and frame.kind == Kind.CLOSE for frame in journal.walk(region, offset))


def _damaged(offset: int, message: str) -> Fault:
    return Fault("damaged_frame", Severity.ERROR, message, offset=offset)


def _note(found: Scan, reader: FrameReader, frame: Frame, each_end: Callable[[Frame, EndRecord, Exchange], None] | None) -> None:
    match frame.kind:
        case Kind.START:
            found.meta = layout.mapping(layout.mapping(layout.unpack(reader.payload(frame))).get("meta", {}))
        case Kind.HEAD:
            record = reader.payload(frame)
            found.heads[layout.seq_of(record)] = record, frame.place
        case Kind.END:
            end = unpack_end(reader.payload(frame))
            found.tree.append(merkle.leaf(end.record))
            exchange = layout.unpack_exchange(end.record)
            found.index.add(exchange, frame.place, end.request_at, end.response_at)
            found.heads.pop(exchange.seq, None)
            if each_end is not None:
                each_end(frame, end, exchange)
        case Kind.CLOSE:
            found.closing = unpack_close(reader.payload(frame))
            found.close = frame.place
            found.close_checksum = journal_checksum(frame)
        case Kind.OBJECT:
            found.index.artifacts.add(artifacts.unpack(reader.payload(frame)), frame.place)
        case _:
            pass


def journal_checksum(frame: Frame) -> int:
    """The checksum a frame carries."""
    made = journal.frame(frame.kind, frame.flags, frame.place.offset, frame.stored)
    return int.from_bytes(made[8:HEADER_BYTES], "little")

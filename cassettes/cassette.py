"""A cassette being read: a stable snapshot, rows at once, exchanges and bodies when asked for. Never writes."""

from __future__ import annotations

import contextlib
import dataclasses
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple, Self

from secondtake.cassettes import index, journal, layout, merkle
from secondtake.cassettes.codec import BodyDecoder
from secondtake.cassettes.errors import Corrupt, NotFound, RecordedError
from secondtake.cassettes.exchange import EMPTY, Body, Bytes, Digest, Ending, Exchange, Side, Source
from secondtake.cassettes.files import Region
from secondtake.cassettes.index import NOWHERE, PACKED_OBJECT, PLAIN_OBJECT, Index, IndexBuilder, Row, Rows
from secondtake.cassettes.journal import HEADER_BYTES, PREFACE_BYTES, Frame, FrameReader, Gap, Kind, Place, Readable
from secondtake.cassettes.objects import open_object
from secondtake.cassettes.records import Head


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
        case _:
            pass


def journal_checksum(frame: Frame) -> int:
    """The checksum a frame carries."""
    made = journal.frame(frame.kind, frame.flags, frame.place.offset, frame.stored)
    return int.from_bytes(made[8:HEADER_BYTES], "little")


def lost_exchange(head: Head) -> Exchange:
    """What is known of an exchange whose recorder died before it ended."""
    return Exchange(head.seq, head.channel, head.started_us, head.request, None, Ending.RECORDER_DIED, head.started_us)


@dataclass(slots=True)
class Parts:
    """What `Store` found: where to read, and the index if there is a good one."""

    name: str
    journal: Region
    index_bytes: bytes | None
    recording: bool
    mark: int | None
    object_region: Callable[[Digest, bool], Region]
    spool_region: Callable[[int, Side], Region | None]
    release: Callable[[Region], None]
    """Let go of one object's region."""
    close: Callable[[], None]


class _Opened(NamedTuple):
    rows: Index
    state: State
    root: str | None
    meta: Mapping[str, object]
    reason: str | None
    faults: tuple[Fault, ...]


class Cassette:
    """One cassette, as it was when it was opened. Reads from any thread are not safe; use one per thread."""

    def __init__(self, parts: Parts) -> None:
        """Raises Corrupt, TooNew."""
        self.name = parts.name
        self._parts = parts
        self._frames = FrameReader(parts.journal)
        self._decoder = BodyDecoder(self._frames.body_at)
        self._lost_heads: dict[int, Head] = {}
        self._whole_bytes = parts.journal.size_bytes
        self._checked: set[Digest] = set()
        self._closed_by: tuple[Place, int] | None = None
        major, minor = journal.check_preface(parts.journal.read(0, PREFACE_BYTES))
        self.format = major
        self.minor = minor
        indexed = self._indexed(parts)
        if indexed is None:
            indexed = self._scanned(parts)
        self._index, self.state, self.root, self.meta, self.reason, self.faults = indexed
        self.rows: Sequence[Row] = Rows(self._index)

    def _indexed(self, parts: Parts) -> _Opened | None:
        """By the index, if it is whole and of this very journal: its size, and its closing record's place and checksum."""
        if parts.index_bytes is None:
            return None
        try:
            made, (size, close, checksum) = index.unpack(parts.index_bytes)
            if size != parts.journal.size_bytes or close.offset + close.length != size:
                return None
            frame = self._frames.frame_at(close, Kind.CLOSE)
            if journal_checksum(frame) != checksum:
                return None
            closing = unpack_close(self._frames.payload(frame))
            self._closed_by = close, checksum
            start = self._start()
        except RecordedError:
            return None
        if closing.exchanges != len(made):
            return None
        return _Opened(made, closing.state, closing.root.hex(), {**start, **closing.meta}, closing.reason, ())

    def _start(self) -> Mapping[str, object]:
        header = journal.parse_header(self._parts.journal.read(PREFACE_BYTES, HEADER_BYTES))
        if header is None or header[0] != Kind.START:
            return {}
        payload = self._frames.at(Place(PREFACE_BYTES, HEADER_BYTES + header[2]), Kind.START)
        return layout.mapping(layout.mapping(layout.unpack(payload)).get("meta", {}))

    def _scanned(self, parts: Parts) -> _Opened:
        found = scan(parts.journal, mark=parts.mark)
        self._whole_bytes = found.whole_bytes
        if found.closing is not None and found.closing.state is State.CLOSED:
            self._closed_by = found.close, found.close_checksum
        bad = [fault for fault in found.faults if fault.name != "incomplete_tail"]
        if bad:
            hint = f"`secondtake verify {self.name}` names every fault"
            raise Corrupt(f"cassette `{self.name}` is damaged: {bad[0].message} (offset {bad[0].offset})", hint=hint, faults=tuple(bad))
        closing = found.closing
        if closing is not None:
            state = closing.state
        else:
            state = State.RECORDING if parts.recording else State.DIED
        if state in (State.DIED, State.FAILED):
            for record, place in found.heads.values():
                head = layout.unpack_head(record)
                self._lost_heads[head.seq] = head
                found.index.add(lost_exchange(head), place, NOWHERE, NOWHERE)
        faults = tuple(found.faults) if state is State.DIED else ()
        meta = {**found.meta, **(closing.meta if closing is not None else {})}
        root = None if state is State.RECORDING else found.tree.root().hex()
        if closing is not None and closing.root.hex() != root:
            fault = Fault("root_mismatch", Severity.ERROR, "the exchanges are not those of the closing record")
            raise Corrupt(f"cassette `{self.name}` is damaged: {fault.message}", faults=(fault,))
        return _Opened(found.index.index(), state, root, meta, closing.reason if closing else None, faults)

    def exchange(self, seq: int) -> Exchange:
        """Raises NotFound, Corrupt."""
        number = self._index.number_of(seq)
        if number is None:
            raise NotFound(f"cassette `{self.name}` has no exchange {seq}", hint=f"`secondtake show {self.name}` lists them")
        if seq in self._lost_heads:
            return self._lost(seq)
        return self._read(number, seq)

    def _read(self, number: int, seq: int) -> Exchange:
        exchange = layout.unpack_exchange(self.record(number))
        if exchange.seq != seq:
            raise Corrupt(f"cassette `{self.name}`: the record of exchange {seq} is that of {exchange.seq}")
        return exchange

    def record(self, number: int) -> bytes:
        """The canonical record of the row at `number`: a leaf of the tree. Raises Corrupt."""
        return unpack_end(self._frames.at(self._index.frame(number), Kind.END)).record

    def _lost(self, seq: int) -> Exchange:
        exchange = lost_exchange(self._lost_heads[seq])
        notes = []
        for side in Side:
            partial = self._parts.spool_region(seq, side)
            if partial is not None:
                notes.append(f"partial: {partial.size_bytes} bytes of the {side} were spooled")
        return dataclasses.replace(exchange, notes=tuple(notes))

    def body(self, body: Body) -> Source:
        """The bytes of a body, to read in parts. Small ones are in memory and checked; a large one is checked before its first byte
        is given out. Raises NotFound when this cassette never held it, Corrupt when it did."""
        if body.digest == EMPTY:
            return Bytes(b"")
        place = self._index.body(body.digest)
        if place is None or place == NOWHERE:
            raise NotFound(f"cassette `{self.name}` holds no body {body.digest}")
        if place in (PLAIN_OBJECT, PACKED_OBJECT):
            packed = place == PACKED_OBJECT
            try:
                region = self._parts.object_region(body.digest, packed)
            except OSError as error:
                raise Corrupt(f"object {body.digest} is missing or cannot be read: {error.strerror}") from error
            return self._opened(region, body, packed)
        data = self._decoder.decode(place, body.digest)
        if len(data) != body.size_bytes:
            raise Corrupt(f"body {body.digest} has {len(data)} bytes, expected {body.size_bytes}")
        return Bytes(data)

    def proof(self, seq: int) -> tuple[int, int, tuple[bytes, ...]]:
        """Position, size and audit path that show exchange `seq` to be under `root` (merkle.proves). Raises NotFound, Corrupt."""
        count = len(self._index) - len(self._lost_heads)
        position = self._index.number_of(seq)
        if position is None or position >= count:
            raise NotFound(f"cassette `{self.name}` has no exchange {seq} under its root")
        leaves = [merkle.leaf(self.record(number)) for number in range(count)]
        return position, count, merkle.proof(leaves, position)

    def _opened(self, region: Region, body: Body, packed: bool) -> Source:
        try:
            stored = open_object(region, body.digest, packed, body.size_bytes, self._checked)
        except BaseException:
            self._parts.release(region)
            raise
        # The file is closed when nobody reads the body any more: a cassette may have more objects than a process may have files.
        weakref.finalize(stored, self._parts.release, region).atexit = False
        return stored

    @property
    def whole(self) -> Region:
        """The journal up to the end of its last whole frame."""
        journal_region = self._parts.journal
        return Region(journal_region.files, journal_region.fd, journal_region.start, self._whole_bytes)

    def objects(self) -> list[tuple[Digest, bool]]:
        """The objects this cassette refers to, and whether each is compressed; in order of digest."""
        return [(digest, place == PACKED_OBJECT) for digest, place in self._index.bodies() if place in (PLAIN_OBJECT, PACKED_OBJECT)]

    def packed_index(self) -> bytes | None:
        """The index file of a closed cassette; None for any other, which is walked each time it is opened."""
        return None if self._closed_by is None else self._index.pack(self._whole_bytes, *self._closed_by)

    @contextlib.contextmanager
    def object_region(self, digest: Digest, packed: bool) -> Iterator[Region]:
        """An object's file, open. Raises OSError."""
        region = self._parts.object_region(digest, packed)
        try:
            yield region
        finally:
            self._parts.release(region)

    def close(self) -> None:
        """Let go of the files. Sources of large bodies can no longer be read."""
        self._parts.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

"""A cassette being read: a stable snapshot, rows at once, exchanges and bodies when asked for. Never writes."""

from __future__ import annotations

import contextlib
import dataclasses
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Self

from secondtake.cassettes import artifacts, index, journal, layout, merkle
from secondtake.cassettes.artifacts import Artifact, Placed
from secondtake.cassettes.codec import BodyDecoder
from secondtake.cassettes.digest import digest_of
from secondtake.cassettes.errors import BadInput, Corrupt, NotFound, RecordedError, TooLarge
from secondtake.cassettes.exchange import EMPTY, Body, Bytes, Digest, Ending, Exchange, Side, Source
from secondtake.cassettes.files import Region
from secondtake.cassettes.index import NOWHERE, PACKED_OBJECT, PLAIN_OBJECT, Index, Row, Rows
from secondtake.cassettes.journal import HEADER_BYTES, PREFACE_BYTES, FrameReader, Kind, Place
from secondtake.cassettes.limits import ARTIFACT_BYTES
from secondtake.cassettes.objects import open_object
from secondtake.cassettes.records import Head
from secondtake.cassettes.scanning import Closing, EndRecord, Fault, Scan, Severity, State, journal_checksum, scan, unpack_close, unpack_end

__all__ = ["Cassette", "Closing", "EndRecord", "Fault", "Parts", "Scan", "Severity", "State", "lost_exchange", "scan"]


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
        self._decoder = BodyDecoder(self._frames)
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
        return self._source(body, place)

    def _source(self, body: Body, place: Place) -> Source:
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
    def artifacts(self) -> Sequence[Artifact]:
        """What was kept beside the exchanges, in the order of the journal."""
        return tuple(row.artifact for row in self._index.artifacts)

    def artifact(self, digest: Digest) -> bytes:
        """The bytes of an artifact. Raises NotFound when this cassette never held it, Corrupt when it did, TooLarge."""
        try:
            row = self._index.artifacts.find(digest)
        except BadInput:
            row = None
        if row is None:
            raise NotFound(f"cassette `{self.name}` holds no artifact {digest[:80]}")
        return self._artifact(row)

    def _artifact(self, row: Placed) -> bytes:
        kind, digest, size = row.artifact
        if size > ARTIFACT_BYTES:
            raise TooLarge(f"the {kind} {digest} has {size} bytes; at most {ARTIFACT_BYTES} are read")
        record = artifacts.unpack(self._frames.at(row.at, Kind.OBJECT))
        if record.artifact != row.artifact or record.content_at != row.content_at:
            raise Corrupt(f"cassette `{self.name}`: the record of the {kind} {digest} is another's")
        if record.content is not None:
            if digest_of(record.content) != digest:
                raise Corrupt(f"the {kind} {digest} holds other bytes")
            return record.content
        source = self._source(Body(digest, size), record.content_at)
        return source.read(0, source.size_bytes)

    @property
    def whole(self) -> Region:
        """The journal up to the end of its last whole frame."""
        journal_region = self._parts.journal
        return Region(journal_region.files, journal_region.fd, journal_region.start, self._whole_bytes)

    def objects(self) -> list[tuple[Digest, bool]]:
        """The objects this cassette refers to, and whether each is compressed; in order of digest."""
        places = [*self._index.bodies(), *((row.artifact.digest, row.content_at) for row in self._index.artifacts)]
        return sorted({(digest, place == PACKED_OBJECT) for digest, place in places if place in (PLAIN_OBJECT, PACKED_OBJECT)})

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

"""One recording being written: one journal, one thread, one fdatasync for all that is queued.

The order on disk is what makes a commit (B-01): objects first, synced, renamed and their folder synced; then the frames of bodies and of
the end record; then one fdatasync of the journal; then `done`. The first operation that fails ends the recording: what was durable stays,
everything after it is answered with NotStored.
"""

from __future__ import annotations

import contextlib
import queue
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, assert_never

from secondtake.cassettes import codec, index, journal, layout, merkle
from secondtake.cassettes.errors import NotStored
from secondtake.cassettes.exchange import EMPTY, Body, Digest, Exchange, Side
from secondtake.cassettes.files import Files, errno_name
from secondtake.cassettes.folder import RESERVE, durable_mark, spool_name, write_index
from secondtake.cassettes.index import NOWHERE, PACKED_OBJECT, PLAIN_OBJECT
from secondtake.cassettes.journal import FrameWriter, Kind, Place
from secondtake.cassettes.limits import BODY_IN_MEMORY_BYTES
from secondtake.cassettes.objects import Spool
from secondtake.cassettes.records import Chunk, End, Head, Record

type Done = Callable[[NotStored | None], None]


@dataclass(slots=True)
class _Commit:
    end: End
    done: Done
    weight: int


@dataclass(slots=True)
class _Close:
    meta: Mapping[str, object]


@dataclass(slots=True)
class _Abandon:
    pass


type _Item = tuple[Head | Chunk, int] | _Commit | _Close | _Abandon

_OVERHEAD_BYTES = 512
"""What a queued record weighs beside its bodies."""


@dataclass(slots=True)
class _Batch:
    """Frames not yet written, and who waits for them."""

    start: int
    frames: list[bytes] = field(default_factory=list)
    size_bytes: int = 0
    waiting: list[Done] = field(default_factory=list)
    weight: int = 0

    @property
    def end(self) -> int:
        return self.start + self.size_bytes

    def add(self, frame: bytes) -> Place:
        place = Place(self.end, len(frame))
        self.frames.append(frame)
        self.size_bytes += len(frame)
        return place


BATCH_BYTES = 4 * 1024 * 1024
"""A batch is written (not yet synced) when it has grown to this."""


class Held(NamedTuple):
    """Descriptors a recording holds: the journal (locked), its reserve, and the store's lock (shared)."""

    journal: int
    reserve: int
    store: int


class Writer:
    """Writes one cassette. `write` and `commit` may be called from any thread and never wait for the disk.

    Made by `Store.create`, which has written the journal's preface and start record and holds the locks given here.
    """

    def __init__(self, files: Files, root: Path, folder: Path, name: str, held: Held, start_bytes: int) -> None:
        self.name = name
        self._files = files
        self._store_root = root
        self._folder = folder
        self._fd, self._reserve = held.journal, held.reserve
        self._held = held
        self._written = start_bytes
        self._durable = start_bytes
        self._frames = FrameWriter()
        self._bodies = codec.BodyEncoder()
        self._index = index.IndexBuilder()
        self._tree = merkle.Tree()
        self._kept = (0, self._tree.root())
        self._spools: dict[tuple[int, Side], Spool] = {}
        self._queue: queue.SimpleQueue[_Item] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._backlog = 0
        self._failed: NotStored | None = None
        self._closing = False
        self._done = False
        self._root: str | None = None
        self._callback_error: Exception | None = None
        self._thread = threading.Thread(target=self._run, name=f"cassette {name}", daemon=True)
        self._thread.start()

    @property
    def failed(self) -> NotStored | None:
        """Why nothing more is kept; None while all is well."""
        return self._failed

    @property
    def root(self) -> str | None:
        """The Merkle root, 64 hexadecimal digits; None before `close`."""
        return self._root

    @property
    def backlog_bytes(self) -> int:
        """What is queued and not yet written."""
        return self._backlog

    def write(self, records: Iterable[Record]) -> None:
        """Queue heads and chunks (ends go through `commit`). After a failure they are dropped."""
        for record in records:
            match record:
                case Head():
                    weight = _OVERHEAD_BYTES
                case Chunk():
                    weight = len(record.data)
                case End():
                    raise TypeError("an end is committed, not written")
                case _:
                    assert_never(record)
            if self._failed is None:
                self._weigh(weight)
                self._queue.put((record, weight))

    def commit(self, end: End, done: Done) -> None:
        """Queue an end. `done(None)` is called once it is durable, from the writer's thread; `done(NotStored)` when it will not be,
        at once if that is known already."""
        weight = _OVERHEAD_BYTES + sum(len(data) for data in end.bodies.values())
        with self._lock:
            kept = self._failed is None and not self._closing
            if kept:
                self._backlog += weight
                self._queue.put(_Commit(end, done, weight))
        if not kept:
            done(self._failed or NotStored(f"cassette `{self.name}` is closed", reason="closed"))

    def close(self, *, meta: Mapping[str, object]) -> str:
        """Wait for all that is queued, write the closing record, release the lock. Returns the Merkle root of what is kept.

        `failed` says afterwards whether everything is. Raises what a `done` raised, if one did.
        """
        layout.pack(layout.ordered(meta))  # a value that cannot be kept is the caller's error, before anything is closed
        self._finish_with(_Close(meta))
        if self._callback_error is not None:
            raise self._callback_error
        return self._root or self._kept[1].hex()

    def abandon(self) -> None:
        """Stop as a killed process would: no closing record, what is queued is answered with NotStored, the lock is released."""
        self._failed = self._failed or NotStored(f"cassette `{self.name}` was abandoned", reason="abandoned")
        self._finish_with(_Abandon())

    def _finish_with(self, last: _Close | _Abandon) -> None:
        with self._lock:
            if not self._closing:
                self._closing = True
                self._queue.put(last)
        self._thread.join()

    def _weigh(self, weight: int) -> None:
        with self._lock:
            self._backlog += weight

    # From here on everything runs in the writer's thread.

    def _run(self) -> None:
        while not self._done:
            batch = _Batch(self._written)
            try:
                self._collect(batch)
                self._sync(batch)
            except OSError as error:
                self._fail(NotStored(f"cassette `{self.name}`: {error.strerror or error}", reason=errno_name(error)))
            except Exception as error:  # noqa: BLE001  # a record that cannot be kept must not be claimed, nor may its waiter wait for ever
                self._fail(NotStored(f"cassette `{self.name}`: {type(error).__name__}: {error}", reason="bad-record"))
            self._answer(batch)
        self._release()

    def _collect(self, batch: _Batch) -> None:
        """Take what is queued (waiting for a first item only)."""
        item = self._queue.get()
        while True:
            match item:
                case _Commit():
                    batch.waiting.append(item.done)
                    batch.weight += item.weight
                    if self._failed is None:
                        self._end(batch, item.end)
                case _Close():
                    self._done = True
                    self._sync(batch)
                    self._finish(item.meta)
                    return
                case _Abandon():
                    self._done = True
                    return
                case (record, weight):
                    batch.weight += weight
                    if self._failed is None:
                        self._take(batch, record)
                case _:
                    assert_never(item)
            if batch.size_bytes >= BATCH_BYTES:
                self._flush(batch)
            try:
                item = self._queue.get_nowait()
            except queue.Empty:
                return

    def _take(self, batch: _Batch, record: Head | Chunk) -> None:
        match record:
            case Head():
                payload = layout.pack_head(record)
                batch.add(self._frames.make(Kind.HEAD, payload, batch.end, record.request.host))
            case Chunk(seq, side, data):
                spool = self._spools.get((seq, side))
                if spool is None:
                    spool = Spool.begin(self._files, self._folder / spool_name(seq, side))
                    self._spools[seq, side] = spool
                spool.add(data)
            case _:
                assert_never(record)

    def _end(self, batch: _Batch, end: End) -> None:
        exchange = end.exchange
        request_at = self._place(batch, end, Side.REQUEST, exchange.request.body)
        response_at = NOWHERE if exchange.answer is None else self._place(batch, end, Side.RESPONSE, exchange.answer.body)
        record = layout.pack_exchange(exchange)
        payload = layout.pack([record, list(request_at), list(response_at)])
        at = batch.add(self._frames.make(Kind.END, payload, batch.end, exchange.request.host))
        self._index.add(exchange, at, request_at, response_at)
        self._tree.append(merkle.leaf(record))

    def _place(self, batch: _Batch, end: End, side: Side, body: Body) -> Place:
        """Keep a body, if it is not kept yet, and say where."""
        spool = self._spools.get((end.exchange.seq, side))
        if spool is not None:
            digest, packed = spool.keep(self._store_root)
            del self._spools[end.exchange.seq, side]  # until now, a failure drops it with the others
            if digest != body.digest or spool.size_bytes != body.size_bytes:
                raise ValueError(f"the chunks of exchange {end.exchange.seq} are not the body it names")
            return PACKED_OBJECT if packed else PLAIN_OBJECT
        if body.digest == EMPTY:
            return NOWHERE
        known = self._index.place_of(body.digest)
        if known is not None:
            return known
        data = end.bodies.get(body.digest)
        if data is None:
            raise ValueError(f"exchange {end.exchange.seq} names a body of which no bytes were given")
        return self._keep(batch, end.exchange, side, body.digest, data)

    def _keep(self, batch: _Batch, exchange: Exchange, side: Side, digest: Digest, data: bytes) -> Place:
        conversation = f"{side}\0{exchange.request.host}\0{exchange.adapter or exchange.request.path.split(b'?')[0]!r}"
        encoded = self._bodies.encode(digest, data, conversation) if len(data) <= BODY_IN_MEMORY_BYTES else None
        if encoded is None:
            spool = Spool.begin(self._files, self._folder / spool_name(exchange.seq, side))
            self._spools[exchange.seq, side] = spool  # so that a failure drops it
            spool.add(data)
            kept, packed = spool.keep(self._store_root)
            del self._spools[exchange.seq, side]
            if kept != digest:
                raise ValueError(f"a body of exchange {exchange.seq} is not what its digest says")
            return PACKED_OBJECT if packed else PLAIN_OBJECT
        body, known = encoded
        place = batch.add(journal.frame(Kind.BODY, 0, batch.end, codec.pack(body)))
        if known is not None:
            self._bodies.remember(known, place, conversation)
        return place

    def _flush(self, batch: _Batch) -> None:
        """Write the frames, unsynced."""
        if batch.frames:
            self._files.write(self._fd, b"".join(batch.frames))
            batch.frames.clear()
            self._written = batch.start = batch.end
            batch.size_bytes = 0

    def _sync(self, batch: _Batch) -> None:
        if self._failed is not None:
            return
        self._flush(batch)
        if batch.waiting and self._written > self._durable:
            self._files.sync(self._fd)
            self._durable = self._written
            self._kept = self._tree.size, self._tree.root()
            with contextlib.suppress(OSError):  # written after the sync, so a stale one claims too little, never too much
                self._files.overwrite(self._reserve, durable_mark(self._durable))
        self._answer(batch)

    def _answer(self, batch: _Batch) -> None:
        waiting, batch.waiting = batch.waiting, []
        self._weigh(-batch.weight)
        batch.weight = 0
        for done in waiting:
            try:
                done(self._failed)
            except Exception as error:  # noqa: BLE001  # a callback of another's must not end the recording; `close` raises it
                self._callback_error = self._callback_error or error

    def _close_record(self, meta: Mapping[str, object], state: str) -> bytes:
        made: dict[str, object] = {
            "state": state,
            "exchanges": self._kept[0],
            "root": self._kept[1],
            "meta": layout.ordered(meta),
        }
        if self._failed is not None:
            made["reason"] = self._failed.reason
        return layout.pack(made)

    def _finish(self, meta: Mapping[str, object]) -> None:
        if self._failed is None:
            self._drop_spools()
            frame = self._frames.make(Kind.CLOSE, self._close_record(meta, "closed"), self._written)
            self._files.write(self._fd, frame)
            self._files.sync(self._fd)
            close = Place(self._written, len(frame))
            self._written = self._durable = close.offset + close.length
            self._root = self._kept[1].hex()
            with contextlib.suppress(OSError):  # a cache and a reserve: the cassette is whole without the one and with the other
                checksum = int.from_bytes(frame[8:12], "little")
                write_index(self._files, self._folder, self._index.index().pack(self._written, close, checksum))
                self._files.remove(self._folder / RESERVE)
                self._files.sync_folder(self._folder)

    def _fail(self, why: NotStored) -> None:
        """End the recording: cut off what may be torn, and say so in a closing record where the disk still takes one."""
        self._failed = why
        self._drop_spools()
        with contextlib.suppress(OSError):
            self._files.remove(self._folder / RESERVE)
        with contextlib.suppress(OSError):
            self._files.truncate(self._fd, self._durable)
            self._written = self._durable
            frame = FrameWriter().make(Kind.CLOSE, self._close_record({}, "record-failed"), self._durable)
            self._files.write(self._fd, frame)
            self._files.sync(self._fd)
        self._root = self._kept[1].hex()

    def _drop_spools(self) -> None:
        for spool in self._spools.values():
            with contextlib.suppress(OSError):
                spool.drop()
        self._spools.clear()

    def _release(self) -> None:
        for fd in self._held:
            with contextlib.suppress(OSError):
                self._files.close(fd)

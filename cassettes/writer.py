"""One recording being written: one journal, one thread, one fdatasync for all that is queued.

The order on disk is what makes a commit (B-01): objects first, synced, renamed and their folder synced; then the frames of bodies and of
the end record; then one fdatasync of the journal; then `done`. The first operation that fails ends the recording: what was durable stays,
everything after it is answered with NotStored.
"""

from __future__ import annotations

import contextlib
import queue
import threading
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, assert_never

from secondtake.cassettes import artifacts, layout
from secondtake.cassettes.digest import digest_of
from secondtake.cassettes.errors import NotStored
from secondtake.cassettes.exchange import Digest
from secondtake.cassettes.files import Files, errno_name
from secondtake.cassettes.folder import INDEX_FROM_BYTES, RESERVE, durable_mark, write_index
from secondtake.cassettes.journal import FrameWriter, Kind, Place
from secondtake.cassettes.placing import Batch, Done, Kept, Placer
from secondtake.cassettes.records import Chunk, End, Head, Record


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


@dataclass(slots=True)
class _Later:
    """Artifacts wait in a queue of their own, and are written between commits."""


type _Item = tuple[Head | Chunk, int] | _Commit | _Later | _Close | _Abandon

_OVERHEAD_BYTES = 512
"""What a queued record weighs beside its bodies."""


BATCH_BYTES = 4 * 1024 * 1024
"""A batch is written (not yet synced) when it has grown to this."""


ARTIFACTS_AT_ONCE_BYTES = 256 * 1024
"""Of the artifacts that wait, so much is written before commits get their turn."""


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
        self._placer = Placer(files, root, folder)
        self._kept = (0, self._placer.tree.root())
        self._queue: queue.SimpleQueue[_Item] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._later: deque[Kept] = deque()
        self._artifacts: set[Digest] = set()
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

    def keep(self, kind: str, content: bytes) -> Digest:
        """Queue an artifact (a tree, a file of a workspace …), and give its name. Twice the same bytes are kept once.

        It is durable with the next commit, or at the closing record; after a failure it is dropped. Raises BadInput: no such kind can be.
        """
        artifacts.check_kind(kind)
        digest = digest_of(content)
        weight = _OVERHEAD_BYTES + len(content)
        with self._lock:
            if self._failed is None and not self._closing and digest not in self._artifacts:
                self._artifacts.add(digest)
                self._backlog += weight
                self._later.append(Kept(kind, digest, content, weight))
                if len(self._later) == 1:
                    self._queue.put(_Later())
        return digest

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
            batch = Batch(self._written)
            try:
                self._collect(batch)
                self._sync(batch)
            except OSError as error:
                self._fail(NotStored(f"cassette `{self.name}`: {error.strerror or error}", reason=errno_name(error)))
            except Exception as error:  # noqa: BLE001  # a record that cannot be kept must not be claimed, nor may its waiter wait for ever
                self._fail(NotStored(f"cassette `{self.name}`: {type(error).__name__}: {error}", reason="bad-record"))
            self._answer(batch)
        self._release()

    def _collect(self, batch: Batch) -> None:
        """Take what is queued (waiting for a first item only)."""
        item = self._queue.get()
        while True:
            match item:
                case _Commit():
                    batch.waiting.append(item.done)
                    batch.weight += item.weight
                    if self._failed is None:
                        self._placer.end(batch, item.end)
                case _Later():
                    self._sync(batch)  # who waits for an earlier commit does not wait for this
                    self._write_later(batch, ARTIFACTS_AT_ONCE_BYTES)
                case _Close():
                    self._done = True
                    self._sync(batch)
                    self._write_later(batch, None)
                    self._sync(batch)
                    self._finish(item.meta)
                    return
                case _Abandon():
                    self._done = True
                    return
                case (record, weight):
                    batch.weight += weight
                    if self._failed is None:
                        self._placer.take(batch, record)
                case _:
                    assert_never(item)
            if batch.size_bytes >= BATCH_BYTES:
                self._flush(batch)
            try:
                item = self._queue.get_nowait()
            except queue.Empty:
                return

    def _write_later(self, batch: Batch, limit_bytes: int | None) -> None:
        """Write waiting artifacts: all, or until `limit_bytes` are written. The rest comes behind what is queued by now."""
        written = 0
        while self._later and (limit_bytes is None or written < limit_bytes):
            one = self._later[0]
            batch.weight += one.weight
            written += one.weight
            if self._failed is None:
                self._placer.artifact(batch, one)
            if batch.size_bytes >= BATCH_BYTES:
                self._flush(batch)
            with self._lock:
                self._later.popleft()
                if self._later and limit_bytes is not None and written >= limit_bytes:
                    self._queue.put(_Later())

    def _flush(self, batch: Batch) -> None:
        """Write the frames, unsynced."""
        if batch.frames:
            self._files.write(self._fd, b"".join(batch.frames))
            batch.frames.clear()
            self._written = batch.start = batch.end
            batch.size_bytes = 0

    def _sync(self, batch: Batch) -> None:
        if self._failed is not None:
            return
        self._flush(batch)
        if batch.waiting and self._written > self._durable:
            self._files.sync(self._fd)
            self._durable = self._written
            self._kept = self._placer.tree.size, self._placer.tree.root()
            with contextlib.suppress(OSError):  # written after the sync, so a stale one claims too little, never too much
                self._files.overwrite(self._reserve, durable_mark(self._durable))
        self._answer(batch)

    def _answer(self, batch: Batch) -> None:
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
            self._placer.drop_spools()
            frame = self._placer.frames.make(Kind.CLOSE, self._close_record(meta, "closed"), self._written)
            self._files.write(self._fd, frame)
            self._files.sync(self._fd)
            close = Place(self._written, len(frame))
            self._written = self._durable = close.offset + close.length
            self._root = self._kept[1].hex()
            with contextlib.suppress(OSError):  # a cache and a reserve: the cassette is whole without the one and with the other
                if self._written >= INDEX_FROM_BYTES:
                    checksum = int.from_bytes(frame[8:12], "little")
                    write_index(self._files, self._folder, self._placer.index.index().pack(self._written, close, checksum))
                self._files.remove(self._folder / RESERVE)
                self._files.sync_folder(self._folder)

    def _fail(self, why: NotStored) -> None:
        """End the recording: cut off what may be torn, and say so in a closing record where the disk still takes one."""
        with self._lock:
            self._failed = why
            self._backlog -= sum(one.weight for one in self._later)
            self._later.clear()
        self._placer.drop_spools()
        with contextlib.suppress(OSError):
            self._files.remove(self._folder / RESERVE)
        with contextlib.suppress(OSError):
            self._files.truncate(self._fd, self._durable)
            self._written = self._durable
            frame = FrameWriter().make(Kind.CLOSE, self._close_record({}, "record-failed"), self._durable)
            self._files.write(self._fd, frame)
            self._files.sync(self._fd)
        self._root = self._kept[1].hex()

    def _release(self) -> None:
        for fd in self._held:
            with contextlib.suppress(OSError):
                self._files.close(fd)

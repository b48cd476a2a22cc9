"""A disk that fails at its n-th operation, and one that forgets what was not synced."""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path

from secondtake.cassettes.files import DiskFiles, ShortWrite


class Way(StrEnum):
    """How an operation fails."""

    EIO = "EIO"
    ENOSPC = "ENOSPC"
    SHORT = "short"
    STOP = "stop"


class FaultyFiles(DiskFiles):
    """Fails operation number `at` (from 0) in one way: once, or it and every later one. Syncs are counted and skipped.

    STOP: a write is half done, and from then on nothing reaches the disk, as if the process had been killed there.
    """

    def __init__(self, at: int = -1, way: Way = Way.EIO, *, for_ever: bool = False) -> None:
        self.at = at
        self.way = way
        self.for_ever = for_ever or way is Way.STOP
        self.count = 0
        self._lock = threading.Lock()

    def _due(self) -> bool:
        with self._lock:
            number = self.count
            self.count += 1
        return number == self.at or (self.for_ever and 0 <= self.at < number)

    def _error(self) -> OSError:
        number = errno.ENOSPC if self.way is Way.ENOSPC else errno.EIO
        return OSError(number, os.strerror(number))

    def _do[T](self, operation: Callable[[], T]) -> T:
        if self._due():
            raise self._error()
        return operation()

    def make_folder_once(self, path: Path) -> None:
        self._do(lambda: DiskFiles.make_folder_once(self, path))

    def create(self, path: Path) -> int:
        return self._do(lambda: DiskFiles.create(self, path))

    def open_fixed(self, path: Path) -> int:
        return self._do(lambda: DiskFiles.open_fixed(self, path))

    def open_lock(self, path: Path) -> int:
        return self._do(lambda: DiskFiles.open_lock(self, path))

    def write(self, fd: int, data: bytes | bytearray | memoryview) -> None:
        first = self.count == self.at
        if not self._due():
            os.write(fd, data)
            return
        if self.way in (Way.SHORT, Way.STOP, Way.ENOSPC) and first:
            os.write(fd, bytes(data)[: len(data) // 2])
        if self.way is Way.SHORT:
            raise ShortWrite(errno.EIO, "short write")
        raise self._error()

    def overwrite(self, fd: int, data: bytes) -> None:
        self._do(lambda: DiskFiles.overwrite(self, fd, data))

    def truncate(self, fd: int, size: int) -> None:
        self._do(lambda: DiskFiles.truncate(self, fd, size))

    def sync(self, fd: int) -> None:
        self._do(lambda: None)

    def sync_folder(self, path: Path) -> None:
        self._do(lambda: None)

    def protect(self, fd: int) -> None:
        self._do(lambda: DiskFiles.protect(self, fd))

    def rename(self, old: Path, new: Path) -> None:
        self._do(lambda: DiskFiles.rename(self, old, new))

    def link(self, old: Path, new: Path) -> None:
        self._do(lambda: DiskFiles.link(self, old, new))

    def remove(self, path: Path) -> None:
        self._do(lambda: DiskFiles.remove(self, path))

    def remove_folder(self, path: Path) -> None:
        self._do(lambda: DiskFiles.remove_folder(self, path))


class ForgetfulFiles(DiskFiles):
    """Remembers how much of each file was synced, so that a test can make the disk of a machine that lost its power.

    Once `off` is set, the next writes still reach the page cache, but nothing is synced, cut or removed any more.
    """

    def __init__(self) -> None:
        self.synced: dict[int, int] = {}
        self.off = False

    def _on(self) -> None:
        if self.off:
            raise OSError(errno.EIO, os.strerror(errno.EIO))

    def sync(self, fd: int) -> None:
        self._on()
        found = os.fstat(fd)
        self.synced[found.st_ino] = found.st_size

    def sync_folder(self, path: Path) -> None:
        self._on()

    def truncate(self, fd: int, size: int) -> None:
        self._on()
        DiskFiles.truncate(self, fd, size)

    def remove(self, path: Path) -> None:
        self._on()
        DiskFiles.remove(self, path)

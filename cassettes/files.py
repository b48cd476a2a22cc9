"""Every touch of the disk. Nothing else in the store opens, writes, syncs, renames or removes a file.

One small module, so that a test double can fail the n-th operation for every n. What is made is 0600 (files), 0400 (objects) or 0700
(folders) whatever the umask; what is read inside a store is never reached through a link, and never anything but a regular file.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

COPY_BYTES = 1024 * 1024


class ShortWrite(OSError):
    """Fewer bytes were taken than given, and the next attempt did not say why."""


@dataclass(frozen=True, slots=True)
class Status:
    """What a path is, without following it."""

    size_bytes: int
    allocated_bytes: int
    modified_ns: int
    is_file: bool
    is_folder: bool


class Files(Protocol):
    """The operations a store needs. All raise OSError and nothing else."""

    def make_folder(self, path: Path) -> None:
        """Make `path` and its missing parents, 0700, each durable in its parent. There already: nothing happens."""
        ...

    def make_folder_once(self, path: Path) -> None:
        """Make `path`, whose parent is there. Raises FileExistsError."""
        ...

    def create(self, path: Path) -> int:
        """A new file, 0600, open for reading and appending. Raises FileExistsError."""
        ...

    def open_fixed(self, path: Path) -> int:
        """A file that exists, open for overwriting its beginning."""
        ...

    def open_lock(self, path: Path) -> int:
        """A file that exists to be locked; made when missing."""
        ...

    def open_read(self, root: Path, parts: Sequence[str]) -> int:
        """Open root/parts for reading; no part may be a link, the last must be a regular file. Raises FileNotFoundError."""
        ...

    def write(self, fd: int, data: bytes | bytearray | memoryview) -> None:
        """Append all of `data`. A short write is an error."""
        ...

    def overwrite(self, fd: int, data: bytes) -> None:
        """Put `data` at the beginning of a file that is longer."""
        ...

    def read(self, fd: int, offset: int, size: int) -> bytes:
        """`size` bytes from `offset`; fewer at the end of the file."""
        ...

    def size(self, fd: int) -> int: ...
    def truncate(self, fd: int, size: int) -> None: ...
    def sync(self, fd: int) -> None: ...
    def protect(self, fd: int) -> None:
        """Make the file read-only (0400)."""
        ...

    def close(self, fd: int) -> None: ...
    def lock(self, fd: int, *, exclusive: bool, wait: bool) -> bool:
        """Lock until closed (or until the process ends, however it ends). False when held by another and `wait` is off."""
        ...

    def unlock(self, fd: int) -> None: ...
    def sync_folder(self, path: Path) -> None: ...
    def rename(self, old: Path, new: Path) -> None: ...
    def link(self, old: Path, new: Path) -> None:
        """A second name for a file. Raises FileExistsError."""
        ...

    def remove(self, path: Path) -> None: ...
    def remove_folder(self, path: Path) -> None: ...
    def names(self, path: Path) -> list[str]:
        """The names in a folder, sorted. A folder that is missing, or is a link, has none."""
        ...

    def status(self, path: Path) -> Status | None:
        """None when there is nothing of that name."""
        ...


_READ_FLAGS = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
_FOLDER_FLAGS = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_DIRECTORY


class DiskFiles:
    """The real disk."""

    def make_folder(self, path: Path) -> None:
        missing: list[Path] = []
        while not path.is_dir():
            missing.append(path)
            if path.parent == path:
                break
            path = path.parent
        for folder in reversed(missing):
            try:
                self.make_folder_once(folder)
            except FileExistsError:
                if not folder.is_dir():
                    raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(folder)) from None
            self.sync_folder(folder.parent)

    def make_folder_once(self, path: Path) -> None:
        path.mkdir(0o700)
        path.chmod(0o700)

    def create(self, path: Path) -> int:
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_APPEND, 0o600)
        os.fchmod(fd, 0o600)
        return fd

    def open_fixed(self, path: Path) -> int:
        return os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)

    def open_lock(self, path: Path) -> int:
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        os.fchmod(fd, 0o600)
        return fd

    def open_read(self, root: Path, parts: Sequence[str]) -> int:
        folder = os.open(root, os.O_RDONLY | os.O_CLOEXEC | os.O_DIRECTORY)
        try:
            for part in parts[:-1]:
                below = os.open(part, _FOLDER_FLAGS, dir_fd=folder)
                os.close(folder)
                folder = below
            fd = os.open(parts[-1], _READ_FLAGS, dir_fd=folder)
        finally:
            os.close(folder)
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            os.close(fd)
            raise OSError(errno.EINVAL, "not a regular file", str(root.joinpath(*parts)))
        return fd

    def write(self, fd: int, data: bytes | bytearray | memoryview) -> None:
        taken = os.write(fd, data)
        if taken != len(data):
            # The second attempt is made for its errno only: a full disk takes what fits and says so at the next write (SECURITY B2).
            os.write(fd, memoryview(data)[taken:])
            raise ShortWrite(errno.EIO, f"short write: {taken} of {len(data)} bytes")

    def overwrite(self, fd: int, data: bytes) -> None:
        os.pwrite(fd, data, 0)

    def read(self, fd: int, offset: int, size: int) -> bytes:
        data = os.pread(fd, size, offset)
        if len(data) == size or not data:
            return data
        parts = [data]
        got = len(data)
        while got < size and (more := os.pread(fd, size - got, offset + got)):
            parts.append(more)
            got += len(more)
        return b"".join(parts)

    def size(self, fd: int) -> int:
        return os.fstat(fd).st_size

    def truncate(self, fd: int, size: int) -> None:
        os.ftruncate(fd, size)

    def sync(self, fd: int) -> None:
        getattr(os, "fdatasync", os.fsync)(fd)

    def protect(self, fd: int) -> None:
        os.fchmod(fd, 0o400)

    def close(self, fd: int) -> None:
        os.close(fd)

    def lock(self, fd: int, *, exclusive: bool, wait: bool) -> bool:
        try:
            fcntl.flock(fd, (fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH) | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            return False
        return True

    def unlock(self, fd: int) -> None:
        fcntl.flock(fd, fcntl.LOCK_UN)

    def sync_folder(self, path: Path) -> None:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_DIRECTORY)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)

    def rename(self, old: Path, new: Path) -> None:
        old.rename(new)

    def link(self, old: Path, new: Path) -> None:
        os.link(old, new, follow_symlinks=False)

    def remove(self, path: Path) -> None:
        path.unlink()

    def remove_folder(self, path: Path) -> None:
        path.rmdir()

    def names(self, path: Path) -> list[str]:
        try:
            fd = os.open(path, _FOLDER_FLAGS)
        except (FileNotFoundError, NotADirectoryError):
            return []
        except OSError as error:
            if error.errno == errno.ELOOP:
                return []
            raise
        try:
            return sorted(os.listdir(fd))  # noqa: PTH208  # by descriptor: a Path would follow a link put there meanwhile
        finally:
            os.close(fd)

    def status(self, path: Path) -> Status | None:
        try:
            found = os.lstat(path)
        except (FileNotFoundError, NotADirectoryError):
            return None
        mode = found.st_mode
        return Status(found.st_size, found.st_blocks * 512, found.st_mtime_ns, stat.S_ISREG(mode), stat.S_ISDIR(mode))


@dataclass(frozen=True, slots=True)
class Region:
    """A range of an open file: a whole file, or one member of an exported one. Reading beyond its end gives fewer bytes."""

    files: Files
    fd: int
    start: int
    size_bytes: int

    def read(self, offset: int, size: int) -> bytes:
        """`size` bytes from `offset` within the region."""
        if offset < 0 or offset >= self.size_bytes:
            return b""
        return self.files.read(self.fd, self.start + offset, min(size, self.size_bytes - offset))


def errno_name(error: OSError) -> str:
    """The operating system's word for what went wrong, for example `ENOSPC`."""
    if isinstance(error, ShortWrite):
        return "short-write"
    return errno.errorcode.get(error.errno or 0, type(error).__name__)

"""Scratch copies of a workspace, and what changed between two states of one.

Names are bytes, as the file system has them: they need not be UTF-8 and may hold line ends. Kept: content, permission bits,
symbolic links as they are, times of change, empty folders. Not kept: owners, access lists, extended attributes; two names of one
file become two files, and holes are filled. Nothing is left out by name.
"""

# pathlib holds no names of bytes, and these must stay what they are.
# ruff: noqa: PTH101, PTH102, PTH115, PTH116, PTH118, PTH120, PTH211

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import shutil
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from secondtake.cassettes.errors import BadInput, NotStored

PIECE_BYTES = 1 << 20


class Kind(StrEnum):
    """What an entry of a tree is."""

    FILE = "file"
    FOLDER = "folder"
    LINK = "link"
    SPECIAL = "special"


class Trouble(StrEnum):
    """Why an entry is not in the copy, or not as harmless there as it looks."""

    SPECIAL = "not copied: a socket, pipe or device"
    UNREADABLE = "not copied: cannot be read"
    VANISHED = "not copied: it went away meanwhile"
    LEADS_OUT = "a link that leads out of the workspace: writing through it changes the original"


@dataclass(frozen=True, slots=True)
class Note:
    """One entry with trouble. `path` is relative to the workspace."""

    trouble: Trouble
    path: bytes

    def __str__(self) -> str:
        return f"{shown(self.path)}: {self.trouble}"


@dataclass(frozen=True, slots=True)
class Copied:
    """What a copy holds; `notes` name what it does not hold, in order of path."""

    files: int
    size_bytes: int
    notes: tuple[Note, ...]


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of a tree. `digest` is the SHA-256 of a file's content or of a link's target, hex; "" for the other kinds and for
    what cannot be read. `mode` holds the permission bits, 0 for links."""

    path: bytes
    kind: Kind
    mode: int
    size_bytes: int
    digest: str


@dataclass(frozen=True, slots=True)
class Tree:
    """A state of a workspace: its entries in order of path, the root itself not among them."""

    entries: tuple[Entry, ...]

    @property
    def digest(self) -> str:
        """SHA-256 over all entries, hex. Equal for two trees that differ in nothing but times and owners."""
        total = hashlib.sha256()
        for entry in self.entries:
            line = f" {entry.kind} {entry.mode:o} {entry.digest}\n".encode()
            total.update(len(entry.path).to_bytes(4, "big") + entry.path + line)
        return total.hexdigest()


class Changed(StrEnum):
    """What happened to a path."""

    ADDED = "added"
    REMOVED = "removed"
    CONTENT = "content"
    MODE = "mode"
    KIND = "kind"


@dataclass(frozen=True, slots=True)
class Change:
    """One difference between two trees."""

    changed: Changed
    path: bytes

    def __str__(self) -> str:
        return f"{self.changed} {shown(self.path)}"


def shown(path: bytes) -> str:
    """A path that can be printed: control characters, odd spaces and what is not UTF-8 appear as escapes."""
    text = path.decode("utf-8", "backslashreplace")
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def copy_workspace(source: Path, destination: Path) -> Copied:
    """Copy the tree under `source` into `destination`, which is made (0700 until it is whole, then as the source) or is empty.

    Raises:
        BadInput: `source` is no folder, `destination` is not empty, or one of them lies within the other.
        NotStored: the disk refused; what had been copied is removed.
    """
    if not source.is_dir():
        raise BadInput(f"not a folder: {source}")
    real, target = os.fsencode(source.resolve()), os.fsencode(destination.resolve())
    if _within(real, target) or _within(target, real):
        raise BadInput(f"a copy of {source} cannot be made in {destination}: one lies within the other")
    if destination.is_symlink() or (destination.exists() and (not destination.is_dir() or any(destination.iterdir()))):
        raise BadInput(f"not an empty folder: {destination}")
    try:
        destination.mkdir(mode=0o700, parents=True, exist_ok=True)
        return _copied(real, target)
    except OSError as error:
        with contextlib.suppress(OSError):
            remove_workspace(destination)
        reason = errno.errorcode.get(error.errno or 0, "EIO")
        raise NotStored(f"cannot copy the workspace to {destination}: {error.strerror}", reason=reason) from error


def read_tree(root: Path) -> Tree:
    """The state of the tree under `root` now. Reads every file; special files are listed, not opened."""
    top = os.fsencode(root)
    entries = []
    for path, status in _walk(top, []):
        kind, digest, size = _kind(status), "", 0
        with contextlib.suppress(OSError):
            if kind is Kind.FILE:
                digest, size = _file_digest(os.path.join(top, path))
            elif kind is Kind.LINK:
                link = os.readlink(os.path.join(top, path))
                digest, size = hashlib.sha256(link).hexdigest(), len(link)
        mode = 0 if kind is Kind.LINK else stat.S_IMODE(status.st_mode)
        entries.append(Entry(path, kind, mode, size, digest))
    return Tree(tuple(sorted(entries, key=lambda e: e.path)))


def compare(before: Tree, after: Tree) -> tuple[Change, ...]:
    """What has to happen to `before` to make it `after`, in order of path. A changed file whose mode changed too is two changes."""
    old, new = {e.path: e for e in before.entries}, {e.path: e for e in after.entries}
    changes = []
    for path in sorted(old.keys() | new.keys()):
        match old.get(path), new.get(path):
            case None, _:
                changes.append(Change(Changed.ADDED, path))
            case _, None:
                changes.append(Change(Changed.REMOVED, path))
            case Entry() as was, Entry() as now if was.kind is not now.kind:
                changes.append(Change(Changed.KIND, path))
            case Entry() as was, Entry() as now:
                if was.digest != now.digest:
                    changes.append(Change(Changed.CONTENT, path))
                if was.mode != now.mode:
                    changes.append(Change(Changed.MODE, path))
    return tuple(changes)


def remove_workspace(root: Path) -> None:
    """Remove a scratch copy, folders without write permission included. Links are removed, never followed.

    Raises:
        OSError: something cannot be removed.
    """
    top = os.fsencode(root)
    os.chmod(top, 0o700)
    for path, status in _walk(top, []):
        if stat.S_ISDIR(status.st_mode):
            os.chmod(os.path.join(top, path), 0o700)
    shutil.rmtree(top)


def _copied(source: bytes, destination: bytes) -> Copied:
    notes: list[Note] = []
    folders = [(destination, os.stat(source))]
    files = size = 0
    for path, status in _walk(source, notes):
        at, to = os.path.join(source, path), os.path.join(destination, path)
        match _kind(status):
            case Kind.FOLDER:
                os.mkdir(to, 0o700)
                folders.append((to, status))
            case Kind.LINK:
                try:
                    link = os.readlink(at)
                except OSError:
                    notes.append(Note(Trouble.VANISHED, path))
                    continue
                os.symlink(link, to)
                os.utime(to, ns=(status.st_atime_ns, status.st_mtime_ns), follow_symlinks=False)
                if _leads_out(path, link):
                    notes.append(Note(Trouble.LEADS_OUT, path))
            case Kind.FILE:
                copied = _copy_file(at, to)
                if isinstance(copied, Trouble):
                    notes.append(Note(copied, path))
                else:
                    files, size = files + 1, size + copied
            case Kind.SPECIAL:
                notes.append(Note(Trouble.SPECIAL, path))
    # Inner folders first, and only now: a folder may be read-only, and filling it changes its time.
    for folder, status in reversed(folders):
        os.chmod(folder, stat.S_IMODE(status.st_mode))
        os.utime(folder, ns=(status.st_atime_ns, status.st_mtime_ns))
    return Copied(files, size, tuple(sorted(notes, key=lambda n: (n.path, n.trouble))))


def _copy_file(source: bytes, destination: bytes) -> int | Trouble:
    try:
        # O_NONBLOCK: a pipe put in the file's place meanwhile must not stop us.
        reading = os.open(source, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        return Trouble.VANISHED if error.errno in (errno.ENOENT, errno.ELOOP) else Trouble.UNREADABLE
    with os.fdopen(reading, "rb", buffering=0) as original:
        status = os.fstat(reading)
        if not stat.S_ISREG(status.st_mode):
            return Trouble.SPECIAL
        writing = os.open(destination, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(writing, "wb", buffering=0) as copy:
            shutil.copyfileobj(original, copy, PIECE_BYTES)
            os.fchmod(writing, stat.S_IMODE(status.st_mode))
            size = os.fstat(writing).st_size
    os.utime(destination, ns=(status.st_atime_ns, status.st_mtime_ns))
    return size


def _walk(root: bytes, notes: list[Note]) -> Iterator[tuple[bytes, os.stat_result]]:
    """Every entry below `root`, folders before they are listed. A folder that cannot be listed is given, and noted."""
    waiting = [b""]
    while waiting:
        folder = waiting.pop()
        try:
            with os.scandir(os.path.join(root, folder)) as listed:
                names = sorted(entry.name for entry in listed)
        except OSError as error:
            if not folder:
                raise
            notes.append(Note(Trouble.VANISHED if error.errno == errno.ENOENT else Trouble.UNREADABLE, folder))
            continue
        for name in names:
            path = os.path.join(folder, name)
            try:
                status = os.lstat(os.path.join(root, path))
            except OSError as error:
                notes.append(Note(Trouble.VANISHED if error.errno == errno.ENOENT else Trouble.UNREADABLE, path))
                continue
            yield path, status
            if stat.S_ISDIR(status.st_mode):
                waiting.append(path)


def _kind(status: os.stat_result) -> Kind:
    if stat.S_ISREG(status.st_mode):
        return Kind.FILE
    if stat.S_ISDIR(status.st_mode):
        return Kind.FOLDER
    return Kind.LINK if stat.S_ISLNK(status.st_mode) else Kind.SPECIAL


def _file_digest(path: bytes) -> tuple[str, int]:
    with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
        digest = hashlib.file_digest(file, "sha256")
        return digest.hexdigest(), file.tell()


def _leads_out(path: bytes, link: bytes) -> bool:
    if link.startswith(b"/"):
        return True
    reached = os.path.normpath(os.path.join(os.path.dirname(path), link))
    return reached == b".." or reached.startswith(b"../")


def _within(inner: bytes, outer: bytes) -> bool:
    return inner == outer or inner.startswith(outer.rstrip(b"/") + b"/")

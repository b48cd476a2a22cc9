"""A workspace captured: every entry below a folder, its content redacted and kept, what could not be captured listed by name.

Nothing is written outside of the store and no link is followed. A second capture reads what has changed since the first.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from secondtake.cassettes import trees
from secondtake.cassettes.artifacts import BLOB, TREE
from secondtake.cassettes.credential_files import CredentialFile, kind_of, masked, scope_of
from secondtake.cassettes.errors import RecordedError
from secondtake.cassettes.exchange import Digest, Side
from secondtake.cassettes.placeholder import placed
from secondtake.cassettes.redact import Redactor
from secondtake.cassettes.streams import binary
from secondtake.cassettes.trees import PLACEHOLDER, REDACTED, TOO_LARGE, Entry, Node, Tree, shown, tree_of
from secondtake.harness.walking import PERMISSIONS, Found, Limits, Notes, Walk

type Keep = Callable[[str, bytes], Digest]
"""Puts an artifact into the recording: its kind and its bytes. `Writer.keep` is one."""

LFS_POINTER = b"version https://git-lfs.github.com/spec/"

_RACY_NS = 20_000_000
"""A file changed within so long of the newest one is read again: file systems count time in steps."""


class NotStaged(RecordedError):
    """This folder is not captured as a stage. The recording goes on without one."""


@dataclass(slots=True)
class Cost:
    """What a capture read and took."""

    files: int = 0
    size_bytes: int = 0
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Captured:
    """One state of a folder. Digests in it are of artifacts that were kept."""

    tree: Tree
    not_captured: tuple[str, ...] = ()
    """What is not in the tree and why, a line each, escaped for a terminal."""
    credentials: tuple[CredentialFile, ...] = ()
    nested: tuple[bytes, ...] = ()
    """Folders below the root that are repositories of their own."""
    pointers: frozenset[bytes] = frozenset()
    """Files that are git-lfs pointers."""
    cost: Cost = field(default_factory=Cost)


class _Known(NamedTuple):
    """An entry as it was captured, and the state of its file then."""

    key: tuple[int, ...]
    entry: Entry
    credential: CredentialFile | None
    pointer: bool


class Snapshot:
    """Captures one folder again and again. From one thread at a time."""

    def __init__(
        self,
        root: Path,
        keep: Keep,
        redactor: Redactor,
        *,
        limits: Limits,
        clock_s: Callable[[], float],
        paused: Callable[[], None] = lambda: None,
        ignored: Callable[[], Iterable[bytes]] = lambda: (),
        only: frozenset[bytes] | None = None,
    ) -> None:
        """Take what to capture.

        Args:
            root: the folder.
            keep: where artifacts go.
            redactor: hides what is secret; used from the thread that captures.
            limits: what it may cost.
            clock_s: a clock that counts seconds.
            paused: waits while too much is on its way to the disk; called between files.
            ignored: folders that may be left out where there are too many files, relative to the root.
            only: paths below the root that are captured with all below them; None: all.
        """
        self._root = root
        self._keep = keep
        self._redactor = redactor
        self._limits = limits
        self._clock_s = clock_s
        self._paused = paused
        self._ignored = ignored
        self._only = only
        self._known: dict[bytes, _Known] = {}
        self._newest_ns = 0
        self._left_out: frozenset[bytes] = frozenset()
        self._tree: Tree | None = None

    @property
    def left_out(self) -> frozenset[bytes]:
        """Ignored folders that are in no tree from here on: there were too many files."""
        return self._left_out

    def take(self, redactor: Redactor | None = None) -> Captured:
        """Capture what is there now. `redactor`: one that knows more than the one before.

        Raises:
            NotStaged: there are too many files.
            OSError: the folder itself cannot be read.
        """
        begun_s = self._clock_s()
        if redactor is not None:
            self._redactor = redactor
        walk, found = self._walked()
        cost, notes = Cost(), walk.notes
        secret = self._secret_names([one.path for one in found] + [entry.path for entry in walk.folders], notes)
        found = [one for one in found if one.path not in secret]
        entries = [entry for entry in walk.folders if entry.path not in secret]
        known: dict[bytes, _Known] = {}
        linked = 0
        for one in found:
            made = self._entry(one, cost, notes)
            if made is not None:
                known[one.path] = made
                entries.append(made.entry)
                if made.entry.note == REDACTED:
                    notes.add("holds what looks like a credential; it comes back with placeholders", one.path)
                linked += stat.S_ISREG(one.status.st_mode) and one.status.st_nlink > 1
        if linked:
            notes.add("hard links; each name is a file of its own when restored", b"%d files have other names" % linked)
        self._newest_ns = max((one.status.st_ctime_ns for one in found), default=0)
        self._known = known
        tree = tree_of(entries)
        if self._tree is None or self._tree.entries != tree.entries:
            self._keep(TREE, trees.encode(tree))
            self._tree = tree
        cost.files = sum(one.entry.node is Node.FILE for one in known.values())
        cost.seconds = self._clock_s() - begun_s
        credentials = tuple(one.credential for one in known.values() if one.credential is not None)
        pointers = frozenset(path for path, one in known.items() if one.pointer)
        nested = tuple(sorted(path for path in walk.nested if path not in secret))
        return Captured(self._tree, notes.lines(), credentials, nested, pointers, cost)

    def _walked(self) -> tuple[Walk, list[Found]]:
        for again in (False, True):
            walk = Walk(self._root, self._limits, self._left_out, self._only)
            found = walk.all()
            if found is not None:
                return walk, found
            if not again:
                self._left_out |= frozenset(path.rstrip(b"/") for path in self._ignored() if path.endswith(b"/"))
        raise NotStaged(f"it holds more than {self._limits.files:,} files")

    def _secret_names(self, paths: Sequence[bytes], notes: Notes) -> frozenset[bytes]:
        """Paths that hold a credential: they are in no tree, and noted without it."""
        together = b"\n".join(paths)
        if self._redactor.bare(together) == together:
            return frozenset()
        kept = {path: self._redactor.bare(path) for path in paths}
        secret = frozenset(path for path, shown in kept.items() if shown != path)
        for path in secret:
            notes.add("its name holds what looks like a credential", kept[path])
        return secret

    def _entry(self, one: Found, cost: Cost, notes: Notes) -> _Known | None:
        path, status = one
        mode = status.st_mode & PERMISSIONS
        key = (status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino, status.st_dev, status.st_mode)
        known = self._known.get(path)
        if known is not None and known.key == key and status.st_ctime_ns < self._newest_ns - _RACY_NS:
            if known.entry.note == TOO_LARGE:
                notes.add("too large", path)
            return known
        if stat.S_ISLNK(status.st_mode):
            return self._link(path, key, notes)
        if status.st_size > self._limits.file_bytes or cost.size_bytes + status.st_size > self._limits.total_bytes:
            notes.add("too large", path)
            return _Known(key, Entry(path, Node.FILE, mode, None, status.st_size, note=TOO_LARGE), None, False)
        self._paused()
        content = self._read(path, status)
        if content is None:
            notes.add("cannot be read", path)
            return None
        cost.size_bytes += len(content)
        return self._judged(path, mode, key, content, notes)

    def _judged(self, path: bytes, mode: int, key: tuple[int, ...], content: bytes, notes: Notes) -> _Known:
        """Keep what may be kept of a file."""
        kind = kind_of(path)
        if kind is not None and content:
            there = CredentialFile(path, kind, scope_of(kind, content), len(content))
            digest = self._keep(BLOB, masked(kind, content))
            return _Known(key, Entry(path, Node.FILE, mode, digest, len(content), note=PLACEHOLDER), there, False)
        kept, note = redacted(self._redactor, content)
        if kept is None:
            notes.add("cannot be searched for credentials", path)
            return _Known(key, Entry(path, Node.FILE, mode, None, len(content), note=TOO_LARGE), None, False)
        entry = Entry(path, Node.FILE, mode, self._keep(BLOB, kept), len(kept), note=note)
        return _Known(key, entry, None, content.startswith(LFS_POINTER))

    def follow(self, path: bytes) -> Entry | None:
        """The file that the link at `path` leads to, as if it stood there; None where it leads to none."""
        try:
            real = Path(os.fsdecode(os.fsencode(self._root) + b"/" + path)).resolve(strict=True)
            status = real.stat()
            content = real.read_bytes() if stat.S_ISREG(status.st_mode) and status.st_size <= self._limits.file_bytes else None
        except (OSError, RuntimeError):
            return None
        return None if content is None else self._judged(path, status.st_mode & PERMISSIONS, (), content, Notes()).entry

    def _link(self, path: bytes, key: tuple[int, ...], notes: Notes) -> _Known | None:
        try:
            target = os.readlink(os.fsencode(self._root) + b"/" + path)  # noqa: PTH115  # names of bytes
        except OSError:
            notes.add("cannot be read", path)
            return None
        kept, note = redacted(self._redactor, target)
        if not kept:
            notes.add("cannot be searched for credentials", path)
            return None
        return _Known(key, Entry(path, Node.LINK, 0, None, len(target), kept, note), None, False)

    def _read(self, path: bytes, status: os.stat_result) -> bytes | None:
        """All of a file, through folders that are no links; None where it is another by now, or cannot be read."""
        folder, _, name = path.rpartition(b"/")
        try:
            with contextlib.ExitStack() as opened:
                at = _folder(os.fsencode(self._root), folder, opened)
                # O_NONBLOCK: a pipe put in the file's place meanwhile must not stop us.
                fd = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=at)
                with os.fdopen(fd, "rb", buffering=0) as file:
                    now = os.fstat(fd)
                    if not stat.S_ISREG(now.st_mode) or now.st_ino != status.st_ino:
                        return None
                    content = file.read(self._limits.file_bytes + 1)
                    while content and (more := file.read(self._limits.file_bytes + 1 - len(content))):
                        content += more
        except OSError:
            return None
        return content if content is not None and len(content) <= self._limits.file_bytes else None


def redacted(redactor: Redactor, content: bytes) -> tuple[bytes | None, str]:
    """Return content as it may be kept, and an entry's note; None where it cannot be judged."""
    told = redactor.body(content, (), Side.REQUEST)
    if told.withheld is not None or told.decoded:
        return None, ""
    kept = redactor.bare(told.content) if binary(b"", told.content) else told.content
    # What was captured before, and is captured again after it was restored, is the same entry.
    return kept, REDACTED if told.redactions or kept != told.content or placed(kept) else ""


def _folder(root: bytes, path: bytes, opened: contextlib.ExitStack) -> int:
    """Open a folder below the root part by part, following nothing. Raises OSError."""
    fd = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    opened.callback(os.close, fd)
    for part in path.split(b"/") if path else ():
        fd = os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=fd)
        opened.callback(os.close, fd)
    return fd


def refuse_root(root: Path, home: Path) -> None:
    """Raise NotStaged for a folder that is no workspace: `/`, HOME, or a folder around HOME."""
    real, of_home = root.resolve(), home.resolve()
    if len(real.parts) == 1:
        raise NotStaged("it is the whole file system")
    if of_home.is_relative_to(real) and len(of_home.parts) > 1:
        raise NotStaged("it is HOME itself" if of_home == real else "HOME lies in it")


def capture_home(names: Iterable[str], snapshot: Callable[[frozenset[bytes]], Snapshot], keep: Keep) -> Captured:
    """Capture files of HOME by their names relative to it, folders with all in them. `snapshot` makes one of HOME for some paths.

    A named file that is a link is captured as what it leads to: dotfiles are often kept elsewhere. Each name stands for itself: one that
    holds too many files is not captured, the others are.
    """
    entries: dict[bytes, Entry] = {}
    notes: list[str] = []
    credentials: list[CredentialFile] = []
    cost = Cost()
    for name in dict.fromkeys(names):
        path = os.fsencode(name)
        one = snapshot(frozenset({path}))
        try:
            taken = one.take()
        except (NotStaged, OSError) as error:
            notes.append(f"~/{shown(path)}: {error}")
            continue
        found = taken.tree.by_path()
        if path in found and found[path].node is Node.LINK and (followed := one.follow(path)) is not None:
            found[path] = followed
        entries |= found
        notes += [f"~/{line}" for line in taken.not_captured]
        credentials += taken.credentials
        cost.files += taken.cost.files
        cost.size_bytes += taken.cost.size_bytes
        cost.seconds += taken.cost.seconds
    tree = tree_of(entries.values())
    if tree.entries:
        keep(TREE, trees.encode(tree))
    return Captured(tree, tuple(dict.fromkeys(notes)), tuple(credentials), cost=cost)

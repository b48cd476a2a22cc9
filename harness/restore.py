"""A recorded stage put back: the tree, and the git state of each repository in it.

What is restored may come from a stranger. Files are written into an empty folder only, links last, so nothing is written through one;
repositories get no hook, filter or helper; set-user-id bits are never set.
"""

# pathlib holds no names of bytes, and these must stay what they are.
# ruff: noqa: PTH101, PTH103, PTH116, PTH211

from __future__ import annotations

import errno
import hashlib
import os
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from secondtake.cassettes import git_index, repositories, trees
from secondtake.cassettes.artifacts import TREE
from secondtake.cassettes.errors import BadInput, Corrupt, NotFound, NotStored
from secondtake.cassettes.git_index import Staged, Stat
from secondtake.cassettes.repositories import Repositories, Repository
from secondtake.cassettes.stages import staged
from secondtake.cassettes.trees import TOO_LARGE, Entry, Node, Tree, shown
from secondtake.harness.git import hardened, index_pack
from secondtake.harness.walking import PERMISSIONS

if TYPE_CHECKING:
    from secondtake.cassettes.cassette import Cassette
    from secondtake.cassettes.exchange import Digest

_HOLE_BYTES = 64 * 1024 * 1024 * 1024
"""A file whose content was not captured comes back as a hole of its size, up to here."""

_BEFORE_NS = 10_000_000_000
"""Files are dated so long before the restore, or earlier: git would read again what is as new as its index."""


class Holds(Protocol):
    """The part of a cassette that is read here."""

    def artifact(self, digest: Digest) -> bytes: ...


@dataclass(frozen=True, slots=True)
class Restored:
    """What was put back. `notes`: what is not as it was, a line each, escaped for a terminal."""

    files: int
    size_bytes: int
    notes: tuple[str, ...] = ()


def restore(
    cassette: Holds,
    tree: Digest,
    repository: Digest | None,
    into: Path,
    *,
    environ: Mapping[str, str] = os.environ,
    modified_ns: int | None = None,
) -> Restored:
    """Put a tree, and the repositories in it, into a folder that is empty or not there.

    `modified_ns`: when files say they were changed, nanoseconds since 1970; None: shortly before now.

    Raises:
        BadInput: the folder is not empty.
        NotFound: the recording holds no such tree.
        Corrupt: what it holds is damaged, or no tree can be so.
        NotStored: the disk refused.
    """
    if into.is_symlink() or (into.exists() and (not into.is_dir() or any(into.iterdir()))):
        raise BadInput(f"not an empty folder: {into}")
    made = trees.decode(cassette.artifact(tree))
    state = Repositories() if repository is None else repositories.decode(cassette.artifact(repository))
    submodules = {entry.path for entry in made.entries if entry.node is Node.SUBMODULE}
    for one in state.each:
        if one.path and one.path not in submodules:
            raise Corrupt(f"a repository in {shown(one.path)}, which is no folder for one")
    try:
        into.mkdir(mode=0o700, parents=True, exist_ok=True)
        return _restored(cassette, made, state, into, environ, modified_ns)
    except OSError as error:
        reason = errno.errorcode.get(error.errno or 0, "EIO")
        raise NotStored(f"the recorded workspace cannot be restored in {into}: {error.strerror or error}", reason=reason) from error


def _restored(
    cassette: Holds, tree: Tree, state: Repositories, into: Path, environ: Mapping[str, str], modified_ns: int | None
) -> Restored:
    root = os.fsencode(into)
    latest_ns = os.stat(root).st_mtime_ns - _BEFORE_NS
    dated_ns = latest_ns if modified_ns is None else min(modified_ns, latest_ns)
    notes: list[str] = []
    size = 0
    folders = {entry.path: entry.mode for entry in tree.entries if entry.node in (Node.FOLDER, Node.SUBMODULE)}
    files = [entry for entry in tree.entries if entry.node is Node.FILE]
    links = [entry for entry in tree.entries if entry.node is Node.LINK]
    for entry in tree.entries:
        _folders(root, entry.path if entry.path in folders else entry.path.rpartition(b"/")[0])
    for entry in files:
        size += _file(cassette, root, entry, dated_ns, notes)
    for entry in links:
        os.symlink(entry.target, root + b"/" + entry.path)
        os.utime(root + b"/" + entry.path, ns=(dated_ns, dated_ns), follow_symlinks=False)
    _date(root, tree, folders, dated_ns)
    for one in state.each:
        _Putting(cassette, state, one, into, environ, notes).put()
    os.chmod(root, trees.USUAL_FOLDER)
    return Restored(len(files), size, tuple(notes))


def _folders(root: bytes, path: bytes) -> None:
    if path:
        os.makedirs(root + b"/" + path, mode=0o700, exist_ok=True)


def _file(cassette: Holds, root: bytes, entry: Entry, dated_ns: int, notes: list[str]) -> int:
    fd = os.open(root + b"/" + entry.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with os.fdopen(fd, "wb") as file:
        if entry.digest is not None:
            file.write(cassette.artifact(entry.digest))
        elif entry.size_bytes and entry.note == TOO_LARGE:
            notes.append(f"{shown(entry.path)}: its content was not captured")
            file.truncate(entry.size_bytes if entry.size_bytes <= _HOLE_BYTES else 0)
        os.fchmod(fd, entry.mode & PERMISSIONS)
    os.utime(root + b"/" + entry.path, ns=(dated_ns, dated_ns))
    return entry.size_bytes


def _date(root: bytes, tree: Tree, folders: Mapping[bytes, int], dated_ns: int) -> None:
    """Modes and times of folders, inner ones first: a folder may be read-only, and filling it changes its time."""
    paths = set(folders)
    for entry in tree.entries:
        cut = entry.path.rfind(b"/")
        while cut > 0:
            paths.add(entry.path[:cut])
            cut = entry.path.rfind(b"/", 0, cut)
    for path in sorted(paths, reverse=True):
        os.chmod(root + b"/" + path, folders.get(path, trees.USUAL_FOLDER) & PERMISSIONS)
        os.utime(root + b"/" + path, ns=(dated_ns, dated_ns))


class _Putting:
    """One repository being put back."""

    def __init__(
        self, cassette: Holds, state: Repositories, one: Repository, into: Path, environ: Mapping[str, str], notes: list[str]
    ) -> None:
        self.cassette = cassette
        self.one = one
        self.environ = environ
        self.notes = notes
        self.tree_root = os.fsencode(into) + (b"/" + one.path if one.path else b"")
        self.folder = _folder_of(state, one, os.fsencode(into))

    def put(self) -> None:
        """Raises OSError, Corrupt, NotFound."""
        writable = os.stat(self.tree_root).st_mode & PERMISSIONS
        os.chmod(self.tree_root, writable | 0o700)
        os.makedirs(self.folder + b"/objects/pack")
        for name in (b"objects/info", b"refs/heads", b"refs/tags", b"info"):
            os.makedirs(self.folder + b"/" + name)
        inner = os.path.relpath(self.tree_root, self.folder)
        own = repositories.config_text(self.one)
        if self.one.place:
            own += b'[core]\n\tworktree = "' + inner.replace(b"\\", b"\\\\").replace(b'"', b'\\"').replace(b"\n", b"\\n") + b'"\n'
            self._write(b"", b"gitdir: " + os.path.relpath(self.folder, self.tree_root) + b"\n", at=self.tree_root + b"/.git")
        self._write(b"config", own)
        self._head()
        for name, digest in self.one.files:
            self._write(name, self.cassette.artifact(digest))
        if self.one.shallow:
            self._write(b"shallow", "".join(f"{name}\n" for name in self.one.shallow).encode())
        if self.one.objects is not None:
            index_pack(Path(os.fsdecode(self.folder)), self.cassette.artifact(self.one.objects), hardened(self.environ))
        elif self.one.index:
            self.notes.append(f"{shown(self.one.path) or 'the workspace'}: the objects of its repository were not captured")
        if self.one.index is not None:
            if any(entry.intent_to_add for entry in self.one.index):
                self._loose("blob", b"")  # what git notes of such a file
            entries = [(entry, self._stat(entry)) for entry in self.one.index]
            self._write(b"index", git_index.pack(entries, hash_name=self.one.object_format))
        os.chmod(self.tree_root, writable)

    def _head(self) -> None:
        if self.one.branch is not None:
            self._write(b"HEAD", f"ref: {self.one.branch}\n".encode("utf-8", "surrogateescape"))
        else:
            self._write(b"HEAD", f"{self.one.head}\n".encode() if self.one.head else b"ref: refs/heads/main\n")
        refs = [(name, oid) for name, oid in self.one.refs if not oid.startswith("ref: ")]
        refs += [(f"refs/replace/{item.oid}", self._loose(item.kind, self.cassette.artifact(item.digest))) for item in self.one.replaced]
        text = "".join(f"{oid} {name}\n" for name, oid in sorted(refs))
        self._write(b"packed-refs", text.encode("utf-8", "surrogateescape"))
        for name, target in self.one.refs:
            if target.startswith("ref: "):
                place = name.encode("utf-8", "surrogateescape")
                os.makedirs(self.folder + b"/" + place.rpartition(b"/")[0], exist_ok=True)
                self._write(place, f"{target}\n".encode("utf-8", "surrogateescape"))

    def _loose(self, kind: str, content: bytes) -> str:
        """Write one object as a file of its own. Returns its name."""
        whole = f"{kind} {len(content)}\0".encode() + content
        oid = hashlib.new(self.one.object_format, whole, usedforsecurity=False).hexdigest()
        folder = self.folder + f"/objects/{oid[:2]}".encode()
        os.makedirs(folder, exist_ok=True)
        if not os.path.lexists(folder + f"/{oid[2:]}".encode()):
            self._write(f"objects/{oid[:2]}/{oid[2:]}".encode(), zlib.compress(whole))
        return oid

    def _stat(self, entry: Staged) -> Stat | None:
        """What git finds of a file that is what the index says; None where it must look itself."""
        if not entry.clean:
            return None
        try:
            status = os.lstat(self.tree_root + b"/" + entry.path)
        except OSError:
            return None
        return Stat(status.st_ctime_ns, status.st_mtime_ns, status.st_dev, status.st_ino, status.st_uid, status.st_gid, status.st_size)

    def _write(self, name: bytes, content: bytes, *, at: bytes | None = None) -> None:
        place = self.folder + b"/" + name if at is None else at
        fd = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
        with os.fdopen(fd, "wb") as file:
            file.write(content)


def _folder_of(state: Repositories, one: Repository, root: bytes) -> bytes:
    """Where a repository's own folder stands: within that of the one around it, as git keeps submodules, or in its working tree."""
    if not one.place:
        return root + b"/" + (one.path + b"/" if one.path else b"") + b".git"
    around = [each for each in state.each if each.path != one.path and one.path.startswith(each.path + b"/" if each.path else b"")]
    if not around:
        raise Corrupt(f"the repository {shown(one.path)} has no other around it")
    return _folder_of(state, max(around, key=lambda each: len(each.path)), root) + b"/" + one.place


def restored_scratch(cassette: Cassette, parent: Path, *, environ: Mapping[str, str] = os.environ) -> Path:
    """Restore the workspace a recording started from, in a new folder of its name below `parent`. Returns that folder.

    Raises:
        NotFound: the recording has no stage.
        Corrupt, NotStored: as `restore`.
    """
    stage = staged(cassette)
    if stage is None or stage.workspace is None:
        hint = "record it again without --no-stage, or give --workspace DIR" if stage is None else "give --workspace DIR"
        raise NotFound(f"cassette `{cassette.name}` has no recorded workspace", hint=hint)
    name = Path(stage.root).name
    into = parent / (name if name and name not in (".", "..") and "\0" not in name and len(os.fsencode(name)) < 200 else "workspace")
    restore(cassette, stage.workspace, stage.repository, into, environ=environ)
    return into


def restored_home(cassette: Cassette, into: Path) -> Sequence[bytes]:
    """Restore the files of HOME that a recording's agent started with into the folder `into`. Returns their paths, relative to it.

    Raises:
        Corrupt, NotStored, BadInput: as `restore`.
    """
    stage = staged(cassette)
    if stage is None or stage.home is None:
        into.mkdir(mode=0o700, parents=True, exist_ok=True)
        return ()
    restore(cassette, stage.home, None, into)
    into.chmod(0o700)
    return tuple(entry.path for entry in trees.decode(cassette.artifact(stage.home)).entries if entry.node is Node.FILE)


def tree_at(cassette: Cassette, digest: Digest) -> Tree:
    """Return a tree of a recording. Raises NotFound, Corrupt."""
    kinds = {one.digest: one.kind for one in cassette.artifacts}
    if kinds.get(digest, TREE) != TREE:
        raise Corrupt(f"the artifact {digest} is no tree")
    return trees.decode(cassette.artifact(digest))

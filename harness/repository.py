"""The git state of a workspace: HEAD, what is staged, the refs HEAD contains, the objects, submodules one by one.

Later commits, other branches, reflogs and stashes are not captured: an agent must not find the fix in the history.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from secondtake.cassettes import repositories
from secondtake.cassettes.artifacts import BLOB, REPOSITORY
from secondtake.cassettes.credential_files import kind_of
from secondtake.cassettes.exchange import Digest
from secondtake.cassettes.git_index import Staged
from secondtake.cassettes.redact import Redactor
from secondtake.cassettes.repositories import FILES, Repositories, Repository, keeps
from secondtake.cassettes.trees import Node, shown
from secondtake.harness.capturing import Captured, Keep, redacted
from secondtake.harness.git import Git, GitFailed
from secondtake.harness.history import Collecting, Objects
from secondtake.harness.walking import Limits

_FILE_BYTES = 64 * 1024
"""Of `info/exclude` and the like."""

_NESTED = 200
"""Repositories in one workspace."""

_DEBUGGED = re.compile(
    rb"([A-Za-z?]) (\d{6}) ([0-9a-f]+) (\d)\t([^\0]+)\0"
    rb"  ctime: (\d+):(\d+)\n  mtime: (\d+):(\d+)\n  dev: (\d+)\tino: (\d+)\n  uid: (\d+)\tgid: (\d+)\n  size: (\d+)\tflags: ([0-9a-f]+)\n"
)
_LISTED = re.compile(rb"([A-Za-z?]) (\d{6}) ([0-9a-f]+) (\d)\t([^\0]+)\0")
_INTENT_TO_ADD, _SKIP_WORKTREE, _ASSUME_VALID = 1 << 29, 1 << 30, 0x8000
"""git's own flags of an entry in memory (read-cache.h), as `git ls-files --debug` prints them."""


@dataclass(slots=True)
class Found:
    """All repositories of a workspace, and what of them was not captured."""

    repositories: Repositories | None = None
    digest: Digest | None = None
    """Of the artifact; None where there is no repository."""
    notes: tuple[str, ...] = ()


@dataclass(slots=True)
class _Context:
    """What every repository of one workspace is captured with."""

    root: Path
    captured: Captured
    keep: Keep
    redactor: Redactor
    limits: Limits
    environ: Mapping[str, str]
    notes: list[str] = field(default_factory=list)
    found: list[Repository] = field(default_factory=list)

    def note(self, path: bytes, message: str) -> None:
        self.notes.append(f"{shown(path) + ': ' if path else ''}{message}")


def capture_repositories(
    root: Path, captured: Captured, keep: Keep, redactor: Redactor, *, limits: Limits, environ: Mapping[str, str]
) -> Found:
    """Capture the repository whose working tree is `root`, and those below it. `captured`: the tree, as it was just captured.

    Never raises for what git or a repository says: it is noted, and the rest is captured.
    """
    context = _Context(root, captured, keep, redactor, limits, environ)
    own = (b"",) if (root / ".git").exists() else ()
    around = None if own else next((folder for folder in root.resolve().parents if (folder / ".git").exists()), None)
    if around is not None:
        context.note(b"", f"the git repository around the workspace, {redactor.text(str(around))}")
    for path in (*own, *captured.nested[:_NESTED]):
        try:
            context.found.append(_Capture(context, path).repository())
        except (GitFailed, OSError, ValueError) as error:
            context.note(path, f"the git repository cannot be read: {redactor.text(str(error))}")
    if len(captured.nested) > _NESTED:
        context.note(b"", f"{len(captured.nested) - _NESTED} repositories below the workspace: too many")
    if not context.found:
        return Found(notes=tuple(context.notes))
    made = Repositories(tuple(sorted(context.found, key=lambda one: one.path)))
    return Found(made, keep(REPOSITORY, repositories.encode(made)), tuple(context.notes))


def ignored_folders(root: Path, environ: Mapping[str, str]) -> tuple[bytes, ...]:
    """Return the folders that the repository at `root` ignores, each with a slash at its end; none where there is no repository."""
    try:
        said = Git.at(root, environ).try_("ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--directory")
    except GitFailed:
        return ()
    return tuple(path for path in (said or b"").split(b"\0") if path.endswith(b"/"))


class _Capture:
    """One repository being captured."""

    def __init__(self, context: _Context, path: bytes) -> None:
        self.context = context
        self.path = path
        self.tree_root = Path(os.fsdecode(os.fsencode(context.root) + (b"/" + path if path else b"")))
        self.plain = self.git = Git.at(self.tree_root, context.environ)
        self.entries = context.captured.tree.by_path()

    def repository(self) -> Repository:
        """Raises GitFailed, OSError, ValueError."""
        stand_ins = self.plain.stand_ins()
        if stand_ins:
            self.git = self.plain.replacing()
        said = self.git.ask("rev-parse", "--absolute-git-dir", "--git-common-dir", "--show-object-format", "--is-inside-work-tree")
        own, common, object_format, inside = said.decode("utf-8", "surrogateescape").split("\n")[:4]
        if inside != "true":
            raise ValueError("it has no working tree")
        self.folder, self.common = Path(own), (self.tree_root / common).resolve()
        branch = (self.git.try_("symbolic-ref", "-q", "HEAD") or b"").decode("utf-8", "surrogateescape").strip() or None
        head = (self.git.try_("rev-parse", "-q", "--verify", "HEAD^{commit}") or b"").decode().strip() or None
        index = self._index()
        names = b"\n".join(one.path for one in index or ())
        if self.context.redactor.bare(names) != names:
            raise ValueError("a file's name in its index holds what looks like a credential")
        objects = self._objects(head, index or (), stand_ins)
        self._unfinished()
        pointers, contents = self._lfs(index or (), objects)
        files = tuple((name, digest) for name in FILES if (digest := self._file(name)) is not None)
        if branch is not None and (not branch.startswith("refs/heads/") or not _harmless(self.context.redactor, branch)):
            branch = None
        return Repository(
            path=self.path,
            place=self._place(),
            object_format=object_format,
            head=head if objects.digest is not None else None,
            branch=branch,
            refs=objects.refs,
            shallow=objects.shallow,
            index=index,
            config=self._config(),
            files=files,
            objects=objects.digest,
            object_names=objects.names,
            replaced=objects.replaced,
            uninitialised=self._uninitialised(index or ()),
            lfs_pointers=pointers,
            lfs_contents=contents,
        )

    def _place(self) -> bytes:
        """Where the folder is, if it is within that of the repository around this one."""
        around = [one for one in self.context.found if self.path.startswith(one.path + b"/" if one.path else b"") and one.path != self.path]
        if not around or not (self.tree_root / ".git").is_file():
            return b""
        outer = Git.at(self.context.root / os.fsdecode(around[-1].path), self.context.environ)
        outer_folder = Path(os.fsdecode(outer.ask("rev-parse", "--absolute-git-dir").rstrip(b"\n")))
        if not self.folder.is_relative_to(outer_folder / "modules"):
            self.context.note(self.path, "a linked worktree; it is a repository of its own when restored")
            return b""
        return os.fsencode(self.folder.relative_to(outer_folder))

    def _index(self) -> tuple[Staged, ...] | None:
        index = self.folder / "index"
        if not index.exists():
            return None
        written_ns = index.stat().st_mtime_ns
        said = self.git.ask("ls-files", "-z", "-s", "-v", "--debug", "--full-name")
        rows = [found.groups() for found in _DEBUGGED.finditer(said)]
        if sum(map(len, (found[0] for found in _DEBUGGED.finditer(said)))) != len(said):  # another git prints it otherwise
            said = self.git.ask("ls-files", "-z", "-s", "-v", "--full-name")
            rows = [(*found.groups(), *[b"0"] * 10) for found in _LISTED.finditer(said)]
        return tuple(self._staged(row, written_ns) for row in rows)

    def _staged(self, row: Sequence[bytes], written_ns: int) -> Staged:
        letter, mode, oid, stage, path = row[:5]
        flags = int(row[14], 16)
        staged = Staged(
            path,
            int(mode, 8),
            oid.decode(),
            int(stage),
            assume_unchanged=bool(flags & _ASSUME_VALID) or letter.islower(),
            skip_worktree=bool(flags & _SKIP_WORKTREE) or letter in b"Ss",
            intent_to_add=bool(flags & _INTENT_TO_ADD),
        )
        return staged if not self._clean(staged, row, written_ns) else _cleaned(staged)

    def _clean(self, staged: Staged, row: Sequence[bytes], written_ns: int) -> bool:
        """Whether the file is what the entry says: by what git noted of it, else by its content."""
        if staged.stage or staged.intent_to_add or staged.skip_worktree or staged.mode == 0o160000:
            return False
        entry = self.entries.get(self.path + b"/" + staged.path if self.path else staged.path)
        wanted = Node.LINK if staged.mode == 0o120000 else Node.FILE
        if entry is None or entry.node is not wanted:
            return False
        if wanted is Node.FILE and bool(entry.mode & 0o100) != (staged.mode == 0o100755) and self._filemode():
            return False
        full = os.fsencode(self.tree_root) + b"/" + staged.path
        try:
            status = os.lstat(full)
            modified_ns = int(row[7]) * 1_000_000_000 + int(row[8])
            noted = (modified_ns, int(row[13])) == (status.st_mtime_ns, status.st_size & 0xFFFFFFFF)
            if noted and status.st_size and modified_ns < written_ns:
                return True
            if status.st_size > self.context.limits.file_bytes:
                return False
            link = stat.S_ISLNK(status.st_mode)
            content = os.readlink(full) if link else Path(os.fsdecode(full)).read_bytes()  # noqa: PTH115  # names of bytes
        except OSError:
            return False
        name = "sha1" if len(staged.oid) == 40 else "sha256"
        return hashlib.new(name, b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest() == staged.oid

    def _filemode(self) -> bool:
        return (self.git.try_("config", "--type=bool", "core.filemode") or b"").strip() != b"false"

    def _config(self) -> tuple[tuple[str, str], ...]:
        said = (self.git.try_("config", "--local", "--no-includes", "--list", "-z") or b"").decode("utf-8", "surrogateescape")
        kept = []
        for pair in said.split("\0"):
            key, _, value = pair.partition("\n")
            if key and keeps(key) and _harmless(self.context.redactor, key):
                kept.append((key, self.context.redactor.text(value)))
        if "core.hookspath\n" in said or self._hooks():
            self.context.note(self.path, "hooks of the repository: they are not captured")
        return tuple(kept)

    def _hooks(self) -> bool:
        try:
            return any(not hook.name.endswith(".sample") for hook in (self.common / "hooks").iterdir())
        except OSError:
            return False

    def _file(self, name: bytes) -> Digest | None:
        folder = self.folder if name == b"info/sparse-checkout" else self.common
        try:
            content = (folder / os.fsdecode(name)).read_bytes()
        except OSError:
            return None
        if not content or len(content) > _FILE_BYTES:
            return None
        kept, _ = redacted(self.context.redactor, content)
        return None if kept is None else self.context.keep(BLOB, kept)

    def _unfinished(self) -> None:
        for name in ("MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "rebase-merge", "rebase-apply", "BISECT_LOG"):
            if (self.folder / name).exists():
                self.context.note(self.path, f"{name}: what was going on is not captured; conflicts in the index are")

    def _uninitialised(self, index: Iterable[Staged]) -> tuple[bytes, ...]:
        inner = {path[len(self.path) + 1 if self.path else 0 :] for path in self.context.captured.nested}
        return tuple(one.path for one in index if one.mode == 0o160000 and one.path not in inner)

    def _lfs(self, index: Iterable[Staged], objects: Objects) -> tuple[tuple[bytes, ...], tuple[bytes, ...]]:
        """Files in git-lfs: those of which the workspace has the pointer, and those of which it has the content."""
        prefix = self.path + b"/" if self.path else b""
        pointers: list[bytes] = []
        contents: list[bytes] = []
        for one in index:
            if one.oid in objects.pointers and one.stage == 0:
                there = prefix + one.path
                (pointers if there in self.context.captured.pointers else contents).append(one.path)
        if contents:
            self.context.note(self.path, f"git-lfs: {len(contents)} files have their content, as files only; .git/lfs is not captured")
        return tuple(pointers), tuple(contents)

    def _objects(self, head: str | None, index: Sequence[Staged], stand_ins: Mapping[str, str]) -> Objects:
        prefix = self.path + b"/" if self.path else b""
        entries = self.entries
        judged = frozenset(one.oid for one in index if one.clean and entries[prefix + one.path].note == "" and kind_of(one.path) is None)
        context = self.context
        return Collecting(
            self.plain,
            context.keep,
            context.redactor,
            context.limits,
            lambda message: context.note(self.path, message),
            stand_ins=stand_ins,
            judged=judged,
        ).collected(head, index)


def _harmless(redactor: Redactor, name: str) -> bool:
    """Whether a name of git's, of a branch or a remote, holds no credential."""
    written = name.encode("utf-8", "surrogateescape")
    return redactor.bare(written) == written


def _cleaned(staged: Staged) -> Staged:
    return replace(staged, clean=True)

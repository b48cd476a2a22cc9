"""The objects of a repository that an agent may see: what HEAD contains and what is staged, searched for credentials, in one pack."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from secondtake.cassettes.artifacts import BLOB
from secondtake.cassettes.credential_files import kind_of, masked
from secondtake.cassettes.exchange import Digest
from secondtake.cassettes.git_index import Staged
from secondtake.cassettes.redact import Redactor
from secondtake.cassettes.repositories import PACK, Replaced, names_digest
from secondtake.harness.capturing import LFS_POINTER, Keep, redacted
from secondtake.harness.git import Git, GitFailed
from secondtake.harness.walking import Limits

DEPTHS = (2_000, 100, 10, 1)
"""How many of the newest commits are kept, where more would be over the limit."""

_POINTER_BYTES = 1024
"""A git-lfs pointer is shorter, by its specification."""

_AT_ONCE_BYTES = 8 * 1024 * 1024
_SEEN = ("refs/heads/", "refs/tags/", "refs/remotes/")


@dataclass(frozen=True, slots=True)
class Objects:
    """What was kept of a repository's objects. As the fields of the same names in `Repository`."""

    digest: Digest | None = None
    names: Digest | None = None
    refs: tuple[tuple[str, str], ...] = ()
    shallow: tuple[str, ...] = ()
    replaced: tuple[Replaced, ...] = ()
    pointers: frozenset[str] = frozenset()
    """Objects that are git-lfs pointers."""


@dataclass(slots=True)
class _History:
    """Commits, and every object they need: where it was met first, what it is, how large."""

    commits: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Each with its parents."""
    paths: dict[str, bytes] = field(default_factory=dict)
    kinds: dict[str, str] = field(default_factory=dict)
    sizes: dict[str, int] = field(default_factory=dict)
    missing: list[str] = field(default_factory=list)


class Collecting:
    """Collects the objects of one repository."""

    def __init__(
        self,
        git: Git,
        keep: Keep,
        redactor: Redactor,
        limits: Limits,
        note: Callable[[str], None],
        *,
        stand_ins: Mapping[str, str],
        judged: frozenset[str],
    ) -> None:
        """Take what to collect with.

        `stand_ins`: what stands for objects that are not there, by name. `judged`: objects that were searched already, as files of the
        workspace, and hold nothing secret.
        """
        self._git = git
        self._walking = git.replacing() if stand_ins else git
        self._stand_ins = stand_ins
        self._keep = keep
        self._redactor = redactor
        self._limits = limits
        self._note = note
        self._judged = judged

    def collected(self, head: str | None, index: Sequence[Staged]) -> Objects:
        """Keep what HEAD and the index need. Raises GitFailed."""
        wanted = dict.fromkeys(one.oid for one in index if one.mode != 0o160000 and not one.intent_to_add)
        refs = self._refs(head)
        history = self._fitting(head, wanted, refs)
        if history is None:
            return Objects()
        for name in [name for name, size in history.sizes.items() if size > self._limits.file_bytes and history.kinds[name] == "blob"]:
            history.missing.append(name)
            self._note(f"{history.paths[name].decode('utf-8', 'replace')}: too large; also not in the repository's objects")
        lost = [name for name in history.missing if name not in self._stand_ins and history.sizes.get(name, 0) <= self._limits.file_bytes]
        if lost:
            self._note(f"{len(lost)} objects of the repository are not here (a partial clone?); they are not captured")
        replaced, pointers = self._searched(history)
        gone = {*history.missing, *(one.oid for one in replaced)}
        kept = [name for name in history.paths if name not in gone]
        shallow = [name for name, parents in history.commits.items() if any(one not in history.commits for one in parents)]
        given = b"".join(name.encode() + b" " + history.paths[name] + b"\n" for name in kept)
        # What is packed already is copied as it is; deltas are not looked for anew, which took three times as long as all the rest.
        packing = ("pack-objects", "--stdout", "-q", "--threads=1", "--window=0", "--delta-base-offset")
        pack = self._git.ask(*packing, given=given) if kept else None
        return Objects(
            None if pack is None else self._keep(PACK, pack),
            names_digest(kept),
            self._visible(refs, history),
            tuple(sorted({*shallow, *self._grafted(history)})),
            tuple(sorted(replaced, key=lambda one: one.oid)),
            pointers,
        )

    # -- which objects -------------------------------------------------------------------------------------------------

    def _refs(self, head: str | None) -> list[tuple[str, str, str, str]]:
        """Refs HEAD contains: name, object, the commit it leads to, the ref it is another name of."""
        if head is None:
            return []
        fields = "%(refname)%00%(objectname)%00%(*objectname)%00%(symref)"
        said = self._walking.ask("for-each-ref", f"--merged={head}", f"--format={fields}")
        lines = [line for line in said.split(b"\n") if line]
        secret = sum(self._redactor.bare(line) != line for line in lines)
        if secret:
            self._note(f"{secret} branches or tags whose names hold what looks like a credential")
        rows = [line.decode("utf-8", "surrogateescape").split("\0") for line in lines if self._redactor.bare(line) == line]
        return [(name, oid, peeled or oid, symref) for name, oid, peeled, symref in rows if name.startswith(_SEEN)]

    def _fitting(self, head: str | None, wanted: Iterable[str], refs: Sequence[tuple[str, str, str, str]]) -> _History | None:
        """As many of the newest commits as the limit allows, with all they need."""
        for depth in DEPTHS if head is not None else (0,):
            history = self._history(head, depth, wanted, refs)
            size = sum(history.sizes.values())
            if size <= self._limits.history_bytes or (depth <= 1 and size <= self._limits.total_bytes):
                if depth and len(history.commits) >= depth and any(p not in history.commits for ps in history.commits.values() for p in ps):
                    self._note(f"history before the newest {len(history.commits):,} commits")
                return history
        self._note("the objects of the git repository: too large")
        return None

    def _history(self, head: str | None, depth: int, wanted: Iterable[str], refs: Sequence[tuple[str, str, str, str]]) -> _History:
        history = _History()
        if head is not None:
            for line in self._walking.ask("rev-list", "--parents", f"--max-count={depth}", head).decode().splitlines():
                name, *parents = line.split(" ")
                history.commits[name] = tuple(parents)
            tags = [oid for _, oid, commit, _ in refs if oid != commit and commit in history.commits]
            given = "".join(f"{name}\n" for name in (*history.commits, *tags)).encode()
            said = self._walking.ask("rev-list", "--objects", "--no-walk=unsorted", "--missing=print", "--stdin", given=given)
            for met in said.split(b"\n"):
                oid, _, path = met.partition(b" ")
                if oid.startswith(b"?"):  # it is not here, and must not be asked for: git would fetch it
                    history.missing.append(oid.decode()[1:])
                elif oid:
                    history.paths.setdefault(oid.decode(), path)
        absent = set(history.missing)
        for staged in wanted:
            if staged not in absent:
                history.paths.setdefault(staged, b"")
        said = self._git.ask("cat-file", "--batch-check", "--buffer", given="".join(f"{name}\n" for name in history.paths).encode())
        for row in said.decode().splitlines():
            words = row.split(" ")
            if len(words) == 3:
                history.kinds[words[0]], history.sizes[words[0]] = words[1], int(words[2])
            else:
                history.missing.append(words[0])
        return history

    def _visible(self, refs: Sequence[tuple[str, str, str, str]], history: _History) -> tuple[tuple[str, str], ...]:
        seen = {name for name, _, commit, _ in refs if commit in history.commits}
        made = [
            (name, f"ref: {symref}" if symref else oid) for name, oid, _, symref in refs if name in seen and (not symref or symref in seen)
        ]
        return tuple(sorted(made))

    def _grafted(self, history: _History) -> list[str]:
        """Commits that were shallow already: git tells them without parents."""
        said = self._git.ask("rev-parse", "--git-path", "shallow").decode("utf-8", "surrogateescape").rstrip("\n")
        try:
            names = (self._git.root / said).read_text().split()
        except OSError:
            return []
        return sorted(name for name in names if name in history.commits)

    # -- what is in them -----------------------------------------------------------------------------------------------

    def _searched(self, history: _History) -> tuple[list[Replaced], frozenset[str]]:
        """Objects that hold credentials, kept without them; and which are git-lfs pointers."""
        replaced: list[Replaced] = []
        pointers: set[str] = set()
        for name in history.missing:
            if name in self._stand_ins:
                ((_, kind, content),) = self._git.objects([self._stand_ins[name]])
                if content is not None:
                    replaced.append(Replaced(name, kind, self._keep(BLOB, content)))
        absent = set(history.missing)
        names = [
            name
            for name, kind in history.kinds.items()
            if name not in absent and (name not in self._judged or history.sizes[name] < _POINTER_BYTES)
        ]
        for name, kind, content in self._read(names, history.sizes):
            if kind == "tree":
                if self._redactor.bare(content) != content:
                    raise GitFailed("a file's name in its history holds what looks like a credential")
                continue
            if kind == "blob" and content.startswith(LFS_POINTER):
                pointers.add(name)
            if name in self._judged:
                continue
            secret = kind_of(history.paths[name]) if kind == "blob" and content else None
            kept = masked(secret, content) if secret is not None else redacted(self._redactor, content)[0]
            if kept is None:
                raise GitFailed("an object cannot be searched for credentials")
            if kept != content:
                replaced.append(Replaced(name, kind, self._keep(BLOB, kept)))
        if replaced:
            self._note(f"{len(replaced)} objects of the repository hold credentials; they are kept with placeholders, under their names")
        return replaced, frozenset(pointers)

    def _read(self, names: Sequence[str], sizes: Mapping[str, int]) -> Iterator[tuple[str, str, bytes]]:
        batch: list[str] = []
        size = 0
        for name in names:
            batch.append(name)
            size += sizes[name]
            if size >= _AT_ONCE_BYTES:
                yield from ((one, kind, content) for one, kind, content in self._git.objects(batch) if content is not None)
                batch, size = [], 0
        yield from ((one, kind, content) for one, kind, content in self._git.objects(batch) if content is not None)

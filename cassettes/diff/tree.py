"""What two runs made of their workspaces: each run's changes to what it started from, and what differs between both ends."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from secondtake.cassettes.trees import Change, Entry, Kind, Node, Tree, changes, patch

type Content = Callable[[Entry], bytes | None]

LITTER_FOLDERS = frozenset(
    (b"__pycache__", b".pytest_cache", b".mypy_cache", b".ruff_cache", b".hypothesis", b".cache", b".tox", b".nox", b".eggs")
)
LITTER_NAMES = frozenset((b".coverage", b".DS_Store"))
LITTER_ENDS = (b".pyc", b".pyo", b".tsbuildinfo")


def litter(path: bytes) -> bool:
    """Whether tools leave such a file beside their work: it differs from run to run and is nobody's patch. Counted, not judged."""
    parts = path.split(b"/")
    return any(part in LITTER_FOLDERS for part in parts) or parts[-1] in LITTER_NAMES or parts[-1].endswith(LITTER_ENDS)


@dataclass(frozen=True, slots=True)
class Stood:
    """What was kept of a run's workspace. `start`, `final`: None where no tree was kept then."""

    start: Tree | None
    final: Tree | None
    content: Content


class Equivalence(StrEnum):
    """How both final states compare."""

    TREES = "equal final trees"
    SPACE = "equal final trees but for white space"
    PATCH = "the same patch, on different starts"
    DIFFERENT = "different"


@dataclass(frozen=True, slots=True)
class Patch:
    """Changes, and the text that shows them. `litter`: changed paths that were left aside."""

    changes: tuple[Change, ...]
    text: str
    litter: int = 0


@dataclass(frozen=True, slots=True)
class Treed:
    """The third layer. A patch is None where a tree that it needs was not kept."""

    a: Patch | None
    b: Patch | None
    between: Patch | None
    """From A's end to B's end."""
    equivalence: Equivalence | None
    """None: a final tree was not kept."""
    same_start: bool | None = None
    unseen: tuple[str, ...] = ()
    """Files whose content was not kept on some side, so that only their size and note were compared."""

    @property
    def comparable(self) -> bool:
        return self.equivalence is not None

    @property
    def equivalent(self) -> bool:
        """The runs come to the same, white space aside."""
        return self.equivalence not in (None, Equivalence.DIFFERENT)

    @property
    def differs(self) -> bool:
        """Anything but equal final trees."""
        return self.equivalence not in (None, Equivalence.TREES)


def compare(a: Stood, b: Stood) -> Treed:
    """Set both runs' changes side by side, and their ends against each other."""
    mine, theirs = _own(a), _own(b)
    same_start = None if a.start is None or b.start is None else a.start.digest == b.start.digest
    if a.final is None or b.final is None:
        return Treed(mine, theirs, None, None, same_start)
    found = changes(a.final, b.final)
    judged = tuple(change for change in found if not _litter(change))
    between = Patch(judged, patch(judged, a.content, b.content), len(found) - len(judged))
    unseen = tuple(_path(change) for change in judged if _unseen(change))
    return Treed(mine, theirs, between, _equivalence(judged, mine, theirs, a, b), same_start, unseen)


def _equivalence(judged: Sequence[Change], mine: Patch | None, theirs: Patch | None, a: Stood, b: Stood) -> Equivalence:
    if not judged:
        return Equivalence.TREES
    if all(_only_space(change, a.content, b.content) for change in judged):
        return Equivalence.SPACE
    if mine is not None and theirs is not None and [str(one) for one in mine.changes] == [str(one) for one in theirs.changes]:
        pairs = zip(mine.changes, theirs.changes, strict=True)
        if all(_same_end(one, other) for one, other in pairs) or (mine.text == theirs.text and not _named_only(mine, theirs)):
            return Equivalence.PATCH
    return Equivalence.DIFFERENT


def _own(stood: Stood) -> Patch | None:
    if stood.start is None or stood.final is None:
        return None
    found = changes(stood.start, stood.final)
    kept = tuple(change for change in found if not _litter(change))
    return Patch(kept, patch(kept, stood.content, stood.content), len(found) - len(kept))


def _litter(change: Change) -> bool:
    return litter(change.path) and (not change.source or litter(change.source))


def _same_end(one: Change, other: Change) -> bool:
    return one.before == other.before and one.after == other.after


def _named_only(*patches: Patch) -> bool:
    """Whether a patch names a file without showing what changed in it: equal texts do not make it the same then."""
    return any("\nBinary files " in one.text for one in patches)


def _unseen(change: Change) -> bool:
    return any(one is not None and one.node is Node.FILE and one.digest is None for one in (change.before, change.after))


def _only_space(change: Change, before_content: Content, after_content: Content) -> bool:
    before, after = change.before, change.after
    if change.kind is not Kind.CHANGED or before is None or after is None or (before.node, after.node) != (Node.FILE, Node.FILE):
        return False
    if before.mode != after.mode:
        return False
    old, new = before_content(before), after_content(after)
    if old is None or new is None or b"\0" in old or b"\0" in new:
        return False
    return _without_space(old) == _without_space(new)


def _without_space(data: bytes) -> list[bytes]:
    """Lines without any white space; lines that hold nothing else are left out (as `git diff -w --ignore-blank-lines`)."""
    return [line for line in (b"".join(line.split()) for line in data.split(b"\n")) if line]


def _path(change: Change) -> str:
    return change.path.decode("utf-8", "backslashreplace")

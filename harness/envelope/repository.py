"""The layer of the repository, from a captured tree and what git said of it. Pure: it is the same of a recording and of a folder now."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from secondtake.cassettes import repositories, trees
from secondtake.cassettes.canonical import Json
from secondtake.cassettes.git_index import Staged as Entry
from secondtake.cassettes.repositories import Repositories, Repository
from secondtake.cassettes.trees import Node, Tree, shown

if TYPE_CHECKING:
    from secondtake.cassettes.stages import Keeps, Staged

_SUBMODULE = 0o160000


def repository_fields(tree: Tree, found: Repositories | None, not_captured: Sequence[str]) -> dict[str, Json]:
    """Return every field of the layer. `found`: the repositories of the workspace; None where there is none."""
    each = found.each if found is not None else ()
    root = found.root if found is not None else None
    return {
        "commit": root.head if root is not None else None,
        "branch": _branch(root),
        "dirty": _dirty(root, tree, each) if root is not None else None,
        "submodules": _submodules(tree, each),
        "git": str(found.fingerprint) if found is not None else None,
        "tree": str(tree.digest),
        "not_captured": [*not_captured],
    }


def of_stage(cassette: Keeps, staged: Staged) -> dict[str, Json]:
    """Return the layer of a recording; empty where no workspace was captured.

    Raises:
        Corrupt: what was kept is damaged.
    """
    if staged.workspace is None:
        return {}
    tree = trees.decode(cassette.artifact(staged.workspace))
    found = None if staged.repository is None else repositories.decode(cassette.artifact(staged.repository))
    return repository_fields(tree, found, staged.not_captured)


def _branch(one: Repository | None) -> str | None:
    return one.branch.removeprefix("refs/heads/") if one is not None and one.branch is not None else None


def _dirty(one: Repository, tree: Tree, each: Sequence[Repository]) -> Json:
    """Files of one repository: those that are not what is staged, and those that are not tracked, ignored ones among them."""
    prefix = one.path + b"/" if one.path else b""
    inner = tuple(other.path + b"/" for other in each if other.path != one.path and other.path.startswith(prefix))
    entries: Sequence[Entry] = one.index or ()
    tracked = {prefix + entry.path for entry in entries}
    modified = {entry.path for entry in entries if not (entry.clean or entry.mode == _SUBMODULE or entry.skip_worktree)}
    untracked = sum(
        entry.node in (Node.FILE, Node.LINK)
        and entry.path.startswith(prefix)
        and entry.path not in tracked
        and not entry.path.startswith(inner)
        for entry in tree.entries
    )
    return {"modified": len(modified), "untracked": untracked}


def _submodules(tree: Tree, each: Sequence[Repository]) -> Json:
    found: dict[str, Json] = {
        shown(one.path): {"commit": one.head, "branch": _branch(one), "dirty": _dirty(one, tree, each)} for one in each if one.path
    }
    for one in each:
        for path in one.uninitialised:
            found[shown(one.path + b"/" + path if one.path else path)] = "uninitialised"
    return dict(sorted(found.items()))

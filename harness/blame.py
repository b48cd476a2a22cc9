"""Which turn changed a file: the trees of a recording, one after the other, and the tool calls between them."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from secondtake.cassettes import takes, trees
from secondtake.cassettes.errors import NotFound
from secondtake.cassettes.exchange import Channel
from secondtake.cassettes.stages import Staged, staged
from secondtake.cassettes.trees import Change, Entry, Kind, Tree, changes, shown
from secondtake.harness.toolcalls import Asked, tool_calls

if TYPE_CHECKING:
    from secondtake.cassettes.cassette import Cassette
    from secondtake.cassettes.exchange import Digest


@dataclass(frozen=True, slots=True)
class Blamed:
    """One change of a path, and the turn that made it."""

    change: Change
    step: int | None
    """The model call whose tools ran, from 1; 0: nothing had been asked yet; None: of a take, which is looked at before and after."""
    seq: int | None
    """The exchange of the model call whose tools ran; None where no model call had asked for a tool by then."""
    calls: tuple[Asked, ...]
    """The tool calls of that model call, in order."""
    patch: str
    """The change as a unified diff."""


@dataclass(frozen=True, slots=True)
class State:
    """The workspace at one moment. `step` and `before_seq`: as of the turn that ended there; `before_seq` None: the end of the run."""

    tree: Tree
    step: int
    before_seq: int | None


def states(cassette: Cassette) -> tuple[State, ...]:
    """Return the workspace of a recording from its start to its end, wherever it had changed.

    Raises:
        NotFound: the recording has no stage.
        Corrupt: what it holds is damaged.
    """
    stage = stage_of(cassette)
    assert stage.workspace is not None
    calls = sum(row.channel is Channel.MODEL for row in cassette.rows)
    made = [State(_tree(cassette, stage.workspace), 0, 0)]
    made += [State(_tree(cassette, turn.tree), turn.step, turn.seq) for turn in stage.turns]
    if stage.final is not None and stage.final != (stage.turns[-1].tree if stage.turns else stage.workspace):
        made.append(State(_tree(cassette, stage.final), calls, None))
    return tuple(made)


def stage_of(cassette: Cassette) -> Staged:
    """Return the stage of a recording. Raises NotFound: it has none, or the workspace is not in it."""
    stage = staged(cassette)
    if stage is None or stage.workspace is None:
        why = f": {stage.not_captured[0]}" if stage is not None and stage.not_captured else ""
        hint = "record it again, without --no-stage" if not why else None
        raise NotFound(f"cassette `{cassette.name}` has no captured workspace{why}", hint=hint)
    return stage


def _tree(cassette: Cassette, digest: Digest) -> Tree:
    return trees.decode(cassette.artifact(digest))


def blame(cassette: Cassette, path: bytes, *, patches: bool = False) -> tuple[Blamed, ...]:
    """Return every change of a path, or of what is below it, in order; through renames. `patches`: with the diff of each.

    Raises:
        NotFound: the recording has no stage; no such path was ever in the workspace.
        Corrupt: what it holds is damaged.
    """
    seen = states(cassette)
    path = path.rstrip(b"/")
    if not any(_concerns(entry.path, {path}) for state in seen for entry in state.tree.entries):
        raise NotFound(f"no file {shown(path)} was in the workspace of `{cassette.name}`", hint=_closest(path, seen))
    asked = tuple(tool_calls(cassette))
    whole = cassette.meta.get("kind") == takes.KIND and not stage_of(cassette).turns
    content = _content_of(cassette)
    found: list[Blamed] = []
    names = {path}
    for earlier, after in reversed(list(pairwise(seen))):
        changed = [
            one for one in changes(earlier.tree, after.tree) if _concerns(one.path, names) or (one.source and _concerns(one.source, names))
        ]
        names |= {one.source for one in changed if one.kind is Kind.RENAMED and _concerns(one.path, names)}
        before = [one.seq for one in asked if after.before_seq is None or one.seq < after.before_seq]
        seq = None if whole else max(before, default=None)
        calls = tuple(one for one in asked if one.seq == seq)
        for change in reversed(changed):
            text = trees.patch([change], content, content) if patches else ""
            found.append(Blamed(change, None if whole else after.step, seq, calls, text))
    return tuple(reversed(found))


def _concerns(path: bytes, names: set[bytes]) -> bool:
    return any(path == name or path.startswith(name + b"/") or not name for name in names)


def _content_of(cassette: Cassette) -> Callable[[Entry], bytes | None]:
    return lambda entry: None if entry.digest is None else cassette.artifact(entry.digest)


def _closest(path: bytes, seen: Sequence[State]) -> str | None:
    known = {shown(entry.path) for state in seen for entry in state.tree.entries}
    text = shown(path)
    close = difflib.get_close_matches(text, sorted(known), n=3, cutoff=0.6)
    close = close or sorted(one for one in known if one.rpartition("/")[2] == text.rpartition("/")[2])[:3]
    return f"closest: {', '.join(close)}" if close else "paths are relative to the workspace"

"""What a recording says about the stage it was made on: which trees, at which turn. In the closing record's `meta` under `stage`.

A recording that died has no closing record: the last artifact of kind `stage` says what was known then.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from secondtake.cassettes import layout
from secondtake.cassettes.artifacts import Artifact
from secondtake.cassettes.digest import raw
from secondtake.cassettes.errors import BadInput, Corrupt
from secondtake.cassettes.exchange import Digest

META = "stage"
KIND = "stage"
"""The kind of the artifact that holds the same map while the recording runs."""


@dataclass(frozen=True, slots=True)
class Turn:
    """The workspace after the tools of one model turn had run."""

    step: int
    """How many model calls had been made before; so the number of the turn whose tools ran, from 1. 0: before the first."""
    seq: int
    """The model call at whose arrival the tree was taken: the tools of the turn before had run by then."""
    tree: Digest


@dataclass(frozen=True, slots=True)
class Staged:
    """The stage of a recording. Digests are of artifacts; None where there is none."""

    workspace: Digest | None = None
    """The tree before the agent started."""
    home: Digest | None = None
    """Files of HOME that decide how the agent starts, as a tree relative to HOME."""
    repository: Digest | None = None
    turns: tuple[Turn, ...] = ()
    """Only those at which something had changed."""
    final: Digest | None = None
    not_captured: tuple[str, ...] = ()
    """What is not in it and why, one line each, escaped for a terminal."""
    files: int = 0
    size_bytes: int = 0
    """Read for the first tree, and of HOME."""
    seconds: float = 0.0
    """What all snapshots took together."""
    root: str = ""
    """The absolute path of the workspace, as it was."""
    credentials: tuple[tuple[str, str, str, int], ...] = ()
    """Credential files: path (escaped; `~/` for HOME), kind, scope, size in bytes. Their content is not kept."""

    def packed(self) -> dict[str, object]:
        """As it stands in `meta`; what has its default is left out."""
        made: dict[str, object] = {
            "workspace": self.workspace,
            "home": self.home,
            "repository": self.repository,
            "turns": [[turn.step, turn.seq, turn.tree] for turn in self.turns],
            "final": self.final,
            "not_captured": list(self.not_captured),
            "files": self.files,
            "bytes": self.size_bytes,
            "seconds": round(self.seconds, 3),
            "root": self.root,
            "credentials": [list(one) for one in self.credentials],
        }
        return {key: value for key, value in made.items() if value not in (None, [], "", 0)}

    def named(self) -> tuple[Digest, ...]:
        """The artifacts it names."""
        single = (self.workspace, self.home, self.repository, self.final)
        return tuple(dict.fromkeys([*(one for one in single if one is not None), *(turn.tree for turn in self.turns)]))


UNSTAGED = Staged()
"""What is said of a stage that was not captured."""


def unpack(value: object) -> Staged:
    """The counterpart of `Staged.packed`. Raises Corrupt."""
    made = layout.mapping(value)
    turns = []
    for item in layout.each(made.get("turns", []), list):
        match item:
            case [int() as step, int() as seq, str() as tree]:
                turns.append(Turn(step, seq, _digest(tree)))
            case _:
                raise Corrupt("a turn of a recording's stage is not one")
    credentials = []
    for item in layout.each(made.get("credentials", []), list):
        match item:
            case [str() as path, str() as kind, str() as scope, int() as size]:
                credentials.append((path, kind, scope, size))
            case _:
                raise Corrupt("a credential file of a recording's stage is not one")
    seconds = made.get("seconds", 0)
    return Staged(
        workspace=_optional(made, "workspace"),
        home=_optional(made, "home"),
        repository=_optional(made, "repository"),
        turns=tuple(turns),
        final=_optional(made, "final"),
        not_captured=tuple(layout.each(made.get("not_captured", []), str)),
        files=layout.take(made, "files", int, 0),
        size_bytes=layout.take(made, "bytes", int, 0),
        seconds=float(seconds) if isinstance(seconds, int | float) else 0.0,
        root=layout.take(made, "root", str, ""),
        credentials=tuple(credentials),
    )


def _optional(made: Mapping[str, object], key: str) -> Digest | None:
    value = made.get(key)
    if value is None:
        return None
    if not isinstance(value, str):
        raise Corrupt(f"a recording's stage names a `{key}` that is no digest")
    return _digest(value)


def _digest(text: str) -> Digest:
    try:
        raw(Digest(text))
    except BadInput as error:
        raise Corrupt(str(error)) from error
    return Digest(text)


class Keeps(Protocol):
    """The part of a cassette that is read here."""

    @property
    def meta(self) -> Mapping[str, object]: ...
    @property
    def artifacts(self) -> Sequence[Artifact]: ...
    def artifact(self, digest: Digest) -> bytes: ...


def staged(cassette: Keeps) -> Staged | None:
    """The stage of a recording; None where it was made without one. Raises Corrupt."""
    said = cassette.meta.get(META)
    if said is not None:
        return unpack(said)
    last = next((one for one in reversed(cassette.artifacts) if one.kind == KIND), None)
    return None if last is None else unpack(layout.unpack(cassette.artifact(last.digest)))

"""The four layers of a comparison as one value, and the one line that sums them up."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import assert_never

from secondtake.cassettes.diff.commands import Commanded
from secondtake.cassettes.diff.decisions import Decided
from secondtake.cassettes.diff.outcome import Accounted
from secondtake.cassettes.diff.tree import Equivalence, Treed


class Layer(StrEnum):
    """What is compared, each by itself."""

    DECISIONS = "decisions"
    COMMANDS = "commands"
    TREE = "tree"
    OUTCOME = "outcome"


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two that are compared. `kind`: `recording`, `take`, `probe` …, as it says itself."""

    name: str
    kind: str
    state: str
    root: str | None
    models: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Diff:
    """What differs between `a` and `b`, layer by layer."""

    a: Side
    b: Side
    decisions: Decided
    commands: Commanded
    tree: Treed
    outcome: Accounted

    def differs(self, layer: Layer) -> bool | None:
        """Whether a layer differs; None where it cannot be compared."""
        match layer:
            case Layer.DECISIONS:
                return self.decisions.differs
            case Layer.COMMANDS:
                return self.commands.differs
            case Layer.TREE:
                return self.tree.differs if self.tree.comparable else None
            case Layer.OUTCOME:
                return self.outcome.differs
            case _:
                assert_never(layer)

    @property
    def summary(self) -> str:
        """Paths, patches and, where both were judged, outcomes in one line."""
        outcome = next((fact for fact in self.outcome.facts if fact.name == "outcome" and fact.judged), None)
        ends = [] if outcome is None else [f"{outcome.a} → {outcome.b}" if outcome.differs else f"both {outcome.a}"]
        return ", ".join([self.paths, self.patches, *ends])

    @property
    def paths(self) -> str:
        """`same path` where every decision is the same."""
        return "same path" if self.decisions.same_path else "different paths"

    @property
    def patches(self) -> str:
        """How the ends compare."""
        match self.tree.equivalence:
            case None:
                return "no trees to compare"
            case Equivalence.TREES:
                return "equivalent patch (equal final trees)"
            case Equivalence.SPACE:
                return "equivalent patch but for white space"
            case Equivalence.PATCH:
                return "equivalent patch (the same changes, on different starts)"
            case Equivalence.DIFFERENT:
                return "different patches"

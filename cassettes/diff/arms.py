"""The first decision that separates two arms of several runs each: a prefix tree of decisions with counts per arm.

A node is what runs have in common so far; its children are what they did next, or that they ended. How much a node separates the
arms is half the sum, over what was done next, of the difference between the shares of both arms (of *all* runs of an arm, so that a
node few runs reach counts for little), less what had parted before: 1 where every run of A went one way and every run of B another.
The node with the greatest separation is reported, of equals the first reached. Models word the same step differently, so decisions
are first told apart by their gist (`ran pytest`, `edit foo.py`), and by their arguments only where the gist tells nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction

from secondtake.cassettes.adapters.reading import digest
from secondtake.cassettes.diff.commands import command_of, program
from secondtake.cassettes.diff.decisions import Call, Course, Decision
from secondtake.cassettes.diff.sameness import PATHS, parsed

ENDED = "(ended)"

LISTED = 12
"""Ways to go on that are listed of a node; the rest is counted."""


class By(StrEnum):
    """How finely decisions are told apart."""

    GIST = "gist"
    ARGUMENTS = "arguments"


@dataclass(frozen=True, slots=True)
class Arm:
    """Several runs of one kind. `names`: of its runs, in the order of `courses`."""

    label: str
    names: tuple[str, ...]
    courses: tuple[Course, ...]


@dataclass(frozen=True, slots=True)
class Way:
    """One way to go on from a node. `a`, `b`: the runs that took it, by name."""

    what: str
    a: tuple[str, ...]
    b: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Parting:
    """A node. `number`: of the decision that is taken there, from 1; `before`: what led there; `separation`: 0 to 1."""

    number: int
    before: tuple[str, ...]
    ways: tuple[Way, ...]
    separation: Fraction
    a_here: int
    b_here: int


@dataclass(frozen=True, slots=True)
class Parted:
    """Two arms compared. `greatest` is None where they never part; `earliest`: the first node at which they part at all."""

    a: Arm
    b: Arm
    by: By
    greatest: Parting | None
    earliest: Parting | None
    nodes: int

    @property
    def differs(self) -> bool:
        return self.greatest is not None


@dataclass(slots=True)
class _Node:
    """Runs that decided the same so far."""

    before: tuple[str, ...]
    a: list[tuple[str, Course]]
    b: list[tuple[str, Course]]


def compare(a: Arm, b: Arm) -> Parted:
    """Find where two arms part."""
    rough = _part(a, b, By.GIST)
    return rough if rough.greatest is not None else _part(a, b, By.ARGUMENTS)


def _part(a: Arm, b: Arm, by: By) -> Parted:
    name: Callable[[Decision], str] = gist if by is By.GIST else _exact
    whole_a, whole_b = max(1, len(a.courses)), max(1, len(b.courses))
    greatest: Parting | None = None
    earliest: Parting | None = None
    nodes = 0
    level = [_Node((), list(zip(a.names, a.courses, strict=True)), list(zip(b.names, b.courses, strict=True)))]
    depth = 0
    while level:
        following: list[_Node] = []
        for node in level:
            nodes += 1
            nexts: dict[str, _Node] = {}
            for mine, runs in ((True, node.a), (False, node.b)):
                for run, course in runs:
                    ended = depth >= len(course.decisions)
                    what = ENDED if ended else name(course.decisions[depth])
                    child = nexts.setdefault(what, _Node((*node.before, what), [], []))
                    (child.a if mine else child.b).append((run, course))
            apart = sum(abs(Fraction(len(one.a), whole_a) - Fraction(len(one.b), whole_b)) for one in nexts.values())
            # Runs that left the common way before count as gone, on whichever side there are more of them.
            missing = abs(Fraction(len(node.a), whole_a) - Fraction(len(node.b), whole_b))
            separation = (Fraction(apart) - missing) / 2
            if separation > 0:
                parting = _parting(depth + 1, node, nexts, separation)
                earliest = earliest or parting
                if greatest is None or separation > greatest.separation:
                    greatest = parting
            following += [child for what, child in nexts.items() if what != ENDED and child.a and child.b]
        level, depth = following, depth + 1
    return Parted(a, b, by, greatest, earliest, nodes)


def _parting(number: int, node: _Node, nexts: dict[str, _Node], separation: Fraction) -> Parting:
    def names(runs: Sequence[tuple[str, Course]]) -> tuple[str, ...]:
        return tuple(run for run, _ in runs)

    ways = [Way(what, names(child.a), names(child.b)) for what, child in nexts.items()]
    ways.sort(key=lambda way: (-abs(len(way.a) - len(way.b)), -len(way.a) - len(way.b), way.what))
    return Parting(number, node.before, tuple(ways), separation, len(node.a), len(node.b))


def gist(decision: Decision) -> str:
    """What a decision comes to: each kind of call once, `pytest`, `edit foo.py`; or that something was said."""
    return "; ".join(dict.fromkeys(sorted(map(call_gist, decision.calls)))) or "said something"


def call_gist(call: Call) -> str:
    """The program that is run, or the tool and the file it is for."""
    line = command_of(call)
    if line is not None:
        return f"ran {program(line)}"
    value = parsed(call.arguments)
    if isinstance(value, dict):
        for key, inner in value.items():
            if key.lower() in PATHS and isinstance(inner, str):
                return f"{call.tool} {inner}"
    return call.tool


def _exact(decision: Decision) -> str:
    return str(decision) if len(decision.key) < 120 else f"{decision} [{_number(decision.key)}]"


def _number(key: str) -> str:
    """A short name for a text too long to show, so that two that begin alike are told apart."""
    return digest(key)[:8]

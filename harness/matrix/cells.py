"""The cells of a matrix: in which order they run, and which are left, given the takes there are.

Within a round every arm is run once, in an order that the design's seed shuffles: what drifts meanwhile meets all arms alike.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from random import Random

from secondtake.cassettes.takes import Outcome, Take
from secondtake.harness.matrix.design import Arm, Design


@dataclass(frozen=True, slots=True)
class Cell:
    """One run that is due: what a take of it must say in `matrix`, `arm`, `repeat`, `warm_up` and `attempts`."""

    matrix: str
    arm: Arm
    repeat: int
    """From 1; 0 for the warm-up."""
    warm_up: bool = False
    attempt: int = 1
    """Goes into `Take.attempts`: 1 + how often infrastructure failed it."""
    name: str = ""
    """Under which name its cassette is kept: free when it was given out."""

    @property
    def key(self) -> tuple[str, int, bool]:
        """What the attempts of one cell share."""
        return self.arm.name, self.repeat, self.warm_up


@dataclass(frozen=True, slots=True)
class Named:
    """A take and the cassette it is kept in."""

    name: str
    take: Take

    @property
    def key(self) -> tuple[str, int, bool]:
        """The cell it belongs to."""
        return self.take.arm, self.take.repeat, self.take.warm_up


def rounds(design: Design) -> tuple[Cell, ...]:
    """Every cell in the order it is to run: the warm-ups, then round after round."""
    random = Random(f"{design.id}:{design.seed}")  # noqa: S311  # an order, no secret
    cells = [Cell(design.id, arm, 0, warm_up=True) for arm in design.arms] if design.warm_up else []
    for repeat in range(1, design.repeats + 1):
        arms = list(design.arms)
        random.shuffle(arms)
        cells += (Cell(design.id, arm, repeat) for arm in arms)
    return tuple(cells)


def due(design: Design, takes: Iterable[Named]) -> tuple[Cell, ...]:
    """What is left to run, in order; each cell with the number of its next attempt.

    A cell is settled by one take of it that did not end by infrastructure, or is invalid, or by as many attempts as the design allows.
    """
    of: dict[tuple[str, int, bool], list[Take]] = {}
    for named in takes:
        if named.take.matrix == design.id:
            of.setdefault(named.key, []).append(named.take)
    left = []
    for cell in rounds(design):
        made = of.get(cell.key, [])
        if not settled(design, made):
            left.append(replace(cell, attempt=1 + max((take.attempts for take in made), default=0)))
    return tuple(left)


def settled(design: Design, made: Sequence[Take]) -> bool:
    """Whether the takes of one cell need no further one."""
    if any(take.outcome is not Outcome.INFRASTRUCTURE or take.invalid for take in made):
        return True
    return max((take.attempts for take in made), default=0) >= design.attempts


def named_cell(design: Design, cell: Cell, taken: Callable[[str], bool]) -> Cell:
    """Give a cell the name of its cassette. A run that was killed has left one that is not closed; the next gets another name."""
    number = 1 + [arm.name for arm in design.arms].index(cell.arm.name)
    stem = f"{design.id}-{number}-{'warm-up' if cell.warm_up else cell.repeat}"
    if cell.attempt > 1:
        stem += f"-try{cell.attempt}"
    name, again = stem, 2
    while taken(name):
        name = f"{stem}+{again}"
        again += 1
    return replace(cell, name=name)


def once(takes: Iterable[Named]) -> tuple[list[Named], list[Named]]:
    """Part takes into one for each attempt of each cell, and copies of such (an imported export of the same take, say)."""
    kept: dict[tuple[str, int, bool, int], Named] = {}
    copies = []
    for named in sorted(takes, key=lambda one: one.name):
        key = (*named.key, named.take.attempts)
        if key in kept:
            copies.append(named)
        else:
            kept[key] = named
    return list(kept.values()), copies

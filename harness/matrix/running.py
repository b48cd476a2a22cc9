"""The seam between a matrix and a take: each cell becomes the part that one take plays."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from secondtake.cassettes.settings import ONLY_TOOLS, SET
from secondtake.harness.matrix.cells import Cell
from secondtake.harness.matrix.design import Arm, Axis
from secondtake.harness.matrix.schedule import TakeDone
from secondtake.harness.matrix.state import takes_of
from secondtake.harness.plan import Recast
from secondtake.harness.taking import Conditions, Part, Taken, run_take

if TYPE_CHECKING:
    from secondtake.harness.fixture import Fixture
    from secondtake.harness.plan import Stage

THROTTLED = frozenset({429, 529})
"""Answers that ask to come back later (RFC 6585 section 4; 529 is Anthropic's `overloaded`)."""


@dataclass(frozen=True, slots=True)
class RealClock:
    """The stage's time, slept for real."""

    stage: Stage

    def now_s(self) -> float:
        """Monotonic seconds."""
        return self.stage.monotonic_s()

    async def sleep(self, seconds: float) -> None:
        """Let other takes go on meanwhile."""
        await asyncio.sleep(seconds)


@dataclass(frozen=True, slots=True)
class Playhouse:
    """Runs cells for real: `RunCell`."""

    stage: Stage
    fixture: Fixture
    recast: Recast
    """What all arms share: credential, gateway, rules, prices."""
    conditions: Conditions
    files: Mapping[str, Mapping[str, Path]]
    """By arm: files of the workspace that stand in for others."""

    async def __call__(self, cell: Cell) -> TakeDone:
        """Run one take. What the agent prints is dropped: several run at once, and the take holds what it said to its model."""
        part = part_of(cell, self.recast, self.files.get(cell.arm.name, {}))
        taken = await run_take(self.stage, self.fixture, part, self._conditions(cell), stdout=subprocess.DEVNULL)
        return done_of(taken)

    def _conditions(self, cell: Cell) -> Conditions:
        """Warm-ups may be let out to fetch what the recording does not hold; all takes after them play what they got, and may not."""
        wire = self.conditions.wire
        if cell.warm_up or not wire.extend:
            return self.conditions
        takes, _ = takes_of(self.stage.store, cell.matrix)
        warm = tuple(sorted(one.name for one in takes if one.take.warm_up))
        return replace(self.conditions, wire=replace(wire, extend=()), extension=warm)


def part_of(cell: Cell, recast: Recast, files: Mapping[str, Path]) -> Part:
    """Return who plays in a cell, and as which one it is kept."""
    arm = cell.arm
    return Part(
        replace(recast, models=models_of(arm), name=cell.name, rules=(*recast.rules, *rules_of(arm))),
        arm=arm.name,
        repeat=cell.repeat,
        matrix=cell.matrix,
        warm_up=cell.warm_up,
        attempts=cell.attempt,
        command=command_of(arm),
        files=files,
    )


def models_of(arm: Arm) -> tuple[str, ...]:
    """Return the arm's models as a retake takes them: `PIN`, or `REQUESTED=PIN` parted by commas."""
    return tuple(one.strip() for one in arm.model.split(","))


def rules_of(arm: Arm) -> tuple[str, ...]:
    """Return the rules by which an arm's parameters or tools are changed."""
    change = arm.change
    if change is None or change.axis not in {Axis.PARAMETERS, Axis.TOOLS}:
        return ()
    assert isinstance(change.value, list)
    values = [str(value) for value in change.value]
    return tuple(SET + value for value in values) if change.axis is Axis.PARAMETERS else (ONLY_TOOLS + ",".join(values),)


def command_of(arm: Arm) -> tuple[str, ...] | None:
    """Return the arm's own agent; None: the fixture's."""
    if arm.change is None or arm.change.axis is not Axis.AGENT:
        return None
    assert isinstance(arm.change.value, list)
    return tuple(map(str, arm.change.value))


def done_of(taken: Taken) -> TakeDone:
    """Return what the scheduler wants to know of a take."""
    calls = taken.retaken.calls
    gone = [call.forwarded for call in calls if call.retired]
    hopeless = f"the provider does not know {gone[0]}, or no longer" if gone else ""
    asked_s = max((call.retry_after_s for call in calls if call.retry_after_s is not None), default=None)
    throttled = any(call.status in THROTTLED for call in calls)
    return TakeDone(taken.name, taken.take, throttled=throttled, retry_after_s=asked_s, hopeless=hopeless)

"""Runs the cells of a matrix: some at a time, arms interleaved, providers asked gently, infrastructure failures run again.

It keeps nothing itself. What was done is what closed takes say, so that a process killed at any instant loses the takes under way and no
other.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from secondtake.cassettes.takes import Outcome, Take
from secondtake.harness.matrix.cells import Cell, Named, due, named_cell
from secondtake.harness.matrix.design import Design, Pacing


@dataclass(frozen=True, slots=True)
class TakeDone:
    """A take that ended and is closed in the store."""

    name: str
    take: Take
    throttled: bool = False
    """Its provider answered 429 or 529 at least once, whether or not the take got over it."""
    retry_after_s: float | None = None
    """How long the provider asked to wait, where it said."""
    hopeless: str = ""
    """Why no further take of this arm would come to anything: its pin is retired. Empty: go on."""


class RunCell(Protocol):
    """Runs one cell in a fresh workspace. When it returns, the take is closed; when it raises or is cancelled, there is none."""

    async def __call__(self, cell: Cell) -> TakeDone: ...


class Clock(Protocol):
    """Time as the scheduler needs it."""

    def now_s(self) -> float:
        """Monotonic seconds."""
        ...

    async def sleep(self, seconds: float) -> None: ...


@dataclass(frozen=True, slots=True)
class Progress:
    """Where a matrix stands after a take has begun or ended."""

    ended: Named | None
    """None: one has begun."""
    cell: Cell
    done: int
    """Cells that are settled, warm-ups included."""
    total: int
    running: int
    spent: float | None
    """None: of some takes it is unknown."""
    waits_s: float = 0.0
    """How long the provider of this take is now left alone."""


@dataclass(frozen=True, slots=True)
class Ran:
    """What became of the cells that were due."""

    takes: tuple[Named, ...]
    """Those of this call, in order of their end."""
    stopped: str | None = None
    """Why cells are left."""
    left: int = 0


@dataclass(slots=True)
class _Provider:
    """One provider's patience."""

    not_before_s: float = 0.0
    failures: int = 0

    def begun(self, now_s: float, pacing: Pacing) -> None:
        self.not_before_s = max(self.not_before_s, now_s + pacing.gap_s)

    def ended(self, done: TakeDone, now_s: float, pacing: Pacing) -> float:
        """Return how long it is left alone from now on, beside the usual gap."""
        if not done.throttled and done.take.outcome is not Outcome.INFRASTRUCTURE:
            self.failures = 0
            return 0.0
        wait_s = min(pacing.back_off_s * 2.0 ** min(self.failures, 30), pacing.longest_s)
        wait_s = max(wait_s, min(done.retry_after_s or 0.0, pacing.longest_s))
        self.failures += 1
        self.not_before_s = max(self.not_before_s, now_s + wait_s)
        return wait_s


@dataclass(slots=True)
class _Course:
    """One call of `run_cells`."""

    design: Design
    run: RunCell
    clock: Clock
    taken: Callable[[str], bool]
    likely: Mapping[str, float]
    report: Callable[[Progress], None]
    pacing: Pacing
    spent: float | None
    done: int
    total: int
    takes: list[Named] = field(default_factory=list)
    providers: dict[str, _Provider] = field(default_factory=dict)
    running: dict[asyncio.Task[TakeDone], Cell] = field(default_factory=dict)
    stopped: str | None = None
    hopeless: dict[str, str] = field(default_factory=dict)
    skipped: int = 0

    async def phase(self, cells: Sequence[Cell]) -> int:
        """Run cells until none is left or the cost is reached; return how many are left."""
        waiting = list(cells)
        try:
            while (waiting and self.stopped is None) or self.running:
                self._give_up(waiting)
                wait_s = self._begin(waiting) if self.stopped is None else None
                if self.running or wait_s is not None:
                    waiting += await self._next(wait_s)
        finally:
            await self._end()
        return len(waiting)

    def _give_up(self, waiting: list[Cell]) -> None:
        """Leave out the cells of arms that nothing would come of."""
        self.skipped += sum(cell.arm.name in self.hopeless for cell in waiting)
        waiting[:] = [cell for cell in waiting if cell.arm.name not in self.hopeless]

    def _begin(self, waiting: list[Cell]) -> float | None:
        """Start what may start; return how long until more may, None where that does not depend on time."""
        now_s = self.clock.now_s()
        while len(self.running) < self.design.jobs:
            ready = next((cell for cell in waiting if self._provider(cell).not_before_s <= now_s), None)
            if ready is None:
                return min((self._provider(cell).not_before_s - now_s for cell in waiting), default=None)
            if self._too_dear(ready):
                return None
            waiting.remove(ready)
            cell = named_cell(self.design, ready, self.taken)
            self._provider(cell).begun(now_s, self.pacing)
            self.running[asyncio.ensure_future(self._one(cell))] = cell
            self.report(Progress(None, cell, self.done, self.total, len(self.running), self.spent))
        return None

    async def _one(self, cell: Cell) -> TakeDone:
        return await self.run(cell)

    def _provider(self, cell: Cell) -> _Provider:
        return self.providers.setdefault(cell.arm.provider or cell.arm.model, _Provider())

    def _too_dear(self, cell: Cell) -> bool:
        bound = self.design.max_cost
        if bound is None:
            return False
        if self.spent is None:
            self.stopped = f"--max-cost {bound:g}: what a take cost is unknown"
            return True
        likely = sum(self.likely.get(one.arm.name, 0.0) for one in (*self.running.values(), cell))
        if self.spent + likely > bound or self.spent >= bound:
            self.stopped = f"--max-cost {bound:g}: {self.spent:.4f} were spent, and the next take would likely go beyond"
            return True
        return False

    async def _next(self, wait_s: float | None) -> list[Cell]:
        """Wait for a take to end or for time to pass; return the cells that are to be run again."""
        timer = None if wait_s is None else asyncio.ensure_future(self.clock.sleep(wait_s))
        awaited: set[asyncio.Task[TakeDone] | asyncio.Future[None]] = {*self.running, *([] if timer is None else [timer])}
        try:
            ended, _ = await asyncio.wait(awaited, return_when=asyncio.FIRST_COMPLETED)
        finally:
            if timer is not None and not timer.done():
                timer.cancel()
        again = []
        for task in [one for one in self.running if one in ended]:
            cell = self.running.pop(task)
            again += self._ended(cell, task.result())
        return again

    def _ended(self, cell: Cell, done: TakeDone) -> list[Cell]:
        named = Named(done.name, done.take)
        self.takes.append(named)
        cost = done.take.resources.cost
        self.spent = None if self.spent is None or cost is None else self.spent + cost
        waits_s = self._provider(cell).ended(done, self.clock.now_s(), self.pacing)
        again = done.take.outcome is Outcome.INFRASTRUCTURE and not done.take.invalid and cell.attempt < self.design.attempts
        self.done += not again
        if done.hopeless:
            self.hopeless[cell.arm.name] = done.hopeless
        self.report(Progress(named, cell, self.done, self.total, len(self.running), self.spent, waits_s))
        return [replace(cell, attempt=cell.attempt + 1, name="")] if again else []

    async def _end(self) -> None:
        """Stop what still runs, and wait until it has stopped: nothing is left behind by an error or an interrupt."""
        for task in self.running:
            task.cancel()
        await asyncio.gather(*self.running, return_exceptions=True)
        self.running.clear()


async def run_cells(
    design: Design,
    takes: Sequence[Named],
    run: RunCell,
    clock: Clock,
    *,
    taken: Callable[[str], bool],
    likely: Mapping[str, float] | None = None,
    report: Callable[[Progress], None] = lambda _: None,
) -> Ran:
    """Run what is due, given the takes there are. All warm-ups end before the first counted take begins.

    `taken` says whether a cassette of that name exists; `likely` is what a take of each arm will likely cost. Under a `max_cost` no take is
    begun that would likely go beyond it; one that has begun is not cut off, so that a budget never turns into a failed take.

    Raises what `run` raises, after the other takes under way were cancelled.
    """
    left = due(design, takes)
    costs = [named.take.resources.cost for named in takes]
    course = _Course(
        design,
        run,
        clock,
        taken,
        likely or {},
        report,
        design.pacing,
        spent=None if any(cost is None for cost in costs) else sum(cost for cost in costs if cost is not None),
        done=(len(design.arms) * (design.repeats + design.warm_up)) - len(left),
        total=len(design.arms) * (design.repeats + design.warm_up),
    )
    warm_ups = [cell for cell in left if cell.warm_up]
    counted = [cell for cell in left if not cell.warm_up]
    remaining = await course.phase(warm_ups)
    if course.stopped is None:
        remaining += await course.phase(counted)
    else:
        remaining += len(counted)
    reasons = [f"{arm}: {why}" for arm, why in course.hopeless.items()] if course.skipped else []
    stopped = "; ".join([*([course.stopped] if course.stopped else []), *reasons]) or None
    return Ran(tuple(course.takes), stopped, remaining + course.skipped)

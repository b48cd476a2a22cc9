"""The scheduler: interleaved, parallel, patient, resumable, and quick to stop."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from secondtake.cassettes.store import Store
from secondtake.cassettes.takes import Outcome
from secondtake.harness.matrix.cells import Cell, Named, rounds
from secondtake.harness.matrix.design import Design, Pacing
from secondtake.harness.matrix.schedule import Progress, Ran, TakeDone, run_cells
from secondtake.harness.matrix.state import takes_of
from tests.harness.matrix.scenes import FakeClock, FakeRunner, design, take_of


def passes(_: Cell) -> Outcome:
    return Outcome.PASS


class Inert:
    """Takes without a store: what each cell comes to, and how many ran at once."""

    def __init__(self, of: object = passes, **changes: object) -> None:
        self.of, self.changes = of, changes
        self.running = self.most = 0
        self.begun: list[tuple[float, Cell]] = []
        self.clock = FakeClock()
        self.throttles: dict[tuple[str, int], float | None] = {}
        self.hopeless: dict[str, str] = {}

    async def __call__(self, cell: Cell) -> TakeDone:
        self.begun.append((self.clock.now_s(), cell))
        self.running += 1
        self.most = max(self.most, self.running)
        await asyncio.sleep(0)
        self.running -= 1
        throttled = (cell.arm.name, cell.repeat) in self.throttles
        retry_after_s = self.throttles.get((cell.arm.name, cell.repeat))
        made = take_of(cell, self.of(cell), **self.changes)  # type: ignore[operator]
        return TakeDone(cell.name, made, throttled, retry_after_s, self.hopeless.get(cell.arm.name, ""))

    def run(self, made: Design, takes: tuple[Named, ...] = (), **rest: object) -> Ran:
        return asyncio.run(run_cells(made, takes, self, self.clock, taken=lambda _: False, **rest))  # type: ignore[arg-type]


def test_every_cell_is_run_once_and_kept(tmp_path: Path) -> None:
    """Issue 6: nothing is run twice, nothing is lost."""
    store = Store(tmp_path)
    runner = FakeRunner(store, of=passes)
    seen: list[Progress] = []
    made = design()
    ran = asyncio.run(run_cells(made, (), runner, FakeClock(), taken=lambda _: False, report=seen.append))
    kept, cut = takes_of(store, made.id)
    assert Counter(cell.key for cell in runner.cells) == Counter(cell.key for cell in rounds(made))
    assert sorted(kept, key=lambda one: one.name) == sorted(ran.takes, key=lambda one: one.name)
    assert (ran.left, ran.stopped, cut) == (0, None, ())
    assert seen[-1].done == seen[-1].total == 15
    assert seen[-1].spent == pytest.approx(15 * 0.12)


def test_no_more_takes_run_at_once_than_jobs() -> None:
    """Issue 6: --jobs."""
    for jobs in (1, 2, 5):
        inert = Inert()
        inert.run(design(jobs=jobs))
        assert inert.most == jobs


def test_all_warm_ups_end_before_the_first_counted_take() -> None:
    """DESIGN 6: a warm-up per arm fills the shared extension, which is then frozen."""
    inert = Inert()
    inert.run(design(jobs=4))
    assert [cell.warm_up for _, cell in inert.begun] == [True] * 3 + [False] * 12
    assert not any(cell.warm_up for _, cell in _begun(design(warm_up=False)))


def _begun(made: Design) -> list[tuple[float, Cell]]:
    inert = Inert()
    inert.run(made)
    return inert.begun


def test_infrastructure_failures_run_again_at_the_end_and_no_more_than_allowed() -> None:
    """Issue 6: re-run and counted."""
    inert = Inert(lambda cell: Outcome.INFRASTRUCTURE if cell.arm.name == "new" and not cell.warm_up else Outcome.PASS)
    ran = inert.run(design(jobs=1, attempts=3))
    attempts = Counter(cell.key for _, cell in inert.begun)
    assert {count for (arm, _, warm_up), count in attempts.items() if arm == "new" and not warm_up} == {3}
    assert {count for (arm, _, _), count in attempts.items() if arm != "new"} == {1}
    assert [one.take.attempts for one in ran.takes if one.key == ("new", 1, False)] == [1, 2, 3]
    assert ran.left == 0


def test_takes_of_one_provider_keep_their_distance() -> None:
    """Issue 6: pacing per provider; the other provider is not held up by it."""
    inert = Inert()
    inert.run(design(jobs=3, pacing=Pacing(gap_s=2.0)))
    for provider in ("api.provider.example", "api.other.example"):
        starts = [at for at, cell in inert.begun if cell.arm.provider == provider]
        assert all(later - earlier >= 2.0 for earlier, later in pairwise(starts))
    assert inert.begun[0][0] == inert.begun[1][0] == 0.0


def test_a_provider_that_says_429_is_left_alone_longer_each_time() -> None:
    """Issue 6: back off after 429; what the provider asks for counts, within bounds."""
    inert = Inert()
    inert.throttles = {("old", 1): None, ("old", 2): None, ("old", 3): 500.0}
    seen: list[Progress] = []
    made = design(arms=design().arms[:1], jobs=1, pacing=Pacing(back_off_s=10.0, longest_s=100.0))
    inert.run(made, report=seen.append)
    assert [step.waits_s for step in seen if step.ended is not None] == [0.0, 10.0, 20.0, 100.0, 0.0]
    assert [at for at, _ in inert.begun] == [0.0, 0.0, 10.0, 30.0, 130.0]


def test_what_is_done_is_not_run_again() -> None:
    """Issue 6: resumable from what takes exist."""
    made = design()
    first = Inert().run(made)
    again = Inert()
    seen: list[Progress] = []
    more = again.run(design(looks=(4, 6)), first.takes, report=seen.append)
    assert sorted({cell.repeat for _, cell in again.begun}) == [5, 6]
    assert len(more.takes) == 6
    assert (seen[0].done, seen[-1].done, seen[-1].total) == (15, 21, 21)
    assert Inert().run(made, first.takes) == Ran(())


def test_no_take_is_begun_that_would_likely_go_beyond_the_cost() -> None:
    """Issue 6: --max-cost; a take that has begun is not cut off."""
    inert = Inert()
    ran = inert.run(design(jobs=2, max_cost=0.60), likely=dict.fromkeys(("old", "new", "other"), 0.12))
    assert len(ran.takes) == 5
    assert ran.left == 10
    assert ran.stopped is not None
    assert "--max-cost 0.6" in ran.stopped
    assert inert.run(design(max_cost=0.60), ran.takes, likely={"old": 0.12, "new": 0.12, "other": 0.12}).takes == ()


def test_a_cost_that_is_unknown_is_not_taken_for_nothing() -> None:
    """As for a retake: under a bound on cost, it ends the matrix."""
    inert = Inert()
    made = design(jobs=1, max_cost=5.0)
    known = take_of(rounds(made)[0], Outcome.PASS)
    ran = inert.run(made, (Named("x", replace(known, resources=replace(known.resources, cost=None))),))
    assert ran.takes == ()
    assert ran.stopped == "--max-cost 5: what a take cost is unknown"


def test_an_arm_whose_pin_is_gone_is_not_asked_again() -> None:
    """DESIGN 5: a retired pin is retired, not failed; asking for it fifty times more would say nothing new."""
    inert = Inert()
    inert.hopeless["new"] = "the provider does not know new-20260601"
    ran = inert.run(design(jobs=1, warm_up=False))
    asked = Counter(cell.arm.name for _, cell in inert.begun)
    assert asked == {"old": 4, "other": 4, "new": 1}
    assert (ran.left, ran.stopped) == (3, "new: the provider does not know new-20260601")


def test_an_error_of_one_take_stops_the_others_and_is_told() -> None:
    """A full disk is not a failed model: nothing goes on behind it."""
    ended: list[str] = []

    async def failing(cell: Cell) -> TakeDone:
        if cell.arm.name == "new":
            await asyncio.sleep(0)
            raise OSError("no space")
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(cell.arm.name)
        raise AssertionError

    with pytest.raises(OSError, match="no space"):
        asyncio.run(run_cells(design(jobs=3), (), failing, FakeClock(), taken=lambda _: False))
    assert sorted(ended) == ["old", "other"]


def test_an_interrupt_stops_every_take_before_it_returns() -> None:
    """Nothing is left running."""
    ended: list[str] = []
    begun = asyncio.Event()

    async def waiting(cell: Cell) -> TakeDone:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(cell.arm.name)
        raise AssertionError

    async def interrupted() -> None:
        task = asyncio.ensure_future(run_cells(design(jobs=2), (), waiting, FakeClock(), taken=lambda _: False))
        await begun.wait()
        task.cancel()
        await task

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(interrupted())
    assert len(ended) == 2

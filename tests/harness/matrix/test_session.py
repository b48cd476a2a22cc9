"""A matrix of real takes: a real agent, a sealed scene, scripted models that behave differently."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from secondtake.cassettes.errors import Locked, NameTaken
from secondtake.harness.demo import CAREFUL, HASTY, TASK
from secondtake.harness.demo.scripts import script
from secondtake.harness.matrix.cells import Cell
from secondtake.harness.matrix.design import Pacing
from secondtake.harness.matrix.planning import Plan, Wanted, planned
from secondtake.harness.matrix.schedule import Progress, TakeDone
from secondtake.harness.matrix.session import Before, Outcome, matrix_session, told_of
from secondtake.harness.matrix.state import Matrices
from secondtake.harness.plan import Recast
from secondtake.harness.provider import Failure, Scene, Script
from secondtake.harness.taking import Conditions
from tests.harness.matrix.scenes import FakeRunner
from tests.harness.takes import Staged, staged

pytestmark = pytest.mark.loopback

BUSY, LIAR = "busy-20260101", "liar-20260101"


def played() -> Script:
    """The demo's two models, one whose provider is overloaded, and one that another answers for."""
    hasty, careful, *others = script().scenes
    liar = Scene(careful.turns, LIAR, TASK, served=CAREFUL)
    return Script((hasty, careful, Scene((Failure(529),), BUSY, TASK), liar, *others))


async def session(found: Staged, plan: Plan, *, resume: bool = False, agree: bool = True, **more: object) -> Outcome | None:
    conditions = Conditions(wire=found.scene.rules)
    told: list[Progress] = []
    return await matrix_session(
        found.scene.stage,
        found.fixture,
        plan,
        Recast((), allow_unpinned=True),
        conditions,
        resume=resume,
        agreed=lambda before: _kept(before, agree),
        progress=told.append,
        **more,  # type: ignore[arg-type]
    )


def _kept(before: Before, agree: bool) -> bool:
    assert before.estimate.calls > 0
    return agree


async def _everything(folder: Path) -> Outcome | None:
    async with staged(folder, played=played()) as found:
        wanted = Wanted((HASTY, CAREFUL, BUSY, LIAR), repeats=1, jobs=2, attempts=2, warm_up=False, pacing=Pacing(back_off_s=0))
        plan = planned(found.scene.stage, found.fixture, wanted, Recast((), allow_unpinned=True), found.scene.rules)
        made = await session(found, plan)
        assert made is not None
        assert told_of(found.scene.stage, plan.design.id, made.ran).report == made.report
        again = await session(found, plan, resume=True)
        assert again is not None
        assert (again.report, again.ran.takes) == (made.report, ())
        return made


def test_each_take_is_in_the_column_it_belongs_to(tmp_path: Path) -> None:
    """Issue 6: a failure as recorded, a pass, infrastructure that was run again, and a served model other than the pin; all sealed."""
    made = asyncio.run(_everything(tmp_path))
    assert made is not None
    report = made.report
    rows = {row.arm: row for row in report.rows}
    assert report.headline == "REPRODUCED 1/1 (same signature)"
    assert (rows[HASTY].control, rows[HASTY].same, rows[CAREFUL].rate.passed) == (True, 1, 1)
    assert (rows[BUSY].infrastructure, rows[BUSY].given_up, rows[BUSY].rate.runs) == (2, 1, 0)
    assert (rows[LIAR].invalid, rows[LIAR].rate.runs) == (1, 0)
    assert report.complete
    calls = rows[HASTY].used.model_calls
    assert calls is not None
    assert calls.median == 4


def test_nothing_is_sealed_or_run_that_a_person_did_not_agree_to(tmp_path: Path) -> None:
    """Issue 6: a cost bound first; and what exists is gone on with only when asked, by one process."""

    async def tried() -> None:
        async with staged(tmp_path) as found:
            stage = found.scene.stage
            plan = planned(stage, found.fixture, Wanted((HASTY, CAREFUL), repeats=1), Recast(()), found.scene.rules)
            runner = FakeRunner(stage.store)
            assert await session(found, plan, agree=False, run=runner) is None
            assert (runner.cells, Matrices(stage.store.root).ids()) == ([], [])

            async def sealed_first(cell: Cell) -> TakeDone:
                assert Matrices(stage.store.root).read(plan.design.id) == plan.design
                with pytest.raises(Locked):
                    await session(found, plan, resume=True, run=runner)
                return await runner(cell)

            assert await session(found, plan, run=sealed_first) is not None
            with pytest.raises(NameTaken):
                await session(found, plan, run=runner)

    asyncio.run(tried())

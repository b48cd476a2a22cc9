"""One call of `matrix`, from the plan to the report."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from secondtake.harness.flooring import floor_of
from secondtake.harness.matrix.cells import due
from secondtake.harness.matrix.estimate import Estimate
from secondtake.harness.matrix.running import Playhouse, RealClock
from secondtake.harness.matrix.schedule import Progress, Ran, run_cells
from secondtake.harness.matrix.state import Matrices, takes_of
from secondtake.harness.report import Report, report

if TYPE_CHECKING:
    from secondtake.cassettes.takes import Take
    from secondtake.harness.fixture import Fixture
    from secondtake.harness.matrix.design import Design
    from secondtake.harness.matrix.planning import Plan
    from secondtake.harness.matrix.schedule import RunCell
    from secondtake.harness.plan import Recast, Stage
    from secondtake.harness.taking import Conditions


@dataclass(frozen=True, slots=True)
class Before:
    """What a person is told, and asked, before anything is spent."""

    design: Design
    estimate: Estimate
    done: int
    """Cells that are settled already."""
    doubts: tuple[str, ...] = ()
    """Why the fixture's checks cannot tell a failure from a success, one line each."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a call of `matrix`."""

    design: Design
    ran: Ran
    report: Report
    takes: tuple[Take, ...]
    """Every one but warm-ups, in the order of the report."""


async def matrix_session(
    stage: Stage,
    fixture: Fixture,
    plan: Plan,
    recast: Recast,
    conditions: Conditions,
    *,
    resume: bool,
    agreed: Callable[[Before], bool],
    progress: Callable[[Progress], None],
    run: RunCell | None = None,
    judging: Callable[[], AbstractContextManager[None]] = nullcontext,
) -> Outcome | None:
    """Seal the design, run what is due, and report on all takes there are. None where a person did not agree to what it will cost.

    `run`: what runs a cell; None: a take of the fixture. `judging` is around the checks of the untouched workspace.

    Raises:
        NameTaken: there is such a matrix, and it was not to be resumed; NotFound: there is none to resume; Locked: it is being run.
        What a take raises, after the others under way were stopped. What is closed stays, and `resume` goes on from there.
    """
    matrices = Matrices(stage.store.root)
    with matrices.held(plan.design.id):
        found = matrices.looked_up(plan.design, resume=resume)
        plan = replace(plan, design=found)
        takes, _ = takes_of(stage.store, found.id)
        cells = due(found, takes)
        total = len(found.arms) * (found.repeats + found.warm_up)
        told = plan.of(cells)
        with judging():
            floor = await floor_of(stage, fixture, seal=conditions.seal) if cells and run is None else None
        if cells and not agreed(Before(found, told, total - len(cells), floor.problems if floor is not None else ())):
            return None
        matrices.seal(found)
        taken = {summary.name for summary in stage.store.list()}
        if run is None:
            conditions = replace(conditions, floor=floor, alone=found.jobs == 1)
            run = Playhouse(stage, fixture, recast, conditions, plan.files)
        ran = await run_cells(
            found, takes, run, RealClock(stage), taken=taken.__contains__, likely=told.per_take, report=progress,
        )  # fmt: skip
    return told_of(stage, found.id, ran)


def told_of(stage: Stage, matrix: str, ran: Ran) -> Outcome:
    """Read back what is kept, and report on that. Raises NotFound, Corrupt, TooNew."""
    design = Matrices(stage.store.root).read(matrix)
    takes, cut = takes_of(stage.store, design.id)
    made = report(takes, design, cut=cut)
    return Outcome(design, ran, made, tuple(one.take for row in made.rows for one in row.takes))

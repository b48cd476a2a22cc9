"""What is said before and while a matrix runs."""

from __future__ import annotations

from dataclasses import replace

from secondtake.cassettes.takes import Outcome
from secondtake.cli.render.matrix import before_lines, left_lines, progress_line
from secondtake.harness.matrix.cells import Cell, Named, rounds
from secondtake.harness.matrix.design import Arm
from secondtake.harness.matrix.estimate import Estimate
from secondtake.harness.matrix.schedule import Progress, Ran
from secondtake.harness.matrix.session import Before
from tests.harness.matrix.scenes import design, take_of

TOLD = Estimate(15, 210, 1_234_567, 12.5, {}, (), 1800, 22.5)


def test_a_person_sees_what_it_is_what_it_costs_and_what_it_can_show() -> None:
    """Issue 6: a cost bound first; STATISTICS 2: small n will mostly be inconclusive, print that before the run."""
    text = "\n".join(before_lines(Before(design(max_cost=20), TOLD, 3)))
    for said in (
        "3 arms, 4 repeats each and 3 warm-ups",
        "old (snapshot, baseline, control)",
        "15 takes, 3 are done",
        "210 model calls, 1,235k tokens, cost 12.50, if each take goes as the recording did",
        "1,800 model calls; cost 22.50; no take is begun that would likely go beyond cost 20.00",
        "With n=4 per arm",
    ):
        assert said in text, text


def test_an_unknown_cost_is_said_to_be_unknown() -> None:
    """Never taken for nothing."""
    told = replace(TOLD, cost=None, unpriced=("new",), most_calls=None, most_cost=None)
    text = "\n".join(before_lines(Before(design(), told, 0)))
    assert "cost unknown: no price, or no usage, for new" in text
    assert "no rule of the fixture bounds it" in text


def test_each_take_that_ends_is_a_line() -> None:
    """Progress, and why a provider is left alone."""
    cell = replace(rounds(design())[5], attempt=2)
    named = Named("x", take_of(cell, Outcome.INFRASTRUCTURE))
    step = Progress(named, cell, 7, 15, 2, 0.84, 30.0)
    assert progress_line(step) == (
        f"[ 7/15] {cell.arm.name} 1, attempt 2: infrastructure, {named.take.resources.model_calls} calls in 1 min 02 s, 0.84 spent;"
        " its provider is left alone for 30.0 s"
    )
    assert progress_line(replace(step, ended=None)) is None


def test_a_strangers_name_changes_no_terminal() -> None:
    """SECURITY C-14."""
    arm = Arm("\x1b[31mred\n", "\x1b[31m")
    cell = Cell("m", arm, 1)
    lines = [
        *before_lines(Before(design(arms=(arm,)), TOLD, 0)),
        progress_line(Progress(Named("x", take_of(cell, Outcome.PASS)), cell, 1, 1, 0, None)) or "",
    ]
    assert not any("\x1b" in line or "\n" in line for line in lines)


def test_what_is_left_is_said_with_how_to_go_on() -> None:
    """A cost that was reached is a reason, not a failure."""
    text = "\n".join(left_lines(Ran((), "--max-cost 1: 0.99 were spent", 4), "secondtake matrix x --resume"))
    assert "4 cells left; --max-cost 1" in text
    assert "secondtake matrix x --resume" in text
    assert list(left_lines(Ran(()), "x")) == []

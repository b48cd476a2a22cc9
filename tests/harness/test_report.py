"""Each take is in the column it belongs to, and each number rests on the takes it says."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest
from scipy import stats
from statsmodels.stats.proportion import proportion_confint

from secondtake.cassettes.takes import Control, Outcome
from secondtake.harness.matrix.cells import Named
from secondtake.harness.matrix.design import Arm
from secondtake.harness.report import Report, Row, report
from tests.harness.matrix.scenes import LOST, RED, arm_takes, design, take

ARMS = (Arm("old", "old-20260101", "p", "snapshot", control=True), Arm("new", "new-20260601", "p", "snapshot"))
MADE = design(arms=ARMS, looks=(5,))


def made(old: str, new: str, **changes: object) -> Report:
    return report([*arm_takes("old", old), *arm_takes("new", new, **changes)], MADE)


def columns(row: Row) -> tuple[int, ...]:
    return row.rate.passed, row.same, row.other, row.contaminated, row.infrastructure, row.invalid


def test_each_outcome_is_in_its_column_and_the_last_three_leave_the_rate() -> None:
    """Issue 6: contamination, infrastructure, another model and an unpinned one each end up where they belong."""
    takes = [*arm_takes("old", "ssosp"), *arm_takes("new", "ppcis")]
    takes[5] = Named(takes[5].name, replace(takes[5].take, invalid="2 calls were answered by another model", mismatches=2))
    takes[9] = Named(takes[9].name, replace(takes[9].take, unpinned=True))
    old, new = report(takes, MADE).rows
    assert columns(old) == (1, 3, 1, 0, 0, 0)
    assert columns(new) == (1, 1, 0, 1, 1, 1)
    assert (old.rate.runs, new.rate.runs, new.strict.runs) == (5, 2, 4)
    assert (new.rate.value, new.strict.value) == (0.5, 0.25)
    assert (old.unpinned, new.unpinned) == (False, True)
    assert new.invalid_reasons == (("2 calls were answered by another model", 1),)
    assert sum(columns(new)) == 5


def test_attempts_that_were_run_again_are_counted_apart_from_cells_given_up() -> None:
    """DESIGN 6: re-run and counted; the strict rate counts every attempt as a failure."""
    again = [Named(f"x{number}", take(arm="new", repeat=1, attempts=number, outcome=Outcome.INFRASTRUCTURE)) for number in (1, 2)]
    again.append(Named("x3", take(arm="new", repeat=1, attempts=3)))
    lost = [Named(f"y{number}", take(arm="new", repeat=2, attempts=number, outcome=Outcome.INFRASTRUCTURE)) for number in (1, 2, 3)]
    row = report([*again, *lost], MADE).rows[1]
    assert (row.infrastructure, row.given_up, row.repeats) == (5, 1, 2)
    assert (row.rate.passed, row.rate.runs) == (1, 1)
    assert (row.strict.passed, row.strict.runs) == (1, 6)


def test_warm_ups_are_in_no_number_but_the_cost() -> None:
    """DESIGN 6: discarded; but they were paid for."""
    warm = Named("w", take(arm="new", repeat=0, warm_up=True, outcome=Outcome.OTHER))
    found = report([*arm_takes("old", "ppppp"), *arm_takes("new", "ppppp"), warm], MADE)
    assert columns(found.rows[1]) == (5, 0, 0, 0, 0, 0)
    assert (found.takes, found.warm_ups) == (10, 1)
    assert found.cost == pytest.approx(11 * 0.12)
    assert found.complete


def test_what_is_unknown_is_not_taken_for_nothing() -> None:
    """A take that does not say its tokens is in no median; a cost that is unknown makes the sum so."""
    takes = arm_takes("old", "pp")
    silent = replace(takes[0].take, resources=replace(takes[0].take.resources, tokens=None, cost=None))
    found = report([Named("a", silent), takes[1]], MADE)
    tokens = found.rows[0].used.tokens
    assert tokens is not None
    assert tokens.number == 1
    assert found.cost is None
    assert found.rows[1].used.model_calls is None


def test_signatures_are_ranked_with_the_incidents_own_marked() -> None:
    """DESIGN 6: failure signatures ranked."""
    row = made("sosss", "ppppp").rows[0]
    assert [(failure.text, failure.count, failure.recorded) for failure in row.failures] == [(RED.text, 4, True), (LOST.text, 1, False)]
    assert len(row.failures[0].takes) == 4


@pytest.mark.parametrize(
    ("old", "text"),
    [
        ("sspsc", "REPRODUCED 3/4 (same signature)"),
        ("ppppp", "NOT REPRODUCED (0/5)"),
        ("ppopp", "DIFFERENT FAILURE (0/5)"),
        ("ci", "NO TAKE COUNTS of the model of the recording"),
    ],
)
def test_the_headline_is_that_of_the_control_arm(old: str, text: str) -> None:
    """DESIGN 6: the headline of running the original pin again."""
    assert made(old, "ppppp").headline == text


def test_without_a_control_arm_nothing_is_claimed_of_the_recording() -> None:
    """No arm has its model, so nothing was reproduced or not."""
    found = report(arm_takes("new", "sssss"), replace(MADE, arms=ARMS[1:]))
    assert found.headline.startswith("NOT RUN AGAIN")
    assert found.study is not None


def test_proof_needs_reproduction_under_control_in_every_arm() -> None:
    """DESIGN 6: else every report says that it is a comparison study, and what stayed live."""
    assert made("sssss", "ppppp").study is None
    assert (made("ppppp", "ppppp").study or "").startswith("Comparison study, not proof of a model regression")
    found = made("sssss", "ppppp", control=Control.PARTIALLY, live=("web (2 requests) answered live",))
    assert found.label is Control.PARTIALLY
    assert found.study == "Comparison study, not proof of a model regression. Not held: web (2 requests) answered live."
    assert found.live == (("web (2 requests) answered live", 5),)
    assert [row.label for row in found.rows] == [Control.CONTROLLED, Control.PARTIALLY]


def test_the_numbers_of_a_row_agree_with_an_independent_computation() -> None:
    """Issue 6: scipy and statsmodels, through the report itself."""
    random = Random(5)
    for _ in range(25):
        old, new = ("".join(random.choice("psoci") for _ in range(random.randint(1, 9))) for _ in range(2))
        found = made(old, new)
        for row, text in zip(found.rows, (old, new), strict=True):
            runs, passed = sum(map(text.count, "pso")), text.count("p")
            assert (row.rate.passed, row.rate.runs, row.strict.runs) == (passed, runs, len(text))
            if runs:
                interval = proportion_confint(passed, runs, method="wilson")
                assert (row.rate.interval.low, row.rate.interval.high) == pytest.approx(interval, abs=1e-12)
                assert row.pass_powers == pytest.approx([stats.hypergeom.pmf(k, runs, passed, k) for k in range(1, runs + 1)])


def test_a_topped_up_matrix_says_so() -> None:
    """Somebody looked before: the reader must know."""
    found = report(arm_takes("old", "pppp"), replace(MADE, looks=(2, 5)))
    assert "topped up after results were seen (2, then 5)" in found.notes[0]
    assert "old has 4 of 5, new has 0 of 5" in found.notes[1]
    assert not found.complete


def test_why_takes_are_left_out_is_said() -> None:
    """A reader who sees them in their columns asks why."""
    found = made("ss", "ci", reason="web was asked for what the cassette does not have")
    assert "new: 1 contaminated, web was asked for what the cassette does not have." in found.notes
    assert "new: 1 infrastructure, web was asked for what the cassette does not have." in found.notes


def test_the_same_takes_give_the_same_report_in_any_order() -> None:
    """Pure: a matrix that was interrupted ends with the same table."""
    takes = [*arm_takes("old", "sspoc"), *arm_takes("new", "ppsip")]
    shuffled = list(takes)
    Random(1).shuffle(shuffled)
    assert report(shuffled, MADE) == report(takes, MADE)
    assert report([*takes, Named("z-copy", takes[0].take)], MADE).rows == report(takes, MADE).rows


def test_a_report_of_nothing_is_a_report() -> None:
    """Before the first take has ended, too."""
    assert report([]).rows == ()
    found = report([], MADE)
    assert [row.rate.value for row in found.rows] == [None, None]
    assert found.label is None

"""What is said of two arms is what their numbers say."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest
from scipy import stats
from statsmodels.stats.multitest import multipletests

from secondtake.harness.comparison import Finding, Tally, compare, outlook, p_text, points


def one(passed: int, runs: int, base_passed: int, base_runs: int) -> tuple[Finding, str, int | None]:
    (made,) = compare([Tally("new", passed, runs)], Tally("old", base_passed, base_runs))
    return made.finding, made.sentence, made.more_runs


def test_a_clear_difference_is_named_in_its_direction() -> None:
    """DESIGN 6: how sure we are, in plain words."""
    assert one(5, 5, 0, 5)[:2] == (
        Finding.BETTER,
        "new passed 5 of 5, old 0 of 5: better (exact p = 0.0020); the difference is likely from +39 to +100 points.",
    )
    assert one(0, 5, 5, 5)[0] is Finding.WORSE


def test_small_n_says_that_it_says_nothing() -> None:
    """Issue 6: `cannot be told apart at n=5`, and how many more runs would decide."""
    finding, sentence, more = one(3, 5, 5, 5)
    assert finding is Finding.OPEN
    assert "cannot be told apart at n=5" in sentence
    assert more is not None
    assert f"{more} more runs per arm would decide in 8 cases of 10" in sentence
    assert one(5, 5, 5, 5)[2] is None
    assert "more than 100 runs" in one(19, 20, 20, 20)[1]
    assert "n=4 and 5" in one(3, 4, 5, 5)[1]
    assert "nothing can be said" in one(0, 0, 5, 5)[1]


def test_the_ps_agree_with_scipy_and_statsmodels() -> None:
    """Issue 6: an independent computation, both directions and Holm over the arms."""
    random = Random(11)
    for _ in range(8):
        base = Tally("old", random.randint(0, 8), 8)
        arms = [Tally(f"arm {number}", random.randint(0, 8), 8) for number in range(3)]
        both = []
        for arm in arms:
            table = [[arm.passed, base.passed], [arm.runs - arm.passed, base.runs - base.passed]]
            sides = [stats.boschloo_exact(table, alternative=side).pvalue for side in ("less", "greater")]
            both.append(min(1.0, 2 * min(1.0 if side != side else side for side in sides)))  # noqa: PLR0124  # NaN of an empty row
        made = compare(arms, base)
        assert [found.p for found in made] == pytest.approx(both, abs=1e-6)
        assert [found.p_adjusted for found in made] == pytest.approx(list(multipletests(both, method="holm")[1]), abs=1e-6)
        assert [found.finding is Finding.OPEN for found in made] == [found.p_adjusted > 0.05 for found in made]


def test_an_arm_of_which_nothing_counts_makes_no_other_less_sure() -> None:
    """Nothing is tested there, so nothing is corrected for it; of those that are, each makes more runs necessary."""
    old, new, none = Tally("old", 0, 3), Tally("new", 3, 3), Tally("none", 0, 0)
    alone, (among, nothing) = compare([new], old)[0], compare([new, none], old)
    assert (among.p_adjusted, among.sentence) == (alone.p_adjusted, alone.sentence)
    assert (nothing.p_adjusted, nothing.finding) == (1.0, Finding.OPEN)
    old, new = Tally("old", 0, 2), Tally("new", 2, 2)
    assert compare([new], old)[0].more_runs == 1
    assert "1 more run per arm would decide" in compare([new], old)[0].sentence
    several = compare([replace(new, name=f"new {number}") for number in range(4)], old)
    more = several[0].more_runs
    assert more is not None
    runs = 2 + more
    assert compare([Tally(f"new {number}", runs, runs) for number in range(4)], Tally("old", 0, runs))[0].finding is Finding.BETTER


def test_what_a_few_runs_can_show_is_said_before() -> None:
    """STATISTICS 2: small n will mostly be inconclusive: print that before the run."""
    assert "not even a drop from 100 % to 0 %" in outlook(2)
    assert "a drop from 100 % to 15 % or less" in outlook(5)


@pytest.mark.parametrize(("share", "text"), [(0.354, "+35"), (-0.08, "−8"), (0.001, "0"), (-0.004, "0"), (1, "+100")])
def test_a_difference_is_in_points(share: float, text: str) -> None:
    """A sign, and never a minus zero."""
    assert points(share) == text


@pytest.mark.parametrize(
    ("p", "text"), [(0.75, "p = 0.75"), (0.0213, "p = 0.021"), (0.0062, "p = 0.0062"), (0.0001, "p under 0.001"), (1.0, "p = 1.00")]
)
def test_a_p_has_two_digits_that_count(p: float, text: str) -> None:
    """Never `0.00`."""
    assert p_text(p) == text

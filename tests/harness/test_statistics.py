"""The mathematics of a few runs agrees with an independent computation and with the figures the design rests on."""

from __future__ import annotations

import math
from collections.abc import Iterator
from random import Random

import numpy as np
import pytest
from scipy import stats
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.proportion import confint_proportions_2indep, proportion_confint

from secondtake.harness.statistics import (
    ONE_SIDED_95,
    Interval,
    boschloo,
    holm,
    newcombe,
    pass_power,
    region_exceeds,
    region_size,
    rejected_to,
    spread,
    statistics_of,
    two_sided,
    wilson,
)

TABLES = 1_000


def tables(seed: int, most: int = 16) -> Iterator[tuple[int, int, int, int]]:
    """Random results of two groups of runs, with both ends often among them."""
    random = Random(seed)
    for _ in range(TABLES):
        runs, base_runs = random.randint(1, most), random.randint(1, most)
        passed, base_passed = random.randint(0, runs), random.randint(0, base_runs)
        yield random.choice((passed, passed, 0, runs)), runs, random.choice((base_passed, base_passed, base_runs, 0)), base_runs


def rounded(interval: Interval) -> tuple[float, float]:
    return round(interval.low, 2), round(interval.high, 2)


def test_wilson_agrees_with_statsmodels_on_a_thousand_tables() -> None:
    """Issue 6: the numbers of the report agree with an independent computation."""
    for passed, runs, _, _ in tables(1, most=200):
        low, high = proportion_confint(passed, runs, method="wilson")
        ours = wilson(passed, runs)
        assert (ours.low, ours.high) == pytest.approx((low, high), abs=1e-12)


@pytest.mark.parametrize("alpha", [0.05, 0.10])
def test_newcombe_agrees_with_statsmodels_on_a_thousand_tables(alpha: float) -> None:
    """Issue 6; an interval of 90 % is the one-sided bound of 95 %."""
    z = ONE_SIDED_95 if alpha == 0.10 else 1.959963984540054
    for passed, runs, base_passed, base_runs in tables(2, most=200):
        ours = newcombe(passed, runs, base_passed, base_runs, z)
        theirs = confint_proportions_2indep(passed, runs, base_passed, base_runs, method="newcomb", alpha=alpha, compare="diff")
        assert (ours.low, ours.high) == pytest.approx(theirs, abs=1e-10)


def test_boschloo_agrees_with_scipy_on_a_thousand_tables() -> None:
    """Issue 6: one-sided and exact, to a millionth; the maximum is never missed."""
    for passed, runs, base_passed, base_runs in set(tables(3, most=12)):
        table = [[passed, base_passed], [runs - passed, base_runs - base_passed]]
        theirs = stats.boschloo_exact(table, alternative="less").pvalue
        theirs = 1.0 if math.isnan(theirs) else theirs  # SciPy's answer where a row of the table is empty
        assert boschloo(passed, runs, base_passed, base_runs) == pytest.approx(theirs, abs=1e-6), table


def test_the_quick_comparison_is_that_of_the_maximum() -> None:
    """The power tables ask only whether a region is too large; they get the same answer."""
    random = Random(8)
    for _ in range(150):
        runs, base_runs = random.randint(1, 25), random.randint(1, 25)
        region = rejected_to(runs, base_runs, random.choice(statistics_of(runs, base_runs)))
        size = region_size(region, runs, base_runs)
        for alpha in (size * (1 + 1e-9), size * (1 - 1e-9), 0.05, 0.025):
            assert region_exceeds(region, runs, base_runs, alpha) is (size > alpha)


def test_boschloo_is_never_more_than_fisher() -> None:
    """Uniformly more powerful: that is why it was chosen."""
    for passed, runs, base_passed, base_runs in tables(4, most=12):
        fisher = stats.hypergeom.cdf(passed, runs + base_runs, passed + base_passed, runs)
        assert boschloo(passed, runs, base_passed, base_runs) <= fisher + 1e-12


def test_pass_power_is_the_share_of_draws_that_all_pass() -> None:
    """STATISTICS 2: without bias, so 9 passes of 10 give pass^5 of one half; SciPy's hypergeometric says the same."""
    assert pass_power(9, 10, 5) == 0.5
    assert pass_power(5, 5, 6) is None
    for passed, runs, _, _ in tables(5):
        for k in (1, 2, runs):
            if k <= runs:
                assert pass_power(passed, runs, k) == pytest.approx(stats.hypergeom.pmf(k, runs, passed, k), abs=1e-9)


def test_median_and_quartiles_are_those_of_numpy() -> None:
    """The method is stated (linear interpolation), so it can be checked."""
    random = Random(6)
    for number in range(1, 60):
        values = [random.uniform(-5, 5) for _ in range(number)]
        ours = spread(values)
        assert ours is not None
        assert (ours.low, ours.median, ours.high) == pytest.approx(tuple(np.quantile(values, (0.25, 0.5, 0.75))))
        assert ours.number == number
    assert spread([]) is None


def test_holm_agrees_with_statsmodels() -> None:
    """STATISTICS 2: Holm over comparisons."""
    random = Random(7)
    for number in (1, 2, 3, 5, 8, 20):
        ps = [random.choice((random.random(), random.random() / 50, 0.02)) for _ in range(number)]
        assert holm(ps) == pytest.approx(tuple(multipletests(ps, method="holm")[1]))
    assert holm([]) == ()


@pytest.mark.parametrize(("runs", "low"), [(3, 0.44), (5, 0.57), (10, 0.72), (20, 0.84)])
def test_all_green_says_little(runs: int, low: float) -> None:
    """STATISTICS 2: Wilson at small n, to keep people honest."""
    assert rounded(wilson(runs, runs)) == (low, 1.0)
    assert wilson(0, runs).high == pytest.approx(1 - wilson(runs, runs).low)


@pytest.mark.parametrize(("runs", "low"), [(5, -0.35), (10, -0.21), (16, -0.145), (20, -0.12), (40, -0.06)])
def test_the_lower_bound_of_two_green_sides(runs: int, low: float) -> None:
    """STATISTICS 2: which margin can be passed at all with so many runs."""
    assert newcombe(runs, runs, runs, runs, ONE_SIDED_95).low == pytest.approx(low, abs=0.005)


def test_intervals_that_overlap_are_no_test() -> None:
    """STATISTICS 2: 48 of 60 against 57 of 60 overlaps and is a difference."""
    assert wilson(48, 60).high > wilson(57, 60).low
    assert boschloo(48, 60, 57, 60) < 0.025
    assert newcombe(48, 60, 57, 60).high < 0


def test_nothing_known_is_said_as_such() -> None:
    """No runs, no claim."""
    assert wilson(0, 0) == Interval(0.0, 1.0)
    assert newcombe(0, 0, 3, 3) == Interval(-1.0, 1.0)
    assert boschloo(0, 0, 3, 3) == 1.0
    assert two_sided(0.7, 0.8) == 1.0
    assert two_sided(0.01, 0.99) == 0.02


@pytest.mark.parametrize(("passed", "runs"), [(3, 2), (-1, 2)])
def test_counts_that_cannot_be_are_refused(passed: int, runs: int) -> None:
    """A rate above one is a fault of the caller, not a number to report."""
    with pytest.raises(ValueError, match="passes of"):
        wilson(passed, runs)

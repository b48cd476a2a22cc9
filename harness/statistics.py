"""What can be said from a few runs: intervals, an exact test, spreads. Pure mathematics on counts; nothing here knows what a take is.

Sources: Wilson (1927); Newcombe (1998), Statistics in Medicine 17, method 10; Boschloo (1970), one-sided; Chen et al. (arXiv 2107.03374)
and tau-bench (arXiv 2406.12045) for pass^k; Holm (1979). How well each agrees with SciPy and statsmodels is in the tests.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

TWO_SIDED_95 = 1.959963984540054
"""Normal quantile of 0.975: what an interval of 95 % that is shown uses."""

ONE_SIDED_95 = 1.6448536269514722
"""Normal quantile of 0.95: what a decision in one direction uses."""

RUNS = 1_000
"""The largest group that the exact test takes; beyond it the binomials leave what a double holds."""

_TIE = 1 + 1e-13
"""Two statistics closer than this are one: what rounding in the last bits could make of equal ones."""


@dataclass(frozen=True, slots=True)
class Interval:
    """A closed interval. Both ends belong to it."""

    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Spread:
    """Median and quartiles. Quartiles by linear interpolation (type 7 of Hyndman and Fan 1996: the default of numpy and R)."""

    median: float
    low: float
    """First quartile."""
    high: float
    """Third quartile."""
    number: int
    """How many values there were."""


def wilson(passed: int, runs: int, z: float = TWO_SIDED_95) -> Interval:
    """Return the Wilson score interval of a rate; without runs it is [0, 1]."""
    _counts(passed, runs)
    if runs == 0:
        return Interval(0.0, 1.0)
    rate = passed / runs
    square = z * z
    middle = (rate + square / (2 * runs)) / (1 + square / runs)
    half = z * math.sqrt(rate * (1 - rate) / runs + square / (4 * runs * runs)) / (1 + square / runs)
    # At the ends the formula is exactly 0 and 1; rounding must not say otherwise.
    return Interval(0.0 if passed == 0 else middle - half, 1.0 if passed == runs else middle + half)


def newcombe(passed: int, runs: int, base_passed: int, base_runs: int, z: float = TWO_SIDED_95) -> Interval:
    """Return Newcombe's hybrid score interval (method 10) of the difference of two rates, first minus base.

    With `ONE_SIDED_95` each end alone is a bound of 95 %. Where a side has no runs it is [-1, 1].
    """
    _counts(passed, runs)
    _counts(base_passed, base_runs)
    if runs == 0 or base_runs == 0:
        return Interval(-1.0, 1.0)
    rate, base_rate = passed / runs, base_passed / base_runs
    own, base = wilson(passed, runs, z), wilson(base_passed, base_runs, z)
    difference = rate - base_rate
    return Interval(
        difference - math.hypot(rate - own.low, base.high - base_rate),
        difference + math.hypot(own.high - rate, base_rate - base.low),
    )


def boschloo(passed: int, runs: int, base_passed: int, base_runs: int) -> float:
    """Return Boschloo's exact p that the first rate is not below the base rate: small where the first did worse.

    The statistic is Fisher's one-sided p; the p returned is its largest probability over every common rate (the nuisance parameter).
    Exact but for the maximum, which is found to better than 1e-9. Without runs on a side it is 1.
    """
    _counts(passed, runs)
    _counts(base_passed, base_runs)
    if max(runs, base_runs) > RUNS:
        raise ValueError(f"at most {RUNS} runs a side")
    if runs == 0 or base_runs == 0:
        return 1.0
    seen = _fisher(runs, base_runs)[passed][base_passed]
    return region_size(rejected_to(runs, base_runs, seen), runs, base_runs)


@lru_cache(maxsize=32)
def _fisher(runs: int, base_runs: int) -> tuple[tuple[float, ...], ...]:
    """Fisher's one-sided p of every table: P(first passes at most so often | passes in all)."""
    total = runs + base_runs
    table = [[1.0] * (base_runs + 1) for _ in range(runs + 1)]
    for passes in range(total + 1):
        ways = math.comb(total, passes)
        below = 0
        for first in range(max(0, passes - base_runs), min(runs, passes) + 1):
            below += math.comb(runs, first) * math.comb(base_runs, passes - first)
            table[first][passes - first] = below / ways  # of integers: rounded once, so that equal ones are equal
    return tuple(map(tuple, table))


def statistics_of(runs: int, base_runs: int) -> list[float]:
    """Return the values that the statistic can take, smallest first, ties once."""
    values: list[float] = []
    for value in sorted({value for row in _fisher(runs, base_runs) for value in row}):
        if not values or value > values[-1] * _TIE:
            values.append(value)
    return values


def rejected_to(runs: int, base_runs: int, statistic: float) -> tuple[int, ...]:
    """Return for each number of base passes the most passes of the first that are at least as extreme; -1 where none are."""
    bound = statistic * _TIE
    fisher = _fisher(runs, base_runs)
    found = []
    for base_passed in range(base_runs + 1):
        most = -1
        while most < runs and fisher[most + 1][base_passed] <= bound:
            most += 1
        found.append(most)
    return tuple(found)


def region_size(most: Sequence[int], runs: int, base_runs: int) -> float:
    """Return the largest probability, over every common rate, that a table falls into a region given as by `rejected_to`."""
    probability = _probability(most, runs, base_runs)
    return 1.0 if probability is None else min(1.0, _greatest(probability, _steps(runs + base_runs)))


def region_exceeds(most: Sequence[int], runs: int, base_runs: int, alpha: float) -> bool:
    """Whether `region_size` is above `alpha`; quicker, because the maximum is looked for only where it matters."""
    probability = _probability(most, runs, base_runs)
    if probability is None:
        return alpha < 1
    steps = _steps(runs + base_runs)
    greatest = 0.0
    for number in range(steps + 1):
        # From the middle outwards: that is where regions are largest, as a rule.
        step = steps // 2 + (number + 1) // 2 * (-1 if number % 2 else 1)
        greatest = max(greatest, probability(math.pi / 2 / steps * step)) if 0 <= step <= steps else greatest
        if greatest > alpha:
            return True
    return greatest * _BETWEEN_STEPS > alpha and _greatest(probability, steps) > alpha


_BETWEEN_STEPS = 1.02
"""How much higher a peak may be than the grid's points beside it: half a step from it, a sum of binomials has lost less than 1 %."""


def _steps(total: int) -> int:
    """How many parts the grid has: a peak's width falls with the root of the runs."""
    return 24 + 12 * math.isqrt(total)


def _probability(most: Sequence[int], runs: int, base_runs: int) -> Callable[[float], float] | None:
    """The probability of a region as a function of the angle whose sine, squared, is the common rate. None where it is 1 at an end.

    Peaks are equally wide in the angle, and its ends are reached.
    """
    total = runs + base_runs
    ways = [0] * (total + 1)
    first_ways = [math.comb(runs, first) for first in range(runs + 1)]
    for base_passed, bound in enumerate(most):
        base_ways = math.comb(base_runs, base_passed)
        for first in range(bound + 1):
            ways[first + base_passed] += first_ways[first] * base_ways
    if ways[0] or ways[total]:
        return None  # at a rate of 0 or 1 that table is certain
    terms = [(passes, total - passes, math.log(number)) for passes, number in enumerate(ways) if number]

    def probability(angle: float) -> float:
        sine, cosine = math.sin(angle), math.cos(angle)
        if sine <= 0 or cosine <= 0:
            return 0.0
        yes, no = 2 * math.log(sine), 2 * math.log(cosine)
        return math.fsum([math.exp(logarithm + passes * yes + failures * no) for passes, failures, logarithm in terms])

    return probability


def _greatest(function: Callable[[float], float], steps: int) -> float:
    """The maximum over [0, pi/2] of a sum of peaks that are wider than a step: a grid, then a golden section around its best points."""
    width = math.pi / 2 / steps
    values = [function(width * step) for step in range(steps + 1)]
    best = max(values)
    peaks = [
        step
        for step in range(1, steps)
        if values[step] >= values[step - 1] and values[step] >= values[step + 1] and values[step] >= best * 0.98
    ]
    return max((_golden(function, width * (step - 1), width * (step + 1)) for step in peaks), default=best)


def _golden(function: Callable[[float], float], low: float, high: float) -> float:
    ratio = (math.sqrt(5) - 1) / 2
    left, right = high - ratio * (high - low), low + ratio * (high - low)
    at_left, at_right = function(left), function(right)
    for _ in range(30):
        if at_left > at_right:
            high, right, at_right = right, left, at_left
            left = high - ratio * (high - low)
            at_left = function(left)
        else:
            low, left, at_left = left, right, at_right
            right = low + ratio * (high - low)
            at_right = function(right)
    return max(at_left, at_right)


def two_sided(worse: float, better: float) -> float:
    """Return one p for both directions: twice the smaller, at most 1."""
    return min(1.0, 2 * min(worse, better))


def pass_power(passed: int, runs: int, k: int) -> float | None:
    """Return pass^k, the chance that k runs in a row pass, estimated without bias: C(passed, k) / C(runs, k). None where k > runs."""
    _counts(passed, runs)
    if not 1 <= k <= runs:
        return None
    return math.comb(passed, k) / math.comb(runs, k)


def spread(values: Sequence[float]) -> Spread | None:
    """Return median and quartiles; None of nothing."""
    if not values:
        return None
    ordered = sorted(values)
    return Spread(_quantile(ordered, 0.5), _quantile(ordered, 0.25), _quantile(ordered, 0.75), len(ordered))


def _quantile(ordered: Sequence[float], share: float) -> float:
    at = (len(ordered) - 1) * share
    below = math.floor(at)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (at - below) * (ordered[above] - ordered[below])


def holm(ps: Sequence[float]) -> tuple[float, ...]:
    """Return the p values adjusted for being several (Holm's step-down), in the order given."""
    order = sorted(range(len(ps)), key=lambda number: ps[number])
    adjusted = [0.0] * len(ps)
    highest = 0.0
    for rank, number in enumerate(order):
        highest = max(highest, min(1.0, (len(ps) - rank) * ps[number]))
        adjusted[number] = highest
    return tuple(adjusted)


def _counts(passed: int, runs: int) -> None:
    if not 0 <= passed <= runs:
        raise ValueError(f"{passed} passes of {runs} runs")

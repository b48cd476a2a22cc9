"""How many runs it takes: exact enumeration of every result that two groups of runs can have, under given true rates.

Kept once computed: a process asks for the same few sizes again and again.
"""

from __future__ import annotations

import math
from functools import lru_cache

from secondtake.harness.statistics import ONE_SIDED_95, newcombe, region_exceeds, rejected_to, statistics_of

ALPHA = 0.05
POWER = 0.8
"""The chance of a decision that is asked for: in eight cases of ten."""

MOST_RUNS = 100
"""The largest number of runs per arm that is looked for; what needs more is said to need more."""


@lru_cache(maxsize=256)
def blocked_to(runs: int, base_runs: int, alpha: float = ALPHA) -> tuple[int, ...]:
    """Return for each number of base passes the most passes of the other arm that Boschloo's test calls worse; -1 where none are."""
    levels = statistics_of(runs, base_runs)
    none = (-1,) * (base_runs + 1)
    low, high = -1, len(levels)  # levels up to `low` are small enough; nested regions, so a bisection
    while high - low > 1:
        middle = (low + high) // 2
        if not region_exceeds(rejected_to(runs, base_runs, levels[middle]), runs, base_runs, alpha):
            low = middle
        else:
            high = middle
    return none if low < 0 else rejected_to(runs, base_runs, levels[low])


def power(runs: int, base_rate: float, rate: float, alpha: float = ALPHA) -> float:
    """Return the chance that Boschloo's one-sided test calls an arm worse, with `runs` on each side and these true rates."""
    below = _cumulated(runs, rate)
    return math.fsum(
        chance * below[most] for chance, most in zip(_binomial(runs, base_rate), blocked_to(runs, runs, alpha), strict=True) if most >= 0
    )


def passed_from(runs: int, base_runs: int, margin: float) -> tuple[int, ...]:
    """Return for each number of base passes the fewest passes that are not inferior by `margin` (one-sided 95 %); runs + 1 where none."""
    found = []
    for base_passed in range(base_runs + 1):
        fewest = runs + 1
        while fewest and newcombe(fewest - 1, runs, base_passed, base_runs, ONE_SIDED_95).low > -margin:
            fewest -= 1
        found.append(fewest)
    return tuple(found)


def pass_chance(runs: int, base_rate: float, rate: float, margin: float) -> float:
    """Return the chance that an arm is shown not to be worse by `margin` or more, with `runs` on each side and these true rates."""
    below = [0.0, *_cumulated(runs, rate)]
    return math.fsum(
        chance * (1 - below[fewest])
        for chance, fewest in zip(_binomial(runs, base_rate), passed_from(runs, runs, margin), strict=True)
        if fewest <= runs
    )


@lru_cache(maxsize=256)
def runs_to_tell(base_rate: float, rate: float, alpha: float = ALPHA, chance: float = POWER) -> int | None:
    """Return the fewest runs per arm with which a lower `rate` is called worse in `chance` of the cases.

    None where the rate is not lower, or where it takes more than MOST_RUNS. Beyond 20 runs only some sizes are looked at.
    """
    if rate >= base_rate:
        return None
    for runs in _sizes(_at_least(base_rate, rate)):
        if power(runs, base_rate, rate, alpha) >= chance:
            return runs
    return None


@lru_cache(maxsize=256)
def runs_to_pass(base_rate: float, rate: float, margin: float, chance: float = POWER) -> int | None:
    """Return the fewest runs per arm with which an arm is shown not to be worse by `margin` in `chance` of the cases; None as above."""
    if rate <= base_rate - margin:
        return None
    for runs in _sizes():
        if pass_chance(runs, base_rate, rate, margin) >= chance:
            return runs
    return None


def smallest_loss(runs: int, alpha: float = ALPHA) -> int | None:
    """Return the most passes that are called worse than a base that always passed; None where not even 0 is."""
    most = blocked_to(runs, runs, alpha)[runs]
    return None if most < 0 else most


def visible_loss(runs: int, base_rate: float = 1.0, alpha: float = ALPHA, chance: float = POWER) -> float | None:
    """Return the highest rate, in steps of 5 %, that is called worse than `base_rate` in `chance` of the cases; None where none is."""
    steps = [step / 20 for step in range(20, -1, -1) if step / 20 < base_rate]
    return next((rate for rate in steps if power(runs, base_rate, rate, alpha) >= chance), None)


def _sizes(least: float = 0) -> list[int]:
    return [runs for runs in (*range(2, 21), *range(22, 41, 2), *range(45, MOST_RUNS + 1, 5)) if runs >= least]


def _at_least(base_rate: float, rate: float) -> float:
    """Fewer runs never tell the rates apart: what a test that pays nothing for being exact needs (normal approximation), less 30 %."""
    variance = base_rate * (1 - base_rate) + rate * (1 - rate)
    return 0.7 * variance * 6.18 / (base_rate - rate) ** 2  # (1.645 + 0.842)²


def _binomial(runs: int, rate: float) -> list[float]:
    return [math.comb(runs, passed) * rate**passed * (1 - rate) ** (runs - passed) for passed in range(runs + 1)]


def _cumulated(runs: int, rate: float) -> list[float]:
    total = 0.0
    sums = []
    for chance in _binomial(runs, rate):
        total += chance
        sums.append(min(1.0, total))
    return sums

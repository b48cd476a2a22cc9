"""One arm held against the baseline: how far apart, how sure, and in which words. Counts in, values out."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from secondtake.harness.power import ALPHA, MOST_RUNS, POWER, runs_to_tell, visible_loss
from secondtake.harness.statistics import Interval, boschloo, holm, newcombe, two_sided

ONE_DIRECTION = ALPHA / 2
"""A report looks both ways, so each direction gets half."""


class Finding(StrEnum):
    """What a comparison comes to."""

    BETTER = "better"
    WORSE = "worse"
    OPEN = "cannot be told apart"


@dataclass(frozen=True, slots=True)
class Tally:
    """Passes of the takes that count."""

    name: str
    passed: int
    runs: int

    @property
    def rate(self) -> float:
        """Passes per run; 0 without runs."""
        return self.passed / self.runs if self.runs else 0.0


@dataclass(frozen=True, slots=True)
class Comparison:
    """An arm against the baseline."""

    baseline: str
    difference: float | None
    """Of the pass rates, arm minus baseline; None where a side has no run that counts."""
    interval: Interval
    """Newcombe, 95 %, two-sided."""
    p_worse: float
    """Boschloo, one-sided: small where the arm is worse."""
    p_better: float
    p: float
    """Both directions: twice the smaller."""
    p_adjusted: float
    """Holm over the arms that have a take that counts: of the others nothing is tested."""
    finding: Finding
    more_runs: int | None
    """How many more runs per arm would tell the seen rates apart in eight cases of ten, with as many arms compared as now; None where they
    are equal or it takes too many."""
    sentence: str


def compare(arms: Sequence[Tally], baseline: Tally) -> tuple[Comparison, ...]:
    """Compare each arm with the baseline, in the order given."""
    worse = [boschloo(arm.passed, arm.runs, baseline.passed, baseline.runs) for arm in arms]
    better = [boschloo(baseline.passed, baseline.runs, arm.passed, arm.runs) for arm in arms]
    both = [two_sided(*one) for one in zip(worse, better, strict=True)]
    tested = [number for number, arm in enumerate(arms) if arm.runs and baseline.runs]
    adjusted = dict(zip(tested, holm([both[number] for number in tested]), strict=True))
    return tuple(
        _one(arm, baseline, worse[number], better[number], both[number], adjusted.get(number, 1.0), tested=len(tested))
        for number, arm in enumerate(arms)
    )


def _one(arm: Tally, baseline: Tally, worse: float, better: float, both: float, adjusted: float, *, tested: int) -> Comparison:
    interval = newcombe(arm.passed, arm.runs, baseline.passed, baseline.runs)
    known = bool(arm.runs and baseline.runs)
    finding = Finding.OPEN if adjusted > ALPHA else Finding.BETTER if better < worse else Finding.WORSE
    more = _more(arm, baseline, tested) if known and finding is Finding.OPEN else None
    return Comparison(
        baseline.name,
        arm.rate - baseline.rate if known else None,
        interval,
        worse,
        better,
        both,
        adjusted,
        finding,
        more,
        _sentence(arm, baseline, interval, adjusted, finding, more, several=tested > 1),
    )


def _more(arm: Tally, baseline: Tally, tested: int) -> int | None:
    """The smallest p is multiplied by the number of arms (Holm's first step), so that many runs are enough at any rank."""
    needed = runs_to_tell(max(arm.rate, baseline.rate), min(arm.rate, baseline.rate), ONE_DIRECTION / tested)
    return None if needed is None else max(1, needed - min(arm.runs, baseline.runs))


def _sentence(
    arm: Tally, baseline: Tally, interval: Interval, adjusted: float, finding: Finding, more: int | None, *, several: bool
) -> str:
    counts = f"{arm.name} passed {arm.passed} of {arm.runs}, {baseline.name} {baseline.passed} of {baseline.runs}"
    if not arm.runs or not baseline.runs:
        return f"{counts}: nothing can be said, one side has no take that counts."
    between = f"from {points(interval.low)} to {points(interval.high)} points"
    if finding is not Finding.OPEN:
        corrected = ", corrected for several comparisons" if several else ""
        return f"{counts}: {finding} (exact {p_text(adjusted)}{corrected}); the difference is likely {between}."
    size = f"n={arm.runs}" if arm.runs == baseline.runs else f"n={arm.runs} and {baseline.runs}"
    open_text = f"{counts}: cannot be told apart at {size} ({p_text(adjusted)}); the true difference may be anything {between}."
    if more is not None:
        return f"{open_text} If the rates are those seen, {more} more run{'' if more == 1 else 's'} per arm would decide in 8 cases of 10."
    if arm.rate != baseline.rate:
        return f"{open_text} If the rates are those seen, it takes more than {MOST_RUNS} runs per arm to decide."
    return open_text


def outlook(runs: int) -> str:
    """Say before anything is run what so many runs per arm can show at all."""
    seen = visible_loss(runs, 1.0, ONE_DIRECTION)
    if seen is None:
        return f"With n={runs} per arm not even a drop from 100 % to 0 % is sure to be told from chance."
    return (
        (
            f"With n={runs} per arm a drop from 100 % to {seen:.0%} or less is told from chance in {POWER * 10:.0f} cases of 10; "
            "a smaller one mostly is not."
        )
        .replace("%", " %")
        .replace("  %", " %")
    )


def points(share: float) -> str:
    """A difference in percentage points, signed: `+35`, `−8`."""
    value = round(share * 100)
    return "0" if value == 0 else f"{'+' if value > 0 else '−'}{abs(value)}"


def p_text(p: float) -> str:
    """A p value as people read it: two digits that count, never 0."""
    if p < 0.001:
        return "p under 0.001"
    digits = 2 if p >= 0.1 else 1 - math.floor(math.log10(p))
    return f"p = {p:.{digits}f}"

"""How many runs decide something: the figures of the design, redone."""

from __future__ import annotations

import pytest

from secondtake.harness.power import blocked_to, pass_chance, power, runs_to_pass, runs_to_tell, smallest_loss, visible_loss
from secondtake.harness.statistics import boschloo

LOSSES = ((1.0, 0.5), (0.95, 0.65), (0.9, 0.6), (0.9, 0.8))


@pytest.mark.parametrize(
    ("runs", "chances"),
    [
        (3, (0.12, 0.04, 0.05, 0.01)),
        (5, (0.50, 0.18, 0.19, 0.03)),
        (10, (0.83, 0.38, 0.39, 0.06)),
        (20, (1.0, 0.76, 0.71, 0.16)),
        (50, (1.0, 0.99, 0.97, 0.36)),
    ],
)
def test_the_power_of_boschloos_test(runs: int, chances: tuple[float, ...]) -> None:
    """STATISTICS 2, the table of exact power at 0.05."""
    assert [power(runs, *loss) for loss in LOSSES] == pytest.approx(chances, abs=0.0051)


@pytest.mark.parametrize(("runs", "most"), [(2, None), (3, 0), (5, 2), (10, 6), (20, 16)])
def test_the_smallest_loss_that_blocks(runs: int, most: int | None) -> None:
    """STATISTICS 2: with five runs a side, two passes against five of five are worse; three are not."""
    assert smallest_loss(runs) == most


@pytest.mark.parametrize(("runs", "base_runs"), [(4, 4), (5, 7), (9, 6)])
def test_what_is_called_worse_is_what_the_test_calls_worse(runs: int, base_runs: int) -> None:
    """The region is the test, table by table."""
    for base_passed, most in enumerate(blocked_to(runs, base_runs)):
        called = [passed for passed in range(runs + 1) if boschloo(passed, runs, base_passed, base_runs) <= 0.05]
        assert called == list(range(most + 1))


@pytest.mark.parametrize(
    ("margin", "runs", "equal", "wrong"),
    [
        (0.15, 20, (1.0, 0.47, 0.39, 0.31), 0.065),
        (0.20, 20, (1.0, 0.79, 0.63, 0.49), 0.075),
        (0.25, 20, (1.0, 0.87, 0.79, 0.66), 0.065),
        (0.15, 40, (1.0, 0.82, 0.69, 0.52), 0.055),
        (0.20, 40, (1.0, 0.96, 0.89, 0.73), 0.065),
    ],
)
def test_the_chance_to_pass(margin: float, runs: int, equal: tuple[float, ...], wrong: float) -> None:
    """STATISTICS 2, the table of P(PASS) for equally good models, and how often a loss of the margin itself passes."""
    assert [pass_chance(runs, rate, rate, margin) for rate in (1.0, 0.95, 0.9, 0.8)] == pytest.approx(equal, abs=0.0051)
    assert max(pass_chance(runs, rate, rate - margin, margin) for rate in (1.0, 0.95, 0.9, 0.8)) <= wrong


def test_ten_green_runs_cannot_pass_a_margin_of_fifteen_percent() -> None:
    """STATISTICS 2: choose the margin with n, or it is out of reach."""
    assert pass_chance(10, 1.0, 1.0, 0.15) == 0
    assert pass_chance(10, 1.0, 1.0, 0.25) == 1


def test_the_runs_that_would_decide_are_the_first_that_do() -> None:
    """`n more runs would decide` comes from the same enumeration."""
    runs = runs_to_tell(1.0, 0.5)
    assert runs is not None
    assert power(runs, 1.0, 0.5) >= 0.8 > power(runs - 1, 1.0, 0.5)
    assert runs_to_tell(0.5, 0.5) is None
    assert runs_to_tell(0.9, 0.88) is None
    fewest = runs_to_pass(1.0, 1.0, 0.2)
    assert fewest is not None
    assert pass_chance(fewest, 1.0, 1.0, 0.2) >= 0.8 > pass_chance(fewest - 1, 1.0, 1.0, 0.2)
    assert runs_to_pass(0.9, 0.6, 0.2) is None


def test_no_size_is_passed_over_that_would_do() -> None:
    """Small sizes are not looked at where they cannot do; what is found is still the first."""
    for base in range(2, 21, 3):
        for rate in range(0, base, 4):
            first = next((runs for runs in range(2, 21) if power(runs, base / 20, rate / 20) >= 0.8), None)
            found = runs_to_tell(base / 20, rate / 20)
            assert found == first if first is not None else found is None or found > 20


def test_what_a_few_runs_can_see_at_all() -> None:
    """STATISTICS 2: small n mostly says nothing; said before the run, in the size of a loss that would be seen."""
    seen = visible_loss(5)
    assert seen is not None
    assert power(5, 1.0, seen) >= 0.8 > power(5, 1.0, seen + 0.05)
    assert seen < 0.5 < (visible_loss(20) or 0)
    assert visible_loss(2) is None

"""Numbers as people read them."""

from __future__ import annotations

import pytest

from secondtake.cli.render.words import count, duration, size


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1.0 KiB"),
        (10 * 1024, "10 KiB"),
        (5 << 20, "5.0 MiB"),
        (3 << 30, "3.0 GiB"),
        (5000 << 30, "5000 GiB"),
    ],
)
def test_a_size_has_two_figures_and_a_unit(number: int, text: str) -> None:
    """As `ls -h`."""
    assert size(number) == text


@pytest.mark.parametrize(("time_us", "text"), [(0, "0.000 s"), (12_345, "0.012 s"), (3_440_000, "3.4 s"), (125_000_000, "2 min 05 s")])
def test_a_duration_is_as_exact_as_it_is_short(time_us: int, text: str) -> None:
    """Milliseconds below a second, minutes above one."""
    assert duration(time_us) == text


def test_one_is_not_many() -> None:
    """`1 exchange`, `2 exchanges`."""
    assert [count(1, "exchange"), count(2, "exchange"), count(2, "miss", "misses")] == ["1 exchange", "2 exchanges", "2 misses"]
    assert count(50_000, "row") == "50,000 rows"

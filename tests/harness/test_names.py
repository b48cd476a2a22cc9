"""Readable names for recordings that were given none."""

from __future__ import annotations

from datetime import date
from random import Random

from secondtake.cassettes.names import check
from secondtake.harness.names import ADJECTIVES, NOUNS, generated_name

DAY = date(2026, 11, 30)


def test_a_made_up_name_is_a_name() -> None:
    """DESIGN 7: a generated, readable default; the store takes each of them."""
    assert generated_name(DAY, Random(1), ()).startswith("2026-11-30-")
    for adjective in ADJECTIVES.split():
        for noun in NOUNS.split():
            check(f"2026-11-30-{adjective}-{noun}")


def test_the_same_randomness_gives_the_same_name() -> None:
    """Randomness is an argument."""
    assert generated_name(DAY, Random(7), ()) == generated_name(DAY, Random(7), ())


def test_a_taken_name_is_never_made_up() -> None:
    """Collision-free, also when every plain name is taken."""

    class All:
        def __contains__(self, name: object) -> bool:
            return not str(name).endswith("-3")

    taken: set[str] = set()
    for _ in range(50):
        taken.add(generated_name(DAY, Random(3), taken))
    assert len(taken) == 50
    assert generated_name(DAY, Random(3), All()).endswith("-3")

"""Regular expressions from strangers."""

from __future__ import annotations

import asyncio

import pytest

from secondtake.cassettes.errors import TooLarge
from secondtake.harness.acceptance.patterns import TEXT_CHARACTERS, search


@pytest.mark.parametrize("patterns", [["b$", "a"], ["(b+)+$", "a*a+"]])
def test_the_first_pattern_that_is_found_is_named(patterns: list[str]) -> None:
    """The same here and in a process of its own; lines begin at `^`."""
    assert asyncio.run(search(patterns, ["xb", "xa", "y", "b\nc"])) == [0, 1, None, 0]


def test_a_pattern_that_takes_for_ever_is_given_up() -> None:
    """The process it runs in is ended; nothing here waits for it."""
    with pytest.raises(TooLarge, match="took longer than"):
        asyncio.run(search(["(a+)+$"], ["a" * 60 + "b"], timeout_s=0.3))


def test_more_text_than_a_pattern_is_tried_on_is_said() -> None:
    """Not cut short in silence."""
    with pytest.raises(TooLarge, match="at most"):
        asyncio.run(search(["a"], ["b" * (TEXT_CHARACTERS + 1)]))

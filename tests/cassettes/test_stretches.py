"""Stretches of key-like characters."""

import re

from hypothesis import given
from hypothesis import strategies as st

from secondtake.cassettes.stretches import Stretches

WORDS = Stretches(b"abcXYZ019_.-", 4)


@given(st.text('abX0_.- /"\n', max_size=60).map(str.encode))
def test_runs_are_those_of_the_regular_expression(content: bytes) -> None:
    """C-10: faster, and the same."""
    assert list(WORDS.find(content)) == [found.span() for found in re.finditer(rb"[abcXYZ019_.-]{4,}", content)]
    assert WORDS.all_of(content) is bool(re.fullmatch(rb"[abcXYZ019_.-]{4,}", content))

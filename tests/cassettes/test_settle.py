"""Overlapping ranges, and repeating until nothing changes."""

import pytest

from secondtake.cassettes.exchange import Redaction, Side
from secondtake.cassettes.needles import Hit
from secondtake.cassettes.settle import merged, settled


def test_overlapping_hits_are_one_of_the_longest_kind() -> None:
    """C-11: one range per secret, whichever ways it was found."""
    hits = [
        ("a", Hit(5, 9, "place", b"x")),
        ("a", Hit(0, 3, "first", b"y")),
        ("b", Hit(4, 8, "shape", b"x")),
        ("a", Hit(8, 20, "long", b"z")),
    ]
    assert [(place, hit.start, hit.stop, hit.kind) for place, hit in merged(hits)] == [("a", 0, 3, "first"), ("b", 4, 20, "long")]


def test_of_equal_hits_the_last_says_the_kind() -> None:
    """C-13: the known value's own kind."""
    [(_, hit)] = merged([("a", Hit(0, 4, "place", b"x")), ("a", Hit(0, 4, "known", b"x"))])
    assert hit.kind == "known"


def redaction(start: int, stop: int) -> Redaction:
    return Redaction(Side.REQUEST, "body", start, stop, "k")


def test_it_is_repeated_until_nothing_changes() -> None:
    """C-10: a place that shows only after the first pass; the wider range is the one told."""
    passes = {b"abc": (b"axc", (redaction(1, 2),)), b"axc": (b"xxx", (redaction(0, 3),)), b"xxx": (b"xxx", ())}
    assert settled(passes.__getitem__, b"abc") == (b"xxx", (redaction(0, 3),))


def test_what_never_settles_is_an_error() -> None:
    """C-10: which withholds the body."""
    with pytest.raises(RecursionError):
        settled(lambda value: (not value, ()), False)

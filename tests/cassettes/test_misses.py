"""The texts of misses."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from secondtake.cassettes.differences import Difference
from secondtake.cassettes.exchange import Request
from secondtake.cassettes.misses import MissKind, Nearest, describe, printable

REQUEST = Request("GET", "https", "h.example", 443, b"/a\x00\x1b[2J\xff")


@pytest.mark.parametrize("kind", MissKind)
def test_every_class_has_a_text_on_one_line(kind: MissKind) -> None:
    """DESIGN 3."""
    nearest = Nearest(7, "GET", "https://h.example/b\r\n", 200, tuple(Difference("body", f"p{n}", "a", "b") for n in range(5)), more=2)
    line = describe(kind, REQUEST, nearest)
    assert line.startswith("replay: GET https://h.example/a")
    assert line.isprintable()
    assert line.isascii()
    assert "closest: exchange 7" in line
    assert "and 4 more" in line
    assert describe(kind, REQUEST, None).isprintable()


def test_the_classes_are_those_of_the_design() -> None:
    """DESIGN 3."""
    names = "exhausted variant range-not-recorded known-index-new-file new-resource model-diverged ws-refused out-of-scope escape"
    assert {kind.value for kind in MissKind} == {*names.split(), "push-refused", "withheld", "ws-diverged"}


@given(st.text())
def test_any_text_is_made_printable_and_short(text: str) -> None:
    """DESIGN 7."""
    shown = printable(text, 50)
    assert len(shown) <= 50
    assert "\n" not in shown
    assert "\x1b" not in shown
    assert "\u202e" not in shown
    shown.encode("utf-8")

"""Paths by pattern."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from secondtake.harness.acceptance.globs import CACHES, matches, matches_any


@pytest.mark.parametrize(
    ("path", "pattern", "hit"),
    [
        ("src/a.py", "src/**", True),
        ("src/a/b.py", "src/**", True),
        ("src", "src/**", False),
        ("src/a.py", "src", True),
        ("src/a.py", "src/", True),
        ("srcs/a.py", "src", False),
        ("src/a.py", "src/*.py", True),
        ("src/b/a.py", "src/*.py", False),
        ("a.py", "**/*.py", True),
        ("x/y/a.py", "**/*.py", True),
        ("x/y/a.py", "x/**/a.py", True),
        ("x/a.py", "x/**/a.py", True),
        ("a.pyc", "*.py", False),
        ("a.py", "?.py", True),
        ("ab.py", "?.py", False),
        ("aXbXc", "a*b*c", True),
        ("a[1].txt", "a[1].txt", True),
        ("x/y", "**", True),
        ("x/y/z", "**/y", True),
    ],
)
def test_a_star_stays_in_its_folder_and_two_cross_them(path: str, pattern: str, hit: bool) -> None:
    """A pattern that names a folder names all in it."""
    assert matches(path, pattern) is hit


@given(st.lists(st.text("ab.", min_size=1, max_size=4), min_size=1, max_size=4).map("/".join))
def test_a_path_matches_itself_its_folder_and_everything(path: str) -> None:
    """Whatever it is called."""
    assert matches(path, path)
    assert matches(path, "**")
    assert matches(path, path.split("/", maxsplit=1)[0])
    assert matches(path, "/".join("*" for _ in path.split("/")))
    assert not matches(path, path + "/x")


def test_a_pattern_cannot_be_made_to_take_for_ever() -> None:
    """Patterns come from strangers; one step a character and part, however many stars."""
    assert not matches("a" * 200, "*a" * 100 + "b")
    assert not matches("/".join("a" * 100), "/".join(["**", "a"] * 50) + "/b")


def test_what_tests_leave_behind_is_known() -> None:
    """In any folder."""
    for path in ("__pycache__/a.pyc", "x/y/__pycache__/a.pyc", ".pytest_cache/v/cache", "a.egg-info/PKG-INFO"):
        assert matches_any(path, CACHES)
    assert not matches_any("src/cache.py", CACHES)

"""Unified diffs, applied."""

from __future__ import annotations

import difflib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from secondtake.cassettes.errors import BadInput
from secondtake.harness.acceptance.patching import expected

LINES = st.lists(st.sampled_from(["a", "b", "", "-x", "+y", "@@ z", "--- q", "\\ n"]), max_size=12)


def text_of(lines: list[str], *, ends: bool) -> str:
    return "\n".join(lines) + ("\n" if ends and lines else "")


def diff(old: str, new: str) -> str:
    def lines(text: str) -> list[str]:
        parts = text.split("\n")
        return [part + "\n" for part in parts[:-1]] + ([parts[-1]] if parts[-1] else [])

    made = difflib.unified_diff(lines(old), lines(new), "a/f", "b/f")
    return "".join(line if line.endswith("\n") else line + "\n\\ No newline at end of file\n" for line in made)


@given(LINES, LINES, st.booleans(), st.booleans())
def test_a_diff_applied_to_what_it_was_made_from_gives_what_it_was_made_to(a: list[str], b: list[str], x: bool, y: bool) -> None:
    """Whatever stands in the lines: signs, heads, no end of line."""
    old, new = text_of(a, ends=x), text_of(b, ends=y)
    if old != new:
        assert expected(diff(old, new), {"f": old}.get) == {"f": new}


def test_files_come_go_and_move() -> None:
    """As git writes it."""
    patch = (
        "diff --git a/new b/new\nnew file mode 100644\n--- /dev/null\n+++ b/new\n@@ -0,0 +1 @@\n+n\n"
        "diff --git a/old b/old\ndeleted file mode 100644\n--- a/old\n+++ /dev/null\n@@ -1 +0,0 @@\n-o\n"
        "diff --git a/x b/y\nsimilarity index 100%\nrename from x\nrename to y\n"
        "diff --git a/p b/q\nsimilarity index 50%\nrename from p\nrename to q\n--- a/p\n+++ b/q\n@@ -1 +1 @@\n-1\n+2\n"
        '--- "a/\\303\\251"\n+++ "b/\\303\\251"\n@@ -1 +1 @@\n-1\n+2\n'
    )
    before = {"old": "o\n", "x": "same\n", "p": "1\n", "é": "1\n"}
    assert expected(patch, before.get) == {"new": "n\n", "old": None, "x": None, "y": "same\n", "p": None, "q": "2\n", "é": "2\n"}


@pytest.mark.parametrize(
    ("patch", "fault"),
    [
        ("", "names no file"),
        ("just words\n", "names no file"),
        ("--- a/f\n+++ b/f\n@@ -1 +1 @@\n-other\n+x\n", "does not fit f at line 1"),
        ("--- a/f\n+++ b/f\n@@ -1,3 +1 @@\n-a\n", "cut off"),
        ("--- a/f\n+++ b/f\n@@ what @@\n", "no hunk in line 3"),
        ("@@ -1 +1 @@\n-a\n+b\n", "before any file"),
        ("--- a/none\n+++ b/none\n@@ -1 +1 @@\n-a\n+b\n", "changes none, which is not there"),
        ("Binary files a/x and b/x differ\n", "binary"),
    ],
)
def test_what_is_no_patch_or_does_not_fit_is_said(patch: str, fault: str) -> None:
    """It is the fixture's fault, and the message says where."""
    with pytest.raises(BadInput, match=fault):
        expected(patch, {"f": "a\n"}.get)

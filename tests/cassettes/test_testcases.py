"""Tests as values: names, and what they stand for."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from secondtake.cassettes.testcases import ID_CHARACTERS, State, report, shortened, words

MADE = report(
    "pytest",
    [
        ("tests/test_a.py::test_ok", State.PASSED),
        ("tests/test_a.py::TestC::test_m", State.FAILED),
        ("tests/test_b.py::TestC::test_m", State.PASSED),
        ("tests/test_a.py::test_p[1.5]", State.PASSED),
        ("tests/test_a.py::test_p[a/b]", State.FAILED),
        ("shop/total.TestCents/one", State.PASSED),
        ("a.test.js > total > adds 1.5 cents", State.PASSED),
    ],
)


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        ("tests/test_a.py::test_ok", ["tests/test_a.py::test_ok"]),
        ("test_ok", ["tests/test_a.py::test_ok"]),
        ("tests.test_a::test_ok", ["tests/test_a.py::test_ok"]),
        ("est_ok", []),
        ("test_a.py::TestC::test_m", ["tests/test_a.py::TestC::test_m"]),
        ("tests.test_a.TestC::test_m", ["tests/test_a.py::TestC::test_m"]),
        ("test_p[1.5]", ["tests/test_a.py::test_p[1.5]"]),
        ("test_p[2]", []),
        ("test_p", ["tests/test_a.py::test_p[1.5]", "tests/test_a.py::test_p[a/b]"]),
        ("TestCents/one", ["shop/total.TestCents/one"]),
        ("total > adds 1.5 cents", ["a.test.js > total > adds 1.5 cents"]),
        ("total › adds 1.5 cents", ["a.test.js > total > adds 1.5 cents"]),
        ("", []),
    ],
)
def test_a_name_may_be_shortened_from_its_beginning(wanted: str, found: list[str]) -> None:
    """Word by word, whatever signs the program puts between them."""
    hits = MADE.find(wanted)
    assert ([test.id for test in hits.tests], hits.ambiguous) == (found, False)


def test_a_name_of_several_tests_is_ambiguous() -> None:
    """Two files may hold a test of one name."""
    hits = MADE.find("TestC::test_m")
    assert (len(hits.tests), hits.ambiguous) == (2, True)


def test_of_several_results_of_a_test_the_worst_counts() -> None:
    """A test that ran twice and failed once failed; a setup that broke is worse."""
    made = report("junit", [("a", State.FAILED), ("a", State.PASSED), ("b", State.SKIPPED), ("b", State.PASSED), ("a", State.ERROR)])
    assert [(test.id, test.state) for test in made.tests] == [("a", State.ERROR), ("b", State.PASSED)]


@given(st.text(max_size=2 * ID_CHARACTERS))
def test_a_name_is_kept_on_one_line_and_bounded(name: str) -> None:
    """And two long names stay two."""
    short = shortened(name)
    assert len(short) <= ID_CHARACTERS
    assert short.isprintable() or not short
    assert words(short)
    assert shortened("x" * 600 + "a") != shortened("x" * 600 + "b")

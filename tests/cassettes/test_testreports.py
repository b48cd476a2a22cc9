"""Reports of real test programs, kept as they were written (tests/samples/reports)."""

from __future__ import annotations

import contextlib
import signal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from secondtake.cassettes import testreports
from secondtake.cassettes.errors import BadInput, RecordedError, TooLarge
from secondtake.cassettes.testcases import State
from secondtake.cassettes.testlines import READERS
from secondtake.cassettes.testreports import first_red, joined, parse

SAMPLES = Path(__file__).parents[1] / "samples/reports"
PYTEST = {
    "test_a::test_ok": "passed",
    "test_a::test_bad": "failed",
    "test_p[a b]": "passed",
    "test_p[c/d]": "passed",
    "test_p[::]": "passed",
    "TestC::test_m": "passed",
    "test_xf": "skipped",
    "test_xp": "passed",
    "test_err": "error",
}
SCRIPT = {
    "total > adds cents": "passed",
    "total > rounds # up": "failed",
    "total > deep > is fine": "passed",
    "top": "passed",
}


@pytest.mark.parametrize(
    ("sample", "form", "tests"),
    [
        ("pytest-rA", "pytest", PYTEST),
        ("pytest-v", "pytest", PYTEST),
        ("pytest-junit", "junit", PYTEST),
        ("node-tap", "tap", SCRIPT | {"skipped one": "skipped", "todo one": "skipped"}),
        ("node-spec", "node", SCRIPT | {"skipped one": "skipped", "todo one": "skipped"}),
        ("node-junit", "junit", SCRIPT | {"skipped one": "skipped", "todo one": "skipped"}),
        ("jest", "jest", SCRIPT | {"deep > not now": "skipped", "later": "skipped"}),
        ("jest-json", "jest", SCRIPT | {"deep > not now": "skipped", "later": "skipped"}),
        ("vitest-verbose", "jest", SCRIPT | {"deep > not now": "skipped", "later": "skipped"}),
        ("vitest-json", "jest", SCRIPT | {"deep > not now": "skipped", "later": "skipped"}),
        ("vitest-tap", "tap", SCRIPT | {"deep > not now": "skipped", "later": "skipped"}),
        ("vitest-junit", "junit", SCRIPT | {"deep > not now": "skipped", "later": "skipped"}),
        ("vitest-default", "jest", {"adds cents": "passed", "rounds # up": "failed", "is fine": "passed", "not now": "skipped"}),
        (
            "cargo",
            "cargo",
            {
                "tests::one": "passed",
                "tests::two": "failed",
                "tests::three": "skipped",
                "tests::panics": "passed",
                "it.rs::it_works": "passed",
            },
        ),
    ],
)
def test_each_form_is_recognised_and_read(sample: str, form: str, tests: dict[str, str]) -> None:
    """Issue 6.1: tests by identity, whatever program ran them."""
    content = (SAMPLES / f"{sample}.txt").read_bytes()
    made = parse(content, root="/srv/shop")
    assert (made.form, made.complete) == (form, True)
    for name, state in tests.items():
        found = made.find(name)
        assert (name, [test.state.value for test in found.tests], found.ambiguous) == (name, [state], False)
    red = first_red(made)
    assert red is not None
    assert red.state.red
    assert not any("/srv/shop" in test.id for test in made.tests)
    assert parse(content, form, root="/srv/shop") == made


def test_a_report_of_failures_only_is_not_complete() -> None:
    """pytest without `-rA`: what is not listed may have passed."""
    made = parse((SAMPLES / "pytest-q.txt").read_bytes())
    assert (made.complete, [test.state for test in made.tests]) == (False, [State.FAILED, State.ERROR])


@pytest.mark.parametrize("content", [b"", b"hello\n", b"<html></html>", b'{"a": 1}', b"\xff\xfe\x00", b'"testResults"'])
def test_what_is_no_report_is_said(content: bytes) -> None:
    """And what would be one."""
    with pytest.raises(BadInput):
        parse(content)


def test_a_report_beyond_the_bound_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is a stranger's."""
    monkeypatch.setattr(testreports, "REPORT_BYTES", 10)
    with pytest.raises(TooLarge):
        parse(b"x" * 11)


@given(st.sampled_from(sorted(SAMPLES.iterdir())), st.integers(0, 5000), st.integers(0, 5000), st.binary(max_size=6))
def test_damage_is_an_error_of_ours_or_a_report(sample: Path, start: int, stop: int, put: bytes) -> None:
    """Cut and changed anywhere, it never raises anything else."""
    content = sample.read_bytes()
    try:
        parse(content[:start] + put + content[stop:])
    except RecordedError:
        pass


def test_a_suite_that_could_not_be_run_is_an_error_under_its_name() -> None:
    """jest says so of a file, without any test."""
    made = parse(b'{"testResults": [{"name": "/w/a.test.js", "status": "failed", "assertionResults": []}]}', root="/w")
    assert [(test.id, test.state) for test in made.tests] == [("a.test.js", State.ERROR)]


def test_several_files_are_one_report() -> None:
    """Gradle and Maven write one a class."""
    one = parse(b'<testsuite><testcase classname="a" name="x"/></testsuite>')
    two = parse(b'<testsuite><testcase classname="b" name="x"><failure/></testcase></testsuite>')
    assert [(test.id, test.state) for test in joined([one, two]).tests] == [("a::x", State.PASSED), ("b::x", State.FAILED)]


BUSY = [
    "x::" * 600 + " PASSED (",
    "test a" + " ... ok" * 280 + "?",
    "Tests:" + " " * 1900,
    "ok" + " " * 1990,
    "1 a, " * 390 + "x",
    "#" * 1990,
    "  ✓ " + "1ms " * 400,
]


@pytest.mark.parametrize("line", BUSY)
def test_no_line_keeps_a_pattern_busy(line: str) -> None:
    """Output is a stranger's. A pattern that backtracks takes hours for one of these; the alarm is a hundred times what they take."""
    content = (f"{line}\n" * 100).encode()

    def late(*_: object) -> None:
        raise AssertionError(f"still at {line[:20]!r}")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(30)
    try:
        for form in ("auto", *READERS):
            with contextlib.suppress(RecordedError):
                parse(content, form)
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)

"""JUnit XML: what its writers disagree about, and what no report needs."""

from __future__ import annotations

import pytest

from secondtake.cassettes.errors import BadInput
from secondtake.cassettes.testxml import DEPTH, read_xml


def states(text: str) -> dict[str, str]:
    return {test.id: test.state.value for test in read_xml(text.encode()).tests}


def test_each_writers_words_are_read() -> None:
    """failure, error, skipped, GoogleTest's status, and a retry that passed in the end."""
    text = """<?xml version="1.0"?><testsuites><testsuite name="s">
      <testcase classname="c" name="ok"/><testcase classname="c" name="bad"><failure message="m">t</failure></testcase>
      <testcase classname="c" name="err"><error/></testcase><testcase classname="c" name="no"><skipped/></testcase>
      <testcase classname="c" name="off" status="notrun"/><testcase classname="c" name="flaky"><flakyFailure/></testcase>
      <testcase classname="c" name="both"><failure/><skipped/></testcase>
      <testcase name="bare"/><testsuite name="inner"><testcase classname="test" name="deep"/></testsuite>
    </testsuite></testsuites>"""
    assert states(text) == {
        "c::ok": "passed", "c::bad": "failed", "c::err": "error", "c::no": "skipped", "c::off": "skipped", "c::flaky": "passed",
        "c::both": "failed", "s > bare": "passed", "s > inner > deep": "passed",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("<testsuite><testcase name='a'>", "cannot be read"),
        ("<html/>", "its root is <html>"),
        ("<!DOCTYPE x [<!ENTITY a 'b'>]><testsuite/>", "document type"),
        ("<testsuite>" * (DEPTH + 1), "nested deeper"),
        ("<?xml version='1.0' encoding='klingon'?><testsuite/>", "cannot be read"),
        ("", "cannot be read"),
    ],
)
def test_what_cannot_be_read_or_should_not_be_is_said(text: str, fault: str) -> None:
    """Entities grow; no report needs one."""
    with pytest.raises(BadInput, match=fault):
        read_xml(text.encode())

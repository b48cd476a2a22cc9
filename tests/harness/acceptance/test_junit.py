"""Takes as JUnit XML: what any reader of it must be able to rely on."""

from __future__ import annotations

from dataclasses import replace
from xml.etree import ElementTree

from hypothesis import given
from hypothesis import strategies as st

from secondtake.cassettes.takes import Checked, Outcome
from secondtake.cassettes.testxml import read_xml
from secondtake.harness.acceptance.junit import of_take, of_takes
from tests.cassettes.test_takes import TAKE

CHECKS = (
    Checked("the test is red", "tests", "failure", True, "1 failed", 5),
    Checked("the test is green", "tests", "acceptance", False, "test_a failed", 1_500_000, "1", "test_a"),
    Checked("only src", "only-changed", "acceptance", True, "changed: src/a.py", 10),
    Checked("quick", "within", "acceptance", None, "tokens are not known", 10),
)
FAILED = replace(TAKE, checks=CHECKS)
ALLOWED = {
    "testsuites": ({"name", "time", "tests", "failures", "disabled", "errors"}, {"testsuite"}),
    "testsuite": (
        {"name", "tests", "failures", "errors", "time", "disabled", "skipped", "timestamp", "hostname", "id", "package"},
        {"properties", "testcase", "system-out", "system-err"},
    ),
    "properties": (set(), {"property"}),
    "property": ({"name", "value"}, set()),
    "testcase": ({"name", "classname", "assertions", "time", "status"}, {"skipped", "error", "failure", "system-out", "system-err"}),
    "failure": ({"type", "message"}, set()),
    "error": ({"type", "message"}, set()),
    "skipped": ({"type", "message"}, set()),
}
"""Attributes and children by element, after the schema that Jenkins' xUnit plugin publishes (junit-10.xsd)."""
REQUIRED = {"testsuite": {"name", "tests"}, "testcase": {"name", "classname"}, "property": {"name", "value"}}


def valid(text: str) -> ElementTree.Element:
    root = ElementTree.fromstring(text)
    assert root.tag == "testsuites"
    for element in root.iter():
        attributes, children = ALLOWED[element.tag]
        assert REQUIRED.get(element.tag, set()) <= set(element.attrib) <= attributes
        assert {child.tag for child in element} <= children
        if element.tag == "testsuite":
            assert next(child.tag for child in element) == "properties"
            cases = element.findall("testcase")
            counted = {kind: sum(case.find(kind) is not None for case in cases) for kind in ("failure", "error", "skipped")}
            said = {
                kind: int(element.attrib[name]) for kind, name in (("failure", "failures"), ("error", "errors"), ("skipped", "skipped"))
            }
            assert (int(element.attrib["tests"]), said) == (len(cases), counted)
    return root


def test_each_check_of_the_acceptance_is_a_test_case() -> None:
    """Issue 6.1: not held is a failure, not judged an error; the incident's condition is told as a property."""
    root = valid(of_take(FAILED))
    assert {name: root.attrib[name] for name in ("tests", "failures", "errors")} == {"tests": "3", "failures": "1", "errors": "1"}
    cases = {case.attrib["name"]: [child.tag for child in case] for case in root.iter("testcase")}
    assert cases == {"the test is green": ["failure"], "only src": [], "quick": ["error"]}
    told = {one.attrib["name"]: one.attrib["value"] for one in root.iter("property")}
    assert told["failure: the test is red"] == "holds: 1 failed"
    assert (told["outcome"], told["control"]) == ("same failure", "controlled")


def test_a_take_that_does_not_count_is_skipped() -> None:
    """A 429 is no red test of the model's."""
    takes = [
        replace(FAILED, outcome=Outcome.INFRASTRUCTURE, reason="503 from the provider"),
        replace(FAILED, invalid="mismatch: another model answered"),
        replace(FAILED, checks=(), outcome=Outcome.OTHER),
    ]
    root = valid(of_takes([*takes, replace(takes[0], attempts=2)], name="matrix"))
    assert root[3].attrib["name"] == f"{root[0].attrib['name']} attempt 2"
    root.remove(root[3])
    assert [suite.attrib["skipped"] for suite in root] == ["3", "3", "0"]
    assert {case.attrib["message"] for case in root[1].iter("skipped")} == {"mismatch: another model answered"}
    assert root[2].attrib["errors"] == "1"


@given(st.text(max_size=40), st.text(max_size=40))
def test_no_text_of_a_stranger_breaks_it(name: str, evidence: str) -> None:
    """Control characters cannot stand in XML at all; quotes, line ends and half characters must not end it."""
    text = of_take(replace(FAILED, fixture=name, checks=(Checked(name, "k", "acceptance", False, evidence, 0),)))
    root = valid(text.encode("utf-8").decode())
    assert len(list(root.iter("testcase"))) == 1
    shown = root.find("testsuite/testcase/failure")
    assert shown is not None
    assert [a for a in shown.attrib["message"] if a != "\ufffd"] == [b for b in evidence if b in set(shown.attrib["message"]) - {"\ufffd"}]


def test_the_same_takes_give_the_same_bytes() -> None:
    """No clock, no host name: a report can be compared with the one before."""
    assert of_takes([FAILED, TAKE], name="m") == of_takes([FAILED, TAKE], name="m")
    assert "timestamp" not in of_take(FAILED)


def test_our_own_reader_reads_it() -> None:
    """What we write, we take."""
    report = read_xml(of_take(FAILED).encode())
    assert [test.state.value for test in report.tests] == ["failed", "passed", "error"]

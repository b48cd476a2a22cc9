"""Takes as JUnit XML, for whoever shows test results: one suite a take, one test case a check. The same takes give the same bytes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from xml.sax.saxutils import quoteattr

from secondtake.cassettes.takes import Checked, Take

_NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""What XML 1.0 cannot hold, not even as a reference (section 2.2)."""


def of_take(take: Take) -> str:
    """One take."""
    return of_takes([take], name=take.fixture)


def of_takes(takes: Sequence[Take], *, name: str) -> str:
    """Many, in the order given.

    A check that holds passes; one that does not is a `failure`, one that could not be judged an `error`. The checks of the failure are
    the incident's condition, which a good take does not meet: they are listed as properties, not as test cases. A take that does not
    count (contaminated, infrastructure, invalid, warm-up) is skipped as a whole: it says nothing of its model.
    """
    suites = [_suite(take) for take in takes]
    totals = _counts(suite for suite, _ in suites)
    del totals["skipped"]  # the schema that Jenkins publishes has no such attribute here
    seconds = sum(take.resources.seconds for take in takes)
    lines = ['<?xml version="1.0" encoding="UTF-8"?>', f"<testsuites {_attributes(name=name, **totals, time=_time(seconds))}>"]
    for _, text in suites:
        lines += text
    return "\n".join([*lines, "</testsuites>", ""])


def _suite(take: Take) -> tuple[dict[str, int], list[str]]:
    asked = [check for check in take.checks if check.section == "acceptance"]
    name = f"{take.fixture} {take.arm or take.model} {take.repeat}{f' attempt {take.attempts}' if take.attempts > 1 else ''}"
    cases = [_case(take, name, check) for check in asked] or [_outcome(take, name)]
    counted = {"tests": len(cases), "failures": 0, "errors": 0, "skipped": 0}
    lines: list[str] = []
    for kind, text in cases:
        if kind is not None:
            counted[kind] += 1
        lines += text
    properties = {
        "outcome": take.outcome.value,
        "reason": take.reason,
        "invalid": take.invalid,
        "model": take.model,
        "pin_class": take.pin_class,
        "control": "; ".join((take.control.value, *take.live)),
        "signature": "" if take.signature is None else f"{take.signature.id} {take.signature.text}",
        "tier": take.tier,
        "stopped": take.stopped or "",
        **{f"failure: {check.name}": f"{_word(check)}: {check.evidence}" for check in take.checks if check.section == "failure"},
    }
    head = f"  <testsuite {_attributes(name=name, **counted, time=_time(take.resources.seconds))}>"
    told = [f"      <property {_attributes(name=key, value=value)}/>" for key, value in properties.items() if value]
    return counted, [head, "    <properties>", *told, "    </properties>", *lines, "  </testsuite>"]


def _case(take: Take, suite: str, check: Checked) -> tuple[str | None, list[str]]:
    head = _attributes(name=check.name, classname=suite, time=_time(check.took_us / 1_000_000))
    if not take.counts:
        return "skipped", _with(head, "skipped", message=take.invalid or take.reason)
    if check.held is True:
        return None, [f"    <testcase {head}/>"]
    kind, tag = ("failures", "failure") if check.held is False else ("errors", "error")
    return kind, _with(head, tag, message=check.evidence, type=check.kind)


def _outcome(take: Take, suite: str) -> tuple[str | None, list[str]]:
    """A take without any acceptance check is still one test case."""
    head = _attributes(name="outcome", classname=suite, time=_time(0))
    if not take.counts:
        return "skipped", _with(head, "skipped", message=take.invalid or take.reason)
    return "errors", _with(head, "error", message=take.reason, type="outcome")


def _with(head: str, tag: str, **said: str) -> list[str]:
    return [f"    <testcase {head}>", f"      <{tag} {_attributes(**said)}/>", "    </testcase>"]


def _word(check: Checked) -> str:
    return {True: "holds", False: "does not hold", None: "not judged"}[check.held]


def _counts(suites: Iterable[dict[str, int]]) -> dict[str, int]:
    total = {"tests": 0, "failures": 0, "errors": 0, "skipped": 0}
    for suite in suites:
        for key, number in suite.items():
            total[key] += number
    return total


def _time(seconds: float) -> str:
    return f"{seconds:.3f}"


def _attributes(**values: str | int) -> str:
    return " ".join(f"{key}={_quoted(str(value))}" for key, value in values.items())


def _quoted(text: str) -> str:
    """An attribute's value; line ends and tabs as references, or a parser would read them as blanks."""
    return quoteattr(_NO_XML.sub("\ufffd", text), {"\n": "&#10;", "\r": "&#13;", "\t": "&#9;"})

"""JUnit XML as test programs write it. There is no one schema: pytest, jest, vitest, Gradle, Maven, node and GoogleTest each differ.

Read with expat's events: no document type, so no entities; nothing outside the file is ever opened.
"""

from __future__ import annotations

from collections.abc import Mapping
from xml.parsers import expat

from secondtake.cassettes.errors import BadInput
from secondtake.cassettes.testcases import Report, State, report

DEPTH = 100
_SUITES = frozenset({"testsuites", "testsuite"})
_NOT_RUN = frozenset({"notrun", "disabled", "skipped", "ignored"})


class _Reading:
    """Collects test cases from expat's events."""

    def __init__(self) -> None:
        self.found: list[tuple[str, State]] = []
        self._path: list[str] = []
        self._suites: list[str] = []
        self._case: tuple[str, State] | None = None

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        if not self._path and tag not in _SUITES:
            raise BadInput(f"no JUnit XML: its root is <{tag[:40]}>")
        if len(self._path) >= DEPTH:
            raise BadInput(f"JUnit XML nested deeper than {DEPTH}")
        self._path.append(tag)
        match tag:
            case "testsuite":
                self._suites.append(attributes.get("name", ""))
            case "testcase":
                words = {attributes.get("status", "").lower(), attributes.get("result", "").lower()}
                self._case = self._name(attributes), State.SKIPPED if words & _NOT_RUN else State.PASSED
            case "failure" | "error" | "skipped" if self._case is not None and self._path[-2] == "testcase":
                state = {"failure": State.FAILED, "error": State.ERROR, "skipped": State.SKIPPED}[tag]
                if not self._case[1].red:
                    self._case = self._case[0], state
            case _:
                pass

    def end(self, tag: str) -> None:
        self._path.pop()
        match tag:
            case "testsuite":
                self._suites.pop()
            case "testcase" if self._case is not None:
                self.found.append(self._case)
                self._case = None
            case _:
                pass

    def _name(self, attributes: Mapping[str, str]) -> str:
        """`classname::name`; where the class says nothing (node writes `test` into all), the suites around it do."""
        name, group = attributes.get("name", ""), attributes.get("classname", "")
        if group in {"", "test", name}:
            return " > ".join([*filter(None, self._suites), name])
        return f"{group}::{name}"


def read_xml(content: bytes) -> Report:
    """Read JUnit XML.

    Raises:
        BadInput: it is not that, is cut off, or has a document type.
    """
    reading = _Reading()
    parser = expat.ParserCreate()

    def no_document_type(*_: object) -> None:
        raise BadInput("JUnit XML with a document type is not read")

    parser.StartDoctypeDeclHandler = no_document_type
    parser.StartElementHandler = reading.start
    parser.EndElementHandler = reading.end
    try:
        parser.Parse(content, True)
    except (expat.ExpatError, ValueError, LookupError) as error:
        raise BadInput(f"the JUnit XML cannot be read: {error}") from None
    return report("junit", reading.found)

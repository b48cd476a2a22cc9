"""What a test run said of each test, read from the forms that test programs write."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence

from secondtake.cassettes.errors import BadInput, TooLarge
from secondtake.cassettes.testcases import Report, State, Test, report
from secondtake.cassettes.testlines import READERS, printed
from secondtake.cassettes.testxml import read_xml

REPORT_BYTES = 64 * 1024 * 1024
"""One report; a suite of 100,000 tests writes some 20 MB of XML."""

_SIGNS = (
    ("tap", re.compile(r"^TAP version \d+$", re.MULTILINE)),
    ("go", re.compile(r'^\{"Time":.*"Action":|^\{"Action":|^ *--- (?:PASS|FAIL|SKIP): \S+ \([\d.]+s\)$', re.MULTILINE)),
    ("pytest", re.compile(r"^=+ (?:short test summary info|test session starts) =+$", re.MULTILINE)),
    ("cargo", re.compile(r"^running \d+ tests?$", re.MULTILINE)),
    ("node", re.compile(r"^ℹ tests \d+$", re.MULTILINE)),
    ("jest", re.compile(r"^(?:PASS|FAIL) +\S+|^ *Tests:? +(?:\d+ \w+[,|() ]*)+", re.MULTILINE)),
    ("pytest", re.compile(r"^(?:=+ )?(?:\d+ [a-z]+(?:, )?)+ in [\d.]+s(?: .*)?$", re.MULTILINE)),
    ("tap", re.compile(r"^(?:not )?ok \d+\b|^1\.\.\d+$", re.MULTILINE)),
)
"""What tells a form, the surest first."""


def parse(content: bytes, form: str = "auto", *, root: str = "") -> Report:
    """Read one report. `form`: `auto`, or a name from docs/acceptance.md. `root`: a directory that is left out of names.

    Raises:
        BadInput: it is no report of that form, or of any.
        TooLarge: it is longer than REPORT_BYTES.
    """
    if len(content) > REPORT_BYTES:
        raise TooLarge(f"a test report of {len(content)} bytes; at most {REPORT_BYTES} are read")
    head = content[:1024].lstrip(b"\xef\xbb\xbf \t\r\n")
    if form == "junit" or (form == "auto" and head.startswith(b"<")):
        made = read_xml(content.lstrip(b" \t\r\n"))
    else:
        text = content.decode("utf-8", "replace")
        if root:
            text = text.replace(root.rstrip("/") + "/", "")
        made = _jest_json(text) if form in {"auto", "jest"} and '"testResults"' in text else _lines(text, form)
    return made if not root else _without(root, made)


def _without(root: str, made: Report) -> Report:
    prefix = root.rstrip("/") + "/"
    return report(made.form, ((test.id.replace(prefix, ""), test.state) for test in made.tests), complete=made.complete)


def _lines(text: str, form: str) -> Report:
    lines = list(printed(text))
    if form == "auto":
        plain = "\n".join(lines)
        form = next((name for name, sign in _SIGNS if sign.search(plain)), "")
    reader = READERS.get(form)
    if reader is None:
        raise BadInput("no test report was recognised", hint="give `report` and `format`, or have the tests print one (`pytest -rA`)")
    return reader(lines)


_JEST_STATES = {"passed": State.PASSED, "failed": State.FAILED}


def _jest_json(text: str) -> Report:
    """`jest --json`, and vitest's `json` reporter. A file that could not be run is an error under its name."""
    try:
        made = json.loads(text[text.index("{") : text.rindex("}") + 1])
        tests = list(_of_files(made["testResults"]))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise BadInput(f"no JSON report of jest's: {error}") from None
    return report("jest", tests)


def _of_files(files: list[dict[str, object]]) -> Iterator[tuple[str, State]]:
    for file in files:
        name, results = str(file.get("name", "")), file.get("assertionResults")
        if not results and file.get("status") == "failed":
            yield name, State.ERROR
        for one in results if isinstance(results, list) else ():
            parts = [name, *map(str, one["ancestorTitles"]), str(one["title"])]
            yield " > ".join(filter(None, parts)), _JEST_STATES.get(one["status"], State.SKIPPED)


def joined(reports: Sequence[Report]) -> Report:
    """Several files of one run as one report: one suite a file is common."""
    if len(reports) == 1:
        return reports[0]
    tests = ((test.id, test.state) for one in reports for test in one.tests)
    return report(reports[0].form, tests, complete=all(one.complete for one in reports))


def first_red(made: Report) -> Test | None:
    """The first test that failed, in the order of the report; errors of setup count."""
    return next((test for test in made.tests if test.state.red), None)

"""The normalised identity of a failure: two runs that failed in the same way have one signature, wherever and whenever they ran.

Four parts (STATISTICS 1): how the acceptance command ended, the first failing test or the first line of the error, the kind of the last
tool call, and why the model stopped. A looser identity would take unrelated failures for one, which ruins a minimiser and flatters a
matrix; so tests are compared by their name, and only what differs from run to run is scrubbed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from secondtake.cassettes.errors import BadInput, TooLarge
from secondtake.cassettes.events import Event, EventKind
from secondtake.cassettes.takes import Signature
from secondtake.cassettes.testreports import first_red, parse

if TYPE_CHECKING:
    from secondtake.cassettes.takes import Checked

LINE_CHARACTERS = 240
"""A normalised line; what differs later than this is taken for the same."""


def signature(checks: Iterable[Checked], events: Iterable[Event], *, stopped: str | None = None) -> Signature | None:
    """The signature of a take whose acceptance did not hold; None where all of it did.

    `stopped`: the stopping rule that was reached, as the take says it (`--max-calls 40: …`).
    """
    failed = [check for check in checks if check.section == "acceptance" and check.held is not True]
    if not failed:
        return None
    telling = next((check for check in failed if check.exit_class or check.first), failed[0])
    first = telling.first or f"check {telling.name}"
    log = list(events)
    return Signature.of(
        (
            ("exit", telling.exit_class),
            ("first", first),
            ("tool", last_tool(log)),
            ("stop", _rule(stopped) if stopped else stop_reason(log)),
        )
    )


# ---- how a command ended -------------------------------------------------------------------------------------------


def exit_class(status: int, *, timed_out: bool = False) -> str:
    """How a command ended, as a word: its code, `SIGSEGV`, `timed out`. `status`: as a shell gives it, 128 + n after signal n."""
    if timed_out:
        return "timed out"
    return _SIGNALS.get(status - 128) or str(status)


_SIGNALS = {
    1: "SIGHUP", 2: "SIGINT", 3: "SIGQUIT", 4: "SIGILL", 6: "SIGABRT", 7: "SIGBUS", 8: "SIGFPE", 9: "SIGKILL", 11: "SIGSEGV",
    13: "SIGPIPE", 14: "SIGALRM", 15: "SIGTERM",
}  # fmt: skip
"""As Linux numbers them; those that end a test command."""


# ---- the last tool call --------------------------------------------------------------------------------------------

_TOOLS = (
    ("mcp", re.compile(r"^mcp(?:__|\.|-)")),
    ("plan", re.compile(r"todo|plan|think|task|memory")),
    ("web", re.compile(r"web|fetch|browse|url|http")),
    ("search", re.compile(r"grep|glob|search|find|^ls$|list_?(?:dir|file|folder)")),
    ("edit", re.compile(r"edit|write|patch|replace|create|insert|delete|rename|move")),
    ("run", re.compile(r"bash|shell|exec|command|terminal|^run|python|powershell|process")),
    ("read", re.compile(r"read|view|cat|open|image")),
)
"""What the names of agents' tools have in common; the first that fits."""


def tool_class(name: str) -> str:
    """What kind of tool `name` is: `run`, `edit`, `read`, `search`, `web`, `plan`, `mcp`; else the name itself, scrubbed."""
    lower = name.lower()
    return next((kind for kind, fits in _TOOLS if fits.search(lower)), scrub(name)[:60])


def last_tool(events: Sequence[Event]) -> str:
    """The class of the last tool that a model called; `none` where none was."""
    for event in reversed(events):
        if event.event is EventKind.TOOL_CALL and not event.data.get("server_side"):
            return tool_class(str(event.data.get("tool", "")))
    return "none"


def stop_reason(events: Sequence[Event]) -> str:
    """Why the last model call stopped, as the log says; `none` where no model was asked."""
    return next((str(event.data.get("reason", "")) for event in reversed(events) if event.event is EventKind.STOP), "none")


def _rule(stopped: str) -> str:
    """`--max-calls 40: 40 were made` is `max-calls`: the bound is the fixture's, and in its digest."""
    found = re.match(r"-{0,2}([a-z][a-z-]*)", stopped)
    return found[1] if found is not None else scrub(stopped)


# ---- the first line of an error ------------------------------------------------------------------------------------

_ERRORS = (
    re.compile(r"^E   +\S"),  # pytest's reason
    re.compile(r"^\s*(?:[\w.]+\.)?[A-Z]\w*(?:Error|Exception|Failure|Exit|Interrupt|Warning)\b(?::|$)"),
    re.compile(r"\bpanicked at\b|^panic: |^fatal(?: error)?: |\bSegmentation fault\b|^FATAL\b"),
    re.compile(r"(?:^|[\s:(\[])(?:[\w-]*error|ERROR|Error)(?:\[\w+\])?:? +\S"),
    re.compile(r"^(?:FAIL|FAILED|not ok|--- FAIL)\b"),
    re.compile(r"\b(?:not found|No such file|cannot|can't|Permission denied|undefined|unexpected|failed)\b", re.IGNORECASE),
)
"""The surest first: a line that a program writes only for an error, before one that merely has the word in it."""

_NO_ERROR = re.compile(r"^\W*(?:0|no) (?:errors?|failures?|failed)\b|\b0 failed\b|deprecat", re.IGNORECASE)
LINES = 20_000


def first_failing(output: bytes, *, failed: bool, root: str = "", roots: Sequence[str] = ()) -> str:
    """The first failing test where `output` is a test report; else, where the command `failed`, the first line that names an error.

    `root`: the workspace as the command saw it. `roots`: as for `scrub`.
    """
    try:
        red = first_red(parse(output, root=root))
    except (BadInput, TooLarge):
        red = None
    if red is not None:
        return named_test(red.id, roots=roots)
    return error_line(output.decode("utf-8", "replace"), roots=roots) if failed else ""


def error_line(output: str, *, roots: Sequence[str] = ()) -> str:
    """The first line of `output` that names an error, scrubbed; its last line where none does; empty for no output."""
    lines = [line for line in map(_plain, output.split("\n")[:LINES]) if line.strip()]
    for sign in _ERRORS:
        for line in lines:
            if sign.search(line[:2000]) and not _NO_ERROR.search(line[:2000]):
                return scrub(re.sub(r"^E   +", "", line), roots=roots)
    return scrub(lines[-1], roots=roots) if lines else ""


def _plain(line: str) -> str:
    return re.sub(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])", "", line).rstrip("\r").rpartition("\r")[2]


# ---- what differs from run to run ----------------------------------------------------------------------------------

_TEMPORARY = r"tmp[._-]?\w{4,}|\w*[._-]?tmp\d\w*|pytest-(?:of-\w+|\d+)|(?:test_\w+?)\d+(?=/)|T[A-Z]?[a-z0-9]{6,}"
_UUID = re.compile(r"\b[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}\b")
_HEX = re.compile(r"\b0[xX][0-9a-fA-F]+\b|(?<![\w-])(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{7,64}(?![\w-])")
_PATH = re.compile(r"(?<![\w.~/\\])(?:file://)?(?:~|[A-Za-z]:)?(?:[\\/]+[\w.@+=~%-]+)+[\\/]?")
_TEMP_NAME = re.compile(r"\btmp[._-]?(?=\w*[\d_A-Z])\w{4,}\b|\bpytest-(?:of-\w+|\d+)\b")
_DAY = r"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]*"
_MONTH = r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]*"
_ZONE = r"(?: +(?:[A-Z]{3,4}|[+-]\d{4}))?"
_CLOCK = rf"\d{{1,2}}:\d\d(?::\d\d(?:[.,]\d+)?)?(?: *[AP]M)?{_ZONE}"
_DATE = re.compile(
    rf"\b(?:{_DAY},? +)?(?:\d{{1,2}}[ -]{_MONTH}|{_MONTH} +\d{{1,2}}),?(?:[ -]+\d{{4}})?(?:,? +{_CLOCK}(?: +\d{{4}})?)?\b"
    r"|\b\d{4}[-/]\d\d[-/]\d\d(?:[T _]\d{1,2}:\d\d(?::\d\d(?:[.,]\d+)?)?)?(?:Z|[+-]\d\d:?\d\d)?"
    r"|\b\d{1,2}:\d\d(?::\d\d(?:[.,]\d+)?)?\b"
)
_UNITS = r"(?:nano|micro|milli)?seconds?|minutes?|hours?|ns|µs|us|ms|sec|secs|s|min|m|h"
_TOOK = re.compile(rf"(?<![\w.])(?:\d+(?:[.,]\d+)? ?(?:{_UNITS})(?![A-Za-z]) ?)+")
_NUMBER = re.compile(r"(?<![A-Za-z_\d])[-+]?\d+(?:[.,_]\d+)*(?:[eE][-+]?\d+)?")
"""Not what stands in a word: `E501` and `test2` are names."""


def scrub(text: str, *, roots: Sequence[str] = ()) -> str:
    """`text` as one line without what differs from run to run: directories, addresses, dates, durations, numbers, temporary names.

    `roots`: directories of this run (workspace, HOME); they may hold blanks, which no pattern would find.
    """
    line = _rooted(text[: 20 * LINE_CHARACTERS], roots)
    line = " ".join("".join(character if character.isprintable() else " " for character in line).split())
    line = _UUID.sub("<id>", line)
    line = _PATH.sub(_named, line)
    line = _DATE.sub("<time>", line)
    line = _TEMP_NAME.sub("<temp>", line)
    line = _HEX.sub("<hex>", line)
    line = _TOOK.sub("<time> ", line)
    line = _NUMBER.sub("N", line)
    return " ".join(line.split())[:LINE_CHARACTERS]


def named_test(name: str, *, roots: Sequence[str] = ()) -> str:
    """The name of a test, as it stands in a signature: its numbers tell it from others and stay; directories and addresses go."""
    line = _rooted(name, roots)
    line = _UUID.sub("<id>", line)
    line = re.sub(r"(?<![\w.~/\\-])(?:[\\/][\w.@+=~%-]+){2,}", _named, line)
    line = _TEMP_NAME.sub("<temp>", line)
    return re.sub(r"\b0[xX][0-9a-fA-F]{4,}\b", "<hex>", line)[: 2 * LINE_CHARACTERS]


def _rooted(text: str, roots: Sequence[str]) -> str:
    for root in sorted({root.rstrip("/\\") for root in roots}, key=len, reverse=True):
        if len(root) > 1:
            text = re.sub(rf"(?:file://)?{re.escape(root)}(?:[/\\]|(?![\w.-]))", "", text)
    return text


def _named(found: re.Match[str]) -> str:
    """A path is its last part, unless that is temporary too."""
    last = re.split(r"[\\/]+", found[0].rstrip("\\/"))[-1]
    return "<temp>" if re.fullmatch(_TEMPORARY, last) else last

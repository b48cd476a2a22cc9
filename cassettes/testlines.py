"""What test programs print, line by line: pytest, TAP, go, cargo, jest and vitest, node.

A program's own tests can print any of these lines too. What can be told apart is: pytest's names are taken from its summary, TAP's
not from its diagnostics, and where a program counts what it lists, the two must agree. Proof is only a file that the tests cannot write.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence

from secondtake.cassettes.errors import BadInput
from secondtake.cassettes.testcases import Report, State, report

type _Result = tuple[str, State]


# ---- pytest --------------------------------------------------------------------------------------------------------

_PYTEST = {
    "PASSED": State.PASSED,
    "FAILED": State.FAILED,
    "ERROR": State.ERROR,
    "SKIPPED": State.SKIPPED,
    "XFAIL": State.SKIPPED,
    "XPASS": State.PASSED,
}
_SUMMARY = re.compile(r"=+ short test summary info =+")
_RULE = re.compile(r"=+ (?:FAILURES|ERRORS|PASSES|XPASSES|XFAILURES|warnings summary.*|short test summary info) =+")
_SUMMARISED = re.compile(r"(PASSED|FAILED|ERROR|XFAIL|XPASS) (\S.*)")
_SUBTEST = re.compile(r"SUBFAIL(?:ED)?(?:\[[^\]]*\]|\([^)]*\))* (\S.*)")
_VERBOSE = re.compile(r" (PASSED|FAILED|ERROR|SKIPPED|XFAIL|XPASS)\b")
_VERBOSE_REST = re.compile(r"(?: \(.*\))?\s*(?:\[ *\d+%\])?")
_DISTRIBUTED = re.compile(r"\[gw\d+\] \[ *\d+%\] (PASSED|FAILED|ERROR|SKIPPED|XFAIL|XPASS) (\S.*)")
_COUNTS = re.compile(r"(?:=+ )?((?:\d+ [a-z]+(?:, )?)+) in [\d.]+s(?: \([\d:]+\))?(?: =+)?|=+ no tests ran in .*")


def pytest(lines: Sequence[str]) -> Report:
    """pytest's `-v` lines before the first failure is told, its short summary (`-rA`), and its last line's counts."""
    verbose: list[_Result] = []
    for line in lines:
        if _RULE.fullmatch(line):
            break
        if (at := line.find("::")) > 0 and (found := _VERBOSE.search(line, at)) and _VERBOSE_REST.fullmatch(line, found.end()):
            verbose.append((line[: found.start()], _PYTEST[found[1]]))
        elif (found := _DISTRIBUTED.fullmatch(line)) is not None:
            verbose.append((found[2], _PYTEST[found[1]]))
    begin = max((at for at, line in enumerate(lines) if _SUMMARY.fullmatch(line)), default=len(lines))
    listed = verbose + [result for line in lines[begin:] if (result := _summarised(line)) is not None]
    counts = [found for line in lines if (found := _COUNTS.fullmatch(line.strip())) is not None]
    if not listed and not counts:
        raise BadInput("no result of pytest's")
    made = report("pytest", listed)
    said = re.findall(r"(\d+) (passed|xpassed)\b", counts[-1][1] or "") if counts else []
    passed = sum(int(number) for number, _ in said)
    if made.counted(State.PASSED) > passed and counts:
        raise BadInput(f"pytest counts {passed} passed, and {made.counted(State.PASSED)} are listed: another program printed some of them")
    return report("pytest", listed, complete=bool(counts) and made.counted(State.PASSED) == passed)


def _summarised(line: str) -> _Result | None:
    found = _SUMMARISED.fullmatch(line)
    if found is not None:
        return _without_message(found[2]), _PYTEST[found[1]]
    part = _SUBTEST.fullmatch(line)
    return None if part is None else (_without_message(part[1]), State.FAILED)


def _without_message(text: str) -> str:
    """`ID - message`; an ID's parameters may hold ` - ` too."""
    head, bracket, _ = text.partition("[")
    if bracket and " - " not in head:
        end = text.find("] - ")
        return text[: end + 1] if end >= 0 else text
    return text.partition(" - ")[0]


# ---- TAP -----------------------------------------------------------------------------------------------------------

_TAP = re.compile(r"( *)(not )?ok\b(?: +(\d+))?(?: +-)?(?: +(.*))?")
_SUBTEST_OF = re.compile(r"( *)# Subtest: (.*)")
_DIRECTIVE = re.compile(r"(?<!\\)# *(skip\S*|todo)\b.*", re.IGNORECASE)
_TIME = re.compile(r"(?<!\\)# time=\S+")
_PLAN = re.compile(r"1\.\.(\d+)(?: .*)?")
_INDENT = 4


def tap(lines: Sequence[str]) -> Report:
    """TAP 12 to 14, subtests in either form (a comment before, or braces after). A parent is listed where it says more than its parts."""
    names: list[str] = []
    reds: list[list[bool]] = [[]]
    found: list[_Result] = []
    open_braces: list[tuple[str, State]] = []
    planned, top, quoted = None, 0, False
    for line in lines:
        text = line.strip()
        if quoted or text == "---":
            quoted = text != "..." if quoted else True
            continue
        if (plan := _PLAN.fullmatch(line)) is not None:
            planned = int(plan[1])
        elif text.startswith("Bail out!"):
            found.append(("Bail out!", State.ERROR))
        elif text == "}" and open_braces:
            names = names[: len(open_braces) - 1]
            name, state = open_braces.pop()
            _parent(name, state, reds.pop(), found, reds[-1])
        elif (head := _SUBTEST_OF.fullmatch(line)) is not None:
            depth = len(head[1]) // _INDENT
            names[depth:] = [_unescaped(head[2])]
        elif (result := _TAP.fullmatch(line)) is not None:
            depth = len(result[1]) // _INDENT
            top += depth == 0
            rest = result[4] or ""
            opens = rest.rstrip().endswith("{")
            directive = _DIRECTIVE.search(rest)
            state = State.SKIPPED if directive is not None else State.FAILED if result[2] else State.PASSED
            own = _unescaped(_TIME.sub("", _DIRECTIVE.sub("", rest.rstrip(" {") if opens else rest))) or (result[3] or "")
            name = " > ".join([*names[:depth], own])
            if opens:
                names[depth:] = [own]
                open_braces.append((name, state))
                reds.append([])
            else:
                while len(reds) <= depth:
                    reds.append([])
                parts = reds.pop() if len(reds) > depth + 1 else []
                _parent(name, state, parts, found, reds[depth])
                del names[depth:]
    if not found and planned is None:
        raise BadInput("no result in the form of TAP")
    return report("tap", found, complete=planned == top)


def _parent(name: str, state: State, parts: list[bool], found: list[_Result], siblings: list[bool]) -> None:
    """A parent whose parts are listed is not, unless it is red and none of them is."""
    if not parts or (state.red and not any(parts)):
        found.append((name, state))
    siblings.append(state.red)


def _unescaped(text: str) -> str:
    return re.sub(r"\\([#\\])", r"\1", text).strip()


# ---- go ------------------------------------------------------------------------------------------------------------

_GO_ACTIONS = {"pass": State.PASSED, "fail": State.FAILED, "skip": State.SKIPPED}
_GO_LINE = re.compile(r" *--- (PASS|FAIL|SKIP): (\S+) \([\d.]+s\)")
_GO_PACKAGE = re.compile(r"(ok|FAIL|\?) *\t(\S+)(?:[\t ].*)?")


def go(lines: Iterable[str]) -> Report:
    """`go test -json`, or what `go test -v` prints. A test of which a subtest failed is not listed beside it; a package that could not
    be built is."""
    found: list[tuple[str, str, State]] = []
    packages: list[_Result] = []
    since: list[tuple[str, State]] = []
    machine = False
    for line in lines:
        if line.startswith("{"):
            event = _json(line)
            action = event.get("Action") if isinstance(event, dict) else None
            if not isinstance(event, dict) or action not in _GO_ACTIONS:
                machine = machine or action is not None
                continue
            machine = True
            package, test = str(event.get("Package", "")), event.get("Test")
            if isinstance(test, str):
                found.append((package, test, _GO_ACTIONS[action]))
            elif action == "fail":
                packages.append((package, State.ERROR))
        elif (result := _GO_LINE.fullmatch(line)) is not None:
            since.append((result[2], _GO_ACTIONS[result[1].lower()]))
        elif (package_line := _GO_PACKAGE.fullmatch(line)) is not None:
            found += [(package_line[2], test, state) for test, state in since]
            since = []
            if package_line[1] == "FAIL":
                packages.append((package_line[2], State.ERROR))
    found += [("", test, state) for test, state in since]
    if not found and not packages and not machine:
        raise BadInput("no result of `go test`")
    parents = {(package, test.rpartition("/")[0]) for package, test, _ in found if "/" in test}
    red = {package for package, _, state in found if state.red}
    tests = [(f"{package}.{test}" if package else test, state) for package, test, state in found if (package, test) not in parents]
    return report("go", tests + [(package, state) for package, state in packages if package not in red])


def _json(line: str) -> object:
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None


# ---- cargo ---------------------------------------------------------------------------------------------------------

_CARGO_TARGET = re.compile(r" +(?:Running (?:unittests )?(\S+) \(.*\)|Doc-tests (\S+))")
_CARGO_RUNNING = re.compile(r"running (\d+) tests?")
_CARGO_STATES = {"ok": State.PASSED, "FAILED": State.FAILED, "ignored": State.SKIPPED}


def cargo(lines: Iterable[str]) -> Report:
    """What `cargo test` prints. The target (`src/lib.rs`, `tests/it.rs`) stands before the name of each test, where it is printed too."""
    target, announced = "", 0
    found: list[_Result] = []
    seen = False
    for line in lines:
        if (head := _CARGO_TARGET.fullmatch(line)) is not None:
            target = head[1] or ""
        elif (running := _CARGO_RUNNING.fullmatch(line)) is not None:
            announced += int(running[1])
            seen = True
        elif line.startswith("test ") and " ... " in line:
            test, _, rest = line.removeprefix("test ").partition(" ... ")
            ended = rest.partition(", ")[0]  # `ignored, why`; what the test printed may stand before
            state = next((state for word, state in _CARGO_STATES.items() if ended.endswith(word)), None)
            test = test.removesuffix(" - should panic")
            if state is not None:
                found.append((f"{target}::{test}" if target and not test.startswith(target) else test, state))
    if not seen:
        raise BadInput("no result of `cargo test`")
    return report("cargo", found, complete=announced == len(found))


# ---- jest, vitest, node --------------------------------------------------------------------------------------------

_MARKS = {
    "✓": State.PASSED, "✔": State.PASSED, "✕": State.FAILED, "×": State.FAILED, "✖": State.FAILED,
    "○": State.SKIPPED, "✎": State.SKIPPED, "↓": State.SKIPPED, "□": State.SKIPPED, "﹣": State.SKIPPED,
}  # fmt: skip
_MARKED = re.compile(rf"( *)([{''.join(_MARKS)}]) (.*)")
_TOOK = re.compile(r" (?:\(\d[\d.]* ?m?s\)|\d+m?s)(?: \(retry x\d+\))?$")
_JEST_FILE = re.compile(r"(PASS|FAIL) +(?:\.[\\/])?(\S+)(?: \(.*\))?")
_VITEST_FILE = re.compile(r" *[❯✓×] (\S+) \(\d+ tests?.*\)(?: \d+m?s)?(?: .*)?")
_JEST_COUNTS = re.compile(r" *Tests:? +(\d.*)")


def jest(lines: Iterable[str]) -> Report:
    """What jest prints (each file's tree), and vitest (its tree, or one line a test)."""
    file, groups = "", list[tuple[int, str]]()
    found: list[_Result] = []
    passed: int | None = None
    told = False
    for line in lines:
        if line.startswith(("  ● ", "⎯")):
            told = True  # the failures are told from here on, in anybody's words
        if (counts := _JEST_COUNTS.fullmatch(line)) is not None:
            number = re.search(r"(\d+) passed", counts[1])
            passed = int(number[1]) if number is not None else 0
        elif (head := _JEST_FILE.fullmatch(line)) is not None or (head := _VITEST_FILE.fullmatch(line)) is not None:
            file, groups, told = head[head.re.groups], [], False
        elif told:
            continue
        elif (result := _MARKED.fullmatch(line)) is not None:
            depth = len(result[1])
            groups = [group for group in groups if group[0] < depth]
            name = _TOOK.sub("", result[3])
            name = name.removeprefix("skipped ").removeprefix("todo ") if result[2] in "○✎" else name
            parts = [name] if file and name.startswith(f"{file} > ") else [file, *(group for _, group in groups), name]
            found.append((" > ".join(filter(None, parts)), _MARKS[result[2]]))
        elif file and (group := re.fullmatch(r"( {2,})(\S.*)", line)) is not None and not group[2].startswith(("→", "❯")):
            groups = [*(one for one in groups if one[0] < len(group[1])), (len(group[1]), group[2])]
    if not found and passed is None:
        raise BadInput("no result of jest or vitest")
    made = report("jest", found)
    return report("jest", found, complete=passed == made.counted(State.PASSED))


_NODE_GROUP = re.compile(r"( *)▶ (.*)")
_NODE_COUNT = re.compile(r"ℹ tests (\d+)")


def node(lines: Iterable[str]) -> Report:
    """What `node --test` prints (its `spec` reporter)."""
    names: list[str] = []
    parts: list[list[bool]] = [[]]
    found: list[_Result] = []
    counted = False
    for line in lines:
        if line == "✖ failing tests:":
            break
        if _NODE_COUNT.fullmatch(line) is not None:
            counted = True
        elif (group := _NODE_GROUP.fullmatch(line)) is not None and not _TOOK.search(group[2]):
            depth = len(group[1]) // 2
            names[depth:] = [group[2]]
        elif (result := _MARKED.fullmatch(line)) is not None or (group is not None and (result := _as_end(line)) is not None):
            depth = len(result[1]) // 2
            state = _MARKS[result[2]]
            own = re.sub(r" # .*$", "", result[3]) if state is State.SKIPPED or re.search(r"ms\) # ", result[3]) else result[3]
            if own != result[3]:
                state = State.SKIPPED
            while len(parts) <= depth:
                parts.append([])
            below = parts.pop() if len(parts) > depth + 1 else []
            _parent(" > ".join([*names[:depth], _TOOK.sub("", own)]), state, below, found, parts[depth])
            del names[depth:]
    if not found and not counted:
        raise BadInput("no result of `node --test`")
    return report("node", found, complete=counted)


def _as_end(line: str) -> re.Match[str] | None:
    """Later versions end a group that passed with the mark it began with."""
    return _MARKED.fullmatch(line.replace("▶", "✔", 1))


READERS = {"pytest": pytest, "tap": tap, "go": go, "cargo": cargo, "jest": jest, "node": node}


LINE_CHARACTERS = 2000
"""A longer line is cut: no result is that long, and a stranger's may be made to keep a pattern busy."""


def printed(text: str) -> Iterator[str]:
    """The lines of what a program printed, without colours and what it overwrote itself."""
    for line in text.split("\n"):
        plain = re.sub(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])", "", line)
        yield plain.rstrip("\r").rpartition("\r")[2][:LINE_CHARACTERS]

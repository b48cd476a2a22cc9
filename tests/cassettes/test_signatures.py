"""The identity of a failure: the same for the same failure anywhere and any day, another for another."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from secondtake.cassettes.events import Event, EventKind
from secondtake.cassettes.signatures import (
    error_line,
    exit_class,
    first_failing,
    last_tool,
    named_test,
    scrub,
    signature,
    stop_reason,
    tool_class,
)
from secondtake.cassettes.takes import Checked

STOP = Event(EventKind.STOP, 9, 90, None, "m", {"reason": "end", "last_exchange": 5})


def event(kind: EventKind, **data: object) -> Event:
    return Event(kind, 0, 0, 1, "m", data)  # type: ignore[arg-type]  # plain values


def check(**changes: object) -> Checked:
    given: dict[str, object] = {"name": "green", "kind": "tests", "section": "acceptance", "held": False, "evidence": "", "took_us": 1}
    return Checked(**(given | changes))  # type: ignore[arg-type]  # the fields are named above


class TestSignature:
    def test_it_has_four_parts(self) -> None:
        """STATISTICS 1: exit class, first failing test, last tool call, stop reason."""
        log = [event(EventKind.TOOL_CALL, tool="read_file"), event(EventKind.TOOL_CALL, tool="Bash"), STOP]
        made = signature([check(exit_class="1", first="t.py::test_a")], log)
        assert made is not None
        assert made.parts == (("exit", "1"), ("first", "t.py::test_a"), ("tool", "run"), ("stop", "end"))
        assert made.text == "exit 1; first t.py::test_a; tool run; stop end"
        assert len(made.id) == 12

    def test_a_take_that_passed_has_none(self) -> None:
        """The failure's own checks are the incident's, not the take's."""
        assert signature([check(held=True), check(section="failure")], [STOP]) is None

    def test_the_check_that_ran_a_command_tells_most(self) -> None:
        """A file that was touched beside a red test: the test is the failure."""
        touched = check(name="only src", kind="only-changed")
        red = check(exit_class="1", first="t.py::test_a")
        made = signature([touched, red], [STOP])
        assert made is not None
        assert dict(made.parts)["first"] == "t.py::test_a"
        alone = signature([touched], [STOP])
        assert alone is not None
        assert dict(alone.parts) == {"exit": "", "first": "check only src", "tool": "none", "stop": "end"}

    @pytest.mark.parametrize(
        "other",
        [{"exit_class": "2"}, {"first": "t.py::test_a2"}, {"first": "t.py::test_b"}],
    )
    def test_another_failure_has_another(self, other: dict[str, str]) -> None:
        """A looser one raises false reproduction."""
        same = {"exit_class": "1", "first": "t.py::test_a"}
        one, two = signature([check(**same)], [STOP]), signature([check(**(same | other))], [STOP])
        assert one is not None
        assert two is not None
        assert one.id != two.id

    def test_a_stopping_rule_is_the_stop_reason(self) -> None:
        """By its name: how far it got is the bound's doing."""
        for said in ("--max-calls 40: 40 were made", "--max-calls 10: 10 were made"):
            made = signature([check()], [STOP], stopped=said)
            assert made is not None
            assert dict(made.parts)["stop"] == "max-calls"


ROOT = st.sampled_from(["/tmp/pytest-of-ann/pytest-3/test_x0/w", "/home/ben/shop", "/var/folders/x y/T/tmpab12/w", "/srv/run-7f3a"])
LINES = [
    'E   AssertionError: assert 41 == 42 in "{root}/out/total.txt"',
    "{root}/src/total.py:{n}: error: Incompatible types in assignment",
    "FileNotFoundError: [Errno 2] No such file or directory: '{root}/data.json'",
    "panic: runtime error at 0x{n:x}0a1b2c goroutine {n} [running] in {root}/main.go:{n}",
    "{date} ERROR worker[{n}]: job failed after {took}",
    "Error: socket hang up (request {uuid}) {took}",
    "thread 'main' ({n}) panicked at {root}/src/main.rs:{n}:5",
    "fatal: cannot open '{root}/.git/tmp_obj_{temp}'",
]
DATES = st.sampled_from(
    ["2026-11-30T06:44:31.123Z", "2025-01-02 23:59:59,001", "Mon Nov 30 06:44:31 UTC 2026", "Tue Jan 2 7:01:00 CET 2024", "12:30:59"]
)
TOOK = st.sampled_from(["0.12s", "3 ms", "1m 3.2s", "59 seconds", "1h2m", "250µs", "1m3s"])
UUIDS = st.uuids().map(str)


class TestScrub:
    @given(st.sampled_from(LINES), st.data())
    def test_where_and_when_a_failure_happened_is_no_part_of_it(self, line: str, data: st.DataObject) -> None:
        """Two runs of one failure, in other directories, on other days, with other processes: one line."""

        def written() -> str:
            root = data.draw(ROOT)
            text = line.format(
                root=root,
                n=data.draw(st.integers(10, 99_999)),
                date=data.draw(DATES),
                took=data.draw(TOOK),
                uuid=data.draw(UUIDS),
                temp=data.draw(st.text("abcXYZ019_", min_size=6, max_size=6)),
            )
            return error_line(f"noise\n{text}\n", roots=[root])

        assert written() == written()

    @given(st.text(max_size=300))
    def test_it_is_one_bounded_line(self, text: str) -> None:
        """A person reads it in a table and in a fixture."""
        once = scrub(text)
        assert len(once) <= 240
        assert once.isprintable() or not once
        assert "  " not in once

    @pytest.mark.parametrize(
        ("text", "left"),
        [
            ("E501 line too long (144 > 140)", "E501 line too long (N > N)"),
            ("test2 failed", "test2 failed"),
            ("src/total.py:12:5: F401 unused", "src/total.py:N:N: F401 unused"),
            ("see /usr/lib/python3.12/json/decoder.py line 3", "see decoder.py line N"),
            (r"C:\Users\Ann\shop\total.cs(12): error CS0103", "total.cs(N): error CS0103"),
            ("commit deadbeefcafe1 is gone", "commit <hex> is gone"),
            ("<Total object at 0x7f3a2b>", "<Total object at <hex>>"),
            ("-1.5e-3 and 1,234", "N and N"),
            ("decade facade", "decade facade"),
        ],
    )
    def test_names_stay_and_numbers_go(self, text: str, left: str) -> None:
        """What tells one error from another is kept."""
        assert scrub(text) == left

    @pytest.mark.parametrize(
        ("name", "left"),
        [
            ("tests/test_a.py::test_2[41-42]", "tests/test_a.py::test_2[41-42]"),
            ("tests/test_a.py::test_x[/tmp/pytest-of-a/pytest-1/f0]", "tests/test_a.py::test_x[f0]"),
            ("t.py::test_x[<A object at 0x7f3a2b>]", "t.py::test_x[<A object at <hex>>]"),
            ("/w/shop/t.py::test_x", "t.py::test_x"),
        ],
    )
    def test_a_tests_numbers_are_its_name(self, name: str, left: str) -> None:
        """`test_2` is not `test_3`."""
        assert named_test(name, roots=["/w/shop"]) == left


class TestErrorLine:
    @pytest.mark.parametrize(
        ("output", "line"),
        [
            ("collected 3\nE   ValueError: no\nt.py:3: ValueError\n", "ValueError: no"),
            ("Traceback (most recent call last):\n  File x\nKeyError: 'a'\n", "KeyError: 'a'"),
            ("building\nsrc/a.ts(3,1): error TS2304: Cannot find name\n", "src/a.ts(N): error TS2304: Cannot find name"),
            ("0 errors\nmake: *** [all] Error 2\n", "make: *** [all] Error N"),
            ("error[E0425]: cannot find value `x`\n", "error[E0425]: cannot find value `x`"),
            ("one\nlast words\n\n", "last words"),
            ("\x1b[31mFAIL\x1b[0m a.test.js\n", "FAIL a.test.js"),
            ("bash: frobnicate: command not found\n", "bash: frobnicate: command not found"),
            ("", ""),
        ],
    )
    def test_the_line_that_names_the_error_is_found(self, output: str, line: str) -> None:
        """Not the first that has the word in it."""
        assert error_line(output) == line


@pytest.mark.parametrize(
    ("status", "timed_out", "word"),
    [(0, False, "0"), (1, False, "1"), (139, False, "SIGSEGV"), (143, True, "timed out"), (255, False, "255")],
)
def test_how_a_command_ended_is_one_word(status: int, timed_out: bool, word: str) -> None:
    """A crash is not a red test."""
    assert exit_class(status, timed_out=timed_out) == word


@pytest.mark.parametrize(
    ("tools", "kind"),
    [
        (["Bash", "exec_command", "run_shell_command", "shell", "local_shell_call"], "run"),
        (["Edit", "MultiEdit", "apply_patch", "write_file", "str_replace_based_edit_tool", "replace"], "edit"),
        (["Read", "read_file", "view"], "read"),
        (["Grep", "Glob", "list_directory", "search_file_content", "ls"], "search"),
        (["TodoWrite", "update_plan"], "plan"),
        (["WebFetch", "web_search", "google_web_search"], "web"),
        (["mcp__files__read"], "mcp"),
    ],
)
def test_tools_of_different_agents_are_of_one_class(tools: list[str], kind: str) -> None:
    """What was done last counts, not what the agent calls it."""
    assert {tool_class(tool) for tool in tools} == {kind}


def test_a_tool_that_the_provider_ran_is_not_the_agents_last() -> None:
    """And a log without any has none."""
    log = [event(EventKind.TOOL_CALL, tool="Bash"), event(EventKind.TOOL_CALL, tool="web_search", server_side=True)]
    assert (last_tool(log), last_tool([]), stop_reason([]), stop_reason([STOP])) == ("run", "none", "none", "end")


def test_a_failure_is_named_alike_from_the_traffic_and_from_the_check() -> None:
    """The incident's signature is made of what the agent was told; the take's of what the check's command printed."""
    printed = b"=== short test summary info ===\nFAILED tests/test_a.py::test_b - assert 41 == 42\n1 failed, 3 passed in 0.12s\n"
    told = b"Exit code 1\n" + printed
    assert first_failing(told, failed=True) == first_failing(printed, failed=True) == "tests/test_a.py::test_b"
    assert first_failing(b"/w/a.c:3: error: no such thing\n", failed=True, roots=["/w"]) == "a.c:N: error: no such thing"
    assert first_failing(b"warning: error handling is hard\n", failed=False) == ""

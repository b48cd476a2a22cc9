"""Commands and how they ended, by whoever saw them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from secondtake.cassettes.diff.commands import Log, Ran, Whence, by_kernel, by_traffic, command_of, compare, program
from secondtake.cassettes.diff.decisions import Call
from secondtake.cassettes.diff.sameness import Sameness
from secondtake.cassettes.execs import Claim, Command
from tests.cassettes.diff.plays import Act, Turn, edit, played, run


def log(*ran: tuple[str, str]) -> Log:
    return Log(Whence.TRAFFIC, tuple(Ran(line, line.split()[0], ended) for line, ended in ran))


def test_commands_and_exit_codes_come_from_tool_calls_and_their_results() -> None:
    """Issue 6.4: else from tool calls and results, and says which."""
    made = by_traffic(
        played(
            run("pytest -q", "Exit code 1\n1 failed"),
            edit("a.py"),
            Turn((Act("run", {"command": ["bash", "-lc", "make x"]}, '{"exit_code": 0}'), Act("run", {"cmd": "ls"}, "no", error=True))),
            run("sleep 1"),
        )
    )
    assert made.whence is Whence.TRAFFIC
    assert [(ran.line, ran.ended) for ran in made.ran] == [("pytest -q", "1"), ("ls", "failed"), ("make x", "0"), ("sleep 1", "")]


def test_an_end_that_is_not_the_same_is_told_from_another_command() -> None:
    """Issue 6.4: commands and exit codes."""
    made = compare(log(("make", "1"), ("ls", "0")), log(("make", "0"), ("pwd", "0")))
    assert [(one.same, one.other_end) for one in made.together] == [(True, True), (False, False)]
    assert made.first is made.together[0]
    assert made.differs


def command(pid: int, parent: int, argv: str, at: int, code: int | None = 0, signal: int | None = None) -> Command:
    return Command(pid, parent, tuple(argv.split("|")), "/ws", at, at + 10, code, signal)


def test_the_kernels_log_gives_what_tool_calls_ran_and_leaves_the_agents_own_aside() -> None:
    """SECURITY D-11: the agent runs commands of its own, and can tell of commands it never ran."""
    claims = (
        Claim(1, "c1", "run", "pytest -q", 1_000_000, 2_000_000, 1),
        Claim(2, "c2", "run", "never-ran --here", 5_000_000, 6_000_000, 0),
    )
    commands = (
        command(10, 0, "node|agent.js", 0),
        command(11, 10, "git|status", 100_000),
        command(12, 10, "/bin/bash|-c|pytest -q", 1_100_000, 1),
        command(13, 12, "/usr/bin/python3|/ws/x.py", 1_200_000, None, 9),
    )
    made = by_kernel(commands, claims, Sameness("/ws"))
    assert made.whence is Whence.KERNEL
    assert [(ran.line, ran.program, ran.ended) for ran in made.ran] == [
        ("/bin/bash -c 'pytest -q'", "bash", "1"),
        ("/usr/bin/python3 {workspace}/x.py", "python3", "signal 9"),
    ]
    assert (made.own, made.not_run) == (2, 1)


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("pytest -q tests/test_x.py", "pytest"),
        ("cd /ws && FOO=1 timeout 60 python3 -m pytest -x", "python -m pytest"),
        ("git -C /ws diff --stat", "git"),
        ("git diff --stat", "git diff"),
        ("/usr/bin/npm run build", "npm run"),
        ("cat src/a.py | head -3", "cat src/a.py"),
        ("ls -la src", "ls"),
        ("python3 check.py -v", "python3 check.py"),
        ("python3 -c 'print(1)' x", "python3"),
        ("cd sub", "cd"),
        ("echo 'unclosed", "echo"),
        ("", ""),
    ],
)
def test_a_command_line_comes_to_its_program(line: str, told: str) -> None:
    """For the gist of a decision: what is run, not with which options."""
    assert program(line) == told


def test_a_call_without_a_command_runs_none() -> None:
    """An edit is a decision and no command."""
    assert command_of(Call("edit", '{"path":"a"}')) is None
    assert command_of(Call("run", "text")) is None
    assert command_of(Call("run", '{"command":7}')) is None


LOGS = st.lists(st.tuples(st.sampled_from(["a 1", "a 2", "b"]), st.sampled_from(["0", "1"])), max_size=8)


@given(LOGS, LOGS)
def test_a_log_equals_itself_and_sides_can_be_exchanged(one: list[tuple[str, str]], other: list[tuple[str, str]]) -> None:
    """Issue 6.4: diff(x, x) is empty; symmetric."""
    assert not compare(log(*one), log(*one)).differs
    assert compare(log(*one), log(*other)).differs == compare(log(*other), log(*one)).differs

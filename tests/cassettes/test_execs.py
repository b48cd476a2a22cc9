"""Commands as values: kept and read back, and held against the model's word."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from secondtake.cassettes.errors import Corrupt, TooLarge
from secondtake.cassettes.events import Event, EventKind
from secondtake.cassettes.execs import Accounted, Claim, Command, Mark, claims, compare, decode, encode, redacted


def ran(pid: int, *argv: str, parent: int = 1, at: int = 0, until: int | None = None, code: int | None = 0) -> Command:
    return Command(pid, parent, argv, "/w", at, at + 10 if until is None else until, code, None)


def claim(command: str | tuple[str, ...], *, called: int = 0, answered: int | None = 1_000_000, code: int | None = None) -> Claim:
    return Claim(1, "c1", "bash", command, called, answered, code)


AGENT = Command(1, 0, ("agent",), "/w", 0, 9_000_000, 0, None)


def marks(commands: list[Command], claimed: list[Claim]) -> list[tuple[str, int | None, int | None]]:
    return [(one.mark.value, one.command, one.claim) for one in compare(commands, claimed)]


words = st.text(st.characters(codec="utf-8") | st.sampled_from([chr(0xDC80 + n) for n in (0, 127)]), max_size=20)
numbers = st.integers(0, 2**40)
several = st.lists(
    st.builds(
        Command,
        pid=numbers,
        parent=numbers,
        argv=st.lists(words, max_size=4).map(tuple),
        cwd=words,
        started_us=numbers,
        ended_us=st.none() | numbers,
        exit_code=st.none() | st.integers(0, 255),
        signal=st.none() | st.integers(1, 64),
        program=words,
        replaced=st.booleans(),
        cut=st.booleans(),
    ),
    max_size=5,
)


class TestArtifact:
    @given(several)
    def test_commands_come_back_as_they_were(self, commands: list[Command]) -> None:
        """D-11: also arguments that are not UTF-8, and an exit code of 0."""
        assert decode(encode(commands)) == tuple(commands)

    def test_the_artifact_is_lines_of_ascii(self) -> None:
        """A person can read it with `grep`."""
        lines = encode([ran(7, "echo", "é\udcff\n")]).splitlines()
        assert json.loads(lines[0]) == {"execs": 1}
        assert json.loads(lines[1]) == {"p": 7, "pp": 1, "a": ["echo", "é\udcff\n"], "d": "/w", "s": 0, "e": 10, "x": 0}

    @pytest.mark.parametrize(
        "damaged",
        [
            b"",
            b"[]\n",
            b'{"execs":2}\n',
            b'{"execs":1}\nnonsense\n',
            b'{"execs":1}\n{"p":1,"pp":0,"a":[1],"s":0}\n',
            b'{"execs":1}\n{"p":true,"pp":0,"a":[],"s":0}\n',
            b'{"execs":1}\n{"p":1,"pp":0,"a":[],"s":0,"x":"0"}\n',
            b'{"execs":1}\n' + b"[" * 100_000 + b"\n",
        ],
    )
    def test_what_is_no_command_log_is_said_to_be_damaged(self, damaged: bytes) -> None:
        """An artifact may come from a stranger."""
        with pytest.raises(Corrupt):
            decode(damaged)

    def test_a_log_over_the_limit_is_not_read(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """SECURITY B-11: bounded before it is parsed."""
        monkeypatch.setattr("secondtake.cassettes.execs.EXECS", 1)
        with pytest.raises(TooLarge):
            decode(encode([ran(1, "a"), ran(2, "b")]))
        monkeypatch.setattr("secondtake.cassettes.execs.EXEC_LOG_BYTES", 10)
        with pytest.raises(TooLarge):
            decode(encode([ran(1, "a")]))

    def test_every_text_passes_the_redactor(self) -> None:
        """A command line holds credentials as often as a body does."""
        one = replace(ran(1, "curl", "-H", "key: hunter2"), cwd="/hunter2", program="/bin/hunter2")
        (hidden,) = redacted([one], lambda text: text.replace("hunter2", "[x]"))
        assert (hidden.argv, hidden.cwd, hidden.program) == (("curl", "-H", "key: [x]"), "/[x]", "/bin/[x]")


class TestCompare:
    def test_a_command_that_was_asked_for_is_matched_with_all_that_it_ran(self) -> None:
        """D-11: `matched`; the agent itself, and what it runs by itself, is `agent-initiated`."""
        commands = [
            AGENT,
            ran(2, "git", "status", at=5),
            ran(3, "bash", "-c", "make test", at=100),
            ran(4, "make", "test", parent=3, at=110),
            ran(5, "cc", "x.c", parent=4, at=120),
        ]
        assert marks(commands, [claim("make test", called=90)]) == [
            ("agent-initiated", 0, None),
            ("agent-initiated", 1, None),
            ("matched", 2, 0),
            ("matched", 3, 0),
            ("matched", 4, 0),
        ]

    def test_a_command_that_nothing_ran_is_claimed_but_not_run(self) -> None:
        """D-11: an agent that says it ran the tests and did not."""
        assert marks([AGENT], [claim("make test")]) == [("agent-initiated", 0, None), ("claimed-but-not-run", None, 0)]

    @pytest.mark.parametrize(
        "argv",
        [
            ("/bin/bash", "-c", "echo it's && ls"),
            ("bash", "-lc", " echo it's && ls\n"),
            ("bash", "-c", "source /tmp/snapshot && eval 'echo it'\"'\"'s && ls' < /dev/null && pwd -P >| /tmp/cwd"),
            ("bash", "-c", "{ echo it's && ls; }; __code=$?; pgrep -g 0 >/tmp/p 2>&1; exit $__code;"),
            ("sh", "-c", "eval 'echo it'\\''s && ls'"),
        ],
        ids=["as it is", "with space around", "quoted in an eval", "in a group", "quoted the other way"],
    )
    def test_the_wrappers_of_agents_are_seen_through(self, argv: tuple[str, ...]) -> None:
        """Agents put a tool call's text inside a line of their own."""
        found = compare([AGENT, ran(2, *argv, at=10)], [claim("echo it's && ls")])
        assert found[1] == Accounted(Mark.MATCHED, 1, 0)

    @pytest.mark.parametrize(
        ("said", "argv"),
        [
            (("ls", "-l"), ("ls", "-l")),
            (("bash", "-lc", "ls -l"), ("bash", "-lc", "ls -l")),
            (("bash", "-lc", "ls -l"), ("/usr/bin/zsh", "-c", "ls -l")),
            ("ls -l", ("/usr/bin/ls", "-l")),
            ("cd /w && A=1 make 'a b' | tail", ("make", "a b")),
            ("make test > log 2>&1; true", ("make", "test")),
            ("{ printf '' 'x' ; } < in", ("printf", "", "x")),
        ],
    )
    def test_a_command_that_is_run_without_its_shell_is_matched(self, said: str | tuple[str, ...], argv: tuple[str, ...]) -> None:
        """Codex gives a list of words; a shell that stays runs simple commands."""
        assert compare([AGENT, ran(2, *argv, at=10)], [claim(said)])[1].mark is Mark.MATCHED

    @pytest.mark.parametrize("argv", [("false",), ("lsof",), ("cat", "ls.txt"), ("bash", "-c", "els"), ("grep", "x", "a/ls")])
    def test_a_short_command_is_not_found_in_longer_words(self, argv: tuple[str, ...]) -> None:
        """`ls` stands in `false`."""
        assert compare([AGENT, ran(2, *argv, at=10)], [claim("ls")])[1].mark is Mark.AGENT

    def test_the_same_command_twice_answers_two_calls(self) -> None:
        """Each command answers one call, in order, and inside the call's time."""
        commands = [AGENT, ran(2, "sh", "-c", "make", at=2_000_000), ran(3, "sh", "-c", "make", at=5_000_000)]
        calls = [claim("make", called=1_900_000, answered=2_100_000), claim("make", called=4_900_000, answered=5_100_000)]
        assert [one.claim for one in compare(commands, calls)] == [None, 0, 1]
        assert [one.claim for one in compare(commands[:2], calls)] == [None, 0, 1]
        assert compare(commands[:2], calls)[2].mark is Mark.NOT_RUN

    def test_an_end_that_is_not_what_the_model_was_told_is_seen(self) -> None:
        """D-11: the kernel's exit code corroborates the tool result, or does not."""
        commands = [AGENT, ran(2, "sh", "-c", "make", at=10, code=2)]
        assert compare(commands, [claim("make", code=2)])[1].exit_agrees is True
        assert compare(commands, [claim("make", code=0)])[1].exit_agrees is False
        assert compare(commands, [claim("make")])[1].exit_agrees is None
        killed = replace(commands[1], exit_code=None, signal=9)
        assert compare([AGENT, killed], [claim("make", code=137)])[1].exit_agrees is True

    def test_a_shell_that_becomes_its_command_has_that_command_s_end(self) -> None:
        """`sh -c make` executes `make` in its own place."""
        shell = replace(ran(2, "sh", "-c", "make", at=10, code=None), replaced=True)
        found = compare([AGENT, shell, ran(2, "make", at=12, code=2)], [claim("make", code=2)])
        assert [(one.mark, one.claim, one.exit_agrees) for one in found[1:]] == [(Mark.MATCHED, 0, True), (Mark.MATCHED, 0, None)]

    def test_builtins_of_a_shell_that_stays_are_said_to_leave_no_trace(self) -> None:
        """Not found is not the same as not run where nothing could be found."""
        assert compare([AGENT], [claim("cd /w && export A=1")])[1].note != ""
        assert compare([AGENT], [claim("cd /w && make")])[1].note == ""


def event(kind: EventKind, at: int, exchange: int, **data: object) -> Event:
    return Event(kind, 0, at, exchange, "m", data)  # type: ignore[arg-type]


class TestClaims:
    def test_a_call_and_its_result_make_one_claim(self) -> None:
        """From the log of events, which every agent's traffic becomes."""
        log = [
            event(EventKind.TOOL_CALL, 50, 3, tool="Bash", call_id="a", arguments='{"command":"ls"}', server_side=False),
            event(EventKind.TOOL_CALL, 50, 3, tool="Read", call_id="b", arguments='{"path":"x"}', server_side=False),
            event(EventKind.TOOL_CALL, 50, 3, tool="code", call_id="s", arguments='{"command":"ls"}', server_side=True),
            event(EventKind.TOOL_CALL, 50, 3, tool="shell", call_id="c", arguments='{"command":["ls","-l"]}', server_side=False),
            event(EventKind.TOOL_RESULT, 90, 4, tool="Bash", call_id="a", call_exchange=3, exit_code=1),
        ]
        assert claims(log) == (Claim(3, "a", "Bash", "ls", 50, 90, 1), Claim(3, "c", "shell", ("ls", "-l"), 50, None, None))

    def test_long_arguments_are_read_from_the_payload(self) -> None:
        """An event holds them by hash only."""
        text = json.dumps({"cmd": "x" * 3000})
        said = Event(EventKind.TOOL_CALL, 0, 1, 1, "m", {"tool": "t", "call_id": "a", "arguments_sha256": "h"}, {"h": text.encode()})
        assert [one.command for one in claims([said])] == ["x" * 3000]

    @pytest.mark.parametrize("arguments", ["", "[]", "{", '{"command":""}', '{"command":[1]}', '{"command":[]}', "[" * 100_000])
    def test_arguments_without_a_command_are_no_claim(self, arguments: str) -> None:
        """They are a model's words: anything can stand there."""
        assert claims([event(EventKind.TOOL_CALL, 1, 1, tool="t", call_id="a", arguments=arguments)]) == ()

"""A tracer's log, read: by whom, where, how it ended; and whatever an agent may put in it."""

from __future__ import annotations

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from secondtake.cassettes.execs import Command
from secondtake.harness import straces
from secondtake.harness.straces import Connection, Reading, read


def log(text: str) -> list[bytes]:
    """Lines `PID SECONDS WHAT`, the seconds since a fixed start."""
    lines = []
    for line in text.strip().splitlines():
        pid, seconds, said = line.strip().split(" ", 2)
        lines.append(f"{pid} {1_700_000_000 + int(seconds)}.000000 {said}".encode())
    return lines


def commands(text: str, cwd: str = "/w") -> tuple[Command, ...]:
    return read(log(text), cwd=cwd).commands()


def escaped(text: bytes) -> str:
    """As strace writes a string: the shortest octal where no digit follows."""
    letters = {0x22: '\\"', 0x5C: "\\\\", 0x0A: "\\n", 0x09: "\\t", 0x0D: "\\r", 0x0B: "\\v", 0x0C: "\\f"}
    shown = []
    for at, byte in enumerate(text):
        if byte in letters:
            shown.append(letters[byte])
        elif 0x20 <= byte < 0x7F:
            shown.append(chr(byte))
        else:
            digit_follows = text[at + 1 : at + 2].isdigit()
            shown.append(f"\\{byte:03o}" if digit_follows else f"\\{byte:o}")
    return '"' + "".join(shown) + '"'


class TestArguments:
    @given(st.lists(st.binary(max_size=12).filter(lambda word: b"\0" not in word), max_size=4))
    def test_every_argument_comes_back_byte_by_byte(self, words: list[bytes]) -> None:
        """D-11: argv as the kernel got it, not UTF-8 and line breaks included."""
        line = f'1 0 execve("/bin/x", [{", ".join(map(escaped, words))}], 0x7f /* 3 vars */) = 0'
        (one,) = commands(line)
        assert [os.fsencode(word) for word in one.argv] == words
        assert not one.cut

    def test_words_that_look_like_a_log_are_only_words(self) -> None:
        """An agent's arguments stand in the log: they end no line and no call."""
        forged = b'x\n2 1700000000.000000 execve("/bin/rm", ["rm"], 0x7f) = 0\n", "y"], 0x7f) = -1 ENOENT <unfinished ...>'
        (one,) = commands(f'1 0 execve("/bin/x", ["a", {escaped(forged)}], 0x7f /* 3 vars */) = 0')
        assert [os.fsencode(word) for word in one.argv] == [b"a", forged]

    @pytest.mark.parametrize(
        ("text", "argv"),
        [
            ('execve("/bin/x", ["a", "b"..., "c"], 0x7f) = 0', ("a", "b", "c")),
            ('execve("/bin/x", ["a", ...], 0x7f) = 0', ("a",)),
            ('execve("/bin/x", NULL, NULL) = 0', ()),
            ('execve("/bin/x", 0x7ffc01, 0x7f) = 0', ()),
            ("execve(0x7ffc01, 0x7ffc02, 0x7f) = 0", ()),
        ],
    )
    def test_missing_arguments_are_said_to_be_missing(self, text: str, argv: tuple[str, ...]) -> None:
        """A log shows long strings in part, and pointers it could not follow."""
        (one,) = commands(f"1 0 {text}")
        assert (one.argv, one.cut) == (argv, True)

    def test_a_file_executed_by_descriptor_has_its_path(self) -> None:
        """execveat(2): relative to a folder, or the descriptor itself."""
        first, second = commands(
            """
            1 0 execveat(3</opt/tools>, "run", ["run"], 0x7f /* 3 vars */, 0) = 0
            1 1 execveat(4</opt/a\\40b>, "", ["self"], 0x7f /* 3 vars */, AT_EMPTY_PATH) = 0
            """
        )
        assert (first.program, second.program) == ("/opt/tools/run", "/opt/a b")


TREE = """
10 0 execve("/bin/sh", ["sh", "-c", "x"], 0x7f /* 9 vars */) = 0
10 1 clone(child_stack=NULL, flags=CLONE_CHILD_SETTID|SIGCHLD, child_tidptr=0x7f) = 11
11 2 chdir("sub")   = 0
11 3 clone(child_stack=NULL, flags=SIGCHLD) = 12
12 4 chdir("..")   = 0
12 5 execve("/nowhere/make", ["make"], 0x7f /* 9 vars */) = -1 ENOENT (No such file or directory)
12 5 execve("/bin/make", ["make"], 0x7f /* 9 vars */) = 0
12 6 +++ exited with 2 +++
11 6 --- SIGUSR1 {si_signo=SIGUSR1, si_code=SI_USER, si_pid=1, si_uid=0} ---
11 7 +++ killed by SIGKILL +++
10 8 execve("/bin/true", ["true"], 0x7f /* 9 vars */) = 0
10 9 +++ exited with 0 +++
"""


class TestTree:
    def test_commands_have_their_place_their_parent_and_their_end(self) -> None:
        """D-11: argv, cwd, start, end, exit code or signal, parent; a fork that executes nothing is looked through."""
        assert commands(TREE) == (
            Command(10, 0, ("sh", "-c", "x"), "/w", 0, 8_000_000, None, None, "/bin/sh", replaced=True),
            Command(12, 10, ("make",), "/w", 5_000_000, 6_000_000, 2, None, "/bin/make"),
            Command(10, 0, ("true",), "/w", 8_000_000, 9_000_000, 0, None, "/bin/true"),
        )

    @pytest.mark.parametrize(
        ("end", "number"), [("SIGSEGV (core dumped)", 11), ("SIGTERM", 15), ("SIGRT_2", 36), ("SIGNEW", None)], ids=str
    )
    def test_a_command_that_was_killed_has_the_signal(self, end: str, number: int | None) -> None:
        """A core dump is said behind it; real-time signals are counted from the first a program may use."""
        (one,) = commands(f'1 0 execve("/x", ["x"], 0x7f) = 0\n1 1 +++ killed by {end} +++')
        assert (one.exit_code, one.signal, one.ended_us) == (None, number, 1_000_000)

    def test_a_command_without_an_end_has_none(self) -> None:
        """The tracer was killed with it."""
        (one,) = commands('1 0 execve("/x", ["x"], 0x7f) = 0')
        assert (one.ended_us, one.exit_code, one.signal) == (None, None, None)

    def test_calls_that_others_interrupt_are_put_together(self) -> None:
        """A child of vfork(2) runs, and may end, before its parent's call returns."""
        found = commands(
            """
            1 0 execve("/a", ["a"], 0x7f) = 0
            1 0 chdir("/x")   = 0
            1 1 vfork( <unfinished ...>
            2 2 chdir("y" <unfinished ...>
            3 2 +++ exited with 0 +++
            2 2 <... chdir resumed>)       = 0
            2 3 execve("/b", ["b"], 0x7f /* 3 vars */ <unfinished ...>
            1 4 <... vfork resumed>)       = 2
            2 4 <... execve resumed>)      = 0
            2 5 +++ exited with 1 +++
            """
        )
        assert [(one.pid, one.parent, one.cwd, one.started_us, one.exit_code) for one in found] == [
            (1, 0, "/w", 0, None),
            (2, 1, "/x/y", 3_000_000, 1),
        ]

    def test_a_child_that_ended_before_its_parent_s_call_returned_is_its_child(self) -> None:
        """Lines come in the order in which the tracer is told."""
        found = commands(
            """
            1 0 execve("/a", ["a"], 0x7f) = 0
            1 1 clone(flags=SIGCHLD <unfinished ...>
            2 2 clone(flags=SIGCHLD)   = 3
            3 2 execve("/c", ["c"], 0x7f) = 0
            3 3 +++ exited with 0 +++
            2 3 +++ exited with 0 +++
            1 4 <... clone resumed>)   = 2
            """
        )
        assert [(one.pid, one.parent, one.cwd) for one in found] == [(1, 0, "/w"), (3, 1, "/w")]

    def test_what_a_thread_starts_is_its_process_s(self) -> None:
        """A Go program starts its commands from any thread."""
        for thread_first in (True, False):
            thread = "1 1 clone3({flags=CLONE_VM|CLONE_THREAD|CLONE_SETTLS, stack=0x7f} => {parent_tid=[2]}, 88)   = 2"
            work = '2 2 vfork()   = 3\n3 3 execve("/c", ["c"], 0x7f) = 0\n3 3 +++ exited with 0 +++'
            middle = f"{thread}\n{work}" if thread_first else f"{work}\n{thread}"
            found = commands(f'1 0 execve("/a", ["a"], 0x7f) = 0\n1 0 chdir("/d")   = 0\n{middle}\n2 4 +++ exited with 0 +++')
            assert [(one.pid, one.parent) for one in found] == [(1, 0), (3, 1)], thread_first

    def test_a_process_number_that_is_used_again_is_another_process(self) -> None:
        """Numbers come round in a long run."""
        found = commands(
            """
            1 0 execve("/a", ["a"], 0x7f) = 0
            1 1 fork()   = 2
            2 1 execve("/b", ["b"], 0x7f) = 0
            2 2 +++ exited with 3 +++
            1 3 chdir("/later")   = 0
            1 3 fork()   = 2
            2 4 execve("/c", ["c"], 0x7f) = 0
            2 5 +++ exited with 4 +++
            """
        )
        assert [(one.argv[0], one.cwd, one.exit_code) for one in found] == [("a", "/w", None), ("b", "/w", 3), ("c", "/later", 4)]

    def test_a_process_in_a_namespace_of_its_own_is_found_by_the_tracer_s_number(self) -> None:
        """An agent that sandboxes its commands (bwrap) is told other numbers."""
        found = commands(
            """
            10 0 execve("/a", ["a"], 0x7f) = 0
            10 1 clone(flags=CLONE_NEWPID|SIGCHLD)   = 2 /* 11 in strace's PID NS */
            11 1 execve("/b", ["b"], 0x7f) = 0
            """
        )
        assert [(one.pid, one.parent) for one in found] == [(10, 0), (11, 10)]

    def test_where_a_command_ran_is_followed_through_descriptors(self) -> None:
        """fchdir(2) has the path behind the number; a relative step from an unknown place is unknown."""
        text = '1 0 execve("/a", ["a"], 0x7f) = 0\n1 0 {}   = 0\n1 1 execve("/b", ["b"], 0x7f) = 0'
        assert commands(text.format("fchdir(3</var/a\\76>)"))[1].cwd == "/var/a>"
        assert commands(text.format('chdir("../x")'))[1].cwd == "/x"
        assert commands(text.format('chdir("../x")'), cwd="")[1].cwd == ""


class TestConnections:
    def test_each_attempt_to_connect_is_listed(self) -> None:
        """Tier `observed`: a bypass is seen, whether or not it came through."""
        reading = read(
            log(
                """
                1 0 execve("/a", ["a"], 0x7f) = 0
                1 1 connect(3<TCP:[5]>, {sa_family=AF_INET, sin_port=htons(443), sin_addr=inet_addr("192.0.2.1")}, 16) = -1 EAGAIN (x)
                1 2 connect(3<UDPv6:[5]>, {sa_family=AF_INET6, sin6_port=htons(53), sin6_flowinfo=htonl(0), {V6}}, 28) = 0
                1 3 connect(3<UNIX-STREAM:[5]>, {sa_family=AF_UNIX, sun_path="/run/a\\"b"}, 110) = -1 ENOENT (No such file or directory)
                1 4 connect(3, {sa_family=AF_UNIX, sun_path=@"bus"}, 10) = 0
                1 5 connect(3, {sa_family=AF_UNSPEC, sa_data="\\0"}, 16) = 0
                """.replace("{V6}", 'inet_pton(AF_INET6, "::1", &sin6_addr), sin6_scope_id=0')
            ),
            cwd="/",
        )
        assert reading.connections == [
            Connection(1_000_000, 1, "tcp", "192.0.2.1", 443),
            Connection(2_000_000, 1, "udp", "::1", 53),
            Connection(3_000_000, 1, "unix", '/run/a"b', None),
            Connection(4_000_000, 1, "unix", "@bus", None),
        ]


class TestHostile:
    @given(st.lists(st.binary(max_size=60) | st.sampled_from([line[:n] for line in log(TREE) for n in range(len(line))])))
    def test_no_log_breaks_the_reader(self, lines: list[bytes]) -> None:
        """The agent can write to a file of its own user; what makes no sense is counted."""
        reading = read(lines, cwd="/w")
        assert len(reading.commands()) + reading.lost <= len(lines)

    def test_a_long_line_of_backslashes_takes_no_longer_than_its_length(self) -> None:
        """Patterns that try again and again would take for ever here."""
        line = b'1 1.000000 execve("/x", ["' + b"\\" * 2_000_001 + b'"'
        assert read([line], cwd="/").commands() == ()

    def test_forks_of_forks_without_end_are_followed(self) -> None:
        """A chain deeper than Python's stack."""
        reading = Reading("/w")
        reading.take(b'1 0.000000 execve("/a", ["a"], 0x7f) = 0')
        for pid in range(1, 20_000):
            reading.take(b"%d 0.000000 fork() = %d" % (pid, pid + 1))
        reading.take(b'20000 0.000000 execve("/b", ["b"], 0x7f) = 0')
        assert [(one.parent, one.cwd) for one in reading.commands()] == [(0, "/w"), (1, "/w")]

    def test_what_is_over_the_limits_is_cut_and_counted(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """SECURITY B-11: memory is bounded whatever an agent runs."""
        monkeypatch.setattr(straces, "EXECS", 2)
        monkeypatch.setattr(straces, "EXEC_LOG_BYTES", 100)
        long = "y" * 90
        lines = [f'{pid} 0 execve("/a", ["{word}", "x"], 0x7f) = 0' for pid, word in enumerate(("a", long, "c"), 1)]
        reading = read(log("\n".join(lines)), cwd="/")
        assert [(one.argv, one.cut) for one in reading.commands()] == [(("a", "x"), False), ((long,), True)]
        assert reading.lost == 1
        monkeypatch.setattr(straces, "PROCESSES", 1)
        assert read(log('1 0 execve("/a", ["a"], 0x7f) = 0\n2 0 execve("/a", ["a"], 0x7f) = 0'), cwd="/").lost == 1

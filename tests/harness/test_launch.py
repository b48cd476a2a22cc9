"""Launching with real processes: status, environment, signals, terminal."""

from __future__ import annotations

import asyncio
import os
import pty
import signal
import subprocess
import sys
import termios
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

from secondtake.harness.launch import Finished, NotStarted, Stdin, launch
from tests.harness.processes import COUNTING, DRIVER, ENV, ROOT, SH, Pipe, daemon, driven, lines_until, python, run


@pytest.fixture
def pipe() -> Iterator[Pipe]:
    pipe = Pipe()
    yield pipe
    pipe.close()


@pytest.mark.parametrize(("command", "status", "number"), [("exit 7", 7, None), ("kill -9 $$", 137, 9), ("kill -TERM $$", 143, 15)])
def test_the_agents_own_status_comes_back(command: str, status: int, number: int | None) -> None:
    """DESIGN 7: `record` exits with the agent's own status; a signal is 128+n."""
    finished = run(SH, "-c", command)
    assert (finished.status, finished.signal, finished.timed_out, finished.strays, finished.left) == (status, number, False, 0, 0)


def test_an_agent_is_ended_when_it_is_asked_for() -> None:
    """Issue 4: an agent that has left the recording does not go on for minutes."""

    async def ended() -> Finished:
        stop = asyncio.Event()
        return await launch([SH, "-c", "sleep 60"], env=ENV, stop=stop, on_start=lambda _pid: stop.set())

    finished = asyncio.run(ended())
    assert (finished.status, finished.stopped, finished.timed_out, finished.left) == (143, True, False, 0)


def test_a_command_that_is_not_there_is_named(tmp_path: Path) -> None:
    """127, 126 and a working directory that is none, each with its reason, as a shell has them."""
    with pytest.raises(NotStarted, match="no such command on PATH") as missing:
        run("no-such-agent")
    assert missing.value.status == 127
    plain = tmp_path / "plain"
    plain.write_text("x")
    with pytest.raises(NotStarted, match="Permission denied") as refused:
        run(str(plain))
    assert refused.value.status == 126
    with pytest.raises(NotStarted, match="no such working directory"):
        run("true", cwd=tmp_path / "none")


def test_environment_and_directory_are_exactly_the_given_ones(tmp_path: Path, pipe: Pipe) -> None:
    """Nothing of our own environment reaches the agent, and values that are not UTF-8 arrive unchanged."""
    odd = os.fsdecode(b"caf\xe9")
    code = "import os, sys; sys.stdout.buffer.write(repr((os.environb.get(b'ODD'), sorted(os.environ), os.getcwd())).encode())"
    asyncio.run(
        launch([sys.executable, "-I", "-c", code], env={"ODD": odd, "PATH": "/bin", "LC_ALL": "C.UTF-8"}, cwd=tmp_path, stdout=pipe.writer)
    )
    assert pipe.rest().decode() == repr((b"caf\xe9", ["LC_ALL", "ODD", "PATH"], str(tmp_path)))


def test_signals_and_descriptors_are_as_a_shell_would_give_them(pipe: Pipe) -> None:
    """The agent finds SIGPIPE and SIGINT at their defaults, and no descriptor of ours."""
    run(SH, "-c", "grep -E 'SigIgn|SigBlk' /proc/self/status; ls /proc/self/fd", stdout=pipe.writer)
    said = pipe.rest().split()
    assert said[1] == b"0" * 16
    assert int(said[3], 16) & (1 << (signal.SIGPIPE - 1) | 1 << (signal.SIGINT - 1)) == 0
    assert said[4:7] == [b"0", b"1", b"2"]
    assert len(said) == 8, said  # and the descriptor `ls` reads the folder with


def test_closed_standard_input_is_at_its_end(pipe: Pipe) -> None:
    """AGENTS 3: `codex exec` reads a standard input that stays open to its end; `Stdin.CLOSED` is the null device."""
    assert run("cat", stdin=Stdin.CLOSED, stdout=pipe.writer).status == 0
    assert pipe.rest() == b""


def test_cancelling_ends_the_whole_tree(pipe: Pipe) -> None:
    """A cancelled take leaves no agent running."""

    async def cancelled() -> None:
        started = asyncio.Event()
        task = asyncio.create_task(launch(daemon(then="signal.pause()"), env=ENV, stdout=pipe.writer, on_start=lambda _pid: started.set()))
        await started.wait()
        await asyncio.to_thread(pipe.until, b"started")
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancelled())
    assert pipe.rest() == b""


def test_an_interrupt_is_sent_on_once_and_standard_input_is_ours() -> None:
    """`kill -INT` of the recorder: the agent decides what to do with it, reads on, and its status comes back."""
    with driven(python(COUNTING)) as driver:
        lines_until(driver, b"ready")
        driver.send_signal(signal.SIGINT)
        lines_until(driver, b"got 1")
        said, _ = driver.communicate(b"go\n")
        assert said == b"total 1\ndriver 9 True\n"


def test_an_ignored_interrupt_becomes_an_end_after_the_grace() -> None:
    """Without a terminal an interrupt means stop: deaf agents are ended."""
    with driven(python(COUNTING), grace_s=0.05) as driver:
        lines_until(driver, b"ready")
        driver.send_signal(signal.SIGINT)
        lines_until(driver, b"driver 143 True")


def test_a_second_term_does_not_wait_for_the_grace() -> None:
    """TERM is asked, TERM again is insisted."""
    code = """
        import os, signal
        signal.signal(signal.SIGTERM, lambda *_: os.write(1, b"deaf\\n"))
        os.write(1, b"ready\\n")
        while True:
            signal.pause()
    """
    with driven(python(code), grace_s=600) as driver:
        lines_until(driver, b"ready")
        driver.send_signal(signal.SIGTERM)
        lines_until(driver, b"deaf")
        driver.send_signal(signal.SIGTERM)
        lines_until(driver, b"driver 137 True")


def test_what_nohup_ignores_stays_ignored() -> None:
    """A background job of a script ignores SIGINT, and so does the agent in it."""
    command = ["/bin/sh", "-c", "trap '' INT; exec \"$@\"", "sh", sys.executable, "-c", textwrap.dedent(DRIVER), "5"]
    agent = python("import signal; print(signal.getsignal(signal.SIGINT) == signal.SIG_IGN)")
    done = subprocess.run([*command, *agent], env={**os.environ, "PYTHONPATH": str(ROOT / ".src")}, capture_output=True)
    assert done.stdout == b"True\ndriver 0 False\n", done.stderr


class Terminal:
    """A driver in a terminal of its own; the master end is ours."""

    def __init__(self, agent: list[str]) -> None:
        self.process, self.master = pty.fork()
        if self.process == 0:
            driver = [sys.executable, "-c", textwrap.dedent(DRIVER), "0.05", *agent]
            os.execve(sys.executable, driver, {**os.environ, "PYTHONPATH": str(ROOT / ".src")})
        self.modes = termios.tcgetattr(self.master)
        self.said = b""

    def until(self, word: bytes) -> None:
        while word not in self.said:
            self.said += os.read(self.master, 4096)

    def end(self) -> int:
        _, status = os.waitpid(self.process, 0)
        os.close(self.master)
        return os.waitstatus_to_exitcode(status)


def test_ctrl_c_in_a_terminal_reaches_the_agent_once() -> None:
    """The terminal sends Ctrl-C to the whole foreground group; we must not send it a second time, and must not die of it."""
    terminal = Terminal(python(COUNTING))
    terminal.until(b"ready 1")
    os.write(terminal.master, b"\x03")
    terminal.until(b"got 1")
    os.write(terminal.master, b"go\n")
    terminal.until(b"driver 9 True")
    assert b"total 1" in terminal.said
    assert terminal.end() == 0


def test_the_terminal_comes_back_from_an_agent_that_was_killed() -> None:
    """An agent with a screen of its own switches echo off and line ends around; killed, it cannot switch them back."""
    code = """
        import os, signal, termios
        modes = termios.tcgetattr(0)
        modes[3] &= ~(termios.ECHO | termios.ICANON)
        termios.tcsetattr(0, termios.TCSANOW, modes)
        os.write(1, b"%d\\n" % (termios.tcgetattr(0)[3] == modes[3]))
        os.setpgid(0, 0)
        signal.signal(signal.SIGTTOU, signal.SIG_IGN)
        os.tcsetpgrp(0, os.getpgrp())
        os.kill(os.getpid(), signal.SIGKILL)
    """
    terminal = Terminal(python(code))
    terminal.until(b"driver 137 False")
    assert b"1\r\n" in terminal.said
    assert termios.tcgetattr(terminal.master) == terminal.modes
    assert terminal.end() == 0

"""Launching with real processes. A pipe that every process of the tree holds open tells when the last of them is gone."""

from __future__ import annotations

import asyncio
import contextlib
import os
import pty
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

from secondtake.harness.launch import Finished, NotStarted, Stdin, launch

ROOT = Path(__file__).resolve().parents[2]
ENV = {"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8"}
SH = "/bin/sh"


class Pipe:
    """The tree's standard output. `rest` comes back when no process holds it any more."""

    def __init__(self) -> None:
        self.reader, self.writer = os.pipe()

    def until(self, word: bytes) -> bytes:
        said = b""
        while word not in said:
            piece = os.read(self.reader, 4096)
            assert piece, said
            said += piece
        return said

    def rest(self) -> bytes:
        self.close_writer()
        said = b""
        while piece := os.read(self.reader, 4096):
            said += piece
        return said

    def close_writer(self) -> None:
        if self.writer >= 0:
            os.close(self.writer)
            self.writer = -1

    def close(self) -> None:
        self.close_writer()
        os.close(self.reader)


@pytest.fixture
def pipe() -> Iterator[Pipe]:
    pipe = Pipe()
    yield pipe
    pipe.close()


def run(*command: str, **options: object) -> Finished:
    return asyncio.run(launch(list(command), env=ENV, **options))  # type: ignore[arg-type]  # keyword options are launch's own


def python(code: str) -> list[str]:
    return [sys.executable, "-I", "-S", "-c", textwrap.dedent(code)]


DAEMON = """
    import os, signal, sys, time
    ready, ready_end = os.pipe()
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            {ignore}
            os.write(ready_end, b"x")
            signal.pause()
        os._exit(0)
    os.wait()
    os.read(ready, 1)
    sys.stdout.write("started\\n")
    sys.stdout.flush()
    {then}
"""


def daemon(*, ignore: str = "pass", then: str = "sys.exit(4)") -> list[str]:
    return python(DAEMON.format(ignore=ignore, then=then))


@pytest.mark.parametrize(("command", "status", "number"), [("exit 7", 7, None), ("kill -9 $$", 137, 9), ("kill -TERM $$", 143, 15)])
def test_the_agents_own_status_comes_back(command: str, status: int, number: int | None) -> None:
    """DESIGN 7: `record` exits with the agent's own status; a signal is 128+n."""
    finished = run(SH, "-c", command)
    assert (finished.status, finished.signal, finished.timed_out, finished.strays, finished.left) == (status, number, False, 0, 0)


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


def test_a_daemon_that_left_its_session_is_ended_and_counted(pipe: Pipe) -> None:
    """Nothing stays behind: a double fork with setsid, the agent itself long gone."""
    finished = run(*daemon(), stdout=pipe.writer)
    assert pipe.rest() == b"started\n"
    assert (finished.status, finished.strays, finished.left) == (4, 1, 0)


def test_a_daemon_that_ignores_term_is_killed(pipe: Pipe) -> None:
    """TERM, grace, KILL."""
    finished = run(*daemon(ignore="signal.signal(signal.SIGTERM, signal.SIG_IGN)"), stdout=pipe.writer, grace_s=0.05)
    assert pipe.rest() == b"started\n"
    assert (finished.status, finished.strays, finished.left) == (4, 1, 0)


def test_a_timeout_ends_the_whole_tree(pipe: Pipe) -> None:
    """The agent and its daemon, both deaf to TERM from their first instruction on, because we are."""
    before = signal.signal(signal.SIGTERM, signal.SIG_IGN)
    try:
        finished = run(*daemon(then="signal.pause()"), stdout=pipe.writer, grace_s=0.05, timeout_s=0.3)
    finally:
        signal.signal(signal.SIGTERM, before)
    pipe.rest()
    assert (finished.status, finished.timed_out, finished.left) == (137, True, 0)


def test_a_stopped_tree_ends_too(pipe: Pipe) -> None:
    """A process under SIGSTOP gets its TERM because it is continued."""
    finished = run(SH, "-c", "kill -STOP $$", timeout_s=0.3, stdout=pipe.writer)
    assert pipe.rest() == b""
    assert (finished.status, finished.timed_out) == (143, True)


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


def test_two_agents_at_once_keep_their_own_orphans() -> None:
    """One agent's end does not end what the other one left in the background."""

    async def both() -> None:
        first, second = Pipe(), Pipe()
        slow = asyncio.create_task(launch(daemon(then="sys.stdin.read(); sys.exit(5)"), env=ENV, stdout=second.writer, stdin=Stdin.CLOSED))
        waiting = asyncio.create_task(launch(daemon(then="signal.pause()"), env=ENV, stdout=first.writer))
        await asyncio.to_thread(first.until, b"started")
        finished = await slow
        assert (finished.status, finished.strays) == (5, 1)
        assert await asyncio.to_thread(second.rest) == b"started\n"
        os.set_blocking(first.reader, False)
        first.close_writer()
        with pytest.raises(BlockingIOError):  # still held open: that agent and its daemon live
            os.read(first.reader, 1)
        os.set_blocking(first.reader, True)
        waiting.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await waiting
        assert await asyncio.to_thread(first.rest) == b""
        first.close()
        second.close()

    asyncio.run(both())


DRIVER = """
    import asyncio, os, signal, sys
    from secondtake.harness.launch import launch
    finished = asyncio.run(launch(sys.argv[2:], env=dict(os.environ), grace_s=float(sys.argv[1])))
    sys.stdout.write(f"driver {finished.status} {finished.interrupted}\\n")
    sys.stdout.flush()
    os.kill(os.getpid(), signal.SIGINT) if "again" in sys.argv else None
"""


@contextlib.contextmanager
def driven(command: list[str], *, grace_s: float = 30.0) -> Iterator[subprocess.Popen[bytes]]:
    """A process of its own that launches `command`, as `record` does, without a terminal."""
    driver = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(DRIVER), str(grace_s), *command],
        env={**os.environ, "PYTHONPATH": str(ROOT / ".src")}, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        start_new_session=True,
    )  # fmt: skip
    with driver:
        yield driver
        driver.kill()


COUNTING = """
    import os, signal, sys
    got = []
    def noted(number, frame):
        got.append(number)
        os.write(1, b"got %d\\n" % len(got))
    signal.signal(signal.SIGINT, noted)
    os.write(1, b"ready %d\\n" % (os.isatty(0) and os.tcgetpgrp(0) == os.getpgrp()))
    sys.stdin.readline()
    os.write(1, b"total %d\\n" % len(got))
    sys.exit(9)
"""


def lines_until(driver: subprocess.Popen[bytes], word: bytes) -> None:
    assert driver.stdout is not None
    while word not in (line := driver.stdout.readline()):
        assert line, driver.stderr.read() if driver.stderr else b""


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


def test_an_agent_does_not_outlive_a_recorder_that_was_killed() -> None:
    """kill -9 of the recorder ends the agent, its daemon and the keeper: the pipe comes to its end."""
    with driven(daemon(then="signal.pause()")) as driver:
        lines_until(driver, b"started")
        driver.kill()
        assert driver.stdout is not None
        assert driver.stdout.read() == b""


def test_what_nohup_ignores_stays_ignored() -> None:
    """A background job of a script ignores SIGINT, and so does the agent in it."""
    command = ["/bin/sh", "-c", "trap '' INT; exec \"$@\"", "sh", sys.executable, "-c", textwrap.dedent(DRIVER), "5"]
    agent = python("import signal; print(signal.getsignal(signal.SIGINT) == signal.SIG_IGN)")
    done = subprocess.run([*command, *agent], env={**os.environ, "PYTHONPATH": str(ROOT / ".src")}, capture_output=True)
    assert done.stdout == b"True\ndriver 0 False\n", done.stderr


def test_ctrl_c_in_a_terminal_reaches_the_agent_once_and_the_terminal_comes_back() -> None:
    """The terminal sends Ctrl-C to the whole foreground group; we must not send it a second time, and must not die of it."""
    agent = python(COUNTING)
    process, master = pty.fork()
    if process == 0:
        os.execve(
            sys.executable,
            [sys.executable, "-c", textwrap.dedent(DRIVER), "0.05", *agent],
            {**os.environ, "PYTHONPATH": str(ROOT / ".src")},
        )
    said = b""

    def until(word: bytes) -> None:
        nonlocal said
        while word not in said:
            said += os.read(master, 4096)

    until(b"ready 1")
    os.write(master, b"\x03")
    until(b"got 1")
    os.write(master, b"go\n")
    until(b"driver 9 True")
    assert b"total 1" in said
    _, status = os.waitpid(process, 0)
    os.close(master)
    assert os.waitstatus_to_exitcode(status) == 0

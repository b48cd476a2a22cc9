"""Signals, terminals and descriptors, from the launcher to the agent and back."""

from __future__ import annotations

import os
import pty
import select
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from secondtake.harness.seal.processes import Outer
from tests.harness.processes import COUNTING
from tests.harness.seal.scenes import ROOT

ENV = {**os.environ, "PYTHONPATH": f"{ROOT / '.src'}:{ROOT}"}
AGENT = [sys.executable, "-I", "-S", "-c", textwrap.dedent(COUNTING)]


def driver(folder: Path, *agent: str, grace_s: float = 30) -> list[str]:
    return [sys.executable, str(Path(__file__).with_name("driver.py")), str(folder), str(grace_s), *agent]


def until(descriptor: int, word: bytes, said: bytes = b"") -> bytes:
    """Read until a word is there; skips where there is no seal."""
    while word not in said:
        ready, _, _ = select.select([descriptor], [], [], 30)
        assert ready, said
        try:
            piece = os.read(descriptor, 4096)
        except OSError:  # a terminal's end
            piece = b""
        if not piece and b"no seal can be made here" in said:
            pytest.skip(f"no seal here: {said!r}")
        assert piece, said
        said += piece
    return said


def test_ctrl_c_in_a_terminal_reaches_the_agent_once(tmp_path: Path) -> None:
    """D-06: the agent is in the foreground, and gets what is typed as if we were not there."""
    child, terminal = pty.fork()
    if child == 0:
        os.execve(sys.executable, driver(tmp_path, *AGENT), ENV)
    said = until(terminal, b"ready 1\r\n")
    os.write(terminal, b"\x03")
    said = until(terminal, b"got 1", said)
    os.write(terminal, b"\n")
    assert b"total 1\r\n" in until(terminal, b"driver 9 True", said)
    os.waitpid(child, 0)
    os.close(terminal)


def test_job_control_works_in_a_shell_inside(tmp_path: Path) -> None:
    """D-06: stopped and continued as elsewhere."""
    child, terminal = pty.fork()
    if child == 0:
        os.execve(sys.executable, driver(tmp_path, "/bin/bash", "--norc", "--noprofile", "-i"), {**ENV, "PS1": "ready> ", "TERM": "dumb"})
    until(terminal, b"ready> ")
    os.write(terminal, b"sh -c 'echo beg''un; kill -STOP $$; echo resu''med'\n")
    until(terminal, b"Stopped")
    os.write(terminal, b"fg\n")
    until(terminal, b"resumed")
    os.write(terminal, b"exit 5\n")
    until(terminal, b"driver 5 False")
    os.waitpid(child, 0)
    os.close(terminal)


def test_an_interrupt_without_a_terminal_reaches_the_agent_once(tmp_path: Path) -> None:
    """D-06: SIGINT is sent on to the agent's group, TERM to whom it was sent to."""
    with subprocess.Popen(
        driver(tmp_path, *AGENT), env=ENV, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True
    ) as running:
        assert running.stdout is not None
        assert running.stdin is not None
        until(running.stdout.fileno(), b"ready")
        running.send_signal(signal.SIGINT)
        until(running.stdout.fileno(), b"got 1")
        running.stdin.write(b"\n")
        running.stdin.flush()
        assert b"total 1\n" in until(running.stdout.fileno(), b"driver 9 True")


def test_a_signal_to_the_process_that_we_are_told_of_is_the_agents(tmp_path: Path) -> None:
    """D-06: who ends the process that was started ends the agent, which may end in its own way."""
    code = "trap 'echo asked; exit 6' TERM; echo ready; while :; do read line; done"
    with subprocess.Popen(
        driver(tmp_path, "/bin/sh", "-c", code), env=ENV, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    ) as running:
        assert running.stdout is not None
        until(running.stdout.fileno(), b"ready")
        keeper = _child(running.pid)
        os.kill(_child(keeper), signal.SIGTERM)
        assert b"asked" in until(running.stdout.fileno(), b"driver 6 False")


def _child(pid: int) -> int:
    return int(Path(f"/proc/{pid}/task/{pid}/children").read_text().split()[0])


def test_a_link_carries_a_status_and_whether_somebody_is_left() -> None:
    """What process 1 tells the one outside."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    outer = Outer()
    try:
        outer.report(9 << 8, strays=True)
        assert outer.up.recv(8) == b"\x00\x09\x00\x00\x01"
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        outer.up.close()
        outer.down.close()

"""Real processes for the launch tests. A pipe that every process of the tree holds open tells when the last of them is gone."""

from __future__ import annotations

import asyncio
import contextlib
import os
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

from secondtake.harness.launch import Finished, launch

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


def lines_until(driver: subprocess.Popen[bytes], word: bytes) -> None:
    assert driver.stdout is not None
    while word not in (line := driver.stdout.readline()):
        assert line, driver.stderr.read() if driver.stderr else b""


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

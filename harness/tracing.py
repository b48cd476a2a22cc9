"""Commands and exit codes as the kernel saw them (SECURITY D5, D-11, D-12): an agent is started under strace(1).

Always with `--seccomp-bpf`, never plain `-f`: then the kernel stops a process for the calls that are asked for, and for no other; on
work that is mostly other calls that is the difference between no cost and seventy times (docs/commands.md has the figures).
With `-D` the agent is the launched process itself, with its parent, its signals and its end; the tracer stands aside.

Where tracing cannot be, the agent runs all the same, and the reason is told: commands are then known from the model's traffic only.
A process that is traced gains no rights by set-user-ID programs (`sudo`), and cannot trace others (`gdb`, `strace`).
"""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from secondtake.cassettes.execs import Command
from secondtake.cassettes.limits import EXEC_TRACE_BYTES, EXEC_TRACE_LINE_BYTES
from secondtake.harness.straces import Connection, read

UNDER = Path(__file__).with_name("undertrace.py")

_CALLS = "execve,execveat,clone,clone3,fork,vfork,chdir,fchdir"
_LONGEST_ARGUMENT = 131_072
"""MAX_ARG_STRLEN of Linux; also how many arguments strace shows."""
_QUIET = "signal=!SIGCHLD,SIGURG,SIGWINCH,SIGCONT"
"""Not logged: what ends no process by default, and comes often (Go's scheduler sends SIGURG). Others must be, or their kills are not."""


class Source(StrEnum):
    """Where a run's commands are known from."""

    KERNEL = "kernel"
    TRAFFIC = "model traffic"


@dataclass(frozen=True, slots=True)
class Traced:
    """What a tracer saw. `reason`: why `source` is not the kernel, one line; empty where it is."""

    commands: tuple[Command, ...]
    source: Source
    reason: str = ""
    connections: tuple[Connection, ...] = ()
    lost: int = 0
    """Commands over the limits, and lines that could not be read."""


@dataclass(frozen=True, slots=True)
class Tracer:
    """Stands between a launcher and an agent."""

    log: Path
    prefix: tuple[str, ...]
    """Words directly before the agent's command, inside a seal's; none where it is known already that there can be no tracing."""
    refused: str
    """Why there can be none; empty where it was not known beforehand."""
    cwd: str
    zero_us: int | None = None
    """When the recording began, in microseconds since 1970 by the machine's clock."""

    def commands(self) -> tuple[Command, ...]:
        """Return what was executed, after the end; nothing where tracing was refused."""
        return self.result().commands

    def result(self) -> Traced:
        """Read the log, after the end."""
        if self.refused:
            return Traced((), Source.TRAFFIC, self.refused)
        try:
            said = self.log.with_name(f"{self.log.name}.refused").read_text("utf-8", "replace")
        except OSError:
            said = ""
        if said:
            return Traced((), Source.TRAFFIC, said[:300])
        try:
            descriptor = os.open(self.log, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError as error:
            return Traced((), Source.TRAFFIC, f"the tracer's log cannot be read: {error.strerror}")
        reading = read(_lines(descriptor), cwd=self.cwd, zero_us=self.zero_us)
        commands = reading.commands()
        if not commands:
            return Traced((), Source.TRAFFIC, "the tracer saw nothing", lost=reading.lost)
        return Traced(commands, Source.KERNEL, "", tuple(reading.connections), reading.lost)


def traced(
    log: Path,
    *,
    cwd: Path | None = None,
    elapsed_us: int | None = None,
    environment: Mapping[str, str] | None = None,
    connections: bool = False,
    strace: str | None = None,
) -> Tracer:
    """Prepare the tracing of one agent.

    `log` is written from inside the agent's seal, by a path that must lead to the same file there; it is the agent's to reach
    where the seal does not hide it, so it corroborates and proves nothing. `cwd`: where the agent starts. `elapsed_us`: for how long
    the recording has gone on already, so that commands and exchanges have one time axis, which `execs.compare` needs; None counts from
    the agent's start. `environment`: set for the agent, and not for the tracer (a faked clock). `connections` asks for every `connect`
    too. A launcher is told of the log as `aside`.
    """
    where = "" if cwd is None else os.fspath(cwd)
    program = strace if strace is not None else shutil.which("strace")
    if not sys.platform.startswith("linux"):
        return Tracer(log, (), f"commands are traced on Linux only, not on {sys.platform}", where)
    if program is None:
        return Tracer(log, (), "strace is not installed", where)
    calls = [_CALLS + ",connect", "path,socket"] if connections else [_CALLS, "path"]
    # Not `-z`: strace 6.1 then writes the second line of an interrupted call without saying whose it is.
    words = [program, "--seccomp-bpf", "-D", "-f", "-q", "-ttt", "-s", str(_LONGEST_ARGUMENT), "--pidns-translation"]
    words += [f"--decode-fds={calls[1]}", "-e", f"trace={calls[0]}", "-e", _QUIET, "-o", str(log)]
    given = [f"{name}={value}" for name, value in (environment or {}).items()]
    prefix = (sys.executable, "-I", "-S", str(UNDER), str(log), str(len(words)), *words, "--", *given, "--")
    # The tracer writes the machine's time: no other clock would do.
    zero_us = None if elapsed_us is None else time.time_ns() // 1000 - elapsed_us
    return Tracer(log, prefix, "", where, zero_us)


def _lines(descriptor: int) -> Iterator[bytes]:
    """The lines of a log, without their ends; empty for one over the limit, or without end. What is past a log's limit is left out."""
    seen, too_long = 0, False
    with os.fdopen(descriptor, "rb") as file:
        while seen < EXEC_TRACE_BYTES and (line := file.readline(EXEC_TRACE_LINE_BYTES)):
            seen += len(line)
            whole = line.endswith(b"\n")
            if not too_long:
                yield line[:-1] if whole else b""
            too_long = not whole

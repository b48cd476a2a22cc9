"""Start an agent, wait for it beside our own event loop, and leave no process behind.

Terminal: where one of the standard streams is a terminal and we are in its foreground, the agent stays in our process group: it
gets Ctrl-C, Ctrl-\\ and Ctrl-Z from the terminal as if we were not there, and we do not send them on a second time. Elsewhere it
gets a session of its own, and SIGINT is sent on to its group; if it does not end within the grace, the whole tree is ended.
SIGTERM and SIGHUP end the whole tree in both cases: TERM, grace, KILL; a second one kills at once.

Standard input is left as it is, terminal or not (`Stdin.INHERIT`); some agents read it to its end before they start, and want
`Stdin.CLOSED`, which is the null device.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import socket
import sys
import termios
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import IO, Any

from secondtake.cassettes.errors import BadInput

GRACE_S = 3.0
"""Between TERM and KILL. Agents save their session on TERM; docker gives ten seconds, npm one and a half."""

KEEPER = Path(__file__).with_name("keeper.py")


class Stdin(StrEnum):
    """What the agent reads: what we would, or nothing."""

    INHERIT = "inherit"
    CLOSED = "closed"


class NotStarted(BadInput):
    """The command could not be executed. `status` is the shell's: 127 not found, 126 found and not executable."""

    def __init__(self, command: str, reason: str, status: int, *, hint: str | None = None) -> None:
        super().__init__(f"cannot start `{command}`: {reason}", hint=hint)
        self.status = status


@dataclass(frozen=True, slots=True)
class Finished:
    """How an agent ended.

    `status` is its exit status, 128+n where signal n ended it. `interrupted`: SIGINT, SIGTERM or SIGHUP reached us while it ran.
    `strays` is how many processes it left running; they were ended. `left` is how many of them could not be.
    """

    status: int
    signal: int | None
    pid: int
    timed_out: bool
    interrupted: bool
    strays: int
    left: int
    stopped: bool = False
    """`stop` was set before it had ended."""


@dataclass(slots=True)
class _Link:
    """Our end of the socket to the keeper."""

    writer: asyncio.StreamWriter
    interrupted: bool = False
    asked: bool = False
    timers: list[asyncio.TimerHandle] = field(default_factory=list)

    def send(self, command: bytes) -> None:
        if not self.writer.is_closing():
            self.writer.write(command)

    def end(self) -> None:
        """Ask for the end; asked again, for the end at once."""
        self.send(b"K" if self.asked else b"T")
        self.asked = True


async def launch(
    command: Sequence[str],
    *,
    env: Mapping[str, str],
    cwd: Path | None = None,
    stdin: Stdin = Stdin.INHERIT,
    stdout: int | IO[bytes] | None = None,
    stderr: int | IO[bytes] | None = None,
    timeout_s: float | None = None,
    stop: asyncio.Event | None = None,
    grace_s: float = GRACE_S,
    forward_signals: bool = True,
    on_start: Callable[[int], None] = lambda _pid: None,
    descriptors: int | None = None,
    aside: str | None = None,
) -> Finished:
    """Run `command` (looked up on the PATH in `env`) to its end, and end whatever it leaves behind.

    `stdout` and `stderr` are descriptors or files, None ours. `forward_signals` takes SIGINT, SIGTERM and SIGHUP for the time of the
    call (main thread only; handlers set by `loop.add_signal_handler` are lost: such a caller passes False and cancels instead). A
    signal that we ignore (nohup) stays ignored, for us and for the agent. Cancelling ends the whole tree, and then raises.
    If we are killed, the tree is ended too. `descriptors` is the soft limit on open files the agent shall have, None ours.
    `stop`, once set, ends the tree as `timeout_s` does. A process with `aside` among its arguments is ours (a tracer), and no stray.

    Raises:
        NotStarted: there is no such command, or it or `cwd` cannot be used.
    """
    if not command:
        raise BadInput("no command to run")
    shared = _in_the_foreground()
    ours, theirs = socket.socketpair()
    reader, writer = await asyncio.open_unix_connection(sock=ours)
    try:
        keeper = await asyncio.create_subprocess_exec(
            sys.executable, "-I", "-S", str(KEEPER), str(theirs.fileno()),
            stdin=None if stdin is Stdin.INHERIT else asyncio.subprocess.DEVNULL, stdout=stdout, stderr=stderr,
            pass_fds=(theirs.fileno(),),
        )  # fmt: skip
    except BaseException:
        writer.close()
        raise
    finally:
        theirs.close()
    link = _Link(writer)
    where = None if cwd is None else os.fspath(cwd)
    order = {"argv": list(command), "env": dict(env), "cwd": where, "session": not shared, "grace_s": grace_s, "descriptors": descriptors}
    order["aside"] = aside
    text = json.dumps(order).encode()
    ending = asyncio.ensure_future(_ended(reader, on_start))
    asked = asyncio.ensure_future((stop or asyncio.Event()).wait())
    timed_out = stopped = False
    with _terminal_kept(shared), _signals_taken(link, shared, grace_s) if forward_signals else contextlib.nullcontext():
        try:
            writer.write(len(text).to_bytes(4, "big") + text)
            await asyncio.wait({ending, asked}, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
            if not ending.done():
                stopped = asked.done()
                timed_out = not stopped
                link.end()
                await asyncio.wait({ending})
        except asyncio.CancelledError:
            await _settled(ending, link)
            raise
        finally:
            writer.close()
            asked.cancel()
            for timer in link.timers:
                timer.cancel()
            await _uncancelled(asyncio.ensure_future(keeper.wait()))
    report = ending.result()
    if "failed" in report:
        raise _not_started(command[0], where, report["failed"], report["text"])
    code = report.get("status")
    if code is None:  # the keeper was killed, or interrupted before it had started anything
        code = -signal.SIGINT if link.interrupted and not report else -signal.SIGKILL
    return Finished(
        status=code if code >= 0 else 128 - code,
        signal=-code if code < 0 else None,
        pid=report.get("started", 0),
        timed_out=timed_out,
        interrupted=link.interrupted,
        strays=report.get("strays", 0),
        left=report.get("left", 0),
        stopped=stopped,
    )


async def _ended(reader: asyncio.StreamReader, on_start: Callable[[int], None]) -> dict[str, Any]:
    """All the keeper's reports in one; ends with the keeper's end of the socket."""
    report: dict[str, Any] = {}
    with contextlib.suppress(ConnectionError):
        while line := await reader.readline():
            said = json.loads(line)
            report |= said
            if "started" in said:
                on_start(said["started"])
            else:
                break
    return report


async def _settled(ending: asyncio.Future[dict[str, Any]], link: _Link) -> None:
    """The tree's end after we were cancelled; cancelled again, it comes at once."""
    link.end()
    while not ending.done():
        try:
            await asyncio.wait({ending})
        except asyncio.CancelledError:
            link.end()


async def _uncancelled(waiting: asyncio.Future[int]) -> None:
    """Wait, and be cancelled only afterwards."""
    cancelled = False
    while not waiting.done():
        try:
            await asyncio.wait({waiting})
        except asyncio.CancelledError:
            cancelled = True
    if cancelled:
        raise asyncio.CancelledError


def _in_the_foreground() -> bool:
    for descriptor in (0, 1, 2):
        with contextlib.suppress(OSError):
            if os.isatty(descriptor) and os.tcgetpgrp(descriptor) == os.getpgrp():
                return True
    return False


@contextlib.contextmanager
def _signals_taken(link: _Link, shared: bool, grace_s: float) -> Iterator[None]:
    """SIGINT, SIGTERM and SIGHUP go to the agent, and what was set for them before comes back afterwards."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    loop = asyncio.get_running_loop()

    def interrupt() -> None:
        link.interrupted = True
        if not shared:
            link.send(b"I")
            link.timers.append(loop.call_later(grace_s, link.end))

    def end() -> None:
        link.interrupted = True
        link.end()

    actions: dict[signal.Signals, Callable[[], None]] = {signal.SIGINT: interrupt, signal.SIGTERM: end, signal.SIGHUP: end}
    if shared:
        actions[signal.SIGQUIT] = interrupt
    before = {n: h for n in actions if (h := signal.getsignal(n)) is not signal.SIG_IGN}
    for number in before:
        loop.add_signal_handler(number, actions[number])
    try:
        yield
    finally:
        for number, previous in before.items():
            loop.remove_signal_handler(number)
            signal.signal(number, previous if previous is not None else signal.SIG_DFL)


@contextlib.contextmanager
def _terminal_kept(shared: bool) -> Iterator[None]:
    """The terminal comes back as it was: an agent that was killed cannot put it back itself."""
    kept: list[tuple[int, list[Any]]] = []
    if shared:
        for descriptor in (0, 1, 2):
            with contextlib.suppress(OSError, termios.error):
                kept = [(descriptor, termios.tcgetattr(descriptor))]
                break
    try:
        yield
    finally:
        for descriptor, modes in kept:
            # Setting a terminal from the background stops the process (SIGTTOU) unless that is ignored.
            ignored = threading.current_thread() is threading.main_thread()
            before = signal.signal(signal.SIGTTOU, signal.SIG_IGN) if ignored else None
            with contextlib.suppress(OSError, termios.error):
                if os.tcgetpgrp(descriptor) != os.getpgrp():
                    os.tcsetpgrp(descriptor, os.getpgrp())
                termios.tcsetattr(descriptor, termios.TCSADRAIN, modes)
            if ignored:
                signal.signal(signal.SIGTTOU, before if before is not None else signal.SIG_DFL)


def _not_started(command: str, cwd: str | None, number: int, text: str) -> NotStarted:
    if cwd is not None and not Path(cwd).is_dir():
        return NotStarted(command, f"no such working directory: {cwd}", 126)
    if "/" in command:
        return NotStarted(command, text, 126 if Path(command).exists() else 127)
    if number == 2:
        return NotStarted(command, "no such command on PATH", 127, hint=f"is it installed? `command -v {command}` finds nothing")
    return NotStarted(command, text, 126)

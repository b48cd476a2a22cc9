"""The processes around a sealed agent: the outer one, which ends as the agent does, and process 1 inside. Standard library only.

In a session of its own (`launch` without a terminal) the agent gets one too, and what our launcher sends to the group of the outer process
is sent to the group of the agent. On a terminal all are in one group, as without us, and the terminal's signals reach the agent directly.
"""

from __future__ import annotations

import contextlib
import os
import resource
import select
import signal
import socket
import struct
import sys
import time
from collections.abc import Callable, Sequence

from secondtake.harness.seal import kernel

_PASSED_ON = (signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)
_KEPT_IGNORED = {n for n in _PASSED_ON if signal.getsignal(n) is signal.SIG_IGN}
_SIGINFO_BYTES = 128
_SI_USER = 0

ORPHANED_S = 10.0
"""So long after the gateway is gone everything inside may still take to end; our launcher ends it sooner, if it lives."""


class Outer:
    """The process outside, and its link to process 1. Made before that is forked."""

    def __init__(self) -> None:
        self.session = os.getsid(0) == os.getpid()
        self.mask = signal.pthread_sigmask(signal.SIG_BLOCK, {*_PASSED_ON, signal.SIGCHLD})
        self.life = os.pidfd_open(os.getpid())
        self.up, self.down = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)

    def run(self, pid: int) -> int:
        """Wait for the agent's end, as process 1 reports it, and end in the same way. Returns its exit status."""
        self.down.close()
        signals = kernel.signal_descriptor({*_PASSED_ON, signal.SIGCHLD})
        while True:
            ready, _, _ = select.select([self.up.fileno(), signals], [], [])
            if self.up.fileno() in ready:
                said = self.up.recv(8)
                status, strays = struct.unpack("=I?", said) if said else (int(signal.SIGKILL), False)
                if not strays:  # else it lives until our launcher has ended them
                    os.waitpid(pid, 0)
                return _end_as(status)
            self.pass_on(os.read(signals, _SIGINFO_BYTES))

    def pass_on(self, information: bytes) -> None:
        """A signal for the agent, unless it reaches the agent by itself."""
        number, _, code, sender = struct.unpack_from("=IiiI", information)
        if number == signal.SIGCHLD or code > _SI_USER:  # the terminal's go to the whole group
            return
        if sender == os.getppid():
            # Our launcher looks for every process below it, and ends each; it interrupts the group, which is ours alone.
            if not (self.session and number == signal.SIGINT):
                return
            self._send(number, group=True)
        elif not _from_inside(sender):
            self._send(number, group=False)

    def _send(self, number: int, *, group: bool) -> None:
        with contextlib.suppress(OSError):
            self.up.send(struct.pack("=I?", number, group))

    def report(self, status: int, *, strays: bool = False) -> None:
        """From process 1: the agent's status, as wait(2) has it, and whether it left processes behind."""
        with contextlib.suppress(OSError):
            self.down.send(struct.pack("=I?", status, strays))


def _from_inside(sender: int) -> bool:
    """Whether a process is in a namespace below ours: it cannot have meant us, so it sent to a group."""
    try:
        with open(f"/proc/{sender}/status", "rb") as file:
            return any(line.startswith(b"NSpid:") and len(line.split()) > 2 for line in file)
    except OSError:
        return False


def _end_as(status: int) -> int:
    """Return the exit status, or end by the same signal."""
    if os.WIFEXITED(status):
        return os.WEXITSTATUS(status)
    number = os.WTERMSIG(status)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if number not in (signal.SIGKILL, signal.SIGSTOP):
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {number})
    os.kill(os.getpid(), number)
    return 128 + number


def init(
    outer: Outer, control: socket.socket, command: Sequence[str], *, prepared: Callable[[], None], started: Callable[[int], None]
) -> None:
    """Be process 1: start the agent, collect what ends, report. Returns when nothing is left inside.

    `prepared` is called in the agent's process before it becomes the agent, `started` here with its process ID.
    """
    agent = os.fork()
    if agent == 0:
        try:
            prepared()
            if outer.session:
                os.setsid()
            signal.pthread_sigmask(signal.SIG_SETMASK, outer.mask)
            os._exit(become(command))
        except BaseException as error:  # noqa: BLE001 - this process must not go on as a second process 1
            _say(f"cannot start {command[0]}: {error}")
            os._exit(126)
    started(agent)
    signals = kernel.signal_descriptor({signal.SIGCHLD})
    watched: list[int] = [outer.down.fileno(), control.fileno(), outer.life, signals]
    ended, deadline = False, None
    while True:
        wait = None if deadline is None else max(0.0, deadline - time.monotonic())
        ready, _, _ = select.select(watched, [], [], wait)
        if deadline is not None and time.monotonic() >= deadline:
            return
        if control.fileno() in ready:
            if control.recv(64):
                return  # the gateway wants the end
            watched.remove(control.fileno())
            deadline = time.monotonic() + ORPHANED_S
        if outer.down.fileno() in ready:
            said = outer.down.recv(8)
            if said and not ended:
                number, group = struct.unpack("=I?", said)
                with contextlib.suppress(OSError):
                    (os.killpg if group else os.kill)(agent, number)
            elif not said:
                watched.remove(outer.down.fileno())
        if outer.life in ready:
            if not ended:
                return
            # Only now: what was said last is read before the process is gone, and we would be ended with it.
            watched.remove(outer.life)
            kernel.prctl(kernel.PR_SET_PDEATHSIG, signal.SIGKILL)  # our parent is the launcher now
        if signals in ready:
            with contextlib.suppress(BlockingIOError):
                os.read(signals, _SIGINFO_BYTES * 8)
            status, alone = _collected(agent)
            if status is not None:
                ended = True
                if not alone:
                    kernel.prctl(kernel.PR_SET_PDEATHSIG, 0)
                outer.report(status, strays=not alone)
            if alone:
                return


def _collected(agent: int) -> tuple[int | None, bool]:
    """The agent's status if it has ended now, and whether nobody else is left."""
    found = None
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return found, True
        if pid == 0:
            return found, False
        if pid == agent:
            found = status


def become(command: Sequence[str]) -> int:
    """Execute the agent, with signals, environment and descriptors as they were given to us. Returns a status when that fails."""
    for number in (*_PASSED_ON, signal.SIGCHLD, signal.SIGPIPE, signal.SIGXFSZ):
        if number not in _KEPT_IGNORED:
            signal.signal(number, signal.SIG_DFL)
    kernel.close_from(3)
    try:
        os.execvpe(command[0], list(command), ENVIRONMENT)  # noqa: S606 - becoming the person's own program is what this is for
    except OSError as error:
        _say(f"cannot start {command[0]}: {error.strerror}")
        return 127 if isinstance(error, FileNotFoundError) else 126


def _say(text: str) -> None:
    sys.stderr.write(f"secondtake: {text}\n")
    sys.stderr.flush()


def _given_environment() -> dict[bytes, bytes]:
    """The environment as it was given: the interpreter may have set LC_CTYPE in its own (PEP 538)."""
    try:
        with open("/proc/self/environ", "rb") as file:
            pairs = (entry.partition(b"=") for entry in file.read().split(b"\0") if b"=" in entry)
            return {name: value for name, _, value in pairs}
    except OSError:
        return dict(os.environb)


ENVIRONMENT = _given_environment()

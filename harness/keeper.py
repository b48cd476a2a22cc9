"""The process between us and an agent: it starts the agent, is the parent of every orphan the agent leaves, and ends them all.

A script of its own, standard library only, run with `-I -S` (it adds 30 to 45 ms to a launch). Why a process: orphans can only be
collected by a
subreaper (prctl(2), PR_SET_CHILD_SUBREAPER), that is a property of a whole process, and one that has other children and other
agents beside this one could not tell whose orphan it was given. Its children are this agent's processes and nothing else.

Talks over one socket, the descriptor in argv[1]. Down: a length (4 bytes, big-endian) and a JSON `{argv, env, cwd, session, grace_s,
descriptors, aside}`, then single bytes: `I` interrupt, `T` end with grace, `K` end at once. Up: JSON lines, `{started}` or
`{failed, text}`, then `{status, strays, left}`. End of file from above means that we are gone: everything is ended.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import resource
import select
import signal
import socket
import sys
import time
from types import FrameType
from typing import Any

PR_SET_CHILD_SUBREAPER = 36
KILL_S = 5.0
"""How long killed processes are waited for; one in an uninterruptible call can outlast it, and is counted in `left`."""


def descendants() -> list[int]:
    """Every living process below this one, parents first. Empty where there is no /proc."""
    below: dict[int, list[int]] = {}
    try:
        names = os.listdir("/proc")  # noqa: PTH208 - pathlib is not imported: it is most of the start-up time
    except OSError:
        return []
    for name in names:
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", "rb") as file:
                    state, parent = file.read().rpartition(b")")[2].split()[:2]
            except (OSError, ValueError):
                continue
            if state not in (b"Z", b"X"):
                below.setdefault(int(parent), []).append(int(name))
    found, at = below.get(os.getpid(), []), 0
    while at < len(found):
        found += below.get(found[at], [])
        at += 1
    return found


def first_of_a_namespace(process: int) -> bool:
    """Whether it is process 1 of a process namespace: a seal's own, which ends by itself when the last one inside has ended."""
    try:
        with open(f"/proc/{process}/status", "rb") as file:
            return any(line.startswith(b"NSpid:") and line.split()[-1] == b"1" and len(line.split()) > 2 for line in file)
    except OSError:
        return False


class Keeper:
    """One agent and all that comes of it."""

    def __init__(self, control: socket.socket, order: dict[str, Any]) -> None:
        self.control = control
        self.order = order
        self.child = 0
        self.status: int | None = None
        self.strays = 0
        self.deadline: float | None = None
        self.killing = False
        self.empty = False
        self.wake, wake_end = os.pipe()
        os.set_blocking(self.wake, False)
        os.set_blocking(wake_end, False)
        signal.set_wakeup_fd(wake_end, warn_on_full_buffer=False)

    def run(self) -> None:
        """Start, wait, end what is left, report."""
        inherited = {n: signal.getsignal(n) for n in (signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGHUP)}
        for number in (*inherited, signal.SIGCHLD):
            signal.signal(number, _noted)
        for number, before in inherited.items():
            if before is signal.SIG_IGN:
                signal.signal(number, signal.SIG_IGN)
        if not self.start({n for n, before in inherited.items() if before is signal.SIG_IGN}):
            return
        while not self.empty:
            self.turn()
        self.say({"status": self.status, "strays": self.strays, "left": len(descendants())})

    def start(self, ignored: set[signal.Signals]) -> bool:
        """Fork and execute the agent with the signals as they were given to us."""
        failed, failed_end = os.pipe()
        self.child = os.fork()
        if self.child == 0:
            try:
                if self.order["session"]:
                    os.setsid()
                signal.set_wakeup_fd(-1)
                for taken in (signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD):
                    if taken not in ignored:
                        signal.signal(taken, signal.SIG_DFL)
                signal.signal(signal.SIGPIPE, signal.SIG_DFL)
                signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
                if self.order["descriptors"] is not None:
                    resource.setrlimit(resource.RLIMIT_NOFILE, (self.order["descriptors"], resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
                if self.order["cwd"] is not None:
                    os.chdir(self.order["cwd"])
                os.execvpe(self.order["argv"][0], self.order["argv"], self.order["env"])  # noqa: S606 - what this file is for
            except BaseException as error:  # noqa: BLE001 - whatever it is, this process must not go on as a second keeper
                number = error.errno if isinstance(error, OSError) and error.errno else 0
                os.write(failed_end, json.dumps([number, str(getattr(error, "strerror", None) or error)]).encode())
                os._exit(127)
        os.close(failed_end)
        with open(failed, "rb") as file:
            problem = file.read()
        if problem:
            os.waitpid(self.child, 0)
            number, text = json.loads(problem)
            self.say({"failed": number, "text": text})
            return False
        self.say({"started": self.child})
        return True

    def turn(self) -> None:
        """Wait for a signal, a command or the end of the grace, and act on it."""
        wait = None if self.deadline is None else max(0.0, self.deadline - time.monotonic())
        watched = [n for n in (self.wake, self.control.fileno()) if n >= 0]
        ready, _, _ = select.select(watched, [], [], wait)
        if self.wake in ready:
            with contextlib.suppress(BlockingIOError):
                if set(os.read(self.wake, 512)) & {signal.SIGTERM, signal.SIGHUP}:
                    self.end()
        if self.control.fileno() in ready:
            self.obey()
        if self.deadline is not None and time.monotonic() >= self.deadline:
            if self.killing:
                self.empty = True  # what is left cannot be killed, or not by us
                return
            self.kill()
        self.reap()
        if self.killing and not self.empty:
            self.send(signal.SIGKILL)  # a process can have forked since the last look

    def obey(self) -> None:
        """Commands from above."""
        try:
            commands = self.control.recv(64)
        except OSError:
            commands = b""
        if not commands:
            self.control.close()
            self.end()
        if b"I" in commands and self.status is None:
            with contextlib.suppress(OSError):
                if self.order["session"]:
                    os.killpg(self.child, signal.SIGINT)
                else:
                    os.kill(self.child, signal.SIGINT)
        if b"T" in commands:
            self.end()
        if b"K" in commands:
            self.kill()

    def end(self) -> None:
        """Ask everything to end, and give it the grace. Asked twice: at once."""
        if self.deadline is not None:
            self.kill()
            return
        self.deadline = time.monotonic() + self.order["grace_s"]
        self.send(signal.SIGTERM)
        self.send(signal.SIGCONT)

    def kill(self) -> None:
        """End everything at once."""
        if not self.killing:
            self.killing = True
            self.deadline = time.monotonic() + KILL_S
            self.send(signal.SIGKILL)

    def send(self, number: signal.Signals) -> None:
        """A signal to every process below, and to the agent's group where there is no /proc to find them by."""
        found = descendants()
        for process in found:
            with contextlib.suppress(OSError):
                os.kill(process, number)
        if not found and self.order["session"]:
            with contextlib.suppress(OSError):
                os.killpg(self.child, number)

    def reap(self) -> None:
        """Collect who has ended. When the agent has and others have not, those are strays, and are ended."""
        while True:
            try:
                process, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                self.empty = True
                return
            if process == 0:
                break
            if process == self.child:
                self.status = os.waitstatus_to_exitcode(status)
        if self.status is not None and self.deadline is None:
            self.strays = sum(not self.ours(process) for process in descendants())
            self.end()

    def ours(self, process: int) -> bool:
        """Say whether a process was put beside the agent and ends by itself after it: a seal's, or a tracer, told by its arguments."""
        if first_of_a_namespace(process):
            return True
        if self.order["aside"] is None:
            return False
        try:
            with open(f"/proc/{process}/cmdline", "rb") as file:
                return os.fsencode(self.order["aside"]) in file.read().split(b"\0")
        except OSError:
            return True  # it has ended meanwhile

    def say(self, report: dict[str, Any]) -> None:
        """One line up; nobody may be there to read it."""
        with contextlib.suppress(OSError):
            self.control.sendall(json.dumps(report).encode() + b"\n")


def _noted(_number: int, _frame: FrameType | None) -> None:
    """The wake-up descriptor has it."""


def _exactly(control: socket.socket, count: int) -> bytes:
    data = b""
    while len(data) < count:
        if not (piece := control.recv(count - len(data))):
            sys.exit(0)
        data += piece
    return data


def main() -> None:
    """Take the order from the socket and carry it out."""
    control = socket.socket(fileno=int(sys.argv[1]))
    control.set_inheritable(False)
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    order = json.loads(_exactly(control, int.from_bytes(_exactly(control, 4), "big")))
    Keeper(control, order).run()


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        main()

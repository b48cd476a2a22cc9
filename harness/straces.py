"""Reading a log of strace(1): which programs were executed, by whom, where, and how each ended.

What an agent executes is not trusted: its arguments stand in the log as escaped text, lines and fields are bounded, and what cannot
be read is counted, not guessed. Bytes in, values out.

Expected: `-f -ttt -q --decode-fds=path --pidns-translation`, and of the system calls `execve`, `execveat`, the ones that fork,
`chdir`, `fchdir`; `connect` too where connections are wanted. Two lines of one call (`<unfinished ...>`, `<... resumed>`) are joined.
"""

from __future__ import annotations

import os
import posixpath
import re
import signal
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from secondtake.cassettes.execs import Command
from secondtake.cassettes.limits import EXEC_ARGUMENTS, EXEC_LOG_BYTES, EXECS

PROCESSES = 1_000_000
"""Processes told apart; a fork bomb has more."""


@dataclass(frozen=True, slots=True)
class Connection:
    """One `connect`, tried. `kind`: `tcp`, `udp`, `unix`, or `inet` where the socket's kind is not said."""

    at_us: int
    pid: int
    kind: str
    address: str
    """An IP address, or the path of a Unix socket; an abstract one begins with `@`."""
    port: int | None


@dataclass(slots=True)
class _Process:
    pid: int
    parent: _Process | None = None
    linked: bool = False
    """We saw who forked it."""
    base: str | None = None
    """Working directory it began in, where it is the first; others have their parent's."""
    came_from: str = ""
    """Its parent's `moved` when it was forked."""
    moved: str = ""
    """Where `chdir` led it since it was forked: absolute, or relative to where it began."""
    command: int | None = None
    """Place of the command it is now."""
    ended: bool = False


@dataclass(slots=True)
class _Executed:
    process: _Process
    moved: str
    command: Command


@dataclass(slots=True)
class Reading:
    """A log that is being read, line by line."""

    cwd: str
    """Working directory of the first process; empty where it is not known."""
    zero_us: int | None = None
    """Microseconds since 1970 that times are counted from; None: the first line's."""
    lost: int = 0
    """Commands over the limits, and lines that could not be read."""
    connections: list[Connection] = field(default_factory=list)
    _executed: list[_Executed] = field(default_factory=list)
    _processes: dict[int, _Process] = field(default_factory=dict)
    _threads: dict[int, int] = field(default_factory=dict)
    _unfinished: dict[int, tuple[int, bytes]] = field(default_factory=dict)
    _kept_bytes: int = 0
    _count: int = 0

    def take(self, line: bytes) -> None:
        """Read one line."""
        found = _LINE.fullmatch(line)
        if found is None:
            self.lost += 1
            return
        task, at_us, said = int(found[1]), int(found[2]) * 1_000_000 + int(found[3]), found[4]
        if self.zero_us is None:
            self.zero_us = at_us
        at_us -= self.zero_us
        if said.endswith(b" <unfinished ...>"):
            self._unfinished[task] = (at_us, said[: -len(b" <unfinished ...>")])
            return
        if resumed := _RESUMED.match(said):
            begun = self._unfinished.pop(task, None)
            if begun is None:
                self.lost += 1
                return
            at_us, said = begun[0], begun[1] + said[resumed.end() :]
        if said.startswith(b"+++ "):
            self._ended(task, at_us, said)
        elif not said.startswith(b"--- "):
            self._called(task, at_us, said)

    def commands(self) -> tuple[Command, ...]:
        """Everything executed, in the order in which it was."""
        where: dict[int, str] = {}
        return tuple(
            replace(one.command, parent=self._above(one.process), cwd=_led(_began(one.process, where), one.moved)) for one in self._executed
        )

    def _called(self, task: int, at_us: int, said: bytes) -> None:
        head, equals, result = said.rpartition(b" = ")
        name, bracket, arguments = head.partition(b"(")
        if not equals or not bracket:
            self.lost += 1
        elif name == b"connect":
            self._connected(task, at_us, arguments)
        elif result.startswith((b"-", b"?")):
            return
        elif name in {b"execve", b"execveat"}:
            self._execute(task, at_us, arguments)
        elif name in {b"chdir", b"fchdir"}:
            self._moved(task, arguments)
        elif name in {b"clone", b"clone3", b"fork", b"vfork"}:
            translated = _TRANSLATED.search(result)
            number = translated or _NUMBER.match(result)
            if number is None:
                self.lost += 1
            else:
                self._forked(task, int(number[1]), is_thread=b"CLONE_THREAD" in arguments)

    def _process(self, task: int) -> _Process | None:
        """The process a task belongs to; a new one where it was never heard of. None over the limit."""
        pid = self._threads.get(task, task)
        process = self._processes.get(pid)
        if process is None or process.ended:
            if self._count >= PROCESSES:
                self.lost += 1
                return None
            first = self._count == 0
            process = self._processes[pid] = _Process(pid, base=self.cwd if first else None, linked=first)
            self._count += 1
        return process

    def _forked(self, task: int, child: int, *, is_thread: bool) -> None:
        if is_thread:
            leader = self._threads.get(task, task)
            early = self._processes.pop(child, None)
            if early is not None and (owner := self._process(task)) is not None:
                early.parent, early.linked, early.ended = owner, True, True  # what it forked before we knew has the owner above it
            self._threads[child] = leader
            return
        parent = self._process(task)
        if parent is None:
            return
        self._threads.pop(child, None)
        process = self._processes.get(child)
        if process is None or process.linked:
            if process is not None:
                process.ended = True
            process = self._process(child)
        if process is not None:
            process.parent, process.linked, process.came_from = parent, True, parent.moved

    def _execute(self, task: int, at_us: int, arguments: bytes) -> None:
        process = self._process(task)
        if process is None:
            return
        if process.command is not None:
            before = self._executed[process.command]
            before.command = replace(before.command, ended_us=at_us, replaced=True)
        program, argv, cut = _executed(arguments)
        size = len(arguments)
        if self._kept_bytes + size > EXEC_LOG_BYTES:
            argv, cut = (argv[0][:100],) if argv else (), True
            size = 200
        if len(self._executed) >= EXECS:
            self.lost += 1
            process.command = None
            return
        self._kept_bytes += size
        process.command = len(self._executed)
        command = Command(process.pid, 0, argv, "", at_us, None, None, None, program, cut=cut)
        self._executed.append(_Executed(process, process.moved, command))

    def _ended(self, task: int, at_us: int, said: bytes) -> None:
        if task in self._threads:
            del self._threads[task]
            return
        found = _END.match(said)
        process = self._processes.get(task)
        if found is None or process is None:
            return
        process.ended = True
        if process.command is not None:
            one = self._executed[process.command]
            code = None if found[1] is None else int(found[1])
            one.command = replace(one.command, ended_us=at_us, exit_code=code, signal=None if found[2] is None else _signal(found[2]))

    def _moved(self, task: int, arguments: bytes) -> None:
        process = self._process(task)
        found = _STRING.match(arguments) or _DESCRIPTOR.match(arguments)
        if process is not None and found is not None:
            process.moved = posixpath.join(process.moved, os.fsdecode(_unescaped(found[1])))

    def _connected(self, task: int, at_us: int, arguments: bytes) -> None:
        if len(self.connections) >= EXECS:
            self.lost += 1
            return
        pid = self._threads.get(task, task)
        if found := _INET.search(arguments):
            kind = {b"TCP": "tcp", b"UDP": "udp"}.get(found[1] or b"", "inet")
            address = os.fsdecode(found[3] or found[4])
            self.connections.append(Connection(at_us, pid, kind, address, int(found[2])))
        elif found := _UNIX.search(arguments):
            path = ("@" if found[1] else "") + os.fsdecode(_unescaped(found[2]))
            self.connections.append(Connection(at_us, pid, "unix", path, None))

    def _above(self, process: _Process) -> int:
        """The nearest process above that executed something. One whose parent was never seen is under the first."""
        first = self._executed[0].process
        if process is first:
            return 0
        above = process.parent
        while above is not None and above.command is None:
            above = above.parent
        return first.pid if above is None else above.pid


def read(lines: Iterable[bytes], *, cwd: str, zero_us: int | None = None) -> Reading:
    """Read a whole log; `lines` without their ends."""
    reading = Reading(cwd, zero_us)
    for line in lines:
        reading.take(line)
    return reading


_LINE = re.compile(rb"(\d{1,10}) +(\d{1,12})\.(\d{6}) (.*)", re.DOTALL)
_RESUMED = re.compile(rb"<\.\.\. \w+ resumed>")
_TRANSLATED = re.compile(rb"/\* (\d{1,10}) in strace's PID NS \*/")
_NUMBER = re.compile(rb"(\d{1,10})\b")
_END = re.compile(rb"\+\+\+ (?:exited with (\d{1,3})|killed by (\w+)(?: \(core dumped\))?) \+\+\+")
_STRING = re.compile(rb'"((?:[^"\\]|\\.)*)"(?:\.\.\.)?', re.DOTALL)
_DESCRIPTOR = re.compile(rb"(?:\d+|AT_FDCWD)<((?:[^<>\\]|\\.)*)>")
_INET = re.compile(
    rb"^\d+(?:<(TCP|UDP)[^>]*>)?, \{sa_family=AF_INET6?, sin6?_port=htons\((\d{1,5})\), "
    rb"(?:sin_addr=inet_addr\(\"([0-9.]{1,15})\"\)|[^\"]{0,100}inet_pton\(AF_INET6, \"([0-9a-f:.]{1,45})\")"
)
_UNIX = re.compile(rb'^\d+(?:<[^>]*>)?, \{sa_family=AF_UNIX, sun_path=(@?)"((?:[^"\\]|\\.)*)"')
_ESCAPE = re.compile(rb"\\(x[0-9a-f]{2}|[0-7]{1,3}|.)", re.DOTALL)
_LETTERS = {b"n": b"\n", b"t": b"\t", b"r": b"\r", b"v": b"\v", b"f": b"\f", b"a": b"\a", b"b": b"\b"}


def _executed(arguments: bytes) -> tuple[str, tuple[str, ...], bool]:
    """Program, arguments, and whether some are missing, of `execve`'s or `execveat`'s arguments."""
    folder = _DESCRIPTOR.match(arguments)
    at = 0
    if folder is not None:  # execveat: a folder's descriptor first; the file itself where the name is empty
        at = folder.end() + 2
    named = _STRING.match(arguments, at)
    if named is None:
        return "", (), True
    program = _unescaped(named[1])
    if folder is not None:
        program = posixpath.join(_unescaped(folder[1]), program) if program else _unescaped(folder[1])
    cut = arguments[named.end() - 3 : named.end()] == b"..."
    at = named.end()
    if arguments[at : at + 3] != b", [":
        return os.fsdecode(program), (), True
    at += 3
    argv: list[str] = []
    while word := _STRING.match(arguments, at):
        if len(argv) < EXEC_ARGUMENTS:
            argv.append(os.fsdecode(_unescaped(word[1])))
        else:
            cut = True
        cut = cut or word[0].endswith(b"...")
        at = word.end()
        if arguments[at : at + 2] != b", ":
            break
        at += 2
    return os.fsdecode(program), tuple(argv), cut or arguments[at : at + 1] != b"]"


def _unescaped(text: bytes) -> bytes:
    if b"\\" not in text:
        return text
    return _ESCAPE.sub(_unescape, text)


def _unescape(found: re.Match[bytes]) -> bytes:
    code = found[1]
    if code[:1] == b"x" and len(code) == 3:
        return bytes([int(code[1:], 16)])
    if code[:1].isdigit():
        return bytes([int(code, 8) & 0xFF])
    return _LETTERS.get(code, code)


def _signal(name: bytes) -> int | None:
    text = name.decode("ascii")
    if found := re.fullmatch(r"SIGRT_(\d{1,2})", text):
        return int(signal.SIGRTMIN) + int(found[1])
    return signal.Signals[text].value if text in signal.Signals.__members__ else None


def _began(process: _Process, known: dict[int, str]) -> str:
    """The working directory a process began in; empty where it is not known. Not by recursion: chains of forks are long."""
    chain: list[_Process] = []
    at: _Process | None = process
    while at is not None and id(at) not in known:
        chain.append(at)
        at = at.parent
    for one in reversed(chain):
        if one.base is not None:
            known[id(one)] = one.base
        else:
            known[id(one)] = "" if one.parent is None else _led(known[id(one.parent)], one.came_from)
    return known[id(process)]


def _led(began: str, moved: str) -> str:
    if not moved:
        return began
    where = posixpath.join(began, moved)
    return posixpath.normpath(where) if where.startswith("/") else ""

"""`secondtake mcp`: stands where an agent expects an MCP server on standard input and output.

In a recording it starts the server and passes lines on, byte for byte, each told to the run's proxy first. In a replay or retake it starts
nothing: the proxy says what the server said. The run is found by `SECONDTAKE_PROXY`, its own or, because many agents start servers with
few variables, that of the nearest process above it that has one. Where a run is named and does not answer, nothing is started.
"""

from __future__ import annotations

import base64
import contextlib
import http.client
import json
import os
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

from secondtake.cassettes.errors import BadInput
from secondtake.cassettes.limits import MCP_LINE_BYTES
from secondtake.proxy.upstream import OURS

HOST = "stdio.secondtake.invalid"
"""The proxy itself, for words of ours: `.invalid` is never a host (RFC 6761)."""

EXIT_FIELD = "x-secondtake-exit"
"""On an answer of the proxy: the server has ended, with this status."""

ANCESTORS = 64
READ_BYTES = 1024 * 1024
TIMEOUT_S = 600.0

GONE = "the run that this server belongs to does not answer"


class NoRun(BadInput):
    """The run that is named does not answer, or it cannot be known whether there is one."""


@dataclass(frozen=True, slots=True)
class Line:
    """A line with its end. `whole` is false for a part of one that is too long."""

    data: bytes
    whole: bool = True


def run_of(environ: Mapping[str, str], processes: Path = Path("/proc")) -> str | None:
    """Return the address of the proxy of the run we are in, or None where we are in none.

    Raises:
        NoRun: our own environment names none, and those of the processes above us cannot be read.
    """
    if found := environ.get(OURS):
        return found
    pid = os.getpid()
    if not (processes / str(pid) / "stat").exists():
        raise NoRun(
            f"{OURS} is not set, and this system does not tell whether the agent has it",
            hint=f"pass {OURS} on in the server's `env`, or start it with --alone outside of any run",
        )
    for _ in range(ANCESTORS):
        try:
            pid = int((processes / str(pid) / "stat").read_text(errors="replace").rpartition(")")[2].split()[1])
            if pid <= 1:
                return None
            variables = (processes / str(pid) / "environ").read_bytes()
        except (OSError, ValueError, IndexError):
            return None
        for variable in variables.split(b"\0"):
            name, _, value = variable.partition(b"=")
            if name == OURS.encode() and value:
                return os.fsdecode(value)
    return None


class Run:
    """The proxy of the run, spoken to by one thread on one connection."""

    def __init__(self, address: str) -> None:
        parts = urlsplit(address)
        self._fields = {"Content-Type": "application/x-ndjson"}
        if parts.username is not None:
            user = f"{unquote(parts.username)}:{unquote(parts.password or '')}".encode()
            self._fields["Proxy-Authorization"] = "Basic " + base64.b64encode(user).decode()
        self._connection = http.client.HTTPConnection(parts.hostname or "127.0.0.1", parts.port or 80, timeout=TIMEOUT_S)

    def say(self, target: str, body: bytes) -> tuple[bytes, int | None]:
        """Say something; returns the answer and, where the server has ended, its status.

        Raises:
            NoRun: nobody answers, or not as a run does.
        """
        try:
            self._connection.request("POST", f"http://{HOST}{target}", body, self._fields)
            answer = self._connection.getresponse()
            content = answer.read()
        except (OSError, http.client.HTTPException) as error:
            raise NoRun(f"{GONE}: {error or type(error).__name__}", hint="is its proxy still running?") from error
        if answer.status != 200:
            raise NoRun(f"{GONE} as one does: {answer.status}", hint="its proxy is another version, or no secondtake")
        ended = answer.getheader(EXIT_FIELD)
        return content, int(ended) if ended is not None else None


def lines(descriptor: int, longest: int = MCP_LINE_BYTES) -> Iterator[Line]:
    """Yield the lines of a pipe as they come, each with its end; one that is longer than `longest` in parts."""
    held = bytearray()
    scanned, cut = 0, False
    while data := os.read(descriptor, READ_BYTES):
        held += data
        while (end := held.find(b"\n", scanned)) >= 0:
            yield Line(bytes(held[: end + 1]), whole=not cut and end < longest)
            del held[: end + 1]
            scanned, cut = 0, False
        scanned = len(held)
        if len(held) > longest:
            yield Line(bytes(held), whole=False)
            held.clear()
            scanned, cut = 0, True
    if held:
        yield Line(bytes(held), whole=not cut)


def write(descriptor: int, data: bytes) -> None:
    """Write all of it."""
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def serve(command: Sequence[str], name: str, address: str, warn: Callable[[str], None], *, stdin: int = 0, stdout: int = 1) -> int:
    """Be the server, as the run's mode wants it, until it or its client is gone. Returns its exit status.

    Raises:
        NoRun: the run does not answer.
    """
    run = Run(address)
    opened, ended = run.say("/open", json.dumps({"name": name, "argv": list(command)}).encode())
    head, _, said = opened.partition(b"\n")
    try:
        told = json.loads(head)
        session, mode = str(told["session"]), str(told["mode"])
    except (ValueError, KeyError, TypeError) as error:
        raise NoRun(f"{GONE} as one does", hint="its proxy is another version, or no secondtake") from error
    if mode == "record":
        return _record(command, run, Run(address), session, warn, stdin, stdout)
    return _play(run, session, said, ended, stdin, stdout)


def _play(run: Run, session: str, said: bytes, ended: int | None, stdin: int, stdout: int) -> int:
    write(stdout, said)
    if ended is not None:
        return ended
    for line in lines(stdin):
        said, ended = run.say(f"/client?session={session}", line.data)
        write(stdout, said)
        if ended is not None:
            return ended
    _, ended = run.say(f"/close?session={session}", b"{}")
    return ended or 0


class _Recording:
    """What both directions of a live server share."""

    def __init__(self, run: Run, session: str, warn: Callable[[str], None]) -> None:
        self._run = run
        self._session = session
        self._warn = warn
        self._lost = False

    def tell(self, what: str, line: Line) -> None:
        """Tell the run what is about to be passed on. A run that is gone is said once: the agent's traffic goes on."""
        if line.whole:
            self.say(what, line.data)
        else:
            self.say("unkept", b"")

    def say(self, what: str, body: bytes) -> None:
        if self._lost:
            return
        try:
            self._run.say(f"/{what}?session={self._session}", body)
        except NoRun as error:
            self._lost = True
            self._warn(f"{error}; what this server says is no longer recorded")


def _record(command: Sequence[str], run: Run, second: Run, session: str, warn: Callable[[str], None], stdin: int, stdout: int) -> int:
    ours, theirs = _Recording(run, session, warn), _Recording(second, session, warn)
    try:
        server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    except OSError as error:
        status = 127 if isinstance(error, FileNotFoundError) else 126
        ours.say("close", json.dumps({"exit": status, "by_client": False}).encode())
        warn(f"cannot start `{command[0]}`: {error.strerror or error}")
        return status
    assert server.stdin is not None
    assert server.stdout is not None
    left = threading.Event()
    to_server = server.stdin.fileno()

    def passed_on(number: int, _frame: object) -> None:
        left.set()
        with contextlib.suppress(ProcessLookupError):
            server.send_signal(number)

    before = {number: signal.signal(number, passed_on) for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)}

    def inward() -> None:
        try:
            for line in lines(stdin):
                theirs.tell("client", line)
                write(to_server, line.data)
            left.set()
        except OSError:
            pass  # the server is gone; its end is told where its output ends
        finally:
            with contextlib.suppress(OSError):
                server.stdin.close()  # type: ignore[union-attr]  # it is a pipe

    threading.Thread(target=inward, daemon=True).start()
    try:
        for line in lines(server.stdout.fileno()):
            ours.tell("server", line)
            try:
                write(stdout, line.data)
            except OSError:
                left.set()
                server.terminate()
                break
        code = server.wait()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    status = code if code >= 0 else 128 - code
    ours.say("close", json.dumps({"exit": status, "by_client": left.is_set()}).encode())
    return status

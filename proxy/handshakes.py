"""One handshake per tool, for `doctor`: would its traffic be captured, would it refuse our certificate, would it go around us?

A tool is started in the environment that an agent would get, and told to fetch from a host of its own under `.invalid`, which no
resolver knows. A listener here plays the proxy and answers itself. What it sees decides, not what the tool prints.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import socket
import ssl
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Self

from secondtake.proxy.authority import Authority
from secondtake.proxy.tools import TOOL_VARIABLES, trust_hint

ZONE = "doctor.secondtake.invalid"
"""RFC 6761, 6.4: names under `invalid` never resolve, so a tool that goes around the proxy reaches nobody."""

TIMEOUT_S = 20.0
"""For one tool; the slowest start seen is Java's compiler with 2 s, and a tool that distrusts us may retry."""

NOT_INSTALLED = 77
"""Exit status by which a probe says that its library is not there."""

_HEAD_BYTES = 64 * 1024
_OUTPUT_BYTES = 64 * 1024
_PAGE = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"


class Verdict(StrEnum):
    """What came of a handshake."""

    CAPTURED = "captured"
    NOT_TRUSTED = "not trusted"
    BYPASSED = "bypassed"
    TIMED_OUT = "timed out"
    FAILED = "failed"
    """The program ended before it asked for anything: not set up, too old for the probe. It says nothing of its traffic."""
    ABSENT = "absent"


@dataclass(frozen=True, slots=True)
class Seen:
    """What the listener saw of one host."""

    request: bool
    user_agent: str = ""
    refusal: str = ""
    """Why the TLS handshake ended, in OpenSSL's word, where it did."""


@dataclass(frozen=True, slots=True)
class Result:
    """One line of `doctor`."""

    tool: str
    verdict: Verdict
    variable: str | None
    """The variable through which the tool was told of our authority; None where it reads none of those set."""
    detail: str
    """What to know or to do, in one line."""
    program: str | None = None
    """Path of the program that was tried."""


@dataclass(frozen=True, slots=True)
class Finished:
    """How a probe ended. `status` is None after a time-out."""

    status: int | None
    output: str


_ASKED = re.compile(r"resol|ENOTFOUND|ECONN|getaddrinfo|UnknownHost|no such host|Name or service|nodename|dns|connect", re.IGNORECASE)
"""Words of a program that went out by itself and found that its host does not exist."""

type Run = Callable[[Sequence[str], Mapping[str, str], Path, float], Finished]
"""(arguments, environment, working folder, seconds); never raises for what the program does."""


@dataclass(frozen=True, slots=True)
class Probe:
    """How to make one tool fetch `https://HOST/`."""

    tool: str
    program: str
    arguments: tuple[str, ...]
    """`{host}` stands for its host, `{folder}` for a folder of its own."""
    extra: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)

    @property
    def host(self) -> str:
        """The host only this probe asks for."""
        return f"{re.sub('[^a-z0-9]', '-', self.tool)}.{ZONE}"


_PYTHON = "try:\n import {library}\nexcept ImportError:\n raise SystemExit(77)\n"
_JAVA = """import java.net.*;
class Doctor {{ public static void main(String[] a) throws Exception {{
  HttpURLConnection c = (HttpURLConnection) new URL("https://{host}/").openConnection();
  c.setConnectTimeout(5000); c.setReadTimeout(5000); System.out.println(c.getResponseCode()); }} }}
"""

PROBES: tuple[Probe, ...] = (
    Probe("curl", "curl", ("-sS", "-m", "10", "-o", "{folder}/out", "https://{host}/")),
    Probe("git", "git", ("ls-remote", "https://{host}/doctor.git"), {"GIT_TERMINAL_PROMPT": "0", "GIT_ASKPASS": "true"}),
    Probe(
        "pip",
        "pip",
        (
            *("download", "--quiet", "--no-deps", "--no-input", "--no-cache-dir", "--disable-pip-version-check", "--retries", "0"),
            *("--index-url", "https://{host}/simple/", "--dest", "{folder}", "secondtake-doctor"),
        ),
    ),
    Probe(
        "uv",
        "uv",
        ("pip", "compile", "--quiet", "--no-cache", "--index-url", "https://{host}/simple/", "{folder}/wanted.in"),
        {"UV_HTTP_RETRIES": "0"},
        {"wanted.in": "secondtake-doctor\n"},
    ),
    Probe(
        "npm",
        "npm",
        ("view", "--fetch-retries=0", "--cache={folder}/cache", "--registry=https://{host}/", "secondtake-doctor"),
        {"npm_config_update_notifier": "false"},
    ),
    Probe("node", "node", ("-e", "fetch('https://{host}/').catch(error => {{ console.error(error.cause ?? error); process.exit(1) }})")),
    Probe("python urllib", "python3", ("-c", "import urllib.request as r\nr.urlopen('https://{host}/', timeout=10)")),
    Probe(
        "requests",
        "python3",
        ("-c", _PYTHON.format(library="requests") + "requests.get('https://{host}/', timeout=10)"),
    ),
    Probe("httpx", "python3", ("-c", _PYTHON.format(library="httpx") + "httpx.get('https://{host}/', timeout=10)")),
    Probe("cargo", "cargo", ("search", "--quiet", "--index", "sparse+https://{host}/", "doctor"), {"CARGO_NET_RETRY": "0"}),
    Probe(
        "go",
        "go",
        ("list", "-m", "doctor.secondtake.invalid/doctor@latest"),
        {"GOPROXY": "https://{host}", "GONOSUMDB": "*", "GOFLAGS": "-mod=mod"},
        {"go.mod": "module doctor\n"},
    ),
    Probe("java", "java", ("{folder}/Doctor.java",), files={"Doctor.java": _JAVA}),
)


class Listener:
    """Plays the proxy on a loopback port: takes CONNECT, shakes hands with a leaf of `authority`, answers 404, and remembers."""

    def __init__(self, authority: Authority, hosts: Iterable[str]) -> None:
        self._seen: dict[str, Seen] = {}
        self._lock = threading.Lock()
        self._tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        with tempfile.NamedTemporaryFile(dir=authority.directory) as leaf:
            leaf.write(authority.leaf(hosts).pem)
            leaf.flush()
            self._tls.load_cert_chain(leaf.name)
        self._server = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port: int = self._server.getsockname()[1]
        self._thread = threading.Thread(target=self._accept, name="doctor", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        # A blocked accept does not notice that its socket is closed; a shutdown wakes it.
        with contextlib.suppress(OSError):
            self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()
        self._thread.join(timeout=5)

    def seen(self, host: str) -> Seen | None:
        """The best that was seen for this host: a request counts more than a refused handshake. None: it never came."""
        with self._lock:
            return self._seen.get(host)

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._server.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with client:
            client.settimeout(TIMEOUT_S)
            try:
                head = _read_head(client)
            except OSError:
                return
            match = re.match(rb"CONNECT ([^: ]+):\d+ HTTP/1\.[01]\r\n", head)
            if match is None:
                with contextlib.suppress(OSError):
                    client.sendall(_PAGE)
                return
            host = match.group(1).decode("latin-1").lower()
            agent = _user_agent(head)
            # Before the answer: a tool that breaks off may be gone, and asked about, before its alert has been read here.
            self._note(host, Seen(False, agent, "closed without a request"))
            try:
                client.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
                with self._tls.wrap_socket(client, server_side=True) as tls:
                    # TLS 1.3: a client's alert comes after our side of the handshake is done, hence with the first read.
                    inner = _read_head(tls)
                    self._note(host, Seen(bool(inner), agent or _user_agent(inner), "" if inner else "closed without a request"))
                    if inner:
                        tls.sendall(_PAGE)
            except ssl.SSLError as error:
                self._note(host, Seen(False, agent, (error.reason or "closed").lower().replace("_", " ")))
            except OSError as error:
                self._note(host, Seen(False, agent, error.strerror or "closed"))

    def _note(self, host: str, seen: Seen) -> None:
        with self._lock:
            before = self._seen.get(host)
            if before is None or not before.request:
                self._seen[host] = seen


def examine(
    authority: Authority,
    environment: Callable[[int], Mapping[str, str]],
    *,
    bundle: Path,
    probes: Sequence[Probe] = PROBES,
    run: Run | None = None,
    which: Callable[[str, str | None], str | None] | None = None,
    timeout_s: float = TIMEOUT_S,
    on_result: Callable[[Result], None] | None = None,
) -> list[Result]:
    """Try every probe whose program is on the child's PATH, four at a time; results in the order of `probes`.

    `environment` makes the child's environment for a proxy port (`child_environment`). `on_result` is called as each is known.
    """
    with Listener(authority, [probe.host for probe in probes]) as listener, ThreadPoolExecutor(4) as pool:
        child = environment(listener.port)

        def one(probe: Probe) -> Result:
            result = _examine_one(probe, child, listener.seen, bundle, run or run_program, which or _which, timeout_s)
            if on_result is not None:
                on_result(result)
            return result

        return list(pool.map(one, probes))


def judge(probe: Probe, seen: Seen | None, finished: Finished, child: Mapping[str, str], bundle: Path, program: str | None) -> Result:
    """From what was seen, and only then from how the program ended, to a verdict."""
    known = TOOL_VARIABLES[probe.tool]
    variable = next((name for name in known.trusts if child.get(name)), None)
    if seen is not None and seen.request:
        return Result(probe.tool, Verdict.CAPTURED, variable, known.note, program)
    if seen is not None:
        return Result(probe.tool, Verdict.NOT_TRUSTED, variable, f"{trust_hint(probe.host, known, bundle)} [{seen.refusal}]", program)
    if finished.status == NOT_INSTALLED:
        return Result(probe.tool, Verdict.ABSENT, None, "its library is not installed", program)
    last = next((line.strip() for line in reversed(finished.output.splitlines()) if line.strip()), "")
    if finished.status is None:
        return Result(probe.tool, Verdict.TIMED_OUT, variable, f"nothing reached the proxy in time; {last}", program)
    if finished.status != 0 and not _ASKED.search(finished.output) and probe.host not in finished.output:
        return Result(
            probe.tool, Verdict.FAILED, variable, f"it ended with {finished.status} before it asked for anything: {last}", program
        )
    reason = known.note or "a configuration file of its own may name another proxy"
    return Result(probe.tool, Verdict.BYPASSED, variable, f"nothing reached the proxy: {reason}; it said: {last}", program)


def run_program(arguments: Sequence[str], environment: Mapping[str, str], folder: Path, timeout_s: float) -> Finished:
    """Run in a process group of its own, without standard input; at the time-out the whole group is killed."""
    # A file, not a pipe: a grandchild that left the group could hold a pipe open for ever.
    with tempfile.TemporaryFile() as output:
        try:
            process = subprocess.Popen(
                arguments,
                env=dict(environment),
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        except OSError as error:
            return Finished(NOT_INSTALLED, str(error))
        try:
            status: int | None = process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            status = None
        output.seek(max(0, output.tell() - _OUTPUT_BYTES))
        return Finished(status, output.read(_OUTPUT_BYTES).decode(errors="replace"))


def _examine_one(
    probe: Probe,
    child: Mapping[str, str],
    seen: Callable[[str], Seen | None],
    bundle: Path,
    run: Run,
    which: Callable[[str, str | None], str | None],
    timeout_s: float,
) -> Result:
    program = which(probe.program, child.get("PATH"))
    if program is None:
        return Result(probe.tool, Verdict.ABSENT, None, f"no {probe.program} on PATH")
    with tempfile.TemporaryDirectory(prefix="secondtake-doctor-") as made:
        folder = Path(made)

        def filled(text: str) -> str:
            return text.format(host=probe.host, folder=folder)

        for name, text in probe.files.items():
            (folder / name).write_text(filled(text))
        environment = {**child, **{name: filled(text) for name, text in probe.extra.items()}}
        finished = run([program, *(filled(argument) for argument in probe.arguments)], environment, folder, timeout_s)
    return judge(probe, seen(probe.host), finished, child, bundle, program)


def _which(program: str, path: str | None) -> str | None:
    return shutil.which(program, path=path)


def _read_head(connection: socket.socket) -> bytes:
    """Up to the empty line; what an HTTP/2 client sends first ends in one too. Empty when the client left."""
    head = b""
    while b"\r\n\r\n" not in head and len(head) < _HEAD_BYTES:
        data = connection.recv(4096)
        if not data:
            return b""
        head += data
    return head


def _user_agent(head: bytes) -> str:
    match = re.search(rb"\r\nuser-agent:[ \t]*([^\r\n]*)", head, re.IGNORECASE)
    return match.group(1).decode("latin-1") if match else ""

"""An HTTPS origin on loopback for real clients: files of any size, ranges, uploads, and git over smart HTTP."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import socket
import subprocess
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from random import Random
from ssl import SSLError

from secondtake.harness.provider.certificate import make_identity

MIB = 1024 * 1024

NAMES = ("files.example",)
"""What the origin is called where a proxy leads to it."""


def block(number: int) -> bytes:
    """The `number`th MiB of every file here: no two alike, none compressible, the same each time."""
    return number.to_bytes(8, "big") + _noise()[8:]


@cache
def _noise() -> bytes:
    return Random(7).randbytes(MIB)


@cache
def digest_of(mib: int) -> str:
    """SHA-256 of a file of that many MiB."""
    mix = hashlib.sha256()
    for number in range(mib):
        mix.update(block(number))
    return mix.hexdigest()


def write_file(path: Path, mib: int) -> None:
    """The same file on disk."""
    with path.open("wb") as file:
        for number in range(mib):
            file.write(block(number))


@dataclass
class Origin:
    """What the server does, and what it saw. `/file/N` is a file of N MiB; `/cut/N` breaks off after 40 % the first time."""

    port: int
    ca_pem: bytes
    repositories: Path
    requests: list[str] = field(default_factory=list)
    uploads: list[str] = field(default_factory=list)
    """SHA-256 of each body that was sent here."""

    def route(self, host: str) -> tuple[str, str]:
        """The options that send `host` here."""
        return ("--route", f"{host}=https://127.0.0.1:{self.port}")


@contextlib.contextmanager
def origin(folder: Path) -> Iterator[Origin]:
    """Serve until the block ends. `folder` holds bare repositories, asked for under `/git/`."""
    identity = make_identity(["127.0.0.1", "localhost", *NAMES])
    state = Origin(0, identity.ca_pem, folder)

    class Server(ThreadingHTTPServer):
        daemon_threads = True
        block_on_close = False

        def handle_error(self, request: object, client_address: object) -> None:
            """A client that leaves is what some tests are about."""

    server = Server(("127.0.0.1", 0), type("Handler", (_Handler,), {"state": state}))
    server.socket = identity.context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    state.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield state
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@dataclass
class Tunnels:
    """A proxy of somebody else: takes CONNECT to any host, and leads it to one port on loopback."""

    url: str
    asked: list[str] = field(default_factory=list)


@contextlib.contextmanager
def tunnels(port: int) -> Iterator[Tunnels]:
    """Run one until the block ends."""
    listener = socket.create_server(("127.0.0.1", 0))
    state = Tunnels(f"http://127.0.0.1:{listener.getsockname()[1]}")

    def relay(source: socket.socket, sink: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                sink.sendall(data)
        with contextlib.suppress(OSError):
            sink.shutdown(socket.SHUT_WR)

    def serve(client: socket.socket) -> None:
        with client:
            head = b""
            while b"\r\n\r\n" not in head:
                data = client.recv(1024)
                if not data:
                    return
                head += data
            state.asked.append(head.split(b" ")[1].decode())
            with socket.create_connection(("127.0.0.1", port)) as there:
                client.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
                back = threading.Thread(target=relay, args=(there, client), daemon=True)
                back.start()
                relay(client, there)
                back.join()

    def accept() -> None:
        with contextlib.suppress(OSError):
            while True:
                threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()

    thread = threading.Thread(target=accept, daemon=True)
    thread.start()
    try:
        yield state
    finally:
        # A blocked accept does not notice that its socket is closed; a shutdown wakes it.
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join()


class _Handler(BaseHTTPRequestHandler):
    state: Origin
    protocol_version = "HTTP/1.1"
    timeout = 60

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # the stdlib's signature
        self.state.requests.append(self.requestline)

    def do_GET(self) -> None:
        self._answer()

    def do_HEAD(self) -> None:
        self._answer()

    def do_POST(self) -> None:
        self._answer()

    def do_PUT(self) -> None:
        self._answer()

    def _answer(self) -> None:
        path, _, query = self.path.partition("?")
        if path.startswith("/git/"):
            self._git(path.removeprefix("/git"), query)
        elif self.command in {"POST", "PUT"}:
            mix = hashlib.sha256()
            for piece in self._body():
                mix.update(piece)
            self.state.uploads.append(mix.hexdigest())
            self._small(f"{mix.hexdigest()}\n".encode())
        elif match := re.fullmatch(r"/(file|cut)/(\d+)", path):
            first = self.state.requests.count(self.requestline) == 0
            self._file(int(match[2]), cut=match[1] == "cut" and first)
        else:
            self._small(f"{path}\n".encode())

    def _small(self, body: bytes) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/plain")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def _file(self, mib: int, *, cut: bool) -> None:
        size = mib * MIB
        start, stop, status = 0, size, 200
        asked = re.fullmatch(r"bytes=(\d*)-(\d*)", self.headers.get("Range", ""))
        if asked and (asked[1] or asked[2]):
            status = 206
            start = int(asked[1]) if asked[1] else size - int(asked[2])
            stop = min(size, int(asked[2]) + 1) if asked[1] and asked[2] else size
        self.send_response(status)
        self.send_header("Content-Type", "application/octet-stream")
        self.send_header("Content-Length", str(stop - start))
        self.send_header("Accept-Ranges", "bytes")
        self.send_header("ETag", f'"file-{mib}"')
        self.send_header("Last-Modified", "Mon, 02 Mar 2026 10:00:00 GMT")
        if status == 206:
            self.send_header("Content-Range", f"bytes {start}-{stop - 1}/{size}")
        self.end_headers()
        if self.command == "HEAD":
            return
        stop = size * 2 // 5 if cut else stop
        while start < stop:
            number, offset = divmod(start, MIB)
            piece = block(number)[offset : offset + stop - start]
            self.wfile.write(piece)
            start += len(piece)
        self.close_connection = self.close_connection or cut

    def _git(self, path: str, query: str) -> None:
        """git-http-backend(1) as a CGI program."""
        environ = {
            "PATH": os.environ["PATH"],
            "GIT_PROJECT_ROOT": str(self.state.repositories),
            "GIT_HTTP_EXPORT_ALL": "1",
            "GIT_CONFIG_NOSYSTEM": "1",
            "REMOTE_USER": "person",
            "REQUEST_METHOD": self.command,
            "PATH_INFO": path,
            "QUERY_STRING": query,
            "CONTENT_TYPE": self.headers.get("Content-Type", ""),
            "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
            "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
        }
        ran = subprocess.run(["git", "http-backend"], env=environ, input=b"".join(self._body()), capture_output=True, check=True)
        head, _, body = ran.stdout.partition(b"\r\n\r\n")
        fields = [line.split(": ", 1) for line in head.decode("latin-1").split("\r\n")]
        status = next((value for name, value in fields if name == "Status"), "200 OK")
        self.send_response(int(status[:3]))
        for name, value in fields:
            if name != "Status":
                self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _body(self) -> Iterator[bytes]:
        """The request's body, whichever way it is framed."""
        if self.headers.get("Transfer-Encoding", "").lower() == "chunked":
            while size := int(self.rfile.readline().split(b";")[0], 16):
                yield self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
            return
        left = int(self.headers.get("Content-Length") or 0)
        while left:
            piece = self.rfile.read(min(MIB, left))
            if not piece:
                raise SSLError("the body ended early")
            left -= len(piece)
            yield piece

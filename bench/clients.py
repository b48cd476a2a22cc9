"""Clients through a proxy. Their own cost does not count: only the proxy's process tree is measured."""

from __future__ import annotations

import json
import shutil
import socket
import ssl
import subprocess
import time
from pathlib import Path

import h2.config
import h2.connection
import h2.events

SOURCE = Path(__file__).parent / "load.c"
READ_BYTES = 256 * 1024


def tunnel(proxy_port: int, port: int, *, alpn: str = "http/1.1") -> ssl.SSLSocket:
    """CONNECT to 127.0.0.1:port through the proxy, then TLS; certificates are not checked."""
    raw = socket.create_connection(("127.0.0.1", proxy_port), timeout=60)
    raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    raw.sendall(b"CONNECT 127.0.0.1:%d HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n" % (port, port))
    head = b""
    while b"\r\n\r\n" not in head:
        more = raw.recv(4096)
        if not more:
            raise ConnectionError(f"the proxy hung up in CONNECT: {head!r}")
        head += more
    if b" 200" not in head.split(b"\r\n")[0]:
        raise ConnectionError(f"CONNECT refused: {head!r}")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.set_alpn_protocols([alpn])
    return context.wrap_socket(raw, server_hostname="127.0.0.1")


def compiled(folder: Path) -> Path | None:
    """The load generator, or None where there is no compiler or no OpenSSL headers."""
    built = folder / "load"
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        return None
    made = subprocess.run([compiler, "-O2", "-o", built, SOURCE, "-lssl", "-lcrypto", "-lpthread"], capture_output=True, check=False)
    return built if made.returncode == 0 else None


def load(
    program: Path | None,
    proxy_port: int,
    port: int,
    *,
    requests: int,
    connections: int = 1,
    prefix: str = "/item/",
    paths: int = 1,
    reconnect: bool = False,
) -> float:
    """Send requests over HTTP/1.1, one after the other on each connection; return the seconds it took. Any failure raises."""
    if program is None:
        return _load_here(proxy_port, port, requests=requests, prefix=prefix, paths=paths, reconnect=reconnect)
    arguments = [proxy_port, "127.0.0.1", port, connections, requests, prefix, paths, int(reconnect)]
    ran = subprocess.run([program, *map(str, arguments)], capture_output=True, text=True, check=False, timeout=600)
    if ran.returncode != 0:
        raise RuntimeError(f"load failed: {ran.stdout}{ran.stderr}")
    return float(json.loads(ran.stdout)["seconds"])


def _load_here(proxy_port: int, port: int, *, requests: int, prefix: str, paths: int, reconnect: bool) -> float:
    """The same on one connection, where nothing can be compiled."""
    begin = time.monotonic()
    connection: ssl.SSLSocket | None = None
    for number in range(requests):
        if connection is None:
            connection = tunnel(proxy_port, port)
        get(connection, port, f"{prefix}{number % paths}")
        if reconnect:
            connection.close()
            connection = None
    return time.monotonic() - begin


def get(connection: ssl.SSLSocket, port: int, path: str) -> int:
    """Ask for `path`; read and drop a body framed by Content-Length; return its size."""
    connection.sendall(b"GET %s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nUser-Agent: load/1\r\nAccept: */*\r\n\r\n" % (path.encode(), port))
    buffer = b""
    while b"\r\n\r\n" not in buffer:
        buffer += _some(connection)
    head, _, body = buffer.partition(b"\r\n\r\n")
    if b" 200 " not in head.split(b"\r\n")[0] + b" ":
        raise RuntimeError(f"{path}: {head!r}")
    lengths = [line.split(b":")[1] for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
    size = int(lengths[0])
    got = len(body)
    while got < size:
        got += len(_some(connection))
    return size


def lags(proxy_port: int, port: int, *, events: int, gap_ms: int) -> list[float]:
    """Read a stream of events; return how long each was under way, in microseconds. Both ends share one monotonic clock."""
    connection = tunnel(proxy_port, port)
    ask = f"GET /events/{events}/{gap_ms} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAccept: text/event-stream\r\n\r\n"
    connection.sendall(ask.encode())
    found: list[float] = []
    buffer = b""
    while len(found) < events:
        buffer += _some(connection)
        now = time.monotonic_ns()
        *lines, buffer = buffer.split(b"\n")
        found += [(now - int(line[6:])) / 1000 for line in lines if line.startswith(b"data: ")]
    connection.close()
    return found


def load_h2(proxy_port: int, port: int, *, requests: int, paths: int) -> float:
    """Send requests one after the other on one HTTP/2 connection; return the seconds it took."""
    connection = tunnel(proxy_port, port, alpn="h2")
    if connection.selected_alpn_protocol() != "h2":
        raise RuntimeError("the proxy did not offer HTTP/2")
    state = h2.connection.H2Connection(h2.config.H2Configuration(client_side=True, header_encoding=None))
    state.initiate_connection()
    begin = time.monotonic()
    for number in range(requests):
        stream = state.get_next_available_stream_id()
        pseudo = [(b":method", b"GET"), (b":scheme", b"https"), (b":authority", b"127.0.0.1:%d" % port)]
        fields = [*pseudo, (b":path", b"/item/%d" % (number % paths)), (b"user-agent", b"load/1"), (b"accept", b"*/*")]
        state.send_headers(stream, fields, end_stream=True)
        connection.sendall(state.data_to_send())
        ended = False
        while not ended:
            for event in state.receive_data(_some(connection)):
                match event:
                    case h2.events.ResponseReceived() if (b":status", b"200") not in event.headers:
                        raise RuntimeError(f"item {number}: {event.headers!r}")
                    case h2.events.DataReceived():
                        state.acknowledge_received_data(event.flow_controlled_length or 0, stream)
                    case h2.events.StreamEnded():
                        ended = True
                    case h2.events.StreamReset() | h2.events.ConnectionTerminated():
                        raise RuntimeError(f"item {number}: {event!r}")
                    case _:
                        pass
            connection.sendall(state.data_to_send())
    took = time.monotonic() - begin
    connection.close()
    return took


def _some(connection: ssl.SSLSocket) -> bytes:
    data = connection.recv(READ_BYTES)
    if not data:
        raise ConnectionError("the answer was cut short")
    return data

"""A small world on loopback: an origin whose every byte a test decides, the real proxy, and raw HTTP/1 and HTTP/2 clients."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
import struct
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import h2.config
import h2.connection
import h2.events

from secondtake.cassettes.errors import NotStored
from secondtake.cassettes.exchange import Digest, Exchange
from secondtake.cassettes.memory import MemoryCassette
from secondtake.cassettes.player import Options, Player
from secondtake.cassettes.records import End, Record
from secondtake.cassettes.redact import Redactor
from secondtake.proxy.addon import Wire
from secondtake.proxy.authority import Authority
from secondtake.proxy.outcome import Outcome
from secondtake.proxy.policy import Mode, Pace
from secondtake.proxy.server import Proxy
from secondtake.proxy.settings import Settings

type Script = Callable[[asyncio.StreamReader, asyncio.StreamWriter, bytes], Awaitable[None]]

HOST = "origin.example"


class MemoryWriter:
    """A writer that keeps everything in memory; `hold` makes commits wait, `error` makes them fail."""

    def __init__(self) -> None:
        self.exchanges: list[Exchange] = []
        self.bodies: dict[Digest, bytes] = {}
        self.backlog_bytes = 0
        self.error: NotStored | None = None
        self.waiting: list[Callable[[], None]] = []
        self.hold = False
        self.chunks: dict[tuple[int, str], bytearray] = {}

    def write(self, records: tuple[Record, ...]) -> None:
        for record in records:
            data = getattr(record, "data", None)
            if data is not None:
                self.chunks.setdefault((record.seq, str(record.side)), bytearray()).extend(data)  # type: ignore[union-attr]

    def commit(self, end: End, done: Callable[[NotStored | None], None]) -> None:
        def settle() -> None:
            if self.error is None:
                self.exchanges.append(end.exchange)
                self.bodies.update(end.bodies)
                for (seq, side), data in self.chunks.items():
                    if seq == end.exchange.seq:
                        message = end.exchange.request if side == "request" else end.exchange.answer
                        assert message is not None
                        self.bodies[message.body.digest] = bytes(data)
            done(self.error)

        if self.hold:
            self.waiting.append(settle)
        else:
            settle()

    def cassette(self) -> MemoryCassette:
        return MemoryCassette(self.exchanges, self.bodies)


@dataclass
class Origin:
    """Answers by path; counts what reaches it."""

    scripts: dict[bytes, Script]
    port: int = 0
    connections: int = 0
    heads: list[bytes] = field(default_factory=list)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                self.heads.append(head)
                path = head.split(b" ")[1].split(b"?")[0]
                await self.scripts[path](reader, writer, head)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError, ssl.SSLError):
            pass
        finally:
            with contextlib.suppress(Exception):
                writer.close()


async def until(condition: Callable[[], object]) -> None:
    """Wait for something another task brings about."""
    while not condition():  # noqa: ASYNC110 - what is waited for has no event of its own
        await asyncio.sleep(0.001)


def reset(writer: asyncio.StreamWriter) -> None:
    """End with RST: an abort alone is a FIN where nothing is unread."""
    writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


def reply(raw: bytes) -> Script:
    """Answer with these bytes, and keep the connection."""

    async def script(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter, _head: bytes) -> None:
        writer.write(raw)

    return script


def reply_and_close(raw: bytes) -> Script:
    """Answer with these bytes and close in good order."""

    async def script(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter, _head: bytes) -> None:
        writer.write(raw)
        await writer.drain()
        writer.close()

    return script


def simple(body: bytes, *, status: bytes = b"200 OK", fields: bytes = b"") -> bytes:
    """A whole response with a length."""
    return b"HTTP/1.1 %s\r\nContent-Length: %d\r\n%s\r\n%s" % (status, len(body), fields, body)


@dataclass
class Got:
    """What a client received: heads and body as raw bytes, the times of each read, and how it ended."""

    raw: bytes = b""
    reads: list[tuple[float, bytes]] = field(default_factory=list)
    ended: str = "open"

    @property
    def head(self) -> bytes:
        return self.raw.partition(b"\r\n\r\n")[0]

    @property
    def body(self) -> bytes:
        return self.raw.partition(b"\r\n\r\n")[2]

    @property
    def status(self) -> int:
        return int(self.raw.split(b" ", 2)[1])


class Client:
    """A raw HTTP/1 client inside a tunnel (or without one)."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def until(self, mark: bytes) -> bytes:
        return await self.reader.readuntil(mark)

    async def take(self, size: int) -> bytes:
        return await self.reader.readexactly(size)

    async def rest(self) -> Got:
        """Read until the other side ends it."""
        got = Got()
        start = time.monotonic()
        try:
            while data := await self.reader.read(65536):
                got.reads.append((time.monotonic() - start, data))
                got.raw += data
            got.ended = "closed"
        except ConnectionError:
            got.ended = "reset"
        return got

    async def response(self, *, head_only: bool = False) -> Got:
        """Read one response by its own framing."""
        head = await self.until(b"\r\n\r\n")
        got = Got(head)
        lower = head.lower()
        if head_only or lower.startswith((b"http/1.1 204", b"http/1.1 304", b"http/1.1 1")):
            return got
        if b"transfer-encoding: chunked" in lower:
            body = b""
            while True:
                size = int((await self.until(b"\r\n")).split(b";")[0], 16)
                if size == 0:
                    got.raw += body
                    trailer = await self.until(b"\r\n")
                    while trailer != b"\r\n":
                        got.reads.append((-1, trailer))
                        trailer = await self.until(b"\r\n")
                    return got
                body += await self.take(size)
                got.reads.append((time.monotonic(), body))
                await self.take(2)
        length = next((int(line.split(b":")[1]) for line in lower.split(b"\r\n") if line.startswith(b"content-length:")), 0)
        got.raw += await self.take(length)
        return got

    async def close(self) -> None:
        """Close in good order, or, where the other side has more to send than was read, without waiting for it."""
        self.writer.close()
        try:
            await asyncio.wait_for(self.writer.wait_closed(), 0.2)
        except (TimeoutError, OSError):
            self.writer.transport.abort()


class World:
    """An origin, a certificate authority for each side, and a proxy in whichever mode a test starts."""

    def __init__(self, directory: Path, scripts: dict[bytes, Script], *, tls: bool = True) -> None:
        now = datetime.now(UTC)
        self.authority = Authority.create(directory / "agent", now=now)
        self.world_authority = Authority.create(directory / "world", now=now)
        self.origin = Origin(scripts)
        self.tls = tls
        leaf = directory / "leaf.pem"
        leaf.write_bytes(self.world_authority.leaf([HOST, "127.0.0.1"]).pem)
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.load_cert_chain(leaf)
        self._server: asyncio.Server | None = None
        self.writer = MemoryWriter()
        self.redactor = Redactor(key=b"k" * 32)
        self.proxy: Proxy | None = None
        self._clients: list[Client] = []
        self.resolved: list[str] = []
        self._began = time.monotonic_ns()

    async def __aenter__(self) -> World:
        self._server = await asyncio.start_server(self.origin.serve, "127.0.0.1", 0, limit=1 << 20, ssl=self._context if self.tls else None)
        self.origin.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        for client in self._clients:
            await client.close()
        if self.proxy is not None:
            await self.proxy.stop(0)
        assert self._server is not None
        self._server.close()

    def now_us(self) -> int:
        return (time.monotonic_ns() - self._began) // 1000

    @property
    def wire(self) -> Wire:
        assert self.proxy is not None
        return self.proxy.wire

    async def record(self, **settings: Any) -> Wire:
        """Start recording. Every name resolves to loopback, where the origin listens."""
        given: dict[str, Any] = {"loopback": True, **settings}
        made = Settings(Mode.RECORD, **{"trust": self.world_authority.ca_path, **given})
        wire = Wire(
            made,
            self.authority,
            redactor=self.redactor,
            now_us=self.now_us,
            now_s=lambda: 1_800_000_000,
            writer=self.writer,  # type: ignore[arg-type]  # as much of a writer as the wire uses
            resolver=self._resolve,
        )
        return await self._start(wire)

    async def _resolve(self, host: str, port: int) -> list[str]:
        self.resolved.append(host)
        return ["127.0.0.1"]

    async def replay(self, *, options: Options | None = None, **settings: Any) -> Wire:
        """Stop what runs, and play what was recorded so far."""
        cassette = self.writer.cassette()
        made = Settings(Mode.REPLAY, trust=self.world_authority.ca_path, **settings)
        player = Player(cassette, self.redactor, options=options)
        hosts = frozenset(row.host for row in cassette.rows)
        return await self._start(
            Wire(
                made,
                self.authority,
                redactor=self.redactor,
                now_us=self.now_us,
                now_s=lambda: 1_800_000_000,
                player=player,
                known_hosts=hosts,
            )
        )

    async def _start(self, wire: Wire) -> Wire:
        await self.stop()
        self.proxy = Proxy(wire.settings, wire)
        await self.proxy.start()
        return wire

    async def stop(self, grace_s: float = 2.0) -> Outcome | None:
        if self.proxy is None:
            return None
        outcome = await self.proxy.stop(grace_s)
        self.proxy = None
        return outcome

    async def plain(self) -> Client:
        """A connection to the proxy itself."""
        assert self.proxy is not None
        client = Client(*await asyncio.open_connection("127.0.0.1", self.proxy.port, limit=1 << 20))
        self._clients.append(client)
        return client

    async def tunnel(self, host: str = HOST, port: int | None = None, *, fields: bytes = b"") -> Client:
        """A tunnel with nothing in it yet."""
        port = port or self.origin.port
        client = await self.plain()
        await client.send(b"CONNECT %s:%d HTTP/1.1\r\nHost: %s:%d\r\n%s\r\n" % (host.encode(), port, host.encode(), port, fields))
        head = await client.until(b"\r\n\r\n")
        assert b" 200 " in head, head
        return client

    def context(self, *alpn: str) -> ssl.SSLContext:
        context = ssl.create_default_context(cafile=str(self.authority.ca_path))
        if alpn:
            context.set_alpn_protocols(list(alpn))
        return context

    async def client(
        self, host: str = HOST, port: int | None = None, *, sni: str | None = None, alpn: tuple[str, ...] = ("http/1.1",)
    ) -> Client:
        """TLS inside a tunnel."""
        client = await self.tunnel(host, port)
        await client.writer.start_tls(self.context(*alpn), server_hostname=sni or host)
        return client

    async def get(self, path: str, *, method: str = "GET", fields: bytes = b"", body: bytes = b"", host: str = HOST) -> Got:
        """One request on a connection of its own, read by its framing."""
        client = await self.client(host)
        length = b"Content-Length: %d\r\n" % len(body) if body else b""
        await client.send(
            b"%s %s HTTP/1.1\r\nHost: %s\r\n%s%s\r\n%s" % (method.encode(), path.encode(), host.encode(), fields, length, body)
        )
        got = await client.response(head_only=method == "HEAD")
        await client.close()
        return got

    async def raw(self, request: bytes) -> Got:
        """These bytes on a connection of their own, and everything that comes back until it ends."""
        client = await self.client()
        await client.send(request)
        got = await client.rest()
        await client.close()
        return got

    async def h2(self, *, window: int | None = None) -> H2Client:
        client = await self.client(alpn=("h2",))
        made = H2Client(client, window)
        await made.start()
        return made


class H2Client:
    """A small HTTP/2 client that keeps every event."""

    def __init__(self, client: Client, window: int | None) -> None:
        self.client = client
        self.connection = h2.connection.H2Connection(h2.config.H2Configuration(client_side=True, header_encoding=False))
        self.window = window
        self.events: list[Any] = []
        self.times: list[float] = []
        self.acknowledge = True

    async def start(self) -> None:
        if self.window is not None:
            self.connection.local_settings.initial_window_size = self.window
            self.connection.local_settings.acknowledge()  # else the default is what is sent
        self.connection.initiate_connection()
        await self.flush()

    async def flush(self) -> None:
        data = self.connection.data_to_send()
        if data:
            await self.client.send(data)

    async def request(
        self, path: str, *, method: str = "GET", body: bytes = b"", fields: tuple[tuple[bytes, bytes], ...] = (), host: str = HOST
    ) -> int:
        stream = self.connection.get_next_available_stream_id()
        head = [(b":method", method.encode()), (b":scheme", b"https"), (b":path", path.encode()), (b":authority", host.encode()), *fields]
        self.connection.send_headers(stream, head, end_stream=not body)
        if body:
            self.connection.send_data(stream, body, end_stream=True)
        await self.flush()
        return stream

    async def read(self) -> bool:
        """Take one read's worth of events; False at the end of the connection."""
        data = await self.client.reader.read(65536)
        if not data:
            return False
        for event in self.connection.receive_data(data):
            self.events.append(event)
            self.times.append(time.monotonic())
            if isinstance(event, h2.events.DataReceived) and self.acknowledge:
                self.connection.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
        await self.flush()
        return True

    async def finished(self, *streams: int) -> None:
        """Read until each of these streams has ended or was reset."""
        ends = (h2.events.StreamEnded, h2.events.StreamReset)
        while not set(streams) <= {event.stream_id for event in self.events if isinstance(event, ends)}:
            assert await self.read(), "the connection ended first"

    def of(self, stream: int, kind: type[Any]) -> list[Any]:
        return [event for event in self.events if isinstance(event, kind) and event.stream_id == stream]

    def body(self, stream: int) -> bytes:
        return b"".join(event.data for event in self.of(stream, h2.events.DataReceived))

    def fields(self, stream: int) -> list[tuple[bytes, bytes]]:
        return list(self.of(stream, h2.events.ResponseReceived)[0].headers)


@contextlib.asynccontextmanager
async def world(directory: Path, scripts: dict[bytes, Script], *, tls: bool = True) -> AsyncIterator[World]:
    async with World(directory, scripts, tls=tls) as made:
        yield made


PACES = (Pace.REAL, Pace.FAST)

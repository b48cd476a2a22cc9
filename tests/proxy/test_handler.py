"""A slow reader slows what is read for it, in both modes and on both protocols: nobody holds a large body."""

from __future__ import annotations

import asyncio
import hashlib
import socket
from collections.abc import Callable
from pathlib import Path

import h2.events
import pytest
from mitmproxy.connection import ConnectionState

from secondtake.cassettes.errors import NotStored
from secondtake.cassettes.exchange import Ending
from secondtake.cassettes.records import End, Record
from secondtake.proxy import live
from tests.proxy.world import HOST, H2Client, MemoryWriter, World, world

BLOCK = bytes(range(256)) * 256
BLOCKS = 1024
"""64 MiB in all."""

AHEAD_BYTES = 32 * 1024 * 1024
"""How far the origin may be ahead of the client: four kernel socket buffers (up to 6 MiB each, grown by the kernel) and ours."""


class Flow:
    """An origin that counts what it could send, and a client that counts what it has taken."""

    def __init__(self) -> None:
        self.sent = 0
        self.taken = 0
        self.furthest = 0

    async def big(self, _reader: asyncio.StreamReader, writer: asyncio.StreamWriter, _head: bytes) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % (len(BLOCK) * BLOCKS))
        for _ in range(BLOCKS):
            writer.write(BLOCK)
            await writer.drain()
            self.sent += len(BLOCK)
            self.furthest = max(self.furthest, self.sent - self.taken)


class CountingWriter(MemoryWriter):
    """Keeps digests instead of bodies, so that only the wire's own memory is there to be seen."""

    def write(self, records: tuple[Record, ...]) -> None:
        """Nothing of a large body is kept."""

    def commit(self, end: End, done: Callable[[NotStored | None], None]) -> None:
        self.exchanges.append(end.exchange)
        done(None)


async def slowly(client: H2Client, stream: int, flow: Flow, digest: hashlib._Hash) -> None:
    """Read with small reads and a window that opens only as they are taken."""
    ended = False
    while not ended:
        data = await client.client.reader.read(16_384)
        assert data
        for event in client.connection.receive_data(data):
            if isinstance(event, h2.events.DataReceived):
                flow.taken += len(event.data)
                digest.update(event.data)
                client.connection.acknowledge_received_data(event.flow_controlled_length, stream)
            ended = ended or isinstance(event, h2.events.StreamEnded)
        await client.flush()


async def test_an_http2_client_with_a_64_kib_window_pauses_upstream(tmp_path: Path) -> None:
    """T-R11: record, HTTP/2, a 64 KiB window: the origin is never far ahead of the client, and every byte arrives."""
    flow = Flow()
    async with world(tmp_path, {b"/big": flow.big}) as w:
        w.writer = CountingWriter()
        wire = await w.record()
        client = await w.h2(window=65_535)
        digest = hashlib.sha256()
        stream = await client.request("/big")
        await slowly(client, stream, flow, digest)
        assert digest.hexdigest() == hashlib.sha256(BLOCK * BLOCKS).hexdigest()
        assert flow.furthest < AHEAD_BYTES
        assert not any(handler.held for handler in wire.handlers)
        assert w.writer.exchanges[0].answer is not None
        assert w.writer.exchanges[0].answer.body.size_bytes == len(BLOCK) * BLOCKS


async def test_an_http1_client_that_stops_reading_stops_the_origin(tmp_path: Path) -> None:
    """T-R11: record, HTTP/1: what is sent on waits for the client's socket."""
    flow = Flow()
    async with world(tmp_path, {b"/big": flow.big}) as w:
        w.writer = CountingWriter()
        await w.record()
        client = await w.client()
        await client.send(b"GET /big HTTP/1.1\r\nHost: %s\r\n\r\n" % HOST.encode())
        await client.until(b"\r\n\r\n")
        before = -1
        while before != flow.sent:  # until the origin can send nothing more
            before = flow.sent
            await asyncio.sleep(0.2)
        assert flow.sent < AHEAD_BYTES < len(BLOCK) * BLOCKS
        while flow.taken < len(BLOCK) * BLOCKS:
            flow.taken += len(await client.reader.read(1 << 20))


@pytest.mark.parametrize("http2", [False, True])
async def test_replay_reads_a_body_no_faster_than_it_is_taken(tmp_path: Path, http2: bool) -> None:
    """T-R11: replay reads the stored body in parts, as the client takes them."""
    flow = Flow()
    async with world(tmp_path, {b"/big": flow.big}) as w:
        await w.record()
        got = await w.get("/big")
        assert len(got.body) == len(BLOCK) * BLOCKS
        await w.replay()
        read = _counting(w)
        if http2:
            client = await w.h2(window=65_535)
            stream = await client.request("/big")
            while not client.of(stream, h2.events.DataReceived):
                await client.read()
                client.acknowledge = False
            await asyncio.sleep(0.2)
        else:
            plain = await w.client()
            await plain.send(b"GET /big HTTP/1.1\r\nHost: %s\r\n\r\n" % HOST.encode())
            await plain.until(b"\r\n\r\n")
            await asyncio.sleep(0.2)
        assert 0 < read[0] < AHEAD_BYTES < len(BLOCK) * BLOCKS


def _counting(w: World) -> list[int]:
    """Count the bytes the player's bodies give out."""
    read = [0]
    player = w.wire._player
    assert player is not None
    found = player.catalogue.body

    class Counted:
        def __init__(self, source: object) -> None:
            self.source = source
            self.size_bytes: int = source.size_bytes  # type: ignore[attr-defined]

        def read(self, offset: int, size: int) -> bytes:
            data: bytes = self.source.read(offset, size)  # type: ignore[attr-defined]
            read[0] += len(data)
            return data

    player.catalogue.body = lambda answer: Counted(found(answer))  # type: ignore[method-assign]
    return read


async def test_the_writer_far_behind_holds_the_streams(tmp_path: Path) -> None:
    """T-B10: what is queued for the disk is bounded; the stream goes on when the writer has caught up."""
    flow = Flow()
    async with world(tmp_path, {b"/big": flow.big}) as w:
        w.writer = CountingWriter()
        await w.record()
        client = await w.client()
        await client.send(b"GET /big HTTP/1.1\r\nHost: %s\r\n\r\n" % HOST.encode())
        await client.until(b"\r\n\r\n")
        w.writer.backlog_bytes = 1 << 30
        first = await client.reader.read(1 << 20)
        before = -1
        while before != flow.sent:
            before = flow.sent
            await asyncio.sleep(0.2)
        assert flow.sent < len(BLOCK) * BLOCKS
        w.writer.backlog_bytes = 0
        taken = len(first)
        while taken < len(BLOCK) * BLOCKS:
            taken += len(await client.reader.read(1 << 20))


async def test_a_client_that_left_is_drained_within_bounds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """T-B6: upstream is read on for so many bytes; the prefix survives as client-left."""
    monkeypatch.setattr(live, "DRAIN_BYTES", 1024 * 1024)
    flow = Flow()
    async with world(tmp_path, {b"/big": flow.big}) as w:
        await w.record()
        client = await w.client()
        await client.send(b"GET /big HTTP/1.1\r\nHost: %s\r\n\r\n" % HOST.encode())
        await client.until(b"\r\n\r\n")
        client.writer.transport.abort()
        await w.stop(5)
        (exchange,) = w.writer.exchanges
        assert exchange.ended is Ending.CLIENT_LEFT
        assert exchange.answer is not None
        assert 1024 * 1024 < exchange.answer.body.size_bytes < len(BLOCK) * BLOCKS


async def test_a_silent_model_is_not_cut(tmp_path: Path) -> None:
    """T-R4: eleven minutes without a byte; the watchdog's limit is far above them."""
    release = asyncio.Event()

    async def script(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter, _head: bytes) -> None:
        await release.wait()
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")

    async with world(tmp_path, {b"/slow": script}) as w:
        wire = await w.record()
        client = await w.client()
        await client.send(b"GET /slow HTTP/1.1\r\nHost: %s\r\n\r\n" % HOST.encode())
        while not w.origin.heads:  # noqa: ASYNC110 - the origin has no event for it
            await asyncio.sleep(0.001)
        (handler,) = wire.handlers
        handler.timeout_watchdog.last_activity -= 660
        assert handler.timeout_watchdog.timeout > 660
        release.set()
        assert (await client.response()).body == b"ok"


@pytest.mark.parametrize("mode", ["record", "replay"])
@pytest.mark.parametrize("tls", [False, True])
@pytest.mark.parametrize("count", [1, 2])
async def test_a_client_that_only_ends_its_side_gets_its_answers(tmp_path: Path, mode: str, tls: bool, count: int) -> None:
    """Issue 2: `printf … | nc -N`: whole requests, then shutdown; the answers come, however slowly, then the connection ends."""
    release = asyncio.Event()
    body = BLOCK * 64  # more than any buffer between here and there holds

    async def script(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter, _head: bytes) -> None:
        await release.wait()
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body))
        writer.write(body)

    async with world(tmp_path, {b"/slow": script}, tls=tls) as w:
        await w.record()
        if mode == "replay":
            release.set()
            for _ in range(count):
                if tls:
                    await w.get("/slow")
                else:
                    other = await w.plain()
                    await other.send(b"GET http://%s:%d/slow HTTP/1.1\r\nHost: %s\r\n\r\n" % (HOST.encode(), w.origin.port, HOST.encode()))
                    await other.response()
                    await other.close()
            await w.replay()
        raw: asyncio.BaseTransport
        if tls:
            client = await w.tunnel()
            raw = client.writer.transport
            await client.writer.start_tls(w.context("http/1.1"), server_hostname=HOST)
            target = b"/slow"
        else:
            client = await w.plain()
            raw = client.writer.transport
            target = b"http://%s:%d/slow" % (HOST.encode(), w.origin.port)
        await client.send((b"GET %s HTTP/1.1\r\nHost: %s\r\n\r\n" % (target, HOST.encode())) * count)
        raw.get_extra_info("socket").shutdown(socket.SHUT_WR)
        if mode == "record":
            (handler,) = w.wire.handlers
            reader = handler.transports[handler.client].reader
            assert reader is not None
            while not (w.origin.heads and reader.at_eof()):  # type: ignore[union-attr]  # noqa: ASYNC110 - no event for it
                await asyncio.sleep(0.001)
            release.set()
        for _ in range(count):
            assert (await client.response()).body == body
        assert (await client.rest()).raw == b""
        if mode == "record":
            assert [exchange.ended for exchange in w.writer.exchanges] == [Ending.COMPLETE] * count
            assert not any(exchange.notes for exchange in w.writer.exchanges)


async def test_a_client_that_ends_its_side_and_then_leaves_has_left(tmp_path: Path) -> None:
    """T-B6: the answer is waited for only as long as somebody holds the other end."""
    release = asyncio.Event()

    async def script(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter, _head: bytes) -> None:
        await release.wait()
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")

    async with world(tmp_path, {b"/slow": script}, tls=False) as w:
        wire = await w.record()
        client = await w.plain()
        await client.send(b"GET http://%s:%d/slow HTTP/1.1\r\nHost: %s\r\n\r\n" % (HOST.encode(), w.origin.port, HOST.encode()))
        client.writer.write_eof()
        while not w.origin.heads:  # noqa: ASYNC110 - the origin has no event for it
            await asyncio.sleep(0.001)
        (handler,) = wire.handlers
        client.writer.transport.abort()
        while handler.client.state & ConnectionState.CAN_READ:  # noqa: ASYNC110 - nor has the handler
            await asyncio.sleep(0.01)
        release.set()
        await w.stop()
        (exchange,) = w.writer.exchanges
        assert exchange.ended is Ending.COMPLETE
        assert [note for note in exchange.notes if note.startswith("client-left")]


async def test_a_request_that_is_cut_by_the_end_of_a_side_is_not_waited_for(tmp_path: Path) -> None:
    """Half a request and an end: nothing more of it can come."""

    async def script(reader: asyncio.StreamReader, _writer: asyncio.StreamWriter, _head: bytes) -> None:
        await reader.read()

    async with world(tmp_path, {b"/up": script}, tls=False) as w:
        await w.record()
        client = await w.plain()
        head = b"POST http://%s:%d/up HTTP/1.1\r\nHost: %s\r\nContent-Length: 10\r\n\r\n" % (HOST.encode(), w.origin.port, HOST.encode())
        await client.send(head + b"half")
        while not w.origin.heads:  # noqa: ASYNC110 - the origin has no event for it
            await asyncio.sleep(0.001)
        client.writer.write_eof()
        assert (await client.rest()).raw == b""
        assert w.writer.exchanges[0].ended is Ending.CLIENT_LEFT

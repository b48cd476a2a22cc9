"""An origin that speaks HTTP/2: trailers, gRPC, interim heads, resets, and clients of either version."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Callable
from functools import partial
from pathlib import Path

import h2.config
import h2.connection
import h2.events
import pytest
from hyperframe.frame import GoAwayFrame
from mitmproxy.connection import ConnectionState

from secondtake.cassettes.exchange import Ending
from secondtake.proxy.http2 import OriginSide
from tests.proxy.world import HOST, H2Client, World, reply, simple, until, world

type Fields = list[tuple[bytes, bytes]]
type Answer = Callable[[h2.connection.H2Connection, int, Fields, bytes], None]


def grpc(connection: h2.connection.H2Connection, stream: int, _fields: Fields, body: bytes) -> None:
    """A unary gRPC answer: head, one message, trailers."""
    connection.send_headers(stream, [(b":status", b"200"), (b"content-type", b"application/grpc")])
    connection.send_data(stream, body)
    connection.send_headers(stream, [(b"grpc-status", b"0"), (b"grpc-message", b"")], end_stream=True)


def only_trailers(connection: h2.connection.H2Connection, stream: int, _fields: Fields, _body: bytes) -> None:
    """A gRPC error: everything in one head."""
    connection.send_headers(stream, [(b":status", b"200"), (b"content-type", b"application/grpc"), (b"grpc-status", b"5")], end_stream=True)


def hints(connection: h2.connection.H2Connection, stream: int, _fields: Fields, _body: bytes) -> None:
    """103, then 200."""
    connection.send_headers(stream, [(b":status", b"103"), (b"link", b"</a.css>")])
    connection.send_headers(stream, [(b":status", b"200"), (b"content-length", b"4")])
    connection.send_data(stream, b"done", end_stream=True)


def broken(connection: h2.connection.H2Connection, stream: int, _fields: Fields, _body: bytes) -> None:
    """Two pieces and RST_STREAM."""
    connection.send_headers(stream, [(b":status", b"200"), (b"content-type", b"text/event-stream")])
    connection.send_data(stream, b"data: 0\n\n")
    connection.send_data(stream, b"data: 1\n\n")
    connection.reset_stream(stream, 2)


def echo(connection: h2.connection.H2Connection, stream: int, fields: Fields, body: bytes) -> None:
    """What arrived, as the body."""
    shown = b"\n".join(b"%s: %s" % field for field in fields) + b"\n\n" + body
    connection.send_headers(stream, [(b":status", b"200"), (b"x-two", b"1"), (b"x-two", b"2")])
    connection.send_data(stream, shown, end_stream=True)


def gradual(connection: h2.connection.H2Connection, stream: int, _fields: Fields, _body: bytes) -> None:
    """Half an answer, and a farewell: what is on its way still ends (RFC 9113 6.8)."""
    connection.send_headers(stream, [(b":status", b"200"), (b"content-type", b"text/event-stream")])
    connection.send_data(stream, b"data: 0\n\n")
    connection._data_to_send += GoAwayFrame(0, last_stream_id=stream, error_code=0).serialize()
    connection.send_data(stream, b"data: 1\n\n", end_stream=True)


def thrown_out(connection: h2.connection.H2Connection, stream: int, _fields: Fields, _body: bytes) -> None:
    """Data, and in the same write a farewell with an error."""
    connection.send_headers(stream, [(b":status", b"200")])
    connection.send_data(stream, b"abc")
    connection.close_connection(error_code=2)


def took(connection: h2.connection.H2Connection, stream: int, _fields: Fields, _body: bytes) -> None:
    """Says that it has the upload."""
    connection.send_headers(stream, [(b":status", b"200")])
    connection.send_data(stream, b"took it", end_stream=True)


def big(connection: h2.connection.H2Connection, stream: int, _fields: Fields, _body: bytes) -> None:
    """More than any window holds; `serve` sends the rest as there is room."""
    connection.send_headers(stream, [(b":status", b"200")])


ANSWERS: dict[bytes, Answer] = {
    b"/grpc": grpc,
    b"/error": only_trailers,
    b"/hints": hints,
    b"/broken": broken,
    b"/echo": echo,
    b"/gradual": gradual,
    b"/thrown-out": thrown_out,
    b"/big": big,
    b"/stuck": took,
}


def refuse(connection: h2.connection.H2Connection, stream: int) -> None:
    """A final answer while the request is under way."""
    connection.send_headers(stream, [(b":status", b"413")])
    connection.send_data(stream, b"no", end_stream=True)


async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, go_on: asyncio.Event | None = None) -> None:
    """One HTTP/2 connection. With `go_on`, what is sent to /stuck is given no window until it is set."""
    connection = h2.connection.H2Connection(h2.config.H2Configuration(client_side=False, header_encoding=False))
    connection.initiate_connection()
    writer.write(connection.data_to_send())
    heads: dict[int, Fields] = {}
    bodies: dict[int, bytes] = {}
    unsent: dict[int, int] = {}
    untaken: dict[int, int] = {}

    async def taking() -> None:
        assert go_on is not None
        await go_on.wait()
        for stream_id, size in untaken.items():
            connection.acknowledge_received_data(size, stream_id)
        writer.write(connection.data_to_send())

    task = asyncio.ensure_future(taking()) if go_on is not None else None
    with contextlib.suppress(ConnectionError, ssl.SSLError):
        while data := await reader.read(65536):
            for event in connection.receive_data(data):
                if isinstance(event, h2.events.RequestReceived):
                    heads[event.stream_id] = [(bytes(name), bytes(value)) for name, value in event.headers]
                    bodies[event.stream_id] = b""
                    if dict(heads[event.stream_id])[b":path"] == b"/early":
                        refuse(connection, event.stream_id)
                elif isinstance(event, h2.events.DataReceived):
                    if go_on is None or dict(heads[event.stream_id])[b":path"] != b"/stuck":
                        bodies[event.stream_id] += event.data
                    elif not go_on.is_set():
                        untaken[event.stream_id] = untaken.get(event.stream_id, 0) + event.flow_controlled_length
                        continue
                    connection.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
                elif isinstance(event, h2.events.StreamEnded):
                    fields = heads[event.stream_id]
                    ANSWERS[dict(fields)[b":path"]](connection, event.stream_id, fields, bodies[event.stream_id])
                    if dict(fields)[b":path"] == b"/big":
                        unsent[event.stream_id] = 8_000_000
            for stream_id in list(unsent):
                while room := min(connection.local_flow_control_window(stream_id), connection.max_outbound_frame_size, unsent[stream_id]):
                    connection.send_data(stream_id, b"z" * room)
                    unsent[stream_id] -= room
                if not unsent[stream_id]:
                    connection.end_stream(stream_id)
                    del unsent[stream_id]
            writer.write(connection.data_to_send())
            await writer.drain()
    if task is not None:
        task.cancel()
    writer.close()


@contextlib.asynccontextmanager
async def http2_world(directory: Path, go_on: asyncio.Event | None = None) -> AsyncIterator[World]:
    """A world whose origin speaks HTTP/2 only."""
    async with world(directory, {}) as w:
        leaf = directory / "leaf2.pem"
        leaf.write_bytes(w.world_authority.leaf([HOST]).pem)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(leaf)
        context.set_alpn_protocols(["h2"])
        server = await asyncio.start_server(partial(serve, go_on=go_on), "127.0.0.1", 0, ssl=context)
        w.origin.port = server.sockets[0].getsockname()[1]
        yield w
        await w.stop(0)
        server.close()


@pytest.mark.parametrize("path", ["/grpc", "/error"])
async def test_grpc_keeps_its_trailers(tmp_path: Path, path: str) -> None:
    """T-H4, T-C5: a unary call with grpc-status in the trailers, and one that has nothing but its head."""
    async with http2_world(tmp_path) as w:
        await w.record()
        for mode in ("record", "replay"):
            if mode == "replay":
                await w.replay()
            client = await w.h2()
            stream = await client.request(
                path, method="POST", body=b"\0\0\0\0\2hi", fields=((b"content-type", b"application/grpc"), (b"te", b"trailers"))
            )
            await client.finished(stream)
            if path == "/grpc":
                assert client.body(stream) == b"\0\0\0\0\2hi"
                (trailers,) = client.of(stream, h2.events.TrailersReceived)
                assert (b"grpc-status", b"0") in list(trailers.headers)
            else:
                assert (b"grpc-status", b"5") in client.fields(stream)
        answer = w.writer.exchanges[0].answer
        assert answer is not None
        assert answer.protocol == "HTTP/2.0"


async def test_early_hints_of_an_http2_origin_reach_the_client(tmp_path: Path) -> None:
    """Stock mitmproxy swallows them (its source says so)."""
    async with http2_world(tmp_path) as w:
        await w.record()
        for mode in ("record", "replay"):
            if mode == "replay":
                await w.replay()
            client = await w.h2()
            stream = await client.request("/hints")
            await client.finished(stream)
            (hint,) = client.of(stream, h2.events.InformationalResponseReceived)
            assert (b"link", b"</a.css>") in list(hint.headers)
            assert client.body(stream) == b"done"


async def test_a_reset_stream_is_reset_for_the_client_and_others_go_on(tmp_path: Path) -> None:
    """T-B4: RST_STREAM from the origin is RST_STREAM to the client, in replay too; the connection lives."""
    async with http2_world(tmp_path) as w:
        await w.record()
        for mode in ("record", "replay"):
            if mode == "replay":
                await w.replay()
            client = await w.h2()
            bad = await client.request("/broken")
            good = await client.request("/hints")
            await client.finished(bad, good)
            assert client.of(bad, h2.events.StreamReset)
            assert client.body(good) == b"done"
            assert client.body(bad) in (b"", b"data: 0\n\n", b"data: 0\n\ndata: 1\n\n")
        broken_one = next(exchange for exchange in w.writer.exchanges if exchange.request.path == b"/broken")
        assert broken_one.ended is Ending.RESET


async def test_a_client_that_resets_its_stream_leaves_the_others(tmp_path: Path) -> None:
    """A cancelled stream ends one exchange, not the connection."""
    async with http2_world(tmp_path) as w:
        await w.record()
        client = await w.h2()
        first = await client.request("/hints")
        client.connection.reset_stream(first, 8)
        await client.flush()
        second = await client.request("/hints")
        await client.finished(second)
        assert client.body(second) == b"done"
        await w.stop(2)
        assert len(w.writer.exchanges) == 2


async def test_an_http2_client_and_origin_keep_every_field(tmp_path: Path) -> None:
    """T-F1, T-F2: pseudo fields, order and duplicates survive; nothing is declared because nothing changed."""
    async with http2_world(tmp_path) as w:
        await w.record()
        client = await w.h2()
        port = w.origin.port
        stream = await client.request(
            "/echo",
            method="POST",
            body=b"abc",
            fields=((b"x-tag", b"1"), (b"x-tag", b"2"), (b"cookie", b"a=1"), (b"cookie", b"b=2")),
            host=f"{HOST}:{port}",
        )
        await client.finished(stream)
        body = client.body(stream)
        assert b":authority: %s:%d" % (HOST.encode(), port) in body
        assert body.count(b"x-tag:") == 2
        assert body.endswith(b"\n\nabc")
        assert [value for name, value in client.fields(stream) if name == b"x-two"] == [b"1", b"2"]
        assert w.writer.exchanges[0].forwarded == ()


async def test_a_farewell_of_the_origin_lets_its_streams_end(tmp_path: Path) -> None:
    """RFC 9113 6.8: origins say goodbye after so many requests or minutes, while an answer streams; it is not cut by us."""
    async with http2_world(tmp_path) as w:
        wire = await w.record()
        client = await w.h2()
        for _ in range(2):
            stream = await client.request("/gradual")
            await client.finished(stream)
            assert client.body(stream) == b"data: 0\n\ndata: 1\n\n"
        assert [exchange.ended for exchange in w.writer.exchanges] == [Ending.COMPLETE] * 2
        (handler,) = wire.handlers
        await until(lambda: len(handler.transports) == 1)


async def test_a_farewell_with_an_error_beside_data_is_a_reset(tmp_path: Path) -> None:
    """T-B4: no fault of ours, and no clean end."""
    async with http2_world(tmp_path) as w:
        wire = await w.record()
        client = await w.h2()
        stream = await client.request("/thrown-out")
        await client.finished(stream)
        assert client.of(stream, h2.events.StreamReset)
        assert wire.outcome.crashed == []


async def test_requests_that_wait_for_a_stream_are_told_when_there_is_none(tmp_path: Path) -> None:
    """T-H3: thirty at once, ten allowed, and the origin breaks off: each is answered, none waits for ever."""
    async with http2_world(tmp_path) as w:
        await w.record()
        client = await w.h2()
        streams = [await client.request("/thrown-out") for _ in range(30)]
        await client.finished(*streams)


async def test_a_farewell_of_the_client_lets_its_streams_end(tmp_path: Path) -> None:
    """A client that will ask for nothing more still wants what it asked for."""
    go_on = asyncio.Event()

    async def slow(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter, _head: bytes) -> None:
        await go_on.wait()
        writer.write(simple(b"late"))

    async with world(tmp_path, {b"/slow": slow}) as w:
        await w.record()
        client = await w.h2()
        stream = await client.request("/slow")
        await client.client.send(GoAwayFrame(0, last_stream_id=0, error_code=0).serialize())
        await until(lambda: w.origin.heads)
        go_on.set()
        await client.finished(stream)
        assert client.body(stream) == b"late"


@pytest.mark.parametrize("last", [True, False])
async def test_an_http2_client_that_hangs_up_loses_nothing_of_what_was_seen(tmp_path: Path, last: bool) -> None:
    """T-B3, T-B6 on HTTP/2: gone at or before the terminal event; upstream is read to its end, within bounds."""
    go_on = asyncio.Event()
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
    events = [b"data: {}\n\n", b"data: [DONE]\n\n"]

    async def script(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter, _head: bytes) -> None:
        seen = events if last else events[:1]
        writer.write(head + b"".join(b"%x\r\n%s\r\n" % (len(event), event) for event in seen))
        await go_on.wait()
        writer.write(b"".join(b"%x\r\n%s\r\n" % (len(event), event) for event in events[len(seen) :]) + b"0\r\n\r\n")

    async with world(tmp_path, {b"/sse": script}) as w:
        wire = await w.record()
        client = await w.h2()
        stream = await client.request("/sse")
        while not client.body(stream).endswith(b"\n\n"):
            await client.read()
        (handler,) = wire.handlers
        client.client.writer.close()
        await until(lambda: not handler.client.state & ConnectionState.CAN_READ)
        go_on.set()
        await until(lambda: w.writer.exchanges)
        (exchange,) = w.writer.exchanges
        assert exchange.answer is not None
        assert w.writer.bodies[exchange.answer.body.digest] == b"".join(events)
        assert exchange.ended is Ending.COMPLETE
        await until(lambda: not wire.handlers)


async def test_streams_cancelled_in_the_read_that_opens_them_harm_no_others(tmp_path: Path) -> None:
    """T-H3: HEADERS and RST_STREAM in one segment, twenty times over, in replay."""
    async with world(tmp_path, {b"/k": reply(simple(b"ok"))}) as w:
        await w.record()
        await w.get("/k")
        wire = await w.replay()
        client = await w.h2()
        kept = []
        for number in range(20):
            stream = client.connection.get_next_available_stream_id()
            head = [(b":method", b"GET"), (b":scheme", b"https"), (b":path", b"/k"), (b":authority", HOST.encode())]
            client.connection.send_headers(stream, head, end_stream=True)
            if number % 2:
                client.connection.reset_stream(stream, 8)
            else:
                kept.append(stream)
        await client.flush()
        await client.finished(*kept)
        assert all(client.body(stream) == b"ok" for stream in kept)
        assert wire.outcome.crashed == []


@pytest.mark.parametrize("origin_http2", [False, True])
async def test_a_stream_nobody_reads_does_not_stop_the_others(tmp_path: Path, origin_http2: bool) -> None:
    """T-R11, T-H3: one download is left unread; another request on the connection is answered, and memory stays bounded."""
    big = simple(b"z" * 8_000_000)
    made = http2_world(tmp_path) if origin_http2 else world(tmp_path, {b"/big": reply(big), b"/hints": reply(simple(b"done"))})
    async with made as w:
        wire = await w.record()
        client = await w.h2(window=65_535)
        client.acknowledge = False
        unread = await client.request("/big")
        while len(client.body(unread)) < 65_535:
            await client.read()
        (handler,) = wire.handlers
        stream = next(iter(handler.layer.child_layer.streams.values()))  # type: ignore[attr-defined]
        await until(lambda: stream.parent.buffered_bytes(stream.stream_id) > 1_000_000)
        client.connection.increment_flow_control_window(1_000_000)
        await client.flush()
        other = await client.request("/hints")
        await client.finished(other)
        assert client.body(other) == b"done"
        assert stream.parent.buffered_bytes(stream.stream_id) < 6_000_000
        client.acknowledge = True
        client.connection.increment_flow_control_window(8_000_000, unread)
        client.connection.increment_flow_control_window(8_000_000)
        await client.flush()
        await client.finished(unread)
        assert len(client.body(unread)) == 8_000_000


class Upload:
    """An HTTP/2 client's upload, sent as its windows allow."""

    def __init__(self, client: H2Client, size: int) -> None:
        self.client = client
        self.left = size
        self.stream = 0

    async def begin(self, path: str) -> int:
        self.stream = self.client.connection.get_next_available_stream_id()
        head = [(b":method", b"POST"), (b":scheme", b"https"), (b":path", path.encode()), (b":authority", HOST.encode())]
        self.client.connection.send_headers(self.stream, head)
        await self.send()
        return self.stream

    async def send(self) -> None:
        """As much as the windows allow now."""
        made = self.client.connection
        while room := min(made.local_flow_control_window(self.stream), made.max_outbound_frame_size, self.left):
            made.send_data(self.stream, b"u" * room, end_stream=room == self.left)
            self.left -= room
        await self.client.flush()


def _waiting(w: World) -> int:
    """Bytes of uploads that wait in the proxy."""
    total = 0
    for handler in w.wire.handlers:
        total += sum(handler.unwritten(connection) for connection in handler.transports)
        layer = handler.layer.child_layer  # type: ignore[attr-defined]
        for stream in layer.streams.values():
            total += sum(len(getattr(event, "data", b"")) for event in stream._paused_event_queue)
        for side in layer.connections.values():
            for below in side.context.layers:
                buffers = below.h2_conn.stream_buffers if isinstance(below, OriginSide) else {}
                total += sum(len(piece.data) for queue in buffers.values() for piece in queue)
    return total


@pytest.mark.parametrize("origin_http2", [False, True])
async def test_an_upload_nobody_takes_does_not_stop_the_others(tmp_path: Path, origin_http2: bool) -> None:
    """T-R10, T-H3: an origin does not read an upload: its window is withheld, memory stays bounded, and other requests go on."""
    size = 24_000_000
    go_on = asyncio.Event()

    async def stuck(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, head: bytes) -> None:
        await go_on.wait()
        taken = 0
        while b"transfer-encoding: chunked" in head.lower() and not (data := await reader.read(1 << 20)).endswith(b"0\r\n\r\n"):
            taken += len(data)
        writer.write(simple(b"took it"))

    made = http2_world(tmp_path, go_on) if origin_http2 else world(tmp_path, {b"/stuck": stuck, b"/hints": reply(simple(b"done"))})
    async with made as w:
        await w.record()
        client = await w.h2()
        upload = Upload(client, size)
        stuck_one = await upload.begin("/stuck")
        for _ in range(20):
            other = await client.request("/hints")
            await asyncio.wait_for(client.finished(other), 10)
            assert client.body(other) == b"done"
            await upload.send()
            assert _waiting(w) < 8_000_000
        assert upload.left > 8_000_000
        go_on.set()
        while upload.left:
            assert await client.read()
            await upload.send()
        await client.finished(stuck_one)
        assert client.body(stuck_one) == b"took it"
        (kept,) = [exchange for exchange in w.writer.exchanges if exchange.request.path == b"/stuck"]
        assert kept.request.body.size_bytes == size


async def test_an_upload_is_not_gathered_while_its_origin_is_dialled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """T-R10: until there is a connection nothing more of it is read than a window, on either protocol."""
    dialled, go_on = asyncio.Event(), asyncio.Event()

    async def took(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, _head: bytes) -> None:
        taken = 0
        while taken < 24_000_000:
            taken += len(await reader.read(1 << 20))
        writer.write(simple(b"took it"))

    async with world(tmp_path, {b"/up": took}) as w:
        await w.record()
        resolve = w.wire.resolve

        async def slowly(host: str, port: int, *, trusted: bool) -> list[tuple[str, int]]:
            dialled.set()
            await go_on.wait()
            return await resolve(host, port, trusted=trusted)

        monkeypatch.setattr(w.wire, "resolve", slowly)
        client = await w.tunnel()
        raw = client.writer.transport
        await client.writer.start_tls(w.context("http/1.1"), server_hostname=HOST)
        await client.send(b"POST /up HTTP/1.1\r\nHost: %s\r\nContent-Length: 24000000\r\n\r\n" % HOST.encode())
        client.writer.write(b"u" * 24_000_000)
        await dialled.wait()
        before = -1
        while before != (before := raw.get_write_buffer_size()):  # noqa: ASYNC110 - what does not happen has no event
            await asyncio.sleep(0.2)
        assert before > 8_000_000
        assert _waiting(w) < 1_000_000
        go_on.set()
        assert (await client.response()).body == b"took it"


@pytest.mark.parametrize(
    ("method", "path"),
    [(b"GET", b"/k HTTP/1.1"), (b"GET /evil", b"/k"), (b"GET", b"/k\tx"), (b"GET", b"http://other.example/"), (b"GET", b"k")],
)
async def test_a_request_line_that_http1_reads_otherwise_is_refused(tmp_path: Path, method: bytes, path: bytes) -> None:
    """C-08: HTTP/2 to HTTP/1 smuggling: nothing reaches the origin, and other streams go on."""
    async with world(tmp_path, {b"/k": reply(simple(b"ok"))}) as w:
        await w.record()
        client = await w.h2()
        client.connection.config.validate_outbound_headers = False
        stream = client.connection.get_next_available_stream_id()
        head = [(b":method", method), (b":scheme", b"https"), (b":path", path), (b":authority", HOST.encode())]
        client.connection.send_headers(stream, head, end_stream=True)
        await client.flush()
        await client.finished(stream)
        assert client.of(stream, h2.events.StreamReset)
        assert w.origin.heads == []
        good = await client.request("/k")
        await client.finished(good)
        assert client.body(good) == b"ok"


async def test_our_own_refusals_can_be_read_on_http2(tmp_path: Path) -> None:
    """A request without a host that can be read: lower-case names, no connection fields."""
    async with world(tmp_path, {}) as w:
        await w.record()
        client = await w.h2()
        stream = await client.request("/k", host="a b")
        await client.finished(stream)
        assert (b":status", b"400") in client.fields(stream)

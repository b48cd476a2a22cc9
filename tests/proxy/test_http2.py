"""An origin that speaks HTTP/2: trailers, gRPC, interim heads, resets, and clients of either version."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import h2.config
import h2.connection
import h2.events
import pytest

from secondtake.cassettes.exchange import Ending
from tests.proxy.world import HOST, World, world

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


ANSWERS: dict[bytes, Answer] = {b"/grpc": grpc, b"/error": only_trailers, b"/hints": hints, b"/broken": broken, b"/echo": echo}


async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """One HTTP/2 connection."""
    connection = h2.connection.H2Connection(h2.config.H2Configuration(client_side=False, header_encoding=False))
    connection.initiate_connection()
    writer.write(connection.data_to_send())
    heads: dict[int, Fields] = {}
    bodies: dict[int, bytes] = {}
    with contextlib.suppress(ConnectionError, ssl.SSLError):
        while data := await reader.read(65536):
            for event in connection.receive_data(data):
                if isinstance(event, h2.events.RequestReceived):
                    heads[event.stream_id] = [(bytes(name), bytes(value)) for name, value in event.headers]
                    bodies[event.stream_id] = b""
                elif isinstance(event, h2.events.DataReceived):
                    bodies[event.stream_id] += event.data
                    connection.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
                elif isinstance(event, h2.events.StreamEnded):
                    fields = heads[event.stream_id]
                    ANSWERS[dict(fields)[b":path"]](connection, event.stream_id, fields, bodies[event.stream_id])
            writer.write(connection.data_to_send())
            await writer.drain()
    writer.close()


@contextlib.asynccontextmanager
async def http2_world(directory: Path) -> AsyncIterator[World]:
    """A world whose origin speaks HTTP/2 only."""
    async with world(directory, {}) as w:
        leaf = directory / "leaf2.pem"
        leaf.write_bytes(w.world_authority.leaf([HOST]).pem)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(leaf)
        context.set_alpn_protocols(["h2"])
        server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context)
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

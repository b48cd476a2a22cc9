"""Connections on both sides of one client: what is used again, what a failure stands for, what is let go."""

from __future__ import annotations

import asyncio
from pathlib import Path

import h2.events
import pytest
from mitmproxy.connection import ConnectionState

from secondtake.cassettes.errors import Corrupt
from secondtake.cassettes.exchange import Ending
from tests.proxy.world import HOST, H2Client, reply, reply_and_close, reset, simple, until, world

GET = b"GET /k HTTP/1.1\r\nHost: %s\r\n\r\n" % HOST.encode()


async def test_an_origin_that_was_down_is_asked_again_on_the_same_client_connection(tmp_path: Path) -> None:
    """A failure is of one request: agents retry on the connection they have, which must not be answered with the old error."""
    async with world(tmp_path, {b"/k": reply(simple(b"ok"))}) as w:
        await w.record()
        assert w._server is not None
        w._server.close()
        client = await w.client()
        await client.send(GET)
        assert (await client.response()).status == 502
        w._server = await asyncio.start_server(w.origin.serve, "127.0.0.1", w.origin.port, ssl=w._context)
        await client.send(GET)
        assert (await client.response()).body == b"ok"


@pytest.mark.parametrize("http2", [False, True])
async def test_a_reset_by_the_origin_ends_one_request_only(tmp_path: Path, http2: bool) -> None:
    """T-C9, T-B4: reset without an answer, then well again."""

    async def script(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter, _head: bytes) -> None:
        if w.origin.connections == 1:
            reset(writer)
        else:
            writer.write(simple(b"ok"))

    async with world(tmp_path, {b"/k": script}) as w:
        await w.record()
        if http2:
            both = await w.h2()
            first = await both.request("/k")
            await both.finished(first)
            second = await both.request("/k")
            await both.finished(second)
            assert (dict(both.fields(first))[b":status"], both.body(second)) == (b"502", b"ok")
        else:
            client = await w.client()
            await client.send(GET)
            assert (await client.response()).status == 502
            await client.send(GET)
            assert (await client.response()).body == b"ok"


async def test_a_connection_reset_while_idle_is_replaced(tmp_path: Path) -> None:
    """T-C9: the origin resets a kept connection between two calls; the second call is not its victim."""
    writers: list[asyncio.StreamWriter] = []

    async def script(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter, _head: bytes) -> None:
        writers.append(writer)
        writer.write(simple(b"ok"))

    async with world(tmp_path, {b"/k": script}) as w:
        wire = await w.record()
        client = await w.client()
        await client.send(GET)
        await client.response()
        (handler,) = wire.handlers
        reset(writers[0])
        await until(lambda: len(handler.transports) == 1)
        await client.send(GET)
        assert (await client.response()).body == b"ok"
        assert w.origin.connections == 2


async def test_an_http2_client_uses_an_http1_origin_again(tmp_path: Path) -> None:
    """T-J3: a long life on one HTTP/2 connection does not open, and keep, one socket to the origin for each request."""
    async with world(tmp_path, {b"/k": reply(simple(b"ok"))}) as w:
        wire = await w.record()
        client = await w.h2()
        for _ in range(20):
            await client.finished(await client.request("/k"))
        (handler,) = wire.handlers
        assert w.origin.connections == 1
        assert len(handler.transports) == 2
        together = [await client.request("/k") for _ in range(5)]
        await client.finished(*together)
        assert w.origin.connections <= 5


@pytest.mark.parametrize("http2", [False, True])
async def test_closed_connections_are_let_go(tmp_path: Path, http2: bool) -> None:
    """T-J3: an origin that closes after each answer leaves nothing behind on a client connection that stays."""
    async with world(tmp_path, {b"/k": reply_and_close(simple(b"ok", fields=b"Connection: close\r\n"))}) as w:
        wire = await w.record()
        if http2:
            both = await w.h2()
            for _ in range(10):
                await both.finished(await both.request("/k"))
        else:
            client = await w.client()
            for _ in range(10):
                await client.send(GET)
                await client.response()
        (handler,) = wire.handlers
        await until(lambda: len(handler.transports) == 1)
        assert len(handler.used) <= 1
        assert w.origin.connections == 10


@pytest.mark.parametrize("body", [b"", b"abc"])
@pytest.mark.parametrize("path", [b"/k", b"/never"])
async def test_six_hundred_requests_in_one_write_are_answered(tmp_path: Path, body: bytes, path: bytes) -> None:
    """Pipelining (RFC 9112 9.3.2): however many come at once, hits and misses, each is answered in its turn."""

    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, _head: bytes) -> None:
        await reader.readexactly(len(body))
        writer.write(simple(b"ok"))

    method = "POST" if body else "GET"
    async with world(tmp_path, {b"/k": script}) as w:
        await w.record()
        await w.get("/k", method=method, body=body)
        wire = await w.replay()
        client = await w.client()
        one = b"%s %s HTTP/1.1\r\nHost: %s\r\nContent-Length: %d\r\n\r\n%s" % (method.encode(), path, HOST.encode(), len(body), body)
        await client.send(one * 600)
        answers = [await client.response() for _ in range(600)]
        assert wire.outcome.crashed == []
        assert wire.outcome.requests == 600
        assert answers[0].status == (200 if path == b"/k" else 424)


async def test_a_port_of_five_thousand_digits_is_refused(tmp_path: Path) -> None:
    """B-11: what cannot be a port is a refused request, not a fault of ours."""
    async with world(tmp_path, {}) as w:
        wire = await w.record()
        client = await w.plain()
        await client.send(b"GET http://a.example:%s/ HTTP/1.1\r\nHost: a.example\r\n\r\n" % (b"1" * 5000))
        assert (await client.rest()).status == 400
        assert wire.outcome.crashed == []


async def test_a_method_without_an_end_is_not_waited_for(tmp_path: Path) -> None:
    """T-R8, B-11: bytes that could go on being a method for ever are not HTTP."""
    async with world(tmp_path, {}) as w:
        wire = await w.record()
        client = await w.plain()
        await client.send(b"A" * 5000)
        assert (await client.rest()).raw == b""
        assert len(wire.outcome.not_http) == 1


@pytest.mark.parametrize("http2", [False, True])
async def test_damage_is_told_for_requests_answered_at_once_too(tmp_path: Path, http2: bool) -> None:
    """DESIGN 4: damage is an error with a name, on both protocols; it costs neither the connection nor the run's honesty."""
    async with world(tmp_path, {b"/k": reply(simple(b"ok"))}) as w:
        await w.record()
        await w.get("/k")
        wire = await w.replay()

        def damaged(*_: object) -> None:
            raise Corrupt("exchange 1: the body is not what it was")

        wire.play = damaged  # type: ignore[method-assign, assignment]
        if http2:
            both = await w.h2()
            stream = await both.request("/k")
            await both.finished(stream)
            assert (b":status", b"424") in both.fields(stream)
        else:
            assert (await w.get("/k")).status == 424
            client = await w.client()
            await client.send(b"POST /k HTTP/1.1\r\nHost: %s\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\n" % HOST.encode())
            assert (await client.response()).status == 424
        assert wire.outcome.crashed == []
        assert wire.outcome.damaged


@pytest.mark.parametrize("http2", [False, True])
async def test_our_502_ends_in_replay_as_it_ended_then(tmp_path: Path, http2: bool) -> None:
    """T-C3: the origin closed without an answer; ours came whole, and comes whole again."""
    async with world(tmp_path, {b"/k": reply_and_close(b"")}) as w:
        await w.record()
        for mode in ("record", "replay"):
            if mode == "replay":
                await w.replay()
            if http2:
                both = await w.h2()
                stream = await both.request("/k")
                await both.finished(stream)
                assert (b":status", b"502") in both.fields(stream)
                assert not both.of(stream, h2.events.StreamReset)
            else:
                got = await w.raw(GET.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
                assert (got.status, got.ended) == (502, "closed")
        assert w.writer.exchanges[0].ended is Ending.RESET


@pytest.mark.parametrize("http2", [False, True])
async def test_a_101_nobody_asked_for_is_refused(tmp_path: Path, http2: bool) -> None:
    """C-08: an origin cannot turn a request's connection into a pipe."""
    raw = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\nhello"
    async with world(tmp_path, {b"/k": reply(raw)}) as w:
        wire = await w.record()
        if http2:
            both = await w.h2()
            stream = await both.request("/k")
            await both.finished(stream)
            assert (b":status", b"502") in both.fields(stream)
        else:
            assert (await w.get("/k")).status == 502
        assert wire.outcome.crashed == []


async def test_a_length_of_five_thousand_digits_where_none_counts(tmp_path: Path) -> None:
    """B-11: a 204's length is not read, in record and replay."""
    raw = b"HTTP/1.1 204 No Content\r\nContent-Length: %s\r\n\r\n" % (b"9" * 5000)
    async with world(tmp_path, {b"/k": reply(raw)}) as w:
        wire = await w.record()
        assert (await w.get("/k")).status == 204
        replayed = await w.replay()
        assert (await w.get("/k")).status == 204
        assert wire.outcome.crashed == replayed.outcome.crashed == []


@pytest.mark.parametrize(
    "raw",
    [
        b"HTTP/1.1 200 OK\r\nSet-Cookie: sid=%s\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nX-Api-Key: %s\r\n folded\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nX-Api-Key:\r\n %s\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nSet-Cookie : sid=%s; Path=/\r\n\r\n",
        b"HTTP/1.1 200 OK\rSet-Cookie: sid=%s\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nSet-Cookie: sid=%s\r\n",
    ],
)
async def test_a_refused_head_is_told_without_its_credentials(tmp_path: Path, raw: bytes) -> None:
    """T-K1, T-C3: the error says what came, and the cassette holds nothing of what is secret in it."""
    secret = b"Zq7Lr2Vx9Kp4Wm1Ty8Bn3"
    async with world(tmp_path, {b"/k": reply_and_close(raw % secret)}) as w:
        wire = await w.record()
        got = await w.get("/k")
        assert got.status == 502
        assert b"cannot be read in one way only" in got.body
        (exchange,) = w.writer.exchanges
        assert secret not in repr(exchange).encode()
        assert not any(secret in body for body in w.writer.bodies.values())
        assert secret not in repr(wire.outcome.unreachable).encode()


@pytest.mark.parametrize("http2", [False, True])
async def test_a_client_that_leaves_during_the_commit_is_let_go(tmp_path: Path, http2: bool) -> None:
    """T-J3, T-B3: it has read the last event and hangs up while the exchange is being made durable; nothing of it stays."""
    async with world(tmp_path, {b"/k": reply(simple(b"ok"))}) as w:
        wire = await w.record()
        w.writer.hold = True
        client = await w.client(alpn=("h2",) if http2 else ("http/1.1",))
        if http2:
            both = H2Client(client, None)
            await both.start()
            await both.request("/k")
        else:
            await client.send(GET)
        await until(lambda: w.writer.waiting)
        (handler,) = wire.handlers
        client.writer.transport.abort()
        await until(lambda: not handler.client.state & ConnectionState.CAN_READ)
        w.writer.waiting.pop()()
        await until(lambda: not wire.handlers)
        assert w.writer.exchanges[0].ended is Ending.COMPLETE


async def test_a_flood_of_interim_responses_is_an_origin_that_does_not_answer(tmp_path: Path) -> None:
    """B-11: bounded, refused, and told."""
    async with world(tmp_path, {b"/k": reply(b"HTTP/1.1 103 Early Hints\r\n\r\n" * 1500 + simple(b"ok"))}) as w:
        await w.record()
        client = await w.client()
        await client.send(GET)
        head = await client.until(b"\r\n\r\n")
        count = 0
        while b" 103 " in head:
            head, count = await client.until(b"\r\n\r\n"), count + 1
        assert (count, head.split()[1]) == (1000, b"502")


async def test_a_route_to_a_name_that_is_none_is_a_502(tmp_path: Path) -> None:
    """A name that cannot be looked up is a failure of the request, not of the proxy, and nobody waits for ever."""
    async with world(tmp_path, {}) as w:
        wire = await w.record(routes={HOST: "http://a..example:1"})
        wire._resolver = None
        assert (await w.get("/k")).status == 502
        assert wire.outcome.crashed == []

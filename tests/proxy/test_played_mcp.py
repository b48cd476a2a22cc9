"""Streams that the client of an MCP server holds open, played on the wire (played.py)."""

from __future__ import annotations

import asyncio
from pathlib import Path

from secondtake.cassettes.exchange import Channel
from tests.cassettes.test_mcp_streams import ENDPOINT, ONE
from tests.cassettes.test_rpc import line
from tests.proxy.world import HOST, World, reply, simple, until, world

ACCEPT = b"Accept: text/event-stream\r\n"
JSON = b"Content-Type: application/json\r\n"
CALL = line(id=1, method="tools/call")


async def recorded(w: World) -> None:
    """A stream is opened, a message posted, answered on the stream; then the client leaves."""
    posted = asyncio.Event()

    async def stream(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, _head: bytes) -> None:
        head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
        writer.write(head + b"%x\r\n%s\r\n" % (len(ENDPOINT), ENDPOINT))
        await posted.wait()
        writer.write(b"%x\r\n%s\r\n" % (len(ONE), ONE))
        await writer.drain()
        await reader.read()

    async def message(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, _head: bytes) -> None:
        await reader.readexactly(len(CALL))
        writer.write(simple(b"Accepted", status=b"202 Accepted"))
        posted.set()

    w.origin.scripts.update({b"/sse": stream, b"/messages/": message, b"/": reply(simple(b""))})
    await w.record()
    client = await w.client()
    await client.send(b"GET /sse HTTP/1.1\r\nHost: %s\r\n%s\r\n" % (HOST.encode(), ACCEPT))
    await client.until(ENDPOINT)
    await w.get("/messages/", method="POST", fields=JSON, body=CALL)
    await client.until(ONE)
    client.writer.transport.abort()
    await w.stop(0)
    assert {one.channel for one in w.writer.exchanges} == {Channel.MCP}


async def test_a_stream_says_its_answer_once_it_is_asked_and_stays_open(tmp_path: Path) -> None:
    """Issue 4, item 6: MCP over SSE; the live id in the recorded answer."""
    async with world(tmp_path, {}) as w:
        await recorded(w)
        await w.replay()
        client = await w.client()
        await client.send(b"GET /sse HTTP/1.1\r\nHost: %s\r\n%s\r\n" % (HOST.encode(), ACCEPT))
        await client.until(ENDPOINT)
        assert (await w.get("/messages/", method="POST", fields=JSON, body=CALL.replace(b"1,", b"7,"))).status == 202
        assert b'"id":7' in await client.until(b"\r\n\r\n")
        client.writer.transport.abort()
        await until(lambda: len(w.wire.handlers) == 0)
        outcome = await w.stop()
        assert outcome is not None
        assert (outcome.clean, dict(outcome.answered)) == (True, {"exact": 1, "normalised": 1})


async def test_a_client_that_leaves_a_stream_that_waits_is_let_go(tmp_path: Path) -> None:
    """Nothing waits for a client that is gone."""
    async with world(tmp_path, {}) as w:
        await recorded(w)
        await w.replay()
        client = await w.client()
        await client.send(b"GET /sse HTTP/1.1\r\nHost: %s\r\n%s\r\n" % (HOST.encode(), ACCEPT))
        await client.until(ENDPOINT)
        client.writer.transport.abort()
        await asyncio.wait_for(until(lambda: len(w.wire.handlers) == 0), 20)
        (session,) = w.wire.sessions()
        assert session.on_heard == set()

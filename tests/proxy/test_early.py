"""A final answer that comes before the request is whole: what is kept of the request, and what a replay does with it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import h2.events
import pytest

from secondtake.cassettes.exchange import Ending
from tests.proxy.test_http2 import http2_world
from tests.proxy.world import HOST, Client, Got, Script, World, reset, simple, world

STARTED = 100_000
"""What a client has sent when it stops because it was answered."""


def refuses(then: str = "stays", status: bytes = b"413 Content Too Large") -> Script:
    """Answers after the first byte of an upload and reads no more of it; `then` it stays, closes or resets."""

    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, _head: bytes) -> None:
        await reader.readexactly(1)
        writer.write(simple(b"no", status=status))
        await writer.drain()
        if then == "resets":
            reset(writer)
        elif then == "closes":
            writer.close()
        await asyncio.Event().wait()

    return script


async def takes(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, head: bytes) -> None:
    """Reads an upload and answers."""
    await reader.readexactly(int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0]))
    writer.write(simple(b"yes"))


def body(size: int) -> bytes:
    return (bytes(range(256)) * (size // 256 + 1))[:size]


async def begin(w: World, size: int, sent: int, *, path: bytes = b"/up", client: Client | None = None) -> Client:
    """An upload over HTTP/1 of which so much is sent."""
    client = client or await w.client()
    client.writer.write(b"POST %s HTTP/1.1\r\nHost: %s\r\nContent-Length: %d\r\n\r\n" % (path, HOST.encode(), size))
    client.writer.write(body(size)[:sent])
    return client


async def over_http1(w: World, size: int, sent: int) -> tuple[int, bytes]:
    """The answer to an upload of which so much is sent, whatever comes."""
    client = await begin(w, size, sent)
    got: Got = await client.response()
    await client.close()
    return got.status, got.body


async def over_http2(w: World, size: int, sent: int) -> tuple[int, bytes]:
    client = await w.h2()
    stream = client.connection.get_next_available_stream_id()
    head = [(b":method", b"POST"), (b":scheme", b"https"), (b":path", b"/up"), (b":authority", HOST.encode())]
    client.connection.send_headers(stream, head)
    content, at = body(size), 0
    while at < sent:
        while room := min(client.connection.local_flow_control_window(stream), client.connection.max_outbound_frame_size, sent - at):
            client.connection.send_data(stream, content[at : at + room], end_stream=at + room == size)
            at += room
        await client.flush()
        if at < sent:
            assert await client.read()
    await client.finished(stream)
    return int(dict(client.fields(stream))[b":status"]), client.body(stream)


type Over = Callable[[World, int, int], Awaitable[tuple[int, bytes]]]
OVER = pytest.mark.parametrize("over", [over_http1, over_http2])


@OVER
@pytest.mark.parametrize(("then", "size"), [("stays", 16_000_000), ("closes", 2_000_000), ("resets", 2_000_000)])
async def test_a_client_that_sends_all_of_a_refused_upload_is_refused_in_replay(tmp_path: Path, over: Over, then: str, size: int) -> None:
    """Issue 2: 413 while the upload is under way, and the origin reads no further: all of it is kept, so that it is found again."""
    async with world(tmp_path, {b"/up": refuses(then)}) as w:
        await w.record()
        live = await over(w, size, size)
        assert live == (413, b"no") or (then == "resets" and live[0] == 502)
        (exchange,) = w.writer.exchanges
        assert exchange.request.body.size_bytes == size
        wire = await w.replay()
        assert await over(w, size, size) == live
        assert wire.outcome.answered == {"exact": 1}


@OVER
@pytest.mark.parametrize("sent", [STARTED, 1_000_000])
async def test_a_client_that_stops_when_it_is_refused_is_refused_in_replay(tmp_path: Path, over: Over, sent: int) -> None:
    """Issue 2: as curl does. What had come is kept and known to be a part: the answer is given where it was given, however much comes."""
    async with world(tmp_path, {b"/up": refuses()}) as w:
        await w.record()
        assert await over(w, 1_000_000, STARTED) == (413, b"no")
        (exchange,) = w.writer.exchanges
        assert (exchange.request.body.size_bytes, exchange.ended) == (STARTED, Ending.COMPLETE)
        assert "answered before the request was whole" in exchange.notes
        wire = await w.replay()
        assert await over(w, 1_000_000, sent) == (413, b"no")
        assert wire.outcome.answered == {"exact": 1}
        assert not wire.sessions()[0].unplayed()


@OVER
async def test_another_upload_is_not_taken_for_the_refused_one(tmp_path: Path, over: Over) -> None:
    """T-A8: the part that was kept has to be how it begins."""
    async with world(tmp_path, {b"/up": refuses()}) as w:
        await w.record()
        await over(w, 1_000_000, STARTED)
        wire = await w.replay()
        client = await w.client()
        await client.send(b"POST /up HTTP/1.1\r\nHost: %s\r\nContent-Length: %d\r\n\r\n" % (HOST.encode(), 2 * STARTED))
        await client.send(b"z" * 2 * STARTED)
        assert (await client.response()).status == 424
        assert wire.outcome.answered == {"miss": 1}


async def test_a_refused_upload_and_the_whole_one_after_it_are_played_in_turn(tmp_path: Path) -> None:
    """T-A2: 401 before it was whole, then the same again with a credential, taken whole; and the other way about."""
    for order in ((401, 200), (200, 401)):
        async with world(tmp_path / str(order[0]), {}) as w:
            await w.record()
            for status in order:
                w.origin.scripts[b"/up"] = takes if status == 200 else refuses(status=b"401 Unauthorized")
                assert (await over_http1(w, 1_000_000, STARTED if status == 401 else 1_000_000))[0] == status
            await w.replay()
            assert ((await over_http1(w, 1_000_000, 1_000_000))[0], (await over_http1(w, 1_000_000, 1_000_000))[0]) == order


async def test_a_connection_goes_on_after_an_upload_that_was_refused_early(tmp_path: Path) -> None:
    """RFC 9112 9.3: what was still coming is read off, and the next request is answered on the same connection."""
    async with world(tmp_path, {b"/up": refuses(), b"/ok": takes}) as w:
        await w.record()
        await over_http1(w, 1_000_000, STARTED)
        for mode in ("record", "replay"):
            if mode == "replay":
                await w.replay()
            client = await begin(w, 1_000_000, STARTED)
            assert (await client.response()).status == 413
            client.writer.write(body(1_000_000)[STARTED:])
            await begin(w, 10, 10, path=b"/ok", client=client)
            got = await client.response()
            assert (got.status, got.body) == (200, b"yes")


@pytest.mark.parametrize("upstream", ["http1", "http2"])
async def test_a_call_whose_server_ends_first_ends_in_record_and_replay(tmp_path: Path, upstream: str) -> None:
    """A client that streams until it is answered, as gRPC allows, does not wait for ever."""
    made = http2_world(tmp_path) if upstream == "http2" else world(tmp_path, {b"/early": refuses()})
    async with made as w:
        await w.record()
        for mode in ("record", "replay"):
            if mode == "replay":
                await w.replay()
            client = await w.h2()
            stream = client.connection.get_next_available_stream_id()
            head = [(b":method", b"POST"), (b":scheme", b"https"), (b":path", b"/early"), (b":authority", HOST.encode())]
            client.connection.send_headers(stream, head)
            client.connection.send_data(stream, b"m" * 10_000)
            await client.flush()
            await client.finished(stream)
            assert client.body(stream) == b"no"
            assert not client.of(stream, h2.events.StreamReset)


async def test_a_client_that_leaves_when_it_is_refused_leaves_a_complete_answer(tmp_path: Path) -> None:
    """T-B3: it closes at the head of the refusal; the answer was whole."""
    async with world(tmp_path, {b"/up": refuses()}) as w:
        await w.record()
        client = await begin(w, 1_000_000, STARTED)
        await client.until(b"\r\n\r\n")
        client.writer.transport.abort()
        await w.stop(5)
        (exchange,) = w.writer.exchanges
        assert exchange.ended is Ending.COMPLETE
        await w.replay()
        assert await over_http1(w, 1_000_000, 1_000_000) == (413, b"no")


async def test_an_upload_whose_origin_leaves_without_an_answer_is_a_502_again(tmp_path: Path) -> None:
    """Our 502 is kept as such and found again, though the request was not whole when the origin left."""

    async def leaves(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, _head: bytes) -> None:
        await reader.readexactly(1)
        reset(writer)

    async with world(tmp_path, {b"/up": leaves}) as w:
        await w.record()
        live = await over_http1(w, 1_000_000, 1_000_000)
        assert live[0] == 502
        await w.replay()
        assert await over_http1(w, 1_000_000, 1_000_000) == live

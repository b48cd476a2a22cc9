"""Record and replay on the wire: what stock mitmproxy gets wrong, row by row, and the cases of CASES.md that concern a stream."""

from __future__ import annotations

import asyncio
import gzip
import time
from dataclasses import replace
from pathlib import Path

import pytest

from secondtake.cassettes.exchange import Ending
from secondtake.proxy.policy import Pace
from tests.proxy.world import HOST, H2Client, Script, reply, reply_and_close, reset, simple, until, world

SSE = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


def events(count: int, gap_s: float, *, end: bytes = b"0\r\n\r\n", cut: bool = False) -> Script:
    """Server-sent events, each in a chunk and a write of its own."""

    async def script(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter, _head: bytes) -> None:
        writer.write(SSE)
        for number in range(count):
            writer.write(chunk(b"data: %d\n\n" % number))
            await writer.drain()
            await asyncio.sleep(gap_s)
        if cut:
            writer.transport.abort()
        else:
            writer.write(end)

    return script


# -- the stock table ---------------------------------------------------------------------------------------------------


async def test_a_second_request_never_reaches_a_living_origin(tmp_path: Path) -> None:
    """Stock row 1, T-A1: one exchange recorded; the second answer is a miss, a third URL too, and the origin hears nothing."""
    async with world(tmp_path, {b"/one": reply(simple(b"1")), b"/two": reply(simple(b"2"))}) as w:
        await w.record()
        assert (await w.get("/one", method="POST", body=b"x")).body == b"1"
        before = w.origin.connections
        wire = await w.replay()
        assert (await w.get("/one", method="POST", body=b"x")).body == b"1"
        again, other = await w.get("/one", method="POST", body=b"x"), await w.get("/two")
        assert again.status == other.status == 424
        assert b"x-secondtake-miss: exhausted" in again.head
        assert b"x-secondtake-miss: new-resource" in other.head
        assert w.origin.connections == before
        assert [str(missed.miss.kind) for missed in wire.outcome.misses] == ["exhausted", "new-resource"]
        assert wire.outcome.requests == sum(wire.outcome.answered.values()) == 3
        assert not wire.outcome.clean


async def test_events_arrive_one_by_one_while_recording_and_at_their_times_in_replay(tmp_path: Path) -> None:
    """Stock row 2, T-B1: five events 200 ms apart."""
    async with world(tmp_path, {b"/sse": events(5, 0.2)}) as w:
        await w.record()

        async def arrivals() -> tuple[list[float], bytes]:
            client = await w.client()
            start = time.monotonic()
            await client.send(b"GET /sse HTTP/1.1\r\nHost: x\r\n\r\n".replace(b"x", HOST.encode()))
            await client.until(b"\r\n\r\n")
            times, body = [], b""
            for _ in range(5):
                body += await client.until(b"\n\n\r\n")
                times.append(time.monotonic() - start)
            body += await client.until(b"0\r\n\r\n")
            return times, body

        recorded, first = await arrivals()
        assert recorded[0] < 0.1
        exchange = w.writer.exchanges[0]
        assert exchange.answer is not None
        assert [piece.size_bytes for piece in exchange.answer.body.pieces] == [9] * 5
        await w.replay(pace=Pace.REAL)
        real, second = await arrivals()
        assert all(abs(live - kept.offset_us / 1e6) < 0.05 for live, kept in zip(real, exchange.answer.body.pieces, strict=True))
        await w.replay(pace=Pace.FAST)
        fast, third = await arrivals()
        assert fast[-1] < 0.2
        assert first == second == third


@pytest.mark.parametrize("gap_s", [0, 0.002])
async def test_fifty_events_keep_their_boundaries(tmp_path: Path, gap_s: float) -> None:
    """Issue: a 50-event stream, event by event while recording, with the recorded boundaries in replay."""
    async with world(tmp_path, {b"/sse": events(50, gap_s)}) as w:
        await w.record()
        live = await w.get("/sse")
        await w.replay(pace=Pace.REAL)
        played = await w.get("/sse")
        assert played.body == live.body == b"".join(b"data: %d\n\n" % number for number in range(50))
        assert len(played.reads) == len(live.reads) == 50


async def test_chunked_trailers_are_relayed_kept_and_played(tmp_path: Path) -> None:
    """Stock row 3, T-C5: a chunked response with a trailer."""
    raw = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n5\r\nhello\r\n0\r\nX-Sum: abc\r\n\r\n"
    async with world(tmp_path, {b"/t": reply(raw)}) as w:
        await w.record()
        live = await w.get("/t")
        assert (live.body, live.reads[-1][1]) == (b"hello", b"X-Sum: abc\r\n")
        assert w.writer.exchanges[0].answer is not None
        assert w.writer.exchanges[0].answer.trailers == ((b"X-Sum", b"abc"),)
        await w.replay()
        played = await w.get("/t")
        assert (played.body, played.reads[-1][1]) == (b"hello", b"X-Sum: abc\r\n")


async def test_a_body_cut_short_is_kept_and_played_as_cut_short(tmp_path: Path) -> None:
    """Stock row 4, T-B4: Content-Length 100, closed after 50 bytes: never a clean end, never a hang."""
    raw = b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n" + b"y" * 50
    async with world(tmp_path, {b"/cut": reply_and_close(raw)}) as w:
        await w.record()
        request = b"GET /cut HTTP/1.1\r\nHost: %s\r\n\r\n" % HOST.encode()
        live = await w.raw(request)
        assert (live.body, live.ended) == (b"y" * 50, "reset")
        assert w.writer.exchanges[0].ended is Ending.RESET
        await w.replay()
        played = await w.raw(request)
        assert (played.body, played.ended, b"Content-Length: 100" in played.head) == (b"y" * 50, "reset", True)


@pytest.mark.parametrize("http2", [False, True])
async def test_a_reset_after_three_chunks_is_a_reset_again(tmp_path: Path, http2: bool) -> None:
    """T-B4: chunked, reset after chunk 3: three chunks, then the connection (HTTP/1) or the stream (HTTP/2) breaks."""
    async with world(tmp_path, {b"/r": events(3, 0.02, cut=True)}) as w:
        await w.record()
        for mode in ("record", "replay"):
            if mode == "replay":
                await w.replay()
            if http2:
                client = await w.h2()
                stream = await client.request("/r")
                await client.finished(stream)
                assert client.of(stream, __import__("h2.events").events.StreamReset)
                assert client.body(stream) == b"data: 0\n\ndata: 1\n\ndata: 2\n\n"
            else:
                got = await w.raw(b"GET /r HTTP/1.1\r\nHost: %s\r\n\r\n" % HOST.encode())
                assert got.ended == "reset"
                assert b"0\r\n\r\n" not in got.body
                assert got.body.count(b"data:") == 3
        assert {exchange.ended for exchange in w.writer.exchanges} == {Ending.RESET}


async def test_early_hints_come_before_the_final_answer(tmp_path: Path) -> None:
    """Stock row 5: 103 Early Hints, then 200."""
    raw = b"HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\n\r\n" + simple(b"done")
    async with world(tmp_path, {b"/h": reply(raw)}) as w:
        await w.record()
        for mode in ("record", "replay"):
            if mode == "replay":
                await w.replay()
            client = await w.client()
            await client.send(b"GET /h HTTP/1.1\r\nHost: %s\r\n\r\n" % HOST.encode())
            assert await client.until(b"\r\n\r\n") == b"HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\n\r\n"
            assert (await client.response()).body == b"done"
        client2 = await w.h2()
        stream = await client2.request("/h")
        await client2.finished(stream)
        assert client2.body(stream) == b"done"
        assert any(type(event).__name__ == "InformationalResponseReceived" for event in client2.events)


async def test_a_client_that_hangs_up_loses_nothing_of_what_was_seen(tmp_path: Path) -> None:
    """Stock row 7, T-B6: gone after 4 of 5 events; upstream is read to its end."""
    async with world(tmp_path, {b"/sse": events(5, 0.05)}) as w:
        wire = await w.record()
        client = await w.client()
        await client.send(b"GET /sse HTTP/1.1\r\nHost: %s\r\n\r\n" % HOST.encode())
        await client.until(b"data: 3\n\n\r\n")
        client.writer.transport.abort()
        await w.stop()
        (exchange,) = w.writer.exchanges
        assert exchange.answer is not None
        assert w.writer.bodies[exchange.answer.body.digest] == b"".join(b"data: %d\n\n" % number for number in range(5))
        assert exchange.ended is Ending.COMPLETE
        assert any(note.startswith("client-left") for note in exchange.notes)
        assert wire.outcome.clean


@pytest.mark.parametrize("leave", ["close", "abort"])
@pytest.mark.parametrize("last", [b"data: [DONE]\n\n", b'event: message_stop\ndata: {"type":"message_stop"}\n\n'])
async def test_a_client_that_leaves_at_the_terminal_event_has_a_complete_exchange(tmp_path: Path, leave: str, last: bytes) -> None:
    """T-B3: the client closes right after the last event, and the origin goes on holding the connection."""
    gone = asyncio.Event()

    async def script(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter, _head: bytes) -> None:
        writer.write(SSE + chunk(b"data: {}\n\n") + chunk(last))
        await writer.drain()
        await gone.wait()

    async with world(tmp_path, {b"/sse": script}) as w:
        await w.record()
        client = await w.client()
        await client.send(b"GET /sse HTTP/1.1\r\nHost: %s\r\n\r\n" % HOST.encode())
        await client.until(last)
        if leave == "close":
            client.writer.close()
        else:
            client.writer.transport.abort()
        await w.stop(0.2)
        gone.set()
        assert w.writer.exchanges[0].ended in (Ending.COMPLETE, Ending.RESET)
        await w.replay()
        assert last in (await w.raw(b"GET /sse HTTP/1.1\r\nHost: %s\r\n\r\n" % HOST.encode())).body


async def test_a_range_is_not_answered_with_another_range(tmp_path: Path) -> None:
    """Stock row 8: bytes 0-9 recorded, bytes 100-109 asked."""
    raw = b"HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 0-9/1000\r\nContent-Length: 10\r\n\r\n0123456789"
    async with world(tmp_path, {b"/file": reply(raw)}) as w:
        await w.record()
        await w.get("/file", fields=b"Range: bytes=0-9\r\n")
        await w.replay()
        assert (await w.get("/file", fields=b"Range: bytes=0-9\r\n")).body == b"0123456789"
        assert (await w.get("/file", fields=b"Range: bytes=100-109\r\n")).status == 424


async def test_a_recorded_304_is_not_served_to_a_client_without_a_copy(tmp_path: Path) -> None:
    """Stock row 9."""
    raw = b'HTTP/1.1 304 Not Modified\r\nETag: "e"\r\nTransfer-Encoding: chunked\r\n\r\n'
    async with world(tmp_path, {b"/c": reply(raw)}) as w:
        await w.record()
        client = await w.client()
        ask = b"GET /c HTTP/1.1\r\nHost: %s\r\n" % HOST.encode()
        await client.send(ask + b'If-None-Match: "e"\r\n\r\n')
        assert (await client.response()).status == 304
        await w.replay()
        assert (await w.get("/c")).status == 424


async def test_key_order_in_json_does_not_matter(tmp_path: Path) -> None:
    """Stock row 10."""
    async with world(tmp_path, {b"/j": reply(simple(b"ok"))}) as w:
        await w.record()
        await w.get("/j", method="POST", fields=b"Content-Type: application/json\r\n", body=b'{"a":1,"b":2}')
        wire = await w.replay()
        assert (await w.get("/j", method="POST", fields=b"Content-Type: application/json\r\n", body=b'{"b":2,"a":1}')).body == b"ok"
        assert dict(wire.outcome.answered) == {"normalised": 1}


async def test_recorded_fields_are_served_unchanged(tmp_path: Path) -> None:
    """Stock row 11, T-M1, T-F1, T-F4, T-E7: Date, cookies (count, order, case) and rate limits as they were, octet for octet."""
    fields = (
        b"Date: Mon, 01 Jan 2024 00:00:00 GMT\r\nSet-Cookie: a=1\r\nSet-Cookie: b=2\r\nset-cookie: c=3\r\nX-WeIrD: \xe9 \xc3\xa9\r\n"
        b"retry-after: 7\r\nanthropic-ratelimit-requests-remaining: 0\r\nrequest-id: req_1\r\n"
    )
    async with world(tmp_path, {b"/f": reply(simple(b"x", status=b"429 Too Many Requests", fields=fields))}) as w:
        await w.record()
        live = await w.get("/f")
        await w.replay()
        first, second = await w.get("/f"), await w.get("/f")
        assert fields.replace(b"a=1", b"a=x").count(b"\r\n") == 8
        for line in (b"Date: Mon, 01 Jan 2024 00:00:00 GMT", b"X-WeIrD: \xe9 \xc3\xa9", b"retry-after: 7", b"request-id: req_1"):
            assert line in live.head
            assert line in first.head
        assert live.head.lower().count(b"set-cookie:") == first.head.lower().count(b"set-cookie:") == 3
        assert [line.split(b":")[0] for line in live.head.split(b"\r\n")] == [line.split(b":")[0] for line in first.head.split(b"\r\n")]
        assert first.raw == second.raw
        client = await w.h2()
        stream = await client.request("/f")
        await client.finished(stream)
        assert [name for name, _ in client.fields(stream)].count(b"set-cookie") == 3


# -- framing -----------------------------------------------------------------------------------------------------------


async def test_framing_is_chosen_for_each_client(tmp_path: Path) -> None:
    """T-C1, T-B11: recorded chunked, served to HTTP/1.1, HTTP/1.0 and HTTP/2; never both a length and chunks."""
    raw = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n3\r\ndef\r\n0\r\n\r\n"
    async with world(tmp_path, {b"/c": reply(raw)}) as w:
        await w.record()
        await w.get("/c")
        await w.replay()
        one = await w.get("/c")
        assert (one.body, b"chunked" in one.head, b"ontent-" in one.head) == (b"abcdef", True, False)
        old = await w.raw(b"GET /c HTTP/1.0\r\nHost: %s\r\n\r\n" % HOST.encode())
        assert (old.body, b"chunked" in old.head, b"Content-Length: 6" in old.head) == (b"abcdef", False, True)
        client = await w.h2()
        stream = await client.request("/c")
        await client.finished(stream)
        assert client.body(stream) == b"abcdef"
        assert [len(event.data) for event in client.of(stream, __import__("h2.events").events.DataReceived) if event.data] == [3, 3]


@pytest.mark.parametrize(
    ("raw", "why"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "both"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\nab", "2 Content-Length"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nab", "2 Content-Length"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: +2\r\n\r\nab", "Content-Length"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", "Transfer-Encoding"),
        (b"HTTP/1.1 200 OK\r\nX: a\r\n b\r\nContent-Length: 2\r\n\r\nab", "obs-fold"),
        (b"HTTP/1.1 200 OK\r\nX: a\rb\r\nContent-Length: 2\r\n\r\nab", "bare"),
        (b"HTTP/1.1 200 OK\nContent-Length: 2\n\nab", "CR LF"),
        (b"HTTP/1.1 200 OK\r\nX y: a\r\nContent-Length: 2\r\n\r\nab", "field"),
        (b"junk\r\n\r\n", "status line"),
        (b"HTTP/1.1 200 OK\r\nX: " + b"y" * 300_000 + b"\r\n\r\n", "over"),
    ],
)
async def test_a_response_that_can_be_read_two_ways_is_refused_the_same_way_twice(tmp_path: Path, raw: bytes, why: str) -> None:
    """T-C3, T-C4, T-C10, C-08: our own stated answer, the head and the error on the record, and the same in replay."""
    async with world(tmp_path, {b"/bad": reply_and_close(raw)}) as w:
        await w.record()
        live = await w.get("/bad")
        assert live.status == 502
        (exchange,) = w.writer.exchanges
        assert any(why in note for note in exchange.notes), exchange.notes
        assert exchange.answer is not None
        assert exchange.answer.synthetic
        await w.replay()
        played = await w.get("/bad")
        assert (played.status, played.body) == (live.status, live.body)


@pytest.mark.parametrize(
    "head",
    [
        b"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: identity\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nX: 1\r\n folded\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nX: 1\n\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost : a\r\n\r\n",
        b"GET /a b HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET / HTTP/2.0\r\nHost: a\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nX: \0\r\n\r\n",
    ],
)
async def test_a_request_that_can_be_read_two_ways_is_refused(tmp_path: Path, head: bytes) -> None:
    """C-08: rejected, not normalised; nothing reaches the origin."""
    async with world(tmp_path, {b"/": reply(simple(b""))}) as w:
        await w.record()
        got = await w.raw(head)
        assert got.status == 400
        assert w.origin.connections == 0


async def test_a_head_of_80_kib_is_relayed(tmp_path: Path) -> None:
    """T-C10: a large head that is well formed goes through whole, both ways."""
    field = b"X-Big: " + b"z" * 80_000 + b"\r\n"
    async with world(tmp_path, {b"/big": reply(simple(b"ok", fields=field))}) as w:
        await w.record()
        live = await w.get("/big", fields=field)
        assert field in live.raw
        assert field in w.origin.heads[0]
        await w.replay()
        assert field in (await w.get("/big", fields=field)).raw


async def test_head_204_and_304_leave_the_connection_in_step(tmp_path: Path) -> None:
    """T-D1, T-D2, T-R1: HEAD keeps its length, a 204 or 304 with a framing field is served without a body, and a next request works."""
    scripts = {
        b"/head": reply(b"HTTP/1.1 200 OK\r\nContent-Length: 1234\r\n\r\n"),
        b"/204": reply(b"HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked\r\n\r\n"),
        b"/204b": reply(b"HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n"),
        b"/ok": reply(simple(b"ok")),
    }
    async with world(tmp_path, scripts) as w:
        await w.record()
        for mode in ("record", "replay"):
            if mode == "replay":
                await w.replay()
            client = await w.client()
            host = b"Host: %s\r\n\r\n" % HOST.encode()
            await client.send(b"HEAD /head HTTP/1.1\r\n" + host)
            assert b"Content-Length: 1234" in (await client.response(head_only=True)).head
            for path in (b"/204", b"/204b"):
                await client.send(b"GET %s HTTP/1.1\r\n%s" % (path, host))
                head = (await client.response()).head.lower()
                assert b"204" in head
                assert b"transfer-encoding" not in head
                assert b"content-length" not in head
            await client.send(b"GET /ok HTTP/1.1\r\n" + host)
            assert (await client.response()).body == b"ok"


async def test_a_close_delimited_body_is_whole_and_a_broken_one_is_not(tmp_path: Path) -> None:
    """T-R2: a body until close is served chunked; one that was reset is served without its terminator."""

    async def broken(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter, _head: bytes) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\n\r\nhalf")
        await writer.drain()
        await asyncio.sleep(0.05)
        reset(writer)

    whole = reply_and_close(b"HTTP/1.1 200 OK\r\n\r\nwhole")
    async with world(tmp_path, {b"/whole": whole, b"/broken": broken}) as w:
        await w.record()
        assert (await w.get("/whole")).body == b"whole"
        ask = b"GET /broken HTTP/1.1\r\nHost: %s\r\n\r\n" % HOST.encode()
        live = await w.raw(ask)
        await w.replay()
        assert (await w.get("/whole")).body == b"whole"
        played = await w.raw(ask)
        assert b"half" in live.body
        assert b"half" in played.body
        assert b"0\r\n\r\n" not in played.body
        assert played.ended == "reset"


async def test_chunk_extensions_and_tiny_chunks_keep_the_body(tmp_path: Path) -> None:
    """T-C8: extensions, an upper-case size, and 10,000 chunks of one byte."""
    raw = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nA;x=y\r\n0123456789\r\n" + b"1\r\nz\r\n" * 10_000 + b"0\r\n\r\n"
    async with world(tmp_path, {b"/x": reply(raw)}) as w:
        await w.record()
        live = await w.get("/x")
        await w.replay()
        assert (await w.get("/x")).body == live.body == b"0123456789" + b"z" * 10_000


async def test_request_trailers_reach_the_origin(tmp_path: Path) -> None:
    """Trailers of a chunked upload are relayed, and kept."""
    seen = asyncio.get_running_loop().create_future()

    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, _head: bytes) -> None:
        seen.set_result(await reader.readuntil(b"X-T: 1\r\n\r\n"))
        writer.write(simple(b"ok"))

    async with world(tmp_path, {b"/up": script}) as w:
        await w.record()
        client = await w.client()
        await client.send(
            b"POST /up HTTP/1.1\r\nHost: %s\r\nTransfer-Encoding: chunked\r\nTE: trailers\r\n\r\n2\r\nhi\r\n0\r\nX-T: 1\r\n\r\n"
            % HOST.encode()
        )
        assert (await client.response()).body == b"ok"
        assert b"2\r\nhi\r\n0\r\n" in await seen
        assert w.writer.exchanges[0].request.trailers == ((b"X-T", b"1"),)


async def test_an_upload_is_relayed_as_it_comes(tmp_path: Path) -> None:
    """T-B12: three parts 100 ms apart reach the origin as they come; the parts are kept, the key is of the whole."""
    arrivals: list[float] = []

    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, _head: bytes) -> None:
        for part in (b"one", b"two", b"six"):
            await reader.readuntil(part)
            arrivals.append(time.monotonic())
        await reader.readuntil(b"0\r\n\r\n")
        writer.write(simple(b"ok"))

    async with world(tmp_path, {b"/up": script}) as w:
        await w.record()
        client = await w.client()
        sent = []
        await client.send(b"POST /up HTTP/1.1\r\nHost: %s\r\nTransfer-Encoding: chunked\r\n\r\n" % HOST.encode())
        for part in (b"one", b"two", b"six"):
            sent.append(time.monotonic())
            await client.send(chunk(part))
            await asyncio.sleep(0.1)
        await client.send(b"0\r\n\r\n")
        assert (await client.response()).body == b"ok"
        assert all(arrived - left < 0.08 for arrived, left in zip(arrivals, sent, strict=True))
        body = w.writer.exchanges[0].request.body
        assert [piece.size_bytes for piece in body.pieces] == [3, 3, 3]
        await w.replay()
        assert (await w.get("/up", method="POST", body=b"onetwosix")).body == b"ok"


@pytest.mark.parametrize("final", [b"417", b"100"])
async def test_expect_continue_is_the_origins_to_answer(tmp_path: Path, final: bytes) -> None:
    """T-C7, T-R3: 417 before the body, or 100 and then 200; in replay the client is never stuck; an early refusal stays one."""

    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, _head: bytes) -> None:
        if final == b"417":
            writer.write(simple(b"no", status=b"417 Expectation Failed", fields=b"Connection: close\r\n"))
            await writer.drain()
            writer.close()
        else:
            writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            assert await reader.readexactly(3) == b"abc"
            writer.write(simple(b"yes"))

    async with world(tmp_path, {b"/e": script}) as w:
        await w.record()
        for mode in ("record", "replay"):
            if mode == "replay":
                await w.replay()
            client = await w.client()
            await client.send(b"POST /e HTTP/1.1\r\nHost: %s\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\n" % HOST.encode())
            if final == b"417":
                got = await client.response()
                assert (got.status, got.body) == (417, b"no")
            else:
                assert b"100" in await client.until(b"\r\n\r\n")
                await client.send(b"abc")
                assert (await client.response()).body == b"yes"


# -- what is forwarded -------------------------------------------------------------------------------------------------


async def test_what_goes_up_is_what_came_but_for_the_declared_rules(tmp_path: Path) -> None:
    """T-F2, T-F5, C-08: two equal fields go on as two, hop-by-hop ones do not, and the exchange lists the rule; the record keeps all."""
    async with world(tmp_path, {b"/p": reply(simple(b""))}) as w:
        await w.record()
        port = w.origin.port
        sent = b"GET /p?b=2&a=1 HTTP/1.1\r\nHost: %s:%d\r\nX-Tag: 1\r\nx-TAG: 2\r\nX-Hop: z\r\nConnection: x-hop\r\nAccept: */*\r\n\r\n" % (
            HOST.encode(),
            port,
        )
        client = await w.client()
        await client.send(sent)
        await client.response()
        assert w.origin.heads[0] == sent.replace(b"X-Hop: z\r\nConnection: x-hop\r\n", b"")
        exchange = w.writer.exchanges[0]
        assert exchange.forwarded == ("hop-by-hop",)
        assert (b"X-Hop", b"z") in exchange.request.fields
        await client.send(b"GET /p HTTP/1.1\r\nHost: %s:%d\r\nX: 1\r\n\r\n" % (HOST.encode(), port))
        await client.response()
        assert w.writer.exchanges[1].forwarded == ()


async def test_a_route_sends_a_host_elsewhere_and_the_record_keeps_the_host(tmp_path: Path) -> None:
    """T-A15, `--route HOST=URL`: the key holds what the agent asked for."""
    async with world(tmp_path, {b"/base/v1/x": reply(simple(b"routed"))}, tls=False) as w:
        await w.record(routes={"api.provider.example": f"http://127.0.0.1:{w.origin.port}/base"}, loopback=False)
        client = await w.client("api.provider.example", 443)
        await client.send(b"GET /v1/x HTTP/1.1\r\nHost: api.provider.example\r\n\r\n")
        assert (await client.response()).body == b"routed"
        exchange = w.writer.exchanges[0]
        assert exchange.request.url == "https://api.provider.example/v1/x"
        assert exchange.forwarded == ("route",)
        assert b"Host: 127.0.0.1:%d" % w.origin.port in w.origin.heads[0]
        await w.replay()
        client = await w.client("api.provider.example", 443)
        await client.send(b"GET /v1/x HTTP/1.1\r\nHost: api.provider.example\r\n\r\n")
        assert (await client.response()).body == b"routed"


async def test_redirects_are_the_clients_to_follow(tmp_path: Path) -> None:
    """T-G1, T-G2: each hop is an exchange; an unrecorded target is a miss."""
    moved = reply(b"HTTP/1.1 302 Found\r\nLocation: https://other.example/\r\nContent-Length: 0\r\n\r\n")
    async with world(tmp_path, {b"/r": moved}) as w:
        await w.record()
        assert (await w.get("/r")).status == 302
        assert len(w.writer.exchanges) == 1
        await w.replay()
        assert (await w.get("/r")).status == 302
        assert (await w.get("/", host="other.example")).status == 404


# -- many at once ------------------------------------------------------------------------------------------------------


async def test_forty_http2_requests_on_an_http1_origin_are_not_five_at_a_time(tmp_path: Path) -> None:
    """T-R5, T-H3: all forty are at the origin together; in replay a hundred on one connection all match, a miss stops nobody."""
    together = asyncio.Event()
    inside = 0

    async def script(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter, head: bytes) -> None:
        nonlocal inside
        inside += 1
        if inside == 40:
            together.set()
        await asyncio.wait_for(together.wait(), 20)
        writer.write(simple(head.split(b" ")[1]))

    async with world(tmp_path, {b"/p": script}) as w:
        await w.record()

        async def all_of(client: H2Client, count: int) -> list[bytes]:
            streams = [await client.request(f"/p?{number}") for number in range(count)]
            await client.finished(*streams)
            return [client.body(stream) for stream in streams]

        expected = [b"/p?%d" % number for number in range(40)]
        assert await all_of(await w.h2(), 40) == expected
        wire = await w.replay()
        client = await w.h2()
        assert (await all_of(client, 100))[:40] == expected
        assert wire.outcome.answered == {"exact": 40, "miss": 60}


@pytest.mark.parametrize("window", [None, 1 << 20])
async def test_an_http2_answer_of_any_size_ends(tmp_path: Path, window: int | None) -> None:
    """T-B11: bodies around a frame (16 KiB), the window (64 KiB) and what is sent at once all end their stream."""
    sizes = (1, 16_384, 16_385, 65_535, 65_536, 65_537, 200_000)
    scripts = {b"/%d" % size: reply(simple(b"x" * size)) for size in sizes}
    async with world(tmp_path, scripts) as w:
        await w.record()
        for size in sizes:
            assert len((await w.get(f"/{size}")).body) == size
        await w.replay()
        for size in sizes:
            client = await w.h2(window=window)
            stream = await client.request(f"/{size}")
            await asyncio.wait_for(client.finished(stream), 5)
            assert len(client.body(stream)) == size


async def test_a_died_keepalive_connection_is_tried_once_more_only_where_nothing_came(tmp_path: Path) -> None:
    """T-C9: the reused upstream connection is closed as the second request arrives; a GET is sent again, and the note says so."""
    served = 0

    async def script(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter, _head: bytes) -> None:
        nonlocal served
        served += 1
        if served == 2:
            writer.close()
            return
        writer.write(simple(b"%d" % served))

    async with world(tmp_path, {b"/k": script}) as w:
        await w.record()
        client = await w.client()
        ask = b"GET /k HTTP/1.1\r\nHost: %s\r\n\r\n" % HOST.encode()
        await client.send(ask)
        assert (await client.response()).body == b"1"
        await client.send(ask)
        assert (await client.response()).body == b"3"
        assert any(note.startswith("retried") for note in w.writer.exchanges[1].notes)
        served = 1
        await client.send(b"POST /k HTTP/1.1\r\nHost: %s\r\nContent-Length: 1\r\n\r\nx" % HOST.encode())
        assert (await client.response()).status == 502
        assert w.writer.exchanges[2].ended is Ending.RESET


async def test_the_last_byte_waits_for_the_commit_and_no_other_does(tmp_path: Path) -> None:
    """DESIGN 4, the commit point: acknowledged means end of message sent; the piece that completes a declared length is part of it."""

    async def script(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter, _head: bytes) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n01234")
        await writer.drain()
        await asyncio.sleep(0.02)
        writer.write(b"56789")

    async with world(tmp_path, {b"/w": script, b"/none": reply(simple(b"")), b"/sse": events(2, 0.01)}) as w:
        await w.record()
        w.writer.hold = True

        async def held(path: bytes, before: bytes, after: bytes) -> None:
            client = await w.client()
            await client.send(b"GET %s HTTP/1.1\r\nHost: %s\r\n\r\n" % (path, HOST.encode()))
            if before:
                await client.until(before)
            await until(lambda: w.writer.waiting)
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(client.reader.read(1), 0.05)
            w.writer.waiting.pop()()
            assert await client.until(after)

        await held(b"/w", b"01234", b"56789")
        await held(b"/none", b"", b"\r\n\r\n")
        await held(b"/sse", b"data: 1\n\n\r\n", b"0\r\n\r\n")


async def test_an_answer_that_came_whole_goes_on_in_one_piece_but_not_to_a_client_that_is_still_sending(tmp_path: Path) -> None:
    """DESIGN 8: one record of TLS and one write where two say no more; who uploads must hear at once that it was refused."""

    async def refuse(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter, _head: bytes) -> None:
        writer.write(simple(b"enough", status=b"413 Content Too Large"))

    async with world(tmp_path, {b"/whole": reply(simple(b"whole")), b"/refuse": refuse}) as w:
        await w.record()
        w.writer.hold = True
        client = await w.client()
        await client.send(b"GET /whole HTTP/1.1\r\nHost: %s\r\n\r\n" % HOST.encode())
        await until(lambda: w.writer.waiting)
        w.writer.waiting.pop()()
        assert (await client.reader.read(65_536)).endswith(b"\r\n\r\nwhole")
        await client.send(b"POST /refuse HTTP/1.1\r\nHost: %s\r\nContent-Length: 10\r\n\r\n012" % HOST.encode())
        assert b" 413 " in await client.until(b"\r\n\r\n")
        w.writer.hold = False


async def test_identity_and_gzip_bodies_keep_every_byte(tmp_path: Path) -> None:
    """T-E1: all byte values, CRLF, NUL, and nothing at all."""
    bodies = {b"/all": bytes(range(256)) * 3, b"/crlf": b"\r\n\0\xed\xa0\x80", b"/none": b"", b"/gz": gzip.compress(b"x" * 1000)}
    async with world(tmp_path, {path: reply(simple(body)) for path, body in bodies.items()}) as w:
        await w.record()
        for path, body in bodies.items():
            assert (await w.get(path.decode())).body == body
        await w.replay()
        for path, body in bodies.items():
            assert (await w.get(path.decode())).body == body


async def test_a_large_streamed_body_is_kept_whole(tmp_path: Path) -> None:
    """Stock row 6, T-B8: 2 MB of events over TLS, the origin closes at once after the last byte; and 1 MB with a length."""
    stream = b"".join(b"data: %06d %s\n\n" % (number, b"x" * 1000) for number in range(2000))

    async def closes(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter, _head: bytes) -> None:
        writer.write(SSE + b"".join(chunk(stream[at : at + 7000]) for at in range(0, len(stream), 7000)) + b"0\r\n\r\n")
        await writer.drain()
        writer.close()

    async with world(tmp_path, {b"/sse": closes, b"/big": reply(simple(b"y" * 1_000_000))}) as w:
        await w.record()
        assert (await w.get("/sse")).body == stream
        assert len((await w.get("/big")).body) == 1_000_000
        kept = [exchange.answer for exchange in w.writer.exchanges]
        assert all(answer is not None for answer in kept)
        assert [answer.body.size_bytes for answer in kept if answer is not None] == [len(stream), 1_000_000]
        await w.replay()
        assert (await w.get("/sse")).body == stream
        assert (await w.get("/big")).body == b"y" * 1_000_000


async def test_two_minutes_of_pings_are_played_at_once_and_in_order(tmp_path: Path) -> None:
    """T-B9: comment lines every 15 s for two minutes; `fast` waits for none of them."""
    lines = [b": ping %d\n\n" % number for number in range(8)]
    raw = SSE + b"".join(chunk(line) for line in lines) + b"0\r\n\r\n"
    async with world(tmp_path, {b"/p": reply(raw)}) as w:
        await w.record()
        await w.get("/p")
        exchange = w.writer.exchanges[0]
        assert exchange.answer is not None
        spread = tuple(replace(piece, offset_us=15_000_000 * number) for number, piece in enumerate(exchange.answer.body.pieces))
        w.writer.exchanges[0] = replace(exchange, answer=replace(exchange.answer, body=replace(exchange.answer.body, pieces=spread)))
        await w.replay(pace=Pace.FAST)
        began = time.monotonic()
        got = await w.get("/p")
        assert time.monotonic() - began < 5  # one gap alone is 15 s
        assert got.body == b"".join(lines)


async def test_two_first_requests_for_one_file_each_get_all_of_it(tmp_path: Path) -> None:
    """T-N6: in parallel while recording; both whole, and one body kept."""
    wheel = bytes(range(256)) * 2000
    together = asyncio.Event()
    asked = 0

    async def script(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter, _head: bytes) -> None:
        nonlocal asked
        asked += 1
        if asked == 2:
            together.set()
        await together.wait()
        writer.write(simple(wheel))

    async with world(tmp_path, {b"/files/a-1.0-py3-none-any.whl": script}) as w:
        await w.record()
        first, second = await asyncio.gather(*(w.get("/files/a-1.0-py3-none-any.whl") for _ in range(2)))
        assert first.body == second.body == wheel
        assert [len(body) for body in w.writer.bodies.values() if body] == [len(wheel)]


async def test_a_package_that_is_gone_is_still_there_in_replay(tmp_path: Path) -> None:
    """T-N3: yanked or deleted after recording; the index of today is not asked."""
    page = reply(simple(b'<a href="a-1.0.tar.gz">a</a>', fields=b"Content-Type: text/html\r\n"))
    async with world(tmp_path, {b"/simple/a/": page}) as w:
        await w.record()
        live = await w.get("/simple/a/")
        w.origin.scripts[b"/simple/a/"] = reply(simple(b"gone", status=b"404 Not Found"))
        await w.replay()
        assert (await w.get("/simple/a/")).raw == live.raw

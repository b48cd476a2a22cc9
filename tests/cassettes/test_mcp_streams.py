"""What an MCP server says on a stream that stays open, each event after the message it came after."""

from __future__ import annotations

from dataclasses import replace

from secondtake.cassettes.exchange import Answer, Body, Channel, Ending, Piece, Request
from secondtake.cassettes.mcp_streams import STOPPED, is_held
from secondtake.cassettes.memory import MemoryCassette, digest_of
from secondtake.cassettes.player import Live, Player, Serve, Session
from tests.cassettes.test_as_asked import EVENTS, JSON
from tests.cassettes.test_rpc import line

GET = Request("GET", "https", "mcp.example", 443, b"/sse")
POST = Request("POST", "https", "mcp.example", 443, b"/messages/?session_id=5", fields=JSON)


def event(data: bytes) -> bytes:
    """One server-sent event."""
    return b"event: message\r\ndata: " + data.strip() + b"\r\n\r\n"


ENDPOINT = b"event: endpoint\r\ndata: /messages/?session_id=5\r\n\r\n"
ONE, TWO = event(line(id=1, result="one")), event(line(id=2, result="two"))
LOG = event(line(method="notifications/message"))


def session(*events: tuple[bytes, int], ended: Ending = Ending.CLIENT_LEFT) -> tuple[Session, Serve]:
    """A stream opened at once, and two messages posted 10 and 20 ms later; its events at their times, in microseconds."""
    cassette = MemoryCassette()
    content = b"".join(data for data, _ in events)
    cassette.record(GET, Answer(200, fields=EVENTS), received=content, channel=Channel.MCP, ended=ended, started_us=0, ended_us=99_000)
    exchange = cassette.exchanges[1]
    assert exchange.answer is not None
    body = Body(exchange.answer.body.digest, len(content), tuple(Piece(len(data), at_us) for data, at_us in events))
    cassette.exchanges[1] = replace(exchange, answer=replace(exchange.answer, body=body))
    for number in (1, 2):
        asked = line(id=number, method="tools/call", params={"n": number})
        cassette.record(POST, Answer(202), sent=asked, channel=Channel.MCP, started_us=number * 10_000)
    played = Player(cassette).session()
    found = played.answer(GET, Live(0, digest_of(b""), b""))
    assert isinstance(found, Serve)
    return played, found


def test_a_reply_waits_for_its_request_and_anything_else_for_the_latest() -> None:
    """Issue 4, item 6: MCP over SSE; in order relative to what triggered them."""
    played, stream = session((ENDPOINT, 1_000), (LOG, 15_000), (TWO, 25_000), (LOG, 26_000), (ONE, 30_000))
    found = played.moments(stream)
    assert found is not None
    assert [(one.data, one.after) for one in found] == [(ENDPOINT, None), (LOG, 2), (TWO, 3), (LOG, 3), (ONE, 2)]


def test_events_that_came_in_one_piece_or_in_parts_are_told_apart() -> None:
    """Chunks are not events."""
    played, stream = session((ENDPOINT + ONE[:10], 1_000), (ONE[10:] + TWO, 26_000), (b": ping", 27_000))
    found = played.moments(stream)
    assert found is not None
    assert [one.data for one in found] == [ENDPOINT, ONE, TWO, b": ping"]


def test_what_was_asked_is_remembered_and_told_to_who_listens() -> None:
    """The wire waits for it."""
    played, _ = session((ENDPOINT, 1_000))
    stirred: list[int] = []
    played.on_heard.add(lambda: stirred.append(1))
    live = line(id=7, method="tools/call", params={"n": 1})
    played.answer(POST, Live(len(live), digest_of(live), live))
    assert (played.heard, stirred) == ({2: live}, [1])


def test_a_stream_that_the_server_ended_is_played_as_any_answer() -> None:
    """Only what its client ended would have gone on."""
    played, stream = session((ENDPOINT, 1_000), ended=Ending.COMPLETE)
    assert played.moments(stream) is None


def test_a_stream_that_was_open_when_the_recording_ended_was_held_too() -> None:
    """An agent that ends leaves its streams to the kernel."""
    _, stream = session((ENDPOINT, 1_000), ended=Ending.RESET)
    assert (is_held(stream), is_held(stream, [STOPPED])) == (False, True)

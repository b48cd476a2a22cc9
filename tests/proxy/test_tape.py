"""A tape ends once, tells how, and its commit waits for the disk."""

from __future__ import annotations

import asyncio

from secondtake.cassettes.errors import NotStored
from secondtake.cassettes.exchange import Channel, Ending, Request
from secondtake.cassettes.redact import Redactor
from secondtake.proxy.outcome import Outcome
from secondtake.proxy.tape import Tape, Tapes
from tests.proxy.world import MemoryWriter

REQUEST = Request("POST", "https", "api.provider.example", 443, b"/v1/messages", fields=((b"Content-Type", b"application/json"),))
BODY = b'{"model":"m","max_tokens":1,"messages":[{"role":"user","content":"hi"}]}'


def tapes(writer: MemoryWriter) -> Tapes:
    return Tapes(writer, Redactor(key=b"k" * 32), lambda: 5, Outcome())  # type: ignore[arg-type]  # as much of a writer as is used


async def test_sequence_numbers_are_in_order_of_request_start() -> None:
    writer = MemoryWriter()
    made, beside = tapes(writer), set[Tape]()
    first, second = made.begin(REQUEST, Channel.WEB, beside), made.begin(REQUEST, Channel.WEB, beside)
    for tape in (second, first):
        future = tape.cut(Ending.RESET, "x")
        assert future is not None
        await future
    assert [exchange.seq for exchange in writer.exchanges] == [2, 1]
    assert beside == set()


async def test_a_tape_ends_once() -> None:
    writer = MemoryWriter()
    tape = tapes(writer).begin(REQUEST, Channel.WEB, set())
    assert tape.cut(Ending.CLIENT_LEFT, "gone") is not None
    assert tape.cut(Ending.RESET, "again") is None
    assert tape.ended is Ending.CLIENT_LEFT
    assert len(writer.exchanges) == 1


async def test_a_body_may_say_more_of_its_channel_than_its_head() -> None:
    """Recognised by shape: on an unknown path only the body tells a model call."""
    writer = MemoryWriter()
    request = Request("POST", "https", "gateway.example", 443, b"/proxy", fields=REQUEST.fields)
    tape = tapes(writer).begin(request, Channel.WEB, set())
    tape.request_piece(BODY)
    tape.request_end()
    tape.cut(Ending.RESET, "x")
    assert (writer.exchanges[0].channel, writer.exchanges[0].adapter) == (Channel.MODEL, "anthropic")


async def test_after_the_disk_refused_nothing_more_is_written() -> None:
    """B-05: told once, and the traffic goes on."""
    writer = MemoryWriter()
    writer.error = NotStored("full", reason="ENOSPC")
    outcome = Outcome()
    made = Tapes(writer, Redactor(key=b"k" * 32), lambda: 5, outcome)  # type: ignore[arg-type]
    future = made.begin(REQUEST, Channel.WEB, set()).cut(Ending.RESET, "x")
    assert future is not None
    assert await future is writer.error
    assert outcome.failed is writer.error


async def test_stopping_ends_what_is_open_after_a_grace() -> None:
    writer = MemoryWriter()
    made = tapes(writer)
    made.begin(REQUEST, Channel.WEB, set())
    await asyncio.wait_for(made.drained(0.01), 5)
    assert writer.exchanges[0].ended is Ending.RESET
    assert "stopped" in writer.exchanges[0].notes[0]

"""What is heard on an upgraded connection goes onto its tape, whatever it is."""

from __future__ import annotations

import pytest

from secondtake.cassettes import frames
from secondtake.cassettes.exchange import Answer, Channel, Ending, Exchange, Request, Side
from secondtake.cassettes.redact import Redactor
from secondtake.cassettes.websocket import Message, Opcode, close, frame
from secondtake.proxy.outcome import Outcome
from secondtake.proxy.tape import Tapes
from secondtake.proxy.taps import Tap
from tests.proxy.talking import messages
from tests.proxy.world import MemoryWriter

UPGRADE = Request("GET", "https", "api.provider.example", 443, b"/v1/responses", fields=((b"Upgrade", b"websocket"),))
MASK = b"abcd"


def sent(text: str) -> bytes:
    return frame(Message(Opcode.TEXT, text.encode()), mask=MASK)


def said(text: str) -> bytes:
    return frame(Message(Opcode.TEXT, text.encode()))


class Socket:
    """One socket being tapped."""

    def __init__(self) -> None:
        self.writer = MemoryWriter()
        redactor = Redactor(key=b"k" * 32)
        tapes = Tapes(self.writer, redactor, lambda: 0, Outcome())  # type: ignore[arg-type]  # as much of a writer as is used
        self.tape = tapes.begin(UPGRADE, Channel.MODEL, set())
        self.tape.response_head(Answer(101))
        self.tap = Tap(self.tape, redactor, UPGRADE, Channel.MODEL)

    def end(self, how: Ending) -> Exchange:
        self.tape.cut(self.tap.finish(how), "over")
        return self.writer.exchanges[0]


async def test_messages_of_both_sides_are_kept_in_the_order_they_came() -> None:
    socket = Socket()
    socket.tap.request_piece(sent('{"type":"response.create","model":"m","input":"x"}')[:9])
    socket.tap.response_piece(said("early"))
    socket.tap.request_piece(sent('{"type":"response.create","model":"m","input":"x"}')[9:])
    exchange = socket.end(Ending.CLIENT_LEFT)
    assert [(entry.side, entry.data[:5]) for entry in messages(socket.writer)] == [(Side.RESPONSE, b"early"), (Side.REQUEST, b'{"typ')]
    assert (exchange.adapter, exchange.ended, frames.ended_by(exchange)) == ("openai-responses", Ending.CLIENT_LEFT, "client")


@pytest.mark.parametrize("raw", [b"\xc1\x05abcde", b"\x81\x81abcda", b"\xff" * 9])
async def test_what_is_no_frame_is_kept_as_bytes_and_the_other_side_is_still_read(raw: bytes) -> None:
    """T-L6: a compressed frame nobody agreed on, a masked one of a server, noise."""
    socket = Socket()
    socket.tap.response_piece(said("fine"))
    for _ in range(2):
        socket.tap.response_piece(raw)
    socket.tap.request_piece(sent("still read"))
    exchange = socket.end(Ending.RESET)
    assert [(entry.opcode, entry.data) for entry in messages(socket.writer)] == [
        (1, b"fine"),
        (frames.BYTES, raw),
        (frames.BYTES, raw),
        (1, b"still read"),
    ]
    assert len([note for note in exchange.notes if note.startswith("websocket: ")]) == 1


async def test_a_message_cut_by_the_end_is_kept_as_far_as_it_came() -> None:
    socket = Socket()
    socket.tap.response_piece(said("a whole one") + said("half of this")[:6])
    exchange = socket.end(Ending.COMPLETE)
    assert [(entry.data, bool(entry.flags & frames.Flag.CUT)) for entry in messages(socket.writer)] == [
        (b"a whole one", False),
        (b"half", True),
    ]
    assert (exchange.ended, frames.ended_by(exchange)) == (Ending.RESET, "origin")


@pytest.mark.parametrize("how", [Ending.RESET, Ending.CLIENT_LEFT, Ending.COMPLETE])
async def test_after_a_close_frame_any_end_is_a_good_one(how: Ending) -> None:
    socket = Socket()
    socket.tap.request_piece(frame(close(1000), mask=MASK))
    exchange = socket.end(how)
    assert (exchange.ended, frames.ended_by(exchange)) == (Ending.COMPLETE, "closed")


async def test_a_client_that_leaves_when_every_call_was_answered_leaves_nothing_cut() -> None:
    """AGENTS 3: Codex drops its socket at the end; the same as an answer over HTTP whose last event was relayed."""
    socket = Socket()
    socket.tap.request_piece(sent('{"type":"response.create","model":"m","input":"x"}'))
    socket.tap.response_piece(said('{"type":"response.created"}') + said('{"type":"response.completed"}'))
    exchange = socket.end(Ending.CLIENT_LEFT)
    assert (exchange.ended, frames.ended_by(exchange)) == (Ending.COMPLETE, "client")


async def test_a_recorder_that_stops_first_leaves_a_list_without_an_end() -> None:
    """The list stands on the exchange from the beginning: nobody has to hand it in."""
    socket = Socket()
    socket.tap.response_piece(said("a"))
    socket.tape.cut(Ending.RESET, "the recording was stopped")
    assert [entry.data for entry in messages(socket.writer)] == [b"a"]
    assert frames.ended_by(socket.writer.exchanges[0]) is None
    assert socket.tap.finish(Ending.RESET) is Ending.RESET


async def test_too_many_messages_are_said_once_and_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """B-11."""
    monkeypatch.setattr("secondtake.cassettes.limits.SOCKET_MESSAGES", 2)
    socket = Socket()
    socket.tap.response_piece(said("a") * 5)
    exchange = socket.end(Ending.RESET)
    assert len(messages(socket.writer)) == 2
    assert [note for note in exchange.notes if "more messages" in note] == [exchange.notes[0]]

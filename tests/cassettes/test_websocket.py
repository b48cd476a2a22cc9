"""Frames read and written as RFC 6455 has them, however they are cut and whatever they hold."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st
from wsproto.connection import Connection, ConnectionType
from wsproto.events import BytesMessage, CloseConnection, Event, Ping, TextMessage

from secondtake.cassettes.websocket import NO_STATUS, Message, Opcode, Reader, Unreadable, accepted, close, frame, without_extensions

MASK = b"\x01\x02\x03\x04"

data = st.one_of(
    st.builds(Message, st.just(Opcode.TEXT), st.text().map(str.encode)),
    st.builds(Message, st.just(Opcode.BINARY), st.binary(max_size=70_000)),
    st.builds(Message, st.sampled_from((Opcode.PING, Opcode.PONG)), st.binary(max_size=125)),
)


@given(st.lists(data, max_size=6), st.one_of(st.none(), st.binary(min_size=4, max_size=4)), st.integers(1, 5000))
def test_what_was_written_is_read_however_it_is_cut(said: list[Message], mask: bytes | None, step: int) -> None:
    """Every length form, masked or not, in any pieces."""
    raw = b"".join(frame(message, mask=mask) for message in said)
    reader = Reader(masked=mask is not None)
    assert [message for at in range(0, len(raw), step) for message in reader.feed(raw[at : at + step])] == said
    assert reader.unfinished is None


@given(st.lists(st.binary(max_size=300), min_size=1, max_size=5))
def test_fragments_are_one_message_with_control_frames_between(parts: list[bytes]) -> None:
    """RFC 6455 5.4."""
    raw = b""
    for number, part in enumerate(parts):
        last = number == len(parts) - 1
        one = bytearray(frame(Message(Opcode.BINARY, part), mask=MASK))
        one[0] = (0x80 if last else 0) | (0 if number else Opcode.BINARY)
        raw += bytes(one) + (b"" if last else frame(Message(Opcode.PING, b"?"), mask=MASK))
    whole = list(Reader(masked=True).feed(raw))
    assert whole[-1] == Message(Opcode.BINARY, b"".join(parts))
    assert len(whole) == len(parts)


@pytest.mark.parametrize("masked", [True, False])
def test_another_implementation_reads_what_is_written_here_and_is_read(masked: bool) -> None:
    """wsproto's own connection at the other end."""
    other = Connection(ConnectionType.SERVER if masked else ConnectionType.CLIENT)
    said = [
        Message(Opcode.TEXT, "ä\u2028".encode()),
        Message(Opcode.BINARY, b"\x00" * 70_000),
        close(4001, "why"),
    ]
    other.receive_data(b"".join(frame(message, mask=MASK if masked else None) for message in said))
    heard = list(other.events())
    assert isinstance(heard[0], TextMessage)
    assert heard[0].data == "ä\u2028"
    assert b"".join(bytes(one.data) for one in heard if isinstance(one, BytesMessage)) == b"\x00" * 70_000
    assert heard[-1] == CloseConnection(4001, "why")
    fresh = Connection(ConnectionType.SERVER if masked else ConnectionType.CLIENT)
    events: list[Event] = [TextMessage("a", message_finished=False), Ping(b"!"), TextMessage("ö"), CloseConnection(1001, "bye")]
    raw = b"".join(fresh.send(event) for event in events)
    reader = Reader(masked=not masked)
    assert list(reader.feed(raw + b"\xff\xff")) == [
        Message(Opcode.PING, b"!"),
        Message(Opcode.TEXT, "aö".encode()),
        close(1001, "bye"),
    ]
    assert reader.closed


@pytest.mark.parametrize(
    ("raw", "code"),
    [
        (b"\xc1\x01a", 1002),  # a compressed frame: no extension was agreed on
        (b"\x81\x81\x01\x02\x03\x04\x00", 1002),  # masked by a server
        (b"\x83\x00", 1002),  # no such opcode
        (b"\x80\x01a", 1002),  # a continuation of nothing
        (b"\x09\x00", 1002),  # a control frame in fragments
        (b"\x81\x7e\x00\x01a", 1002),  # a length in more bytes than it needs
        (b"\x82\x7f\xff\xff\xff\xff\xff\xff\xff\xff", 1002),
        (b"\x81\x01\xff", 1007),  # text that is not UTF-8
        (b"\x88\x02\x03\xed", 1002),  # 1005 is never sent
        (b"\x88\x01\x03", 1002),
        (b"\x82\x64" + b"x" * 100, 1009),
    ],
)
def test_what_are_no_frames_is_said_with_the_code_a_close_would_give(raw: bytes, code: int) -> None:
    """C-08: hostile input is an error of its own kind, before memory is taken for what a length claims."""
    reader = Reader(masked=False, most_bytes=64)
    with pytest.raises(Unreadable) as refused:
        list(reader.feed(raw))
    assert refused.value.code == code
    assert list(reader.feed(b"\x81\x01a")) == []


@given(st.binary(max_size=200))
def test_any_bytes_are_messages_or_unreadable(raw: bytes) -> None:
    """C-08: no other error, and never more than came."""
    reader, heard = Reader(masked=True), list[Message]()
    with contextlib.suppress(Unreadable):
        heard.extend(reader.feed(raw))
    assert all(message.opcode in Opcode for message in heard)
    assert sum(len(message.data) for message in heard) <= len(raw)


def test_a_message_that_never_ended_is_told_as_far_as_it_came() -> None:
    reader = Reader(masked=False)
    assert list(reader.feed(b"\x82\x0aabc")) == []
    assert reader.unfinished == Message(Opcode.BINARY, b"abc")


@pytest.mark.parametrize(("code", "reason"), [(1008, "x" * 500), (1008, "ü" * 100), (1000, "")])
def test_a_close_reason_is_cut_to_a_control_frame_at_a_character(code: int, reason: str) -> None:
    message = close(code, reason)
    assert len(message.data) <= 125
    assert list(Reader(masked=False).feed(frame(message))) == [message]
    assert (message.code, reason.startswith(message.reason)) == (code, True)


def test_a_close_without_a_code_stays_without() -> None:
    assert (close(NO_STATUS).data, close(NO_STATUS).code) == (b"", NO_STATUS)


def test_the_handshake_answers_the_key_that_was_sent_now() -> None:
    """RFC 6455 1.3: its own example."""
    asked = ((b"sec-websocket-key", b"dGhlIHNhbXBsZSBub25jZQ=="), (b"Sec-WebSocket-Extensions", b"permessage-deflate"))
    answer = ((b"Sec-WebSocket-Accept", b"old"), (b"sec-websocket-extensions", b"x"), (b"X", b"y"))
    assert accepted(answer, asked) == ((b"Sec-WebSocket-Accept", b"s3pPLMBiTxaQ9kYGzzhZRbK+xOo="), (b"X", b"y"))
    assert without_extensions(asked) == asked[:1]

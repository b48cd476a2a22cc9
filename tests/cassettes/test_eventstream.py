"""AWS event streams: every bit is covered by a checksum, and cutting never matters."""

from __future__ import annotations

import struct
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from secondtake.cassettes.eventstream import EventStreamReader, Message, encode
from secondtake.cassettes.sse import Broken, Ended, NeedData


def drain(content: bytes, step: int) -> list[Message | Broken]:
    reader = EventStreamReader()
    out: list[Message | Broken] = []
    pieces = [content[i : i + step] for i in range(0, len(content), step)]
    for piece in [*pieces, b""]:
        reader.receive(piece)
        while not isinstance(event := reader.next_event(), NeedData | Ended):
            out.append(event)
            if isinstance(event, Broken):
                return out
    return out


MESSAGES = [Message({":event-type": "chunk", "é": ""}, b'{"a":1}'), Message({}, b""), Message({":message-type": "event"}, b"x" * 300)]
STREAM = b"".join(encode(message.headers, message.payload) for message in MESSAGES)


@pytest.mark.parametrize("step", [1, 7, 1 << 20])
def test_how_bytes_are_cut_never_changes_the_messages(step: int) -> None:
    """A-08."""
    assert drain(STREAM, step) == MESSAGES


@given(st.dictionaries(st.text(min_size=1, max_size=20), st.text(max_size=40), max_size=5), st.binary(max_size=200), st.integers(1, 40))
def test_what_is_written_is_read(headers: dict[str, str], payload: bytes, step: int) -> None:
    """A codec's own property; the header block of botocore's decoder has the same layout."""
    assert drain(encode(headers, payload), step) == [Message(headers, payload)]


def test_every_flipped_bit_is_found() -> None:
    """A-08: a flipped bit is a fault, never other data."""
    stream = encode({":event-type": "chunk"}, b'{"bytes":"YQ=="}')
    for bit in range(len(stream) * 8):
        damaged = bytearray(stream)
        damaged[bit // 8] ^= 1 << bit % 8
        events = drain(bytes(damaged), 1 << 20)
        assert [type(event) for event in events] == [Broken]


def test_a_stream_that_ends_inside_a_message_says_so() -> None:
    """A-09: at every byte but the message's end."""
    stream = encode({"a": "b"}, b"xyz")
    for stop in range(1, len(stream)):
        (broken,) = drain(stream[:stop], 1 << 20)
        assert isinstance(broken, Broken)
        assert broken.kind == "framing"
    assert drain(b"", 1) == []


@pytest.mark.parametrize(
    ("total", "headers", "kind"), [(16 + 200_000, 200_000, "too-large"), (64 << 20, 0, "too-large"), (15, 0, "framing"), (20, 9, "framing")]
)
def test_a_length_is_refused_before_its_bytes_are_waited_for(total: int, headers: int, kind: str) -> None:
    """B-11: with a right checksum, from twelve bytes alone."""
    lengths = struct.pack(">II", total, headers)
    (broken,) = drain(lengths + struct.pack(">I", zlib.crc32(lengths)), 1 << 20)
    assert isinstance(broken, Broken)
    assert broken.kind == kind


@pytest.mark.parametrize(
    "value", [b"\x00", b"\x01", b"\x02a", b"\x03ab", b"\x04abcd", b"\x05abcdefgh", b"\x06\x00\x01z", b"\x08abcdefgh", b"\x09" + b"u" * 16]
)
def test_headers_of_every_type_are_read_past(value: bytes) -> None:
    """Only strings are used; the rest must not stop the reader."""
    block = b"\x01t" + value + b"\x01s\x07\x00\x02ok"
    lengths = struct.pack(">II", len(block) + 16, len(block))
    message = lengths + struct.pack(">I", zlib.crc32(lengths)) + block
    assert drain(message + struct.pack(">I", zlib.crc32(message)), 5) == [Message({"s": "ok"}, b"")]


@pytest.mark.parametrize("block", [b"\xff", b"\x01a", b"\x01a\x07", b"\x01a\x07\x00\x09x", b"\x01a\x0a"])
def test_headers_that_do_not_fit_are_a_fault(block: bytes) -> None:
    """A-08."""
    lengths = struct.pack(">II", len(block) + 16, len(block))
    message = lengths + struct.pack(">I", zlib.crc32(lengths)) + block
    (broken,) = drain(message + struct.pack(">I", zlib.crc32(message)), 1 << 20)
    assert isinstance(broken, Broken)
    assert broken.kind == "framing"

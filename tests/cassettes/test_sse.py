"""Server-sent events: the standard's own rules, and that cutting never matters."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from secondtake.cassettes import limits, sse
from secondtake.cassettes.sse import Broken, Ended, NeedData, SSEEvent, SSEReader


def drain(content: bytes, step: int) -> list[SSEEvent | Broken]:
    """Every event of a stream fed in pieces of `step` bytes."""
    reader = SSEReader()
    out: list[SSEEvent | Broken] = []
    pieces = [content[i : i + step] for i in range(0, len(content), step)]
    for piece in [*pieces, b""]:
        reader.receive(piece)
        while not isinstance(event := reader.next_event(), NeedData | Ended):
            out.append(event)
            if isinstance(event, Broken):
                return out
    assert isinstance(reader.next_event(), Ended)
    return out


STREAM = (
    b"\xef\xbb\xbf: a comment\n"
    b"event: one\r\ndata: first\r\ndata:second\r\nid: 7\r\n\r\n"
    b"data\rdata:  two spaces\r\r"
    b":\n:ping\n\nretry: 10\n\n"
    b"event: dropped, for it has no data\n\n"
    b"data: \xff\xfe\nunknown: x\nid: a\0b\n\n"
    b"data: cut"
)
EVENTS = [
    SSEEvent("one", b"first\nsecond", "7"),
    SSEEvent("", b"\n two spaces", "7"),
    SSEEvent("", b"\xff\xfe", "7"),
    SSEEvent("", b"cut", "7", cut=True),
]


@pytest.mark.parametrize("step", [1, 2, 7, 1 << 20])
def test_how_bytes_are_cut_never_changes_the_events(step: int) -> None:
    """A-08, T-B2: CR, LF, CRLF, byte order mark, comments, several data lines, an event cut by the end."""
    assert drain(STREAM, step) == EVENTS


@given(
    st.lists(st.sampled_from([b"data", b":", b" ", b"\r", b"\n", b"\r\n", b"event", b"id", b"x", b"\xef\xbb\xbf"]), max_size=40),
    st.integers(1, 9),
)
def test_any_stream_cut_anywhere_gives_the_same_events(parts: list[bytes], step: int) -> None:
    """A-08."""
    content = b"".join(parts)
    assert drain(content, step) == drain(content, max(1, len(content)))


def test_a_line_end_is_acted_on_at_once() -> None:
    """T-B1: an event ended by CR CR is given before any byte follows."""
    reader = SSEReader()
    reader.receive(b"data: x\r\r")
    assert reader.next_event() == SSEEvent("", b"x")
    reader.receive(b"\ndata: y\n\n")
    assert reader.next_event() == SSEEvent("", b"y")
    assert isinstance(reader.next_event(), NeedData)


@pytest.mark.parametrize("stream", [b"data: " + b"x" * 64, b"data: 0123456789\n" * 4], ids=["one line", "many lines"])
def test_an_event_over_the_limit_breaks_the_stream(stream: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """B-11: on both sides of the boundary, and what comes later is not kept."""
    monkeypatch.setattr(sse, "SSE_EVENT_BYTES", 32)
    (broken,) = drain(stream, 16)
    assert isinstance(broken, Broken)
    assert broken.kind == "too-large"
    assert drain(b"data: 0123456789\n\n" * 9, 16) == [SSEEvent("", b"0123456789")] * 9
    assert limits.SSE_EVENT_BYTES > 1 << 20

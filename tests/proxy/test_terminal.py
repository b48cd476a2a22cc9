"""A stream of events says that it is over, however its bytes are cut."""

from __future__ import annotations

import pytest

from secondtake.proxy.terminal import Tail

ENDS = [
    b"data: [DONE]\n\n",
    b"data:[DONE]\n\n",
    b'event: message_stop\ndata: {"type":"message_stop"}\n\n',
    b'event: response.completed\ndata: {"type":"response.completed","response":{}}\n\n',
    b'data: {"type": "response.failed"}\r\n\r\n',
    b'data: {"candidates":[{"finishReason": "STOP"}]}\n\n',
]
OPEN = [
    b'data: {"text":"say data: [DONE] and stop"}\n\n',
    b'event: content_block_stop\ndata: {"type":"content_block_stop"}\n\n',
    b'data: {"type":"response.output_text.done"}\n\n',
    b": ping\n\n",
]


@pytest.mark.parametrize("step", [1, 7, 1 << 20])
@pytest.mark.parametrize("end", ENDS)
def test_each_formats_last_event_ends_it(end: bytes, step: int) -> None:
    """T-B3."""
    tail = Tail()
    data = b"data: {}\n\n" * 500 + end
    for offset in range(0, len(data), step):
        tail.feed(data[offset : offset + step])
    assert tail.finished


@pytest.mark.parametrize("step", [1, 7, 1 << 20])
@pytest.mark.parametrize("data", OPEN)
def test_nothing_else_does(data: bytes, step: int) -> None:
    """The words inside an event's text, and the ends of its parts, are not the end."""
    tail = Tail()
    for offset in range(0, len(data), step):
        tail.feed(data[offset : offset + step])
    assert not tail.finished

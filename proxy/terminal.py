"""Whether a stream of server-sent events has said that it is over, so that a client may leave without cutting it short. Pure."""

from __future__ import annotations

import re

TAIL_BYTES = 4096
"""Enough to hold the last events of every format below; a terminal event with a longer payload is found by its first line."""

_TERMINAL = re.compile(
    rb"(?:^|[\r\n])(?:data: ?\[DONE\]"
    rb"|event: ?message_stop[\r\n]"
    rb"|event: ?response\.(?:completed|failed|incomplete)[\r\n]"
    rb'|data: ?\{[^\r\n]*"type": ?"(?:message_stop|response\.(?:completed|failed|incomplete))"'
    rb'|data: ?\{[^\r\n]*"finishReason": ?")'
)
"""Chat Completions `[DONE]`; Messages `message_stop`; Responses `response.completed` and its like; Gemini's finish reason."""


_WORDS = (b"[DONE]", b"message_stop", b"response.", b"finishReason")
"""Looked for before the expression is."""


class Tail:
    """The last bytes of a stream."""

    def __init__(self) -> None:
        self._data = b""
        self.finished = False
        """A terminal event has been seen."""

    def feed(self, data: bytes) -> None:
        """Take the next bytes."""
        if self.finished:
            return
        self._data = (self._data + data)[-TAIL_BYTES - len(data) :]
        if any(word in self._data for word in _WORDS):
            self.finished = _TERMINAL.search(self._data) is not None
        self._data = self._data[-TAIL_BYTES:]

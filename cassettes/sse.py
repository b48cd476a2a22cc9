"""Server-sent events from bytes, as they come (WHATWG HTML, section 9.2). Does no I/O.

Theory of operation. `receive` takes bytes cut anywhere; `next_event` gives one event, or says that it needs more, that the
stream has ended, or that it is broken, as values. Every byte is looked at once. A CR ends a line at once: whether an LF
follows is remembered, not waited for. Comments and `retry` are read and dropped.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from secondtake.cassettes.limits import SSE_EVENT_BYTES

_LINE_END = re.compile(rb"[\r\n]")
_BOM = b"\xef\xbb\xbf"
_TRIM_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True)
class SSEEvent:
    """One event. `name` is "" where the stream gave none (the standard reads that as `message`); `data` is raw, its lines
    joined by LF; `id` is the last event ID seen. `cut`: the stream ended before the blank line that dispatches it."""

    name: str
    data: bytes
    id: str = ""
    cut: bool = False


@dataclass(frozen=True, slots=True)
class NeedData:
    """Nothing whole yet."""


@dataclass(frozen=True, slots=True)
class Ended:
    """The stream has ended and all its events were given."""


@dataclass(frozen=True, slots=True)
class Broken:
    """The stream cannot be read further. `kind` is `too-large`, `checksum`, `framing` or `not-json`."""

    kind: str
    message: str


class SSEReader:
    """Reads one stream. After `receive(b"")` no more may be received; what comes later is ignored."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._begin = 0
        self._scanned = 0
        self._after_cr = False
        self._started = False
        self._ended = False
        self._broken: Broken | None = None
        self._name = ""
        self._data: list[bytes] = []
        self._size = 0
        self._id = ""

    def receive(self, data: bytes) -> None:
        """Take the next bytes; b"" says that the stream has ended."""
        if self._ended or self._broken is not None:
            return
        if data:
            self._buffer += data
        else:
            self._ended = True

    def next_event(self) -> SSEEvent | NeedData | Ended | Broken:
        """Return the next event, or why there is none."""
        if not self._started and not self._skip_mark():
            return NeedData()
        while self._broken is None:
            line = self._line()
            if line is None:
                break
            event = self._take(line)
            if event is not None:
                return event
        if self._broken is not None:
            return self._broken
        return self._finish() if self._ended else NeedData()

    def _skip_mark(self) -> bool:
        """Pass a byte order mark; return False while it cannot be told yet."""
        if len(self._buffer) < len(_BOM) and _BOM.startswith(self._buffer) and not self._ended:
            return False
        if self._buffer.startswith(_BOM):
            self._begin = self._scanned = len(_BOM)
        self._started = True
        return True

    def _line(self) -> bytes | None:
        """Return the next line without its end, or None when it is not whole."""
        if self._after_cr and self._begin < len(self._buffer):
            self._after_cr = False
            if self._buffer[self._begin] == 0x0A:
                self._begin += 1
                self._scanned = max(self._scanned, self._begin)
        match = _LINE_END.search(self._buffer, self._scanned)
        if match is None:
            self._scanned = len(self._buffer)
            if self._scanned - self._begin > SSE_EVENT_BYTES:
                self._break_off()
            return None
        line = bytes(self._buffer[self._begin : match.start()])
        self._after_cr = match[0] == b"\r"
        self._begin = self._scanned = match.end()
        if self._begin > _TRIM_BYTES:
            del self._buffer[: self._begin]
            self._begin = self._scanned = 0
        return line

    def _take(self, line: bytes) -> SSEEvent | None:
        if not line:
            return self._dispatch()
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        match name:
            case b"data":
                self._size += len(value) + 1
                if self._size > SSE_EVENT_BYTES:
                    self._break_off()
                self._data.append(value)
            case b"event":
                self._name = value.decode("utf-8", "replace")
            case b"id" if b"\0" not in value:
                self._id = value.decode("utf-8", "replace")
        return None

    def _dispatch(self, *, cut: bool = False) -> SSEEvent | None:
        event = SSEEvent(self._name, b"\n".join(self._data), self._id, cut) if self._data else None
        self._forget()
        return event

    def _finish(self) -> SSEEvent | Ended:
        """At the end: the standard drops an event without its blank line; here it is given, marked as cut."""
        rest = bytes(self._buffer[self._begin :])
        self._begin = self._scanned = len(self._buffer)
        if rest:
            self._take(rest)
        return self._dispatch(cut=True) or Ended()

    def _forget(self) -> None:
        self._name = ""
        self._data = []
        self._size = 0

    def _break_off(self) -> None:
        self._broken = Broken("too-large", f"a server-sent event is longer than {SSE_EVENT_BYTES} bytes")
        self._buffer.clear()
        self._data.clear()

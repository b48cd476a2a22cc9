"""JSON texts one by one out of a stream: the elements of one array, or one per line. Does no I/O; manners as `SSEReader`."""

from __future__ import annotations

import re
from dataclasses import dataclass

from secondtake.cassettes.limits import SSE_EVENT_BYTES
from secondtake.cassettes.sse import Broken, Ended, NeedData

_OUTSIDE = re.compile(rb'["\[\]{}]')
_INSIDE = re.compile(rb'["\\]')
_BETWEEN = re.compile(rb"[ \t\r\n,]*+")
_TRIM_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True)
class Element:
    """One JSON text, not yet parsed. `cut`: the stream ended inside it."""

    data: bytes
    cut: bool = False


class ArrayReader:
    """Gives the elements of a JSON array of objects as each becomes whole (Gemini's stream without `alt=sse`)."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._begin = 0
        self._scanned = 0
        self._depth = 0
        self._in_string = False
        self._opened = False
        self._ended = False
        self._broken: Broken | None = None
        self.closed = False
        """The array's own end has been seen."""

    def receive(self, data: bytes) -> None:
        """Take the next bytes; b"" says that the stream has ended."""
        if self._ended or self._broken is not None:
            return
        if data:
            self._buffer += data
        else:
            self._ended = True

    def next_event(self) -> Element | NeedData | Ended | Broken:
        """Return the next element, or why there is none."""
        if self._broken is not None:
            return self._broken
        if self.closed:
            return Ended() if self._ended else NeedData()
        if self._depth == 0 and not self._between():
            return self._broken or (Ended() if self._ended else NeedData())
        return self._element()

    def _between(self) -> bool:
        """Move on to the first byte of an element; return False when there is none yet, none any more, or none possible."""
        match = _BETWEEN.match(self._buffer, self._begin)
        self._begin = self._scanned = match.end() if match else self._begin
        if self._begin == len(self._buffer):
            return False
        mark = self._buffer[self._begin]
        if not self._opened:
            if mark != ord("["):
                self._broken = Broken("not-json", "the stream is no JSON array")
                return False
            self._opened = True
            self._begin += 1
            return self._between()
        if mark == ord("]"):
            self.closed = True
            return False
        if mark != ord("{"):
            self._broken = Broken("not-json", "an element of the array is no object")
            return False
        return True

    def _element(self) -> Element | NeedData | Broken:
        while True:
            match = (_INSIDE if self._in_string else _OUTSIDE).search(self._buffer, self._scanned)
            if match is None:
                self._scanned = len(self._buffer)
                return self._unfinished()
            mark = match[0]
            if mark == b"\\":
                if match.end() == len(self._buffer):
                    self._scanned = match.start()
                    return self._unfinished()
                self._scanned = match.end() + 1
                continue
            self._scanned = match.end()
            if mark == b'"':
                self._in_string = not self._in_string
                continue
            self._depth += 1 if mark in b"{[" else -1
            if self._depth == 0:
                return self._cut(self._scanned)

    def _unfinished(self) -> Element | NeedData | Broken:
        if self._scanned - self._begin > SSE_EVENT_BYTES:
            self._broken = Broken("too-large", f"an element of the array is longer than {SSE_EVENT_BYTES} bytes")
            self._buffer.clear()
            return self._broken
        if not self._ended:
            return NeedData()
        element = Element(bytes(self._buffer[self._begin :]), cut=True)
        self._begin = self._scanned = len(self._buffer)
        self._depth, self._in_string = 0, False
        return element

    def _cut(self, stop: int) -> Element:
        element = Element(bytes(self._buffer[self._begin : stop]))
        self._begin = self._scanned = stop
        if self._begin > _TRIM_BYTES:
            del self._buffer[: self._begin]
            self._begin = self._scanned = 0
        return element


class LinesReader:
    """Gives one JSON text per line (Ollama, NDJSON). Empty lines are passed over."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._begin = 0
        self._scanned = 0
        self._ended = False
        self._broken: Broken | None = None

    def receive(self, data: bytes) -> None:
        """Take the next bytes; b"" says that the stream has ended."""
        if self._ended or self._broken is not None:
            return
        if data:
            self._buffer += data
        else:
            self._ended = True

    def next_event(self) -> Element | NeedData | Ended | Broken:
        """Return the next line, or why there is none."""
        while self._broken is None:
            stop = self._buffer.find(b"\n", self._scanned)
            if stop < 0:
                self._scanned = len(self._buffer)
                if self._scanned - self._begin > SSE_EVENT_BYTES:
                    self._broken = Broken("too-large", f"a line is longer than {SSE_EVENT_BYTES} bytes")
                    self._buffer.clear()
                    break
                return self._last() if self._ended else NeedData()
            line = bytes(self._buffer[self._begin : stop]).strip()
            self._begin = self._scanned = stop + 1
            if self._begin > _TRIM_BYTES:
                del self._buffer[: self._begin]
                self._begin = self._scanned = 0
            if line:
                return Element(line)
        assert self._broken is not None
        return self._broken

    def _last(self) -> Element | Ended:
        line = bytes(self._buffer[self._begin :]).strip()
        self._begin = len(self._buffer)
        return Element(line, cut=True) if line else Ended()

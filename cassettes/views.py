"""Content seen without one layer of escaping, with the way back to the bytes it came from.

A secret in JSON may be written `sk\\u002dant`, in a URL `sk%2Dant`. A view undoes the escapes and maps each found range back.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass

_JSON = re.compile(rb"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|u([0-9a-fA-F]{4})|([\"\\/bfnrt]))")
_PERCENT = re.compile(rb"%([0-9a-fA-F]{2})")
_SIMPLE = {b"b": b"\b", b"f": b"\f", b"n": b"\n", b"r": b"\r", b"t": b"\t"}
_JSON_HIDES = re.compile(rb"\\u00[2-7]")
LAYERS = 3
"""JSON inside JSON inside JSON: as deep as tool calls that hold patches that hold configuration go."""


@dataclass(frozen=True, slots=True)
class View:
    """Bytes with one layer undone. `starts` and `ends` hold, per undone escape, its range here and there."""

    content: bytes
    here: tuple[int, ...]
    there: tuple[int, ...]
    here_ends: tuple[int, ...]
    there_ends: tuple[int, ...]

    def locate(self, start: int, stop: int) -> tuple[int, int]:
        """The range in the bytes this was made from that covers `start:stop` here."""
        return self._edge(start, last=False), self._edge(stop - 1, last=True)

    def _edge(self, position: int, *, last: bool) -> int:
        index = bisect_right(self.here, position) - 1
        if index < 0:
            return position + 1 if last else position
        if position < self.here_ends[index]:
            return self.there_ends[index] if last else self.there[index]
        at = self.there_ends[index] + position - self.here_ends[index]
        return at + 1 if last else at


def _undo(content: bytes, pattern: re.Pattern[bytes], decode: Callable[[re.Match[bytes]], bytes]) -> View | None:
    parts: list[bytes] = []
    here: list[int] = []
    there: list[int] = []
    here_ends: list[int] = []
    there_ends: list[int] = []
    at = size = 0
    for found in pattern.finditer(content):
        start, stop = found.span()
        unit = decode(found)
        parts += (content[at:start], unit)
        size += start - at
        here.append(size)
        there.append(start)
        size += len(unit)
        here_ends.append(size)
        there_ends.append(stop)
        at = stop
    if not here:
        return None
    parts.append(content[at:])
    return View(b"".join(parts), tuple(here), tuple(there), tuple(here_ends), tuple(there_ends))


def _json_unit(found: re.Match[bytes]) -> bytes:
    if found[2] is not None:
        return _SIMPLE.get(found[2], found[2])
    if found[1] is not None:
        return chr(int(found[1], 16)).encode("utf-8", "surrogatepass")
    high, low = int(found[0][2:6], 16), int(found[0][8:12], 16)
    return chr(0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00)).encode()


def _percent_unit(found: re.Match[bytes]) -> bytes:
    return bytes((int(found[1], 16),))


def unescaped(content: bytes) -> View | None:
    """`content` with JSON string escapes undone once; None when it has none."""
    return _undo(content, _JSON, _json_unit) if b"\\" in content else None


def unquoted(content: bytes) -> View | None:
    """`content` with percent-escapes undone once; None when it has none."""
    return _undo(content, _PERCENT, _percent_unit) if b"%" in content else None


def views(content: bytes) -> Iterator[tuple[View, ...]]:
    """Every view worth searching, as the chain of layers from `content` on; the last one is what to search.

    A JSON layer is looked at only where a printable ASCII character was written as `\\u00xx`: what JSON escapes as a rule is found
    literally (needles.py).
    """
    chain: tuple[View, ...] = ()
    layers: list[tuple[View, ...]] = [()]
    if _JSON_HIDES.search(content):
        current = content
        for _ in range(LAYERS):
            view = unescaped(current)
            if view is None:
                break
            chain = (*chain, view)
            layers.append(chain)
            yield chain
            current = view.content
    for layer in layers:
        view = unquoted(layer[-1].content if layer else content)
        if view is None:
            continue
        yield (*layer, view)
        again = unquoted(view.content)
        if again is not None:
            yield (*layer, view, again)


def locate(chain: tuple[View, ...], start: int, stop: int) -> tuple[int, int]:
    """Map a range in the last view of `chain` back to the content the chain began with."""
    for view in reversed(chain):
        start, stop = view.locate(start, stop)
    return start, stop

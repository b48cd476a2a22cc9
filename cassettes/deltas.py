"""Text that an answer gives in pieces over the events of a stream, put together again, so that what is cut over them can be found.

Works on lines: server-sent events, JSON lines, and the array that Gemini streams. A piece is the string under one of FIELDS; pieces of
one field that stand under the same numbers (block, choice, tool call, item) are one text. Pieces are taken as they are written,
escapes and all, so that a place in the text is a place in the content. Nothing is parsed: the wire's formats meet in these names.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate

from secondtake.cassettes import limits
from secondtake.cassettes.errors import TooLarge
from secondtake.cassettes.exchange import Redaction, Side
from secondtake.cassettes.needles import Hit

FIELDS = b"text thinking partial_json content reasoning_content reasoning refusal arguments delta input response".split()
"""Anthropic's deltas; those of Chat Completions and what speaks like it; of Responses, whose event's type says what `delta` is; Gemini's
parts; Ollama's. Signatures and encrypted reasoning are not among them."""

_PIECE = re.compile(rb'"(' + b"|".join(FIELDS) + rb')"[ \t]*:[ \t]*"((?:[^"\\\r\n]++|\\.)*+)"')
_NUMBERS = re.compile(rb'"(?:index|output_index|content_index|summary_index|item_id)"[ \t]*:[ \t]*("[^"\r\n]*"|[0-9]+)')
_STREAMS = frozenset((b"text/event-stream", b"application/x-ndjson", b"application/jsonl", b"application/x-jsonlines"))


class Thread:
    """One text, and where each piece of it stands in the content."""

    def __init__(self, pieces: Sequence[tuple[int, bytes]]) -> None:
        """Of each piece its place in the content, and itself."""
        self.pieces = pieces
        self.text = b"".join([piece for _, piece in pieces])
        self._ends: list[int] = []

    def ranges(self, start: int, stop: int) -> list[tuple[int, int]]:
        """The ranges of the content that are `start:stop` of the text."""
        if not self._ends:
            self._ends = list(accumulate(len(piece) for _, piece in self.pieces))
        found: list[tuple[int, int]] = []
        for index in range(bisect_right(self._ends, start), len(self._ends)):
            place, piece = self.pieces[index]
            begin = self._ends[index] - len(piece)
            if begin >= stop:
                break
            found.append((place + max(start - begin, 0), place + min(stop - begin, len(piece))))
        return found


def is_stream(media: bytes, content: bytes) -> bool:
    """Whether a body may give text in pieces."""
    return media in _STREAMS or (content[:64].lstrip()[:1] == b"[" and b'"candidates"' in content[:4096])


def threads(content: bytes) -> Iterator[Thread]:
    """The texts that are given in more than one piece: under their numbers, and, as numbers come and go, by their field alone."""
    found: dict[bytes, dict[tuple[bytes, ...], list[tuple[int, bytes]]]] = {name: {} for name in FIELDS}
    line_end = -1
    numbers: tuple[bytes, ...] = ()
    for piece in _PIECE.finditer(content):
        name, text = piece.groups()
        place = piece.start(2)
        if place > line_end:
            line_end = content.find(b"\n", place)
            line_end = len(content) if line_end < 0 else line_end
            numbers = tuple(_NUMBERS.findall(content, content.rfind(b"\n", 0, place) + 1, line_end))
        if text:
            found[name].setdefault(numbers, []).append((place, text))
    for groups in found.values():
        apart = list(groups.values())
        together = [sorted(piece for group in apart for piece in group)] if len(apart) > 1 else []
        yield from (Thread(group) for group in (*apart, *together) if len(group) > 1)


def scattered(content: bytes, find: Callable[[bytes], list[Hit]]) -> list[tuple[Hit, list[tuple[int, int]]]]:
    """What `find` finds in the texts and that stands in more than one piece: the hit, with its range in its text, and the pieces' ranges.

    No two overlap.
    """
    found: list[tuple[Hit, list[tuple[int, int]]]] = []
    taken: set[int] = set()
    for thread in threads(content):
        for hit in sorted(find(thread.text), key=lambda one: (one.start, -one.stop)):
            ranges = thread.ranges(hit.start, hit.stop)
            bytes_of = {at for start, stop in ranges for at in range(start, stop)}
            if len(ranges) > 1 and taken.isdisjoint(bytes_of):
                taken |= bytes_of
                found.append((hit, ranges))
    return found


def hidden(
    content: bytes, find: Callable[[bytes], list[Hit]], replacement: Callable[[Hit, bytes], tuple[bytes, str | None]]
) -> tuple[bytes, tuple[Redaction, ...]]:
    """An answer's `content` with one placeholder for each such hit, cut in the same places. Raises TooLarge."""
    found = scattered(content, find)
    if not found:
        return content, ()
    kept = bytearray(content)
    redactions: list[Redaction] = []
    for hit, ranges in found:
        put, mark = replacement(hit, b"".join([content[start:stop] for start, stop in ranges]))
        for start, stop in ranges:
            kept[start:stop], put = put[: stop - start], put[stop - start :]
            redactions.append(Redaction(Side.RESPONSE, "deltas", start, stop, hit.kind, mark))
    if len(redactions) > limits.REDACTIONS:
        raise TooLarge(f"more than {limits.REDACTIONS} pieces of credentials in one answer")
    return bytes(kept), tuple(redactions)

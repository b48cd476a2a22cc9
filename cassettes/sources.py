"""Bytes put together from other bytes, read in parts: never more in memory than a piece."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Protocol, runtime_checkable

from secondtake.cassettes.content import decoded
from secondtake.cassettes.exchange import Slice, Source


@runtime_checkable
class Unchecked(Protocol):
    """A Source that reads all it has before it gives out a first byte."""

    @property
    def unchecked(self) -> bool:
        """Whether that is still to be done."""
        ...

    def check(self) -> None:
        """Do it now, in whatever thread. Raises Corrupt, as reading does from then on."""
        ...


def unchecked(source: Source) -> Iterator[Unchecked]:
    """What has to be read whole before `source` gives a first byte."""
    match source:
        case Slice():
            yield from unchecked(source.source)
        case Joined():
            for one in source.sources:
                yield from unchecked(one)
        case Unchecked():
            if source.unchecked:
                yield source
        case _:
            pass


SERVED_DECODED_BYTES = 4 * 1024 * 1024 * 1024
"""A recorded body that is decoded for a client that cannot read its coding; costs time, not memory."""


class Joined:
    """Sources one after another."""

    def __init__(self, sources: Sequence[Source]) -> None:
        self.sources = [source for source in sources if source.size_bytes]
        self._ends = list(accumulate(source.size_bytes for source in self.sources))

    @property
    def size_bytes(self) -> int:
        return self._ends[-1] if self._ends else 0

    def read(self, offset: int, size: int) -> bytes:
        pieces: list[bytes] = []
        index = bisect_right(self._ends, offset)
        while size > 0 and index < len(self.sources):
            source = self.sources[index]
            piece = source.read(offset - (self._ends[index] - source.size_bytes), size)
            if not piece:
                break
            pieces.append(piece)
            offset += len(piece)
            size -= len(piece)
            index = bisect_right(self._ends, offset)
        return b"".join(pieces)


class Undone:
    """A Source without its content codings. Read forward it decodes once; a step back begins again.

    Making one decodes the whole to learn its size and that it is sound. Raises TooLarge and BadInput then, and Corrupt when reading.
    """

    def __init__(self, source: Source, names: Sequence[str]) -> None:
        self._source = source
        self._names = tuple(names)
        self._size = sum(len(piece) for piece in self._decoded())
        self._pieces: Iterator[bytes] = iter(())
        self._buffer = b""
        self._at = self._size + 1
        """Where `_buffer` begins; beyond the end before the first read."""

    def _decoded(self) -> Iterator[bytes]:
        return decoded(self._source, self._names, most_bytes=SERVED_DECODED_BYTES)

    @property
    def size_bytes(self) -> int:
        return self._size

    def read(self, offset: int, size: int) -> bytes:
        size = min(size, self._size - offset)
        if size <= 0:
            return b""
        if offset < self._at:
            self._pieces, self._buffer, self._at = self._decoded(), b"", 0
        while self._at + len(self._buffer) <= offset:
            self._at += len(self._buffer)
            self._buffer = next(self._pieces)
        self._buffer, self._at = self._buffer[offset - self._at :], offset
        held = [self._buffer]
        length = len(self._buffer)
        while length < size:
            held.append(next(self._pieces))
            length += len(held[-1])
        self._buffer = b"".join(held)
        return self._buffer[:size]

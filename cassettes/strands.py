"""Bodies of one conversation as ranges of one growing text, which is compressed as one zstd frame that spreads over their frames.

The text of a strand begins with a body that is kept whole, the root. Each further body adds what is new in it and a table of the ranges
that it is made of. So what an agent says again is a few numbers, what it says anew is compressed with all that went before in sight, and
reading any body is one decompression and one joining of ranges. Byte by byte: docs/format.md.
"""

from __future__ import annotations

import struct
from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate, chain
from typing import IO, NamedTuple, cast

import zstandard

from secondtake.cassettes.errors import Corrupt
from secondtake.cassettes.limits import FRAME_DICTIONARY_BYTES, STRAND_RANGES, STRAND_WINDOW_LOG
from secondtake.cassettes.splices import Splice

LEVEL = 8
KEPT_BYTES = 32
"""A shorter range that a body shares with its base is written again: it would cost a range in each body from there on."""


class Range(NamedTuple):
    """Bytes of a strand's text."""

    start: int
    size: int


def follow(base: Sequence[Range], made: Sequence[Splice], new: bytes, at: int) -> tuple[list[Range], bytes]:
    """The ranges of `new`, which is the body at `base` after the splices `made`, and what has to be added to the text at `at` for them."""
    ends = list(accumulate(one.size for one in base))
    ranges: list[Range] = []
    literal: list[bytes] = []
    here = there = written = 0  # in the base, in `new`, and up to where `new` is covered
    for start, stop, size in (*made, Splice(ends[-1], ends[-1], 0)):
        kept = start - here
        if kept >= KEPT_BYTES:
            at = _add(ranges, literal, new[written:there], at)
            _copy(ranges, base, ends, here, start)
            written = there + kept
        there += kept + size
        here = stop
    _add(ranges, literal, new[written:], at)
    return ranges, b"".join(literal)


def _add(ranges: list[Range], literal: list[bytes], data: bytes, at: int) -> int:
    if data:
        literal.append(data)
        _append(ranges, at, len(data))
    return at + len(data)


def _copy(ranges: list[Range], base: Sequence[Range], ends: Sequence[int], start: int, stop: int) -> None:
    """Append what stands from `start` to `stop` of the body whose ranges end at `ends`."""
    number = bisect_right(ends, start)
    while start < stop:
        end = min(ends[number], stop)
        one = base[number]
        _append(ranges, one.start + start - (ends[number] - one.size), end - start)
        start = end
        number += 1


def _append(ranges: list[Range], start: int, size: int) -> None:
    if ranges and ranges[-1].start + ranges[-1].size == start:
        ranges[-1] = Range(ranges[-1].start, ranges[-1].size + size)
    else:
        ranges.append(Range(start, size))


_ENTRY = struct.Struct("<II")


def pack(ranges: Sequence[Range]) -> bytes:
    """Start and size of each range, four bytes each: what stands in the table before as well costs next to nothing compressed."""
    return struct.pack(f"<{2 * len(ranges)}I", *chain.from_iterable(ranges))


def unpack(table: bytes, end: int, size: int) -> list[tuple[int, int]]:
    """Start and stop of each range: the counterpart of `pack`. Raises Corrupt unless they are before `end` and make `size` bytes."""
    if len(table) % _ENTRY.size or len(table) > _ENTRY.size * STRAND_RANGES:
        raise Corrupt("the table of a body's ranges is not one")
    ranges = [(start, start + length) for start, length in _ENTRY.iter_unpack(table)]
    if any(stop > end or stop == start for start, stop in ranges) or sum(stop - start for start, stop in ranges) != size:
        raise Corrupt("a body's ranges are not in the text it is made of, or do not make its size")
    return ranges


class Compressor:
    """Compresses the text of one strand behind its root, body by body. Holds about 2 MiB."""

    def __init__(self, root: bytes) -> None:
        known = zstandard.ZstdCompressionDict(root[-FRAME_DICTIONARY_BYTES:], dict_type=zstandard.DICT_TYPE_RAWCONTENT)
        known.precompute_compress(level=LEVEL)
        how = zstandard.ZstdCompressionParameters.from_level(
            LEVEL, window_log=STRAND_WINDOW_LOG, write_content_size=False, write_dict_id=False
        )
        self._compressor = zstandard.ZstdCompressor(compression_params=how, dict_data=known)
        self._frame = self._compressor.compressobj()

    def add(self, text: bytes) -> bytes:
        """The next blocks: all of `text` can be read from them and those before."""
        return self._frame.compress(text) + self._frame.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK)


class _Blocks:
    """What a decompressor reads from: what it was given last, and no more."""

    def __init__(self) -> None:
        self.data = b""

    def read(self, _: int = -1) -> bytes:
        data, self.data = self.data, b""
        return data


class Text:
    """The text of a strand, as far as it has been read."""

    def __init__(self, root: bytes) -> None:
        """Raises Corrupt."""
        self._text = bytearray(root)
        self._blocks = _Blocks()
        try:
            known = zstandard.ZstdCompressionDict(root[-FRAME_DICTIONARY_BYTES:], dict_type=zstandard.DICT_TYPE_RAWCONTENT)
            decompressor = zstandard.ZstdDecompressor(dict_data=known, max_window_size=1 << STRAND_WINDOW_LOG)
            self._reader = decompressor.stream_reader(cast("IO[bytes]", self._blocks))
        except (zstandard.ZstdError, ValueError) as error:
            raise Corrupt(f"no strand can stand on such a body: {error}") from error

    def __len__(self) -> int:
        return len(self._text)

    def grow(self, blocks: bytes, size: int) -> None:
        """Add what `blocks` hold, which must be `size` bytes; not one more is unpacked. Raises Corrupt, and is of no use from then on."""
        self._blocks.data = blocks
        try:
            more = self._reader.read(size) if size else b""
        except (zstandard.ZstdError, MemoryError) as error:
            raise Corrupt(f"a strand cannot be unpacked: {error}") from error
        if len(more) != size or self._blocks.data:
            raise Corrupt("a strand's blocks do not hold what they claim")
        self._text += more

    def body(self, stop: int, table_bytes: int, size: int) -> bytes:
        """The body of `size` bytes whose table ends at `stop`. Raises Corrupt."""
        end = stop - table_bytes
        ranges = unpack(bytes(self._text[end:stop]), end, size)
        with memoryview(self._text) as text:
            return b"".join([text[start:stop] for start, stop in ranges])


def cost_of(frames: int, packed_bytes: float, plain_bytes: int) -> float:
    """Estimated microseconds to read a text: its frames, one decompression.

    Measured on a 2 GHz core: 4 us a frame, 170 bytes of compressed and 3,500 bytes of plain text a microsecond.
    """
    return 4 * frames + packed_bytes / 170 + plain_bytes / 3_500


def cost_to_join(ranges: int, size: int) -> float:
    """Estimated microseconds to make a body of its ranges and to check its digest: 1,600 bytes a microsecond."""
    return 0.8 * ranges + size / 1_400

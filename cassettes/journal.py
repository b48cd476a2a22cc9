"""The journal's frames: how records stand in a file, one after the other, and how a torn end is told from damage.

A frame is 12 bytes of header and a payload. Its checksum covers its own place in the file, so that a frame moved elsewhere is damage.
Byte by byte: docs/format.md.
"""

from __future__ import annotations

import struct
import zlib
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple, Protocol

import zstandard

from secondtake.cassettes.errors import Corrupt, TooNew
from secondtake.cassettes.limits import FRAME_DICTIONARY_BYTES, RECORD_BYTES

MAGIC = b"\x89take\r\n\n"
MAJOR, MINOR = 1, 1
_PREFACE = struct.Struct("<8sHHI")
PREFACE_BYTES = _PREFACE.size
_HEADER = struct.Struct("<2sBBII")
HEADER_BYTES = _HEADER.size
_PLACE = struct.Struct("<Q")
_DICTIONARY = struct.Struct("<QI")
MARK = b"\xf5\x1e"
"""Not UTF-8, not msgpack's start of anything we write, not zstd's magic: where to look for the next frame after damage."""

COMPRESSED = 1
"""Flag: the payload is one zstd frame."""
BY_DICTIONARY = 2
"""Flag: the payload begins with place and length of an earlier frame whose payload is the raw-content dictionary."""
_FLAGS = COMPRESSED | BY_DICTIONARY

LEVEL = 3
SMALLEST_COMPRESSED = 64


class Kind(IntEnum):
    """What a frame holds. Unknown kinds are skipped (and checked): a later minor version may add some."""

    START = 1
    HEAD = 2
    BODY = 3
    END = 4
    OBJECT = 5
    CLOSE = 6


BODY = MARK + bytes((Kind.BODY, 0))
"""How the header of a body frame begins."""
_BODY_HEAD = struct.Struct("<4sI")


class Place(NamedTuple):
    """Where a frame stands: offset of its header, and length with header. A named tuple: a hundred are made to decode one body."""

    offset: int
    length: int


@dataclass(frozen=True, slots=True)
class Frame:
    """One frame as it stands in the file; `stored` is the payload before decompression."""

    kind: int
    flags: int
    place: Place
    stored: bytes


class Readable(Protocol):
    """A file, or a part of one."""

    @property
    def size_bytes(self) -> int: ...
    def read(self, offset: int, size: int) -> bytes: ...


def preface() -> bytes:
    """The first 16 bytes of a journal."""
    head = _PREFACE.pack(MAGIC, MAJOR, MINOR, 0)[:12]
    return head + struct.pack("<I", zlib.crc32(head))


def check_preface(data: bytes) -> tuple[int, int]:
    """Return (major, minor). Raises TooNew, or Corrupt when this is no journal."""
    if len(data) < PREFACE_BYTES or data[: len(MAGIC)] != MAGIC:
        raise Corrupt("not a cassette: its first bytes are another format's")
    _, major, minor, checksum = _PREFACE.unpack_from(data)
    if zlib.crc32(data[:12]) != checksum:
        raise Corrupt("the first bytes of the journal are damaged")
    if major > MAJOR:
        raise TooNew(f"written in format version {major}; this program reads up to {MAJOR}", hint="update secondtake")
    return major, minor


def _checksum(offset: int, header: bytes, *payload: bytes) -> int:
    checksum = zlib.crc32(header, zlib.crc32(_PLACE.pack(offset)))
    for part in payload:
        checksum = zlib.crc32(part, checksum)
    return checksum


def frame(kind: int, flags: int, offset: int, stored: bytes) -> bytes:
    """The bytes of a frame that will stand at `offset`."""
    head = _HEADER.pack(MARK, kind, flags, len(stored), 0)[:8]
    return head + struct.pack("<I", _checksum(offset, head, stored)) + stored


def parse_header(data: bytes) -> tuple[int, int, int, int] | None:
    """(kind, flags, payload length, checksum), or None when these bytes do not begin a frame."""
    if len(data) < HEADER_BYTES:
        return None
    mark, kind, flags, length, checksum = _HEADER.unpack_from(data)
    if mark != MARK or flags & ~_FLAGS or length > RECORD_BYTES or (flags & BY_DICTIONARY and not flags & COMPRESSED):
        return None
    return kind, flags, length, checksum


def whole(data: bytes, offset: int) -> Frame | None:
    """The frame that `data`, read from `offset`, begins with; None when it is cut short or damaged."""
    head = parse_header(data)
    if head is None:
        return None
    kind, flags, length, checksum = head
    if len(data) < HEADER_BYTES + length:
        return None
    stored = data[HEADER_BYTES : HEADER_BYTES + length]
    if _checksum(offset, data[:8], stored) != checksum:
        return None
    return Frame(kind, flags, Place(offset, HEADER_BYTES + length), stored)


class FrameWriter:
    """Turns payloads into frames, compressed against an earlier frame of the same family where that helps."""

    FAMILIES = 256
    """How many families (kind and host) have a dictionary; later ones share the kind's first."""

    def __init__(self) -> None:
        self._plain = zstandard.ZstdCompressor(level=LEVEL, write_content_size=True)
        self._families: dict[tuple[int, str], tuple[Place, zstandard.ZstdCompressor]] = {}

    def make(self, kind: Kind, payload: bytes, offset: int, family: str | None = None) -> bytes:
        """The frame for `payload` at `offset`. Frames of one `family` look alike (the records of one host)."""
        if family is None or len(payload) < SMALLEST_COMPRESSED:
            return self._stored(kind, payload, offset)
        known = self._families.get((kind, family))
        if known is None:
            made = self._stored(kind, payload, offset)
            if len(self._families) < self.FAMILIES:
                self._families[kind, family] = Place(offset, len(made)), dictionary_compressor(payload)
            return made
        place, compressor = known
        stored = _DICTIONARY.pack(place.offset, place.length) + compressor.compress(payload)
        if len(stored) >= len(payload):
            return self._stored(kind, payload, offset)
        return frame(kind, COMPRESSED | BY_DICTIONARY, offset, stored)

    def _stored(self, kind: Kind, payload: bytes, offset: int) -> bytes:
        if len(payload) >= SMALLEST_COMPRESSED:
            packed = self._plain.compress(payload)
            if len(packed) < len(payload):
                return frame(kind, COMPRESSED, offset, packed)
        return frame(kind, 0, offset, payload)


def dictionary_compressor(content: bytes) -> zstandard.ZstdCompressor:
    """A compressor that knows `content` (at most FRAME_DICTIONARY_BYTES of it)."""
    known = zstandard.ZstdCompressionDict(content[:FRAME_DICTIONARY_BYTES], dict_type=zstandard.DICT_TYPE_RAWCONTENT)
    known.precompute_compress(level=LEVEL)
    return zstandard.ZstdCompressor(level=LEVEL, dict_data=known, write_content_size=True, write_dict_id=False)


def dictionary_decompressor(content: bytes) -> zstandard.ZstdDecompressor:
    """The counterpart of `dictionary_compressor`."""
    known = zstandard.ZstdCompressionDict(content[:FRAME_DICTIONARY_BYTES], dict_type=zstandard.DICT_TYPE_RAWCONTENT)
    return zstandard.ZstdDecompressor(dict_data=known)


def unpack(packed: bytes, limit: int, decompressor: zstandard.ZstdDecompressor) -> bytes:
    """Decompress one zstd frame of at most `limit` bytes; the size it claims is checked before anything is allocated."""
    try:
        size = zstandard.frame_content_size(packed)
        if not 0 <= size <= limit:
            raise Corrupt(f"compressed data claims {size} bytes; at most {limit} can stand there")
        # allow_extra_data off: what follows the frame would be bytes that no check covers.
        data = decompressor.decompress(packed, max_output_size=limit, allow_extra_data=False)
    except (zstandard.ZstdError, MemoryError) as error:
        raise Corrupt(f"compressed data cannot be read: {error}") from error
    if len(data) != size:
        raise Corrupt("compressed data is shorter than it claims")
    return data


BEHIND_BYTES = 64 * 1024
"""Read at once, up to the end of a body's frame."""


class FrameReader:
    """Reads frames by place. Keeps a few dictionaries, and what was read last of the journal."""

    DICTIONARIES = 64

    def __init__(self, region: Readable) -> None:
        self.region = region
        self._plain = zstandard.ZstdDecompressor()
        self._known: OrderedDict[int, zstandard.ZstdDecompressor] = OrderedDict()
        self._piece_from, self._piece = 0, b""

    def at(self, place: Place, kind: Kind) -> bytes:
        """The payload of the frame at `place`. Raises Corrupt."""
        return self.payload(self.frame_at(place, kind))

    def body_at(self, place: Place) -> bytes:
        """The payload of the body frame at `place`. Its checksum is left to `verify`: who reads a body checks the body's digest."""
        offset, length = place
        piece, start = self.piece(offset, length)
        at, stop = offset - start, offset - start + length
        if length < HEADER_BYTES or stop > len(piece) or _BODY_HEAD.unpack_from(piece, at) != (BODY, length - HEADER_BYTES):
            raise Corrupt(f"the body frame at offset {offset} is damaged")
        return piece[at + HEADER_BYTES : stop]

    def piece(self, offset: int, length: int) -> tuple[bytes, int]:
        """A piece of the journal that holds these bytes, as far as they are there, and where it starts. It reaches back from them, since
        the frames that a body stands on are before it."""
        start, piece = self._piece_from, self._piece
        if offset < start or offset + length > start + len(piece):
            start = max(offset - max(BEHIND_BYTES - length, 0), 0)
            piece = self.region.read(start, offset - start + length)
            if length <= BEHIND_BYTES:
                self._piece_from, self._piece = start, piece
        return piece, start

    def frame_at(self, place: Place, kind: Kind) -> Frame:
        """The frame at `place`. Raises Corrupt when it is not whole or of another kind."""
        if not (place.offset >= PREFACE_BYTES and HEADER_BYTES <= place.length <= HEADER_BYTES + RECORD_BYTES):
            raise Corrupt(f"no frame can stand at offset {place.offset}, length {place.length}")
        found = whole(self.region.read(place.offset, place.length), place.offset)
        if found is None or found.place != place:
            raise Corrupt(f"the frame at offset {place.offset} is damaged")
        if found.kind != kind:
            raise Corrupt(f"the frame at offset {place.offset} is of kind {found.kind}, expected {kind.name}")
        return found

    def payload(self, found: Frame) -> bytes:
        """What a frame holds, decompressed. Raises Corrupt."""
        if not found.flags & COMPRESSED:
            return found.stored
        if not found.flags & BY_DICTIONARY:
            return unpack(found.stored, RECORD_BYTES, self._plain)
        if len(found.stored) < _DICTIONARY.size:
            raise Corrupt(f"the frame at offset {found.place.offset} is too short")
        offset, length = _DICTIONARY.unpack_from(found.stored)
        return unpack(found.stored[_DICTIONARY.size :], RECORD_BYTES, self._decompressor(Place(offset, length), found))

    def _decompressor(self, place: Place, user: Frame) -> zstandard.ZstdDecompressor:
        known = self._known.get(place.offset)
        if known is None:
            if place.offset >= user.place.offset:
                raise Corrupt(f"the frame at offset {user.place.offset} refers forward")
            base = self.frame_at(place, Kind(user.kind))
            if base.flags & BY_DICTIONARY:
                raise Corrupt(f"the dictionary at offset {place.offset} has a dictionary itself")
            known = dictionary_decompressor(self.payload(base))
            self._known[place.offset] = known
            if len(self._known) > self.DICTIONARIES:
                self._known.popitem(last=False)
        else:
            self._known.move_to_end(place.offset)
        return known


@dataclass(frozen=True, slots=True)
class Gap:
    """Bytes that are no whole frame, from `start` to `stop` (where the next whole frame begins, or the end)."""

    start: int
    stop: int


READ_BYTES = 1024 * 1024


def walk(region: Readable, start: int = PREFACE_BYTES, stop: int | None = None) -> Iterator[Frame | Gap]:
    """Every frame in order, and every gap between whole frames. Memory is one frame and a read-ahead."""
    end = region.size_bytes if stop is None else min(stop, region.size_bytes)
    offset, buffer, base = start, b"", start
    while offset < end:
        if offset - base + HEADER_BYTES > len(buffer):
            base, buffer = offset, region.read(offset, min(READ_BYTES, end - offset))
        header = parse_header(buffer[offset - base : offset - base + HEADER_BYTES])
        if header is not None and offset + HEADER_BYTES + header[2] <= end:
            length = HEADER_BYTES + header[2]
            if offset - base + length > len(buffer):
                base, buffer = offset, region.read(offset, min(max(length, READ_BYTES), end - offset))
            found = whole(buffer[offset - base : offset - base + length], offset)
            if found is not None:
                yield found
                offset += length
                continue
        after = _next_frame(region, offset + 1, end)
        yield Gap(offset, after)
        offset = after


RESYNC_BYTES = 256 * 1024 * 1024
"""How much is checksummed in search of a whole frame after damage: hostile bytes could repeat the mark and claim long frames."""


def _next_frame(region: Readable, offset: int, end: int) -> int:
    """Where the next whole frame begins after damage; `end` when there is none."""
    budget = RESYNC_BYTES
    while offset < end:
        buffer = region.read(offset, min(READ_BYTES, end - offset))
        if not buffer:
            return end
        position = buffer.find(MARK)
        while position >= 0:
            here = offset + position
            header = parse_header(region.read(here, HEADER_BYTES))
            if header is not None and here + HEADER_BYTES + header[2] <= end:
                budget -= header[2]
                if budget < 0:
                    return end
                if whole(region.read(here, HEADER_BYTES + header[2]), here) is not None:
                    return here
            position = buffer.find(MARK, position + 1)
        offset += max(len(buffer) - 1, 1)
    return end

"""The core metadata inside a wheel (PEP 427, PEP 658), read through a Source: the zip's end, its directory, one member.

All lengths are bounded before anything is read.
"""

from __future__ import annotations

import re
import struct
import zlib

from secondtake.cassettes.exchange import Source

DIRECTORY_BYTES = 16 * 1024 * 1024
METADATA_BYTES = 4 * 1024 * 1024

_END = struct.Struct("<4s4H2LH")
_ENTRY = struct.Struct("<4s6H3L5H2L")
_LOCAL = struct.Struct("<4s5H3L2H")
_MEMBER = re.compile(rb"[^/]+\.dist-info/METADATA")


def metadata(source: Source, path: bytes) -> bytes | None:
    """The METADATA member of the wheel at `path`, or None when this is no wheel we can read (zip64 and damage included).

    Raises Corrupt when the kept bytes are not what their name says.
    """
    member = _find(source, path)
    if member is None:
        return None
    method, checksum, packed_size, size, offset = member
    if size > METADATA_BYTES or packed_size > METADATA_BYTES:
        return None
    local = source.read(offset, _LOCAL.size)
    if len(local) < _LOCAL.size or local[:4] != b"PK\x03\x04":
        return None
    names = _LOCAL.unpack(local)[-2:]
    packed = source.read(offset + _LOCAL.size + sum(names), packed_size)
    if method == 0:
        content = packed
    elif method == 8:
        try:
            content = zlib.decompressobj(-15).decompress(packed, METADATA_BYTES)
        except zlib.error:
            return None
    else:
        return None
    return content if len(content) == size and zlib.crc32(content) == checksum else None


def _find(source: Source, path: bytes) -> tuple[int, int, int, int, int] | None:
    """Method, CRC, packed size, size and local offset of the metadata member."""
    tail_size = min(source.size_bytes, _END.size + 65535)
    tail = source.read(source.size_bytes - tail_size, tail_size)
    at = tail.rfind(b"PK\x05\x06")
    if at < 0 or len(tail) - at < _END.size:
        return None
    _, _, _, _, count, size, start, _ = _END.unpack_from(tail, at)
    if size > DIRECTORY_BYTES or count == 0xFFFF or start == 0xFFFFFFFF:
        return None
    directory = source.read(start, size)
    stem = path.rpartition(b"/")[2].split(b"-")[0].lower()
    found: list[tuple[bool, tuple[int, int, int, int, int]]] = []
    at = 0
    while at + _ENTRY.size <= len(directory) and directory[at : at + 4] == b"PK\x01\x02":
        entry = _ENTRY.unpack_from(directory, at)
        method, checksum, packed_size, plain_size, name_size, extra_size, comment_size = (*entry[4:5], *entry[7:13])
        name = directory[at + _ENTRY.size : at + _ENTRY.size + name_size]
        if _MEMBER.fullmatch(name):
            found.append((name.lower().startswith(stem + b"-"), (method, checksum, packed_size, plain_size, entry[-1])))
        at += _ENTRY.size + name_size + extra_size + comment_size
    ours = [member for named, member in found if named] or [member for _, member in found]
    return ours[0] if len(ours) == 1 else None

"""The files of one cassette's folder: their names, and the small ones' content."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path

from secondtake.cassettes.exchange import Side
from secondtake.cassettes.files import Files

JOURNAL = "journal"
INDEX = "index"
RESERVE = "reserve"
SPOOL = "spool-"
RESERVE_BYTES = 16 * 1024
"""Kept free for the closing record of a recording that filled the disk."""


def spool_name(seq: int, side: Side) -> str:
    """The file a streamed body grows in."""
    return f"{SPOOL}{seq}-{side}"


INDEX_FROM_BYTES = 4096
"""A shorter journal has no index: walking it costs no more than reading one."""


def write_index(files: Files, folder: Path, packed: bytes) -> None:
    """Put an index into a cassette's folder. Not synced: it is a cache, and a torn one is noticed. Raises OSError."""
    beside = folder / f"{INDEX}.new"
    fd = files.create(beside)
    try:
        files.write(fd, packed)
    finally:
        files.close(fd)
    files.rename(beside, folder / INDEX)


MARK_BYTES = 12


def durable_mark(offset: int) -> bytes:
    """What stands at the beginning of the reserve: how much of the journal is known to be durable."""
    number = struct.pack("<Q", offset)
    return number + struct.pack("<I", zlib.crc32(number))


def read_mark(data: bytes) -> int | None:
    """The counterpart of `durable_mark`; None for anything else."""
    if len(data) < MARK_BYTES:
        return None
    (offset,) = struct.unpack_from("<Q", data)
    return int(offset) if durable_mark(offset) == data[:MARK_BYTES] else None

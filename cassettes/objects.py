"""Large bodies as write-once files named by the SHA-256 of their content, stored once per store.

`objects/ab/abcdef…` is the content itself (`sha256sum` checks it); `objects/ab/abcdef….zst` is the content in zstd's seekable format
(`zstd -dc | sha256sum` checks it), for what is large and compresses. Which of the two is decided by a sample of the first block, so that
the same content always gets the same file.
"""

from __future__ import annotations

import hashlib
import struct
from dataclasses import dataclass, field
from pathlib import Path

import zstandard

from secondtake.cassettes import codec, journal
from secondtake.cassettes.errors import Corrupt, TooLarge
from secondtake.cassettes.exchange import Digest
from secondtake.cassettes.files import Files, Region
from secondtake.cassettes.limits import BLOCK_BYTES

FOLDER = "objects"
PACKED = ".zst"
_FLUSH_BYTES = 16 * 1024 * 1024
"""How much of a spool may be unsynced: at the end little is left to wait for."""

_SKIPPABLE = struct.Struct("<II")
_SKIPPABLE_MAGIC = 0x184D2A5E
_ENTRY = struct.Struct("<II")
_FOOTER = struct.Struct("<IBI")
_FOOTER_MAGIC = 0x8F92EAB1
MAX_BLOCKS = 1 << 20
"""Blocks of one compressed object: 1 TiB of content."""


def object_parts(digest: Digest, packed: bool) -> tuple[str, str, str]:
    """The path of an object inside a store."""
    return FOLDER, digest[:2], digest + PACKED if packed else digest


@dataclass(slots=True)
class Spool:
    """A body on its way to being an object: written as it comes, in the cassette's folder, so on the store's file system (T-R15)."""

    files: Files
    path: Path
    _fd: int
    _hash: hashlib._Hash = field(default_factory=hashlib.sha256)
    _first: bytearray = field(default_factory=bytearray)
    _packer: zstandard.ZstdCompressor | None = None
    _decided: bool = False
    _table: list[tuple[int, int]] = field(default_factory=list)
    _unsynced: int = 0
    size_bytes: int = 0

    @classmethod
    def begin(cls, files: Files, path: Path) -> Spool:
        """Raises OSError."""
        return cls(files, path, files.create(path))

    def add(self, data: bytes) -> None:
        """Take the next bytes. Raises OSError."""
        self._hash.update(data)
        self.size_bytes += len(data)
        if not self._decided or self._packer is not None:
            self._first += data
            while len(self._first) >= BLOCK_BYTES:
                block = bytes(self._first[:BLOCK_BYTES])
                del self._first[:BLOCK_BYTES]
                self._block(block)
        else:
            self._write(data)

    def _block(self, block: bytes) -> None:
        if not self._decided:
            self._decided = True
            if codec.compresses(block, zstandard.ZstdCompressor(level=1)):
                self._packer = zstandard.ZstdCompressor(level=journal.LEVEL, write_content_size=True)
        if self._packer is None:
            rest = bytes(self._first)
            self._first.clear()
            self._write(block)
            if rest:
                self._write(rest)
            return
        packed = self._packer.compress(block)
        self._table.append((len(packed), len(block)))
        self._write(packed)

    def _write(self, data: bytes) -> None:
        self.files.write(self._fd, data)
        self._unsynced += len(data)
        if self._unsynced >= _FLUSH_BYTES:
            self.files.sync(self._fd)
            self._unsynced = 0

    def keep(self, root: Path) -> tuple[Digest, bool]:
        """Make it an object of the store at `root`, durable on return. Returns its digest and whether it is compressed. Raises OSError."""
        if self._first:
            block = bytes(self._first)
            self._first.clear()
            self._block(block)
        packed = self._packer is not None
        if packed:
            self.files.write(self._fd, seek_table(self._table))
        self.files.protect(self._fd)
        self.files.sync(self._fd)
        self.files.close(self._fd)
        self._fd = -1
        digest = Digest(self._hash.hexdigest())
        path = root.joinpath(*object_parts(digest, packed))
        self.files.make_folder(path.parent)
        # An object that is there already is replaced by the same bytes: no time is lost in comparing, and a damaged one heals.
        self.files.rename(self.path, path)
        self.files.sync_folder(path.parent)
        return digest, packed

    def drop(self) -> None:
        """Give it up. Raises OSError."""
        if self._fd >= 0:
            self.files.close(self._fd)
            self._fd = -1
        self.files.remove(self.path)


def seek_table(table: list[tuple[int, int]]) -> bytes:
    """The skippable frame that ends a file in zstd's seekable format: (compressed, plain) size of each block."""
    entries = b"".join(_ENTRY.pack(*entry) for entry in table)
    footer = _FOOTER.pack(len(table), 0, _FOOTER_MAGIC)
    return _SKIPPABLE.pack(_SKIPPABLE_MAGIC, len(entries) + len(footer)) + entries + footer


class _Checked:
    """Bytes that are checked once, by reading them all, before the first one is given out."""

    def __init__(self, digest: Digest, checked: set[Digest]) -> None:
        self._digest = digest
        self._checked = checked
        self._damage: Corrupt | None = None

    @property
    def size_bytes(self) -> int:
        raise NotImplementedError

    def part(self, offset: int, size: int) -> bytes:
        """As `read`, with no check of the whole."""
        raise NotImplementedError

    @property
    def unchecked(self) -> bool:
        """Whether the next `read` reads it all."""
        return self._damage is None and self._digest not in self._checked

    def check(self) -> None:
        """Read it all now, unless that was done; in any thread, while nobody reads from this. Raises Corrupt, as each `read` after."""
        if self.unchecked:
            try:
                check(self, self._digest)
            except Corrupt as damage:
                self._damage = damage
            else:
                self._checked.add(self._digest)
        if self._damage is not None:
            raise self._damage

    def read(self, offset: int, size: int) -> bytes:
        """`size` bytes from `offset`. Raises Corrupt."""
        if self._damage is not None or self._digest not in self._checked:
            self.check()
        return self.part(offset, size)


class PlainObject(_Checked):
    """An object whose file is its content."""

    def __init__(self, region: Region, digest: Digest, checked: set[Digest]) -> None:
        super().__init__(digest, checked)
        self._region = region

    @property
    def size_bytes(self) -> int:
        return self._region.size_bytes

    def part(self, offset: int, size: int) -> bytes:
        """As `read`, with no check of the whole."""
        return self._region.read(offset, size)


class PackedObject(_Checked):
    """An object in zstd's seekable format: any part is read by decompressing the blocks it touches."""

    def __init__(self, region: Region, digest: Digest, checked: set[Digest]) -> None:
        super().__init__(digest, checked)
        self._region = region
        self._starts, self._places = _table(region)
        self._decompressor = zstandard.ZstdDecompressor()
        self._held: tuple[int, bytes] = (-1, b"")

    @property
    def size_bytes(self) -> int:
        return self._starts[-1]

    def part(self, offset: int, size: int) -> bytes:
        """As `read`, with no check of the whole."""
        parts: list[bytes] = []
        stop = min(offset + size, self.size_bytes)
        while offset < stop:
            number = offset // BLOCK_BYTES
            block = self._block(number)
            start = offset - number * BLOCK_BYTES
            piece = block[start : start + stop - offset]
            parts.append(piece)
            offset += len(piece)
        return b"".join(parts)

    def _block(self, number: int) -> bytes:
        if self._held[0] != number:
            offset, length = self._places[number]
            plain = self._starts[number + 1] - self._starts[number]
            block = journal.unpack(self._region.read(offset, length), plain, self._decompressor)
            if len(block) != plain:
                raise Corrupt(f"object {self._digest}: block {number} has another size than its table says")
            self._held = number, block
        return self._held[1]


def _table(region: Region) -> tuple[list[int], list[tuple[int, int]]]:
    """Plain start of each block (and the end), and the place of each in the file. Raises Corrupt: every block but the last is full."""
    end = region.size_bytes
    try:
        count, descriptor, magic = _FOOTER.unpack(region.read(end - _FOOTER.size, _FOOTER.size))
        length = count * _ENTRY.size + _FOOTER.size
        if magic != _FOOTER_MAGIC or descriptor or count > MAX_BLOCKS or not count:
            raise Corrupt("an object's table of blocks is damaged")
        start = end - length - _SKIPPABLE.size
        if _SKIPPABLE.unpack(region.read(start, _SKIPPABLE.size)) != (_SKIPPABLE_MAGIC, length):
            raise Corrupt("an object's table of blocks is damaged")
        entries = list(_ENTRY.iter_unpack(region.read(start + _SKIPPABLE.size, length - _FOOTER.size)))
    except struct.error as error:
        raise Corrupt("an object's table of blocks is cut short") from error
    starts, places, offset = [0], [], 0
    for number, (packed, plain) in enumerate(entries):
        if plain > BLOCK_BYTES or not plain or (plain < BLOCK_BYTES and number != count - 1):
            raise Corrupt("an object's table of blocks is damaged")
        places.append((offset, packed))
        offset += packed
        starts.append(starts[-1] + plain)
    if offset != start:
        raise Corrupt("an object's table of blocks does not fit its file")
    return starts, places


type StoredObject = PlainObject | PackedObject


def check(stored: _Checked, digest: Digest) -> None:
    """Read it all and compare. Raises Corrupt."""
    seen = hashlib.sha256()
    offset, size = 0, stored.size_bytes
    while offset < size:
        data = stored.part(offset, BLOCK_BYTES)
        if not data:
            break
        seen.update(data)
        offset += len(data)
    if seen.hexdigest() != digest:
        raise Corrupt(f"object {digest} holds other bytes", hint="restore the file from a copy; `verify` names every damaged one")


def open_object(
    region: Region, digest: Digest, packed: bool, size_bytes: int | None = None, checked: set[Digest] | None = None
) -> StoredObject:
    """The object in `region`, of `size_bytes` as its exchange says. Raises Corrupt.

    `checked` holds the digests of objects that were read whole already, and gets this one's.
    """
    known = set[Digest]() if checked is None else checked
    stored: StoredObject = PackedObject(region, digest, known) if packed else PlainObject(region, digest, known)
    if size_bytes is not None and stored.size_bytes != size_bytes:
        raise Corrupt(f"object {digest} has {stored.size_bytes} bytes, expected {size_bytes}")
    if stored.size_bytes > MAX_BLOCKS * BLOCK_BYTES:
        raise TooLarge(f"object {digest} has {stored.size_bytes} bytes")
    return stored

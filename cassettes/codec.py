"""How a body is kept in the journal: as it is, compressed, as ranges of a strand's text, or, in format 1.0, as splices of an earlier one.

An agent sends its whole transcript with every turn. What of it is new is added to a text that the bodies of one conversation share
(strands.py), and a body is a list of ranges of that text. How bodies come into strands: bodies.py.
"""

from __future__ import annotations

import struct
from collections import OrderedDict
from dataclasses import dataclass, field
from enum import IntEnum
from typing import NamedTuple, Protocol

import zstandard

from secondtake.cassettes import journal, splices, strands
from secondtake.cassettes.digest import digest_of, raw
from secondtake.cassettes.errors import Corrupt
from secondtake.cassettes.exchange import Digest
from secondtake.cassettes.journal import BODY, HEADER_BYTES, Place
from secondtake.cassettes.limits import BLOCK_BYTES, COMPRESSES_BELOW, RECORD_BYTES
from secondtake.cassettes.splices import Splice


class Encoding(IntEnum):
    """How the bytes of a body frame stand for the body."""

    PLAIN = 0
    ZSTD = 1
    DELTA = 2
    """Written by format 1.0 only."""
    STRAND = 3


class Encoded(NamedTuple):
    """A body frame's payload, taken apart. A named tuple, like Splice: a hundred are made to decode one body."""

    digest: Digest
    size_bytes: int
    encoding: Encoding
    data: bytes
    base: Place | None = None
    """What a delta replaces ranges of; the frame before in a strand."""
    splices: tuple[Splice, ...] = ()
    text_bytes: int = 0
    """What a frame adds to its strand's text, the table included."""
    table_bytes: int = 0


_FIXED = struct.Struct("<32sBI")
_BASE = struct.Struct("<QIH")
_STRAND = struct.Struct("<QIII")


def pack(body: Encoded) -> bytes:
    """A body frame's payload."""
    fixed = _FIXED.pack(raw(body.digest), body.encoding, body.size_bytes)
    if body.base is None:
        return fixed + body.data
    if body.encoding is Encoding.STRAND:
        return b"".join((fixed, _STRAND.pack(*body.base, body.text_bytes, body.table_bytes), body.data))
    table = splices.pack(body.splices)
    return fixed + _BASE.pack(body.base.offset, body.base.length, len(table)) + table + body.data


type Link = tuple[int, int, int, int, int, bytes]
"""A frame of a strand without its body's name: the body's size; offset and length of the frame before; bytes added to the text, those of
the table among them; the blocks. A bare tuple: a hundred are made to decode one body."""

_LINK = struct.Struct("<4sI4x32xBIQIII")
_BLOCKS_AT = _LINK.size


def link_in(piece: bytes, at: int, length: int) -> Link | None:
    """The body frame of `length` that stands at `at`, as one of a strand; None when it is none, or is not whole. Raises Corrupt."""
    if length < _BLOCKS_AT or at + length > len(piece):
        return None
    head, stored, how, size, before, before_length, text, table = _LINK.unpack_from(piece, at)
    if head != BODY or stored != length - HEADER_BYTES or how != STRAND:
        return None
    if not table <= text <= RECORD_BYTES >= size:
        raise Corrupt(f"a body frame claims {size} bytes, {text} of a strand and {table} of a table")
    return size, before, before_length, text, table, piece[at + _BLOCKS_AT : at + length]


STRAND = int(Encoding.STRAND)


def unpack(payload: bytes) -> Encoded:
    """The counterpart of `pack`. Raises Corrupt; sizes are consistent on return."""
    try:
        name, encoding, size = _FIXED.unpack_from(payload)
        how = Encoding(encoding)
        if size > RECORD_BYTES:
            raise Corrupt(f"a body frame claims {size} bytes")
        if how is Encoding.STRAND:
            offset, length, text, of_table = _STRAND.unpack_from(payload, _FIXED.size)
            if not of_table <= text <= RECORD_BYTES:
                raise Corrupt(f"a body frame claims {text} bytes of a strand and {of_table} of a table")
            data = payload[_FIXED.size + _STRAND.size :]
            return Encoded(Digest(name.hex()), size, how, data, Place(offset, length), (), text, of_table)
        if how is not Encoding.DELTA:
            return Encoded(Digest(name.hex()), size, how, payload[_FIXED.size :])
        offset, length, table_bytes = _BASE.unpack_from(payload, _FIXED.size)
    except (struct.error, ValueError) as error:
        raise Corrupt(f"a body frame is not one: {error}") from error
    start = _FIXED.size + _BASE.size
    table = payload[start : start + table_bytes]
    if len(table) < table_bytes:
        raise Corrupt("a body frame's splices are cut short")
    return Encoded(Digest(name.hex()), size, how, payload[start + table_bytes :], Place(offset, length), splices.unpack(table))


def compresses(data: bytes, compressor: zstandard.ZstdCompressor) -> bool:
    """Whether samples of `data` (at most 64 KiB from begin, middle and end of its first block) get smaller."""
    block = data[:BLOCK_BYTES]
    third = 21 * 1024
    middle = len(block) // 2
    sample = block if len(block) <= 3 * third else block[:third] + block[middle : middle + third] + block[-third:]
    return len(compressor.compress(sample)) < COMPRESSES_BELOW * len(sample)


class _Held(NamedTuple):
    data: bytes
    root: Place


@dataclass(slots=True)
class _Strand:
    """A strand as far as it was read."""

    text: strands.Text
    last: int
    """The offset of the frame that was read last."""
    stops: dict[int, tuple[int, int, int]] = field(default_factory=dict)
    """By the offset of a frame: where its table ends in the text, the size of the table, the size of the body."""


class Frames(Protocol):
    """Where body frames are read."""

    def body_at(self, place: Place) -> bytes: ...
    def piece(self, offset: int, length: int) -> tuple[bytes, int]: ...


class BodyDecoder:
    """Decodes bodies by the place of their frame. Keeps the last few whole bodies, strands and dictionaries; memory is bounded."""

    HELD_BYTES = 16 * 1024 * 1024
    DICTIONARIES = 8
    STRANDS = 16

    def __init__(self, frames: Frames) -> None:
        self._frames = frames
        self._plain = zstandard.ZstdDecompressor()
        self._held: OrderedDict[int, _Held] = OrderedDict()
        self._held_bytes = 0
        self._by_root: OrderedDict[int, zstandard.ZstdDecompressor] = OrderedDict()
        self._strands: OrderedDict[int, _Strand] = OrderedDict()
        """By the offset of the strand's first frame."""

    def decode(self, place: Place, digest: Digest) -> bytes:
        """The body at `place`, compared with `digest`. Raises Corrupt."""
        found = self._found(place)
        if found is None:
            found = self._read(place, digest)
        if digest_of(found) != digest:
            raise Corrupt(f"the body at offset {place.offset} is not {digest}")
        return found

    def _found(self, place: Place) -> bytes | None:
        """A body that is held, or is in a strand that is."""
        held = self._held.get(place.offset)
        if held is not None:
            self._held.move_to_end(place.offset)
            return held.data
        for first, strand in self._strands.items():
            stop = strand.stops.get(place.offset)
            if stop is not None:
                self._strands.move_to_end(first)
                return strand.text.body(*stop)
        return None

    def _read(self, place: Place, digest: Digest) -> bytes:
        body = unpack(self._frames.body_at(place))
        if body.digest != digest:
            raise Corrupt(f"the body at offset {place.offset} is {body.digest}, expected {digest}")
        if body.encoding is Encoding.STRAND:
            return self._from_strand(place)
        made = _Held(self._full(body), place) if body.base is None else self._from_chain(place, body, body.base)
        self._hold(place.offset, made)
        return made.data

    def _from_strand(self, place: Place) -> bytes:
        """Walk back to the root, or to a strand that is held and ends there; then unpack what is between at once."""
        links: list[Link] = []
        offsets: list[int] = []
        held = {one.last: first for first, one in self._strands.items()}
        here, length = place
        piece, start = b"", 0
        while here not in held:
            if here < start or here + length > start + len(piece):
                piece, start = self._frames.piece(here, length)
            link = link_in(piece, here - start, length)
            if link is None:
                break
            offsets.append(here)
            links.append(link)
            before, length = link[1], link[2]
            if before >= here or len(links) > CHAIN_FRAMES:
                raise Corrupt(f"the body at offset {place.offset} refers forward, or stands on more than {CHAIN_FRAMES} others")
            here = before
        first = held.get(here)
        if first is None:
            first, strand = offsets[-1], _Strand(strands.Text(self._root(Place(here, length))), here)
        else:
            strand = self._strands.pop(first)
        links.reverse()
        offsets.reverse()
        stop = len(strand.text)
        total = sum([link[3] for link in links])
        if stop + total > 2 * RECORD_BYTES or len(strand.stops) + len(links) > CHAIN_FRAMES:
            raise Corrupt(f"the body at offset {place.offset} stands on too much")
        strand.text.grow(b"".join([link[5] for link in links]), total)
        for at, (size, _, _, text, table, _) in zip(offsets, links, strict=True):
            stop += text
            strand.stops[at] = stop, table, size
        strand.last = place.offset
        made = strand.text.body(*strand.stops[place.offset])
        self._strands[first] = strand
        kept = sum(len(one.text) for one in self._strands.values())
        while len(self._strands) > 1 and (kept > self.HELD_BYTES or len(self._strands) > self.STRANDS):
            kept -= len(self._strands.popitem(last=False)[1].text)
        return made

    def _root(self, place: Place) -> bytes:
        """The body that a strand's text begins with."""
        body = unpack(self._frames.body_at(place))
        if body.base is not None:
            raise Corrupt("a strand begins with a body that is not kept whole")
        return self._full(body)

    def _from_chain(self, place: Place, body: Encoded, base: Place) -> _Held:
        """A delta: down the bases to a body that is none, or is held; then up."""
        chain = [body]
        user = place
        while True:
            if base.offset >= user.offset:
                raise Corrupt(f"the body at offset {user.offset} refers forward")
            held = self._held.get(base.offset)
            if held is not None:
                break
            user = base
            body = unpack(self._frames.body_at(user))
            if body.encoding is Encoding.STRAND:
                raise Corrupt(f"the body at offset {place.offset} stands on a strand")
            if body.base is None:
                held = _Held(self._full(body), user)
                break
            chain.append(body)
            base = body.base
            if len(chain) > CHAIN_FRAMES:
                raise Corrupt(f"the body at offset {place.offset} stands on more than {CHAIN_FRAMES} others")
        return self._build(chain, held)

    def _build(self, chain: list[Encoded], held: _Held) -> _Held:
        dictionary = self._dictionary(held)
        built = bytearray(held.data)
        while chain:
            body = chain.pop()
            wanted = 0
            for splice in body.splices:
                wanted += splice.size
            if wanted > RECORD_BYTES or (body.splices and body.splices[-1].stop > len(built)):
                raise Corrupt(f"the body {body.digest} does not fit what it stands on")
            literal = journal.unpack(body.data, wanted, dictionary) if wanted else b""
            if len(literal) != wanted:
                raise Corrupt(f"the body {body.digest} does not fit what it stands on")
            splices.apply(built, body.splices, literal)
            if len(built) != body.size_bytes:
                raise Corrupt(f"the body {body.digest} has another size than it claims")
        return _Held(bytes(built), held.root)

    def _full(self, body: Encoded) -> bytes:
        data = body.data if body.encoding is Encoding.PLAIN else journal.unpack(body.data, body.size_bytes, self._plain)
        if len(data) != body.size_bytes:
            raise Corrupt(f"the body {body.digest} has another size than it claims")
        return data

    def _dictionary(self, held: _Held) -> zstandard.ZstdDecompressor:
        known = self._by_root.get(held.root.offset)
        if known is None:
            root = self._held.get(held.root.offset)
            content = root.data if root is not None else self._full(unpack(self._frames.body_at(held.root)))
            known = self._by_root[held.root.offset] = journal.dictionary_decompressor(content)
            if len(self._by_root) > self.DICTIONARIES:
                self._by_root.popitem(last=False)
        return known

    def _hold(self, offset: int, held: _Held) -> None:
        if len(held.data) > self.HELD_BYTES // 4 or offset in self._held:
            return
        self._held[offset] = held
        self._held_bytes += len(held.data)
        while self._held_bytes > self.HELD_BYTES:
            self._held_bytes -= len(self._held.popitem(last=False)[1].data)


CHAIN_FRAMES = 1_000
"""Longest chain or strand that is followed; the writer stays far below, by cost."""

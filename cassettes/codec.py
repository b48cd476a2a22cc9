"""How a body is kept in the journal: as it is, compressed, or as splices of an earlier body of the same conversation.

An agent sends its whole transcript with every turn. So a body is looked at as an earlier one with a few ranges replaced (`Splice`); what
replaces them is compressed with the first body of the chain as zstd's raw-content dictionary. Decoding starts at that first body and
splices its way up; the estimated cost of that is bounded (limits.DECODE_COST_US), not the number of steps.
"""

from __future__ import annotations

import struct
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import IntEnum
from typing import NamedTuple

import zstandard

from secondtake.cassettes import journal, splices
from secondtake.cassettes.digest import digest_of, raw
from secondtake.cassettes.errors import Corrupt
from secondtake.cassettes.exchange import Digest
from secondtake.cassettes.journal import Place
from secondtake.cassettes.limits import (
    BLOCK_BYTES,
    COMPRESSES_BELOW,
    DECODE_COST_US,
    DELTA_BODY_BYTES,
    DELTA_MEMORY_BYTES,
    FRAME_DICTIONARY_BYTES,
    OBJECT_BYTES,
    RECORD_BYTES,
)
from secondtake.cassettes.splices import Splice


class Encoding(IntEnum):
    """How the bytes of a body frame stand for the body."""

    PLAIN = 0
    ZSTD = 1
    DELTA = 2


class Encoded(NamedTuple):
    """A body frame's payload, taken apart. A named tuple, like Splice: a hundred are made to decode one body."""

    digest: Digest
    size_bytes: int
    encoding: Encoding
    data: bytes
    base: Place | None = None
    splices: tuple[Splice, ...] = ()


_FIXED = struct.Struct("<32sBI")
_BASE = struct.Struct("<QIH")


def pack(body: Encoded) -> bytes:
    """A body frame's payload."""
    fixed = _FIXED.pack(raw(body.digest), body.encoding, body.size_bytes)
    if body.base is None:
        return fixed + body.data
    table = splices.pack(body.splices)
    return fixed + _BASE.pack(body.base.offset, body.base.length, len(table)) + table + body.data


def unpack(payload: bytes) -> Encoded:
    """The counterpart of `pack`. Raises Corrupt; sizes are consistent on return."""
    try:
        name, encoding, size = _FIXED.unpack_from(payload)
        how = Encoding(encoding)
        if size > RECORD_BYTES:
            raise Corrupt(f"a body frame claims {size} bytes")
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


@dataclass(slots=True)
class _Known:
    """A body that a later one may be a delta against."""

    place: Place
    data: bytes
    cost_us: float
    root: Place
    head: bool
    """Cheap to decode: the chain's first body, or one that was built on a head because the chain had become too costly."""


@dataclass(slots=True)
class BodyEncoder:
    """Encodes the bodies of one recording, in order. Deterministic: the same bodies in the same order give the same bytes."""

    _conversations: OrderedDict[str, list[_Known]] = field(default_factory=OrderedDict)
    _held_bytes: int = 0
    _plain: zstandard.ZstdCompressor = field(default_factory=lambda: zstandard.ZstdCompressor(level=journal.LEVEL, write_content_size=True))
    _quick: zstandard.ZstdCompressor = field(default_factory=lambda: zstandard.ZstdCompressor(level=1))
    _roots: dict[int, tuple[bytes, int]] = field(default_factory=dict)
    """By place, the first body of a chain, and how many bodies that are held are of that chain."""
    _compressors: OrderedDict[int, zstandard.ZstdCompressor] = field(default_factory=OrderedDict)
    """Of the roots used last. Each holds tables of some 40 KB, whatever the size of its body."""

    PER_CONVERSATION = 12
    CONVERSATIONS = 1024
    """Each path is one: of very many, the oldest are forgotten, however small their bodies."""
    ROOTS = 16
    ROOM = 0.75
    """A new head must leave a quarter of the bound to the chain it starts."""
    UNLIKE = 4
    """After so many large bodies that share little, the search is given up."""

    def encode(self, digest: Digest, data: bytes, conversation: str) -> tuple[Encoded, _Known | None] | None:
        """The frame payload for `data`, and what to `remember` once it has its place; None when it should be a file of its own."""
        chosen = self._base(data, conversation) if 64 <= len(data) <= DELTA_BODY_BYTES else None
        if chosen is not None:
            base, made, head = chosen
            literal = splices.literals(data, made)
            packed = self._compressor(base.root).compress(literal) if literal else b""
            encoded = Encoded(digest, len(data), Encoding.DELTA, packed, base.place, made)
            cost = base.cost_us + cost_of(len(literal), len(data), len(made), len(packed))
            return encoded, _Known(base.place, data, cost, base.root, head)
        if len(data) >= OBJECT_BYTES and not self._compresses(data):
            return None
        packed = self._plain.compress(data) if len(data) >= 64 else data
        if len(packed) < len(data):
            encoded = Encoded(digest, len(data), Encoding.ZSTD, packed)
        else:
            encoded = Encoded(digest, len(data), Encoding.PLAIN, data)
        full = Place(0, 0)
        if not 64 <= len(data) <= DELTA_BODY_BYTES:
            return encoded, None
        return encoded, _Known(full, data, cost_of(len(data), len(data), 0, len(packed)), full, True)

    def _compresses(self, data: bytes) -> bool:
        return compresses(data, self._quick)

    def _base(self, data: bytes, conversation: str) -> tuple[_Known, tuple[Splice, ...], bool] | None:
        """The earlier body to build on: the one most like `data` whose chain leaves room, else any that is within the bound."""
        known = self._conversations.get(conversation)
        if not known:
            return None
        bound = max(DECODE_COST_US, BOUND_OVER_FULL * cost_of(len(data), len(data), 0))
        fitting: list[tuple[int, _Known, tuple[Splice, ...]]] = []
        unlike = 0
        full = False
        for one in reversed(known):
            if full and not one.head:
                continue
            made = splices.between(one.data, data)
            literal_bytes = sum(splice.size for splice in made)
            if literal_bytes * 4 > len(data) * 3 and len(data) > 64 * 1024:
                unlike += 1
                if unlike == self.UNLIKE:
                    break
                continue
            grown = literal_bytes <= max(len(data) - len(one.data), 0) + 1024
            cost = one.cost_us + cost_of(literal_bytes, len(data), len(made))
            if cost <= bound * (self.ROOM if full else 1):
                if grown:
                    return one, made, full
                fitting.append((literal_bytes, one, made))
            elif grown:
                # The next step of this conversation would make the chain too costly: from here on only a head will do, which starts
                # a cheap chain again at the price of keeping once more what came since that head.
                full = True
        if not fitting:
            return None
        _, one, made = min(fitting, key=lambda fit: fit[0])
        return one, made, full

    def _compressor(self, root: Place) -> zstandard.ZstdCompressor:
        compressor = self._compressors.get(root.offset)
        if compressor is None:
            compressor = self._compressors[root.offset] = journal.dictionary_compressor(self._roots[root.offset][0])
            if len(self._compressors) > self.ROOTS:
                self._compressors.popitem(last=False)
        self._compressors.move_to_end(root.offset)
        return compressor

    def remember(self, known: _Known, place: Place, conversation: str) -> None:
        """`known` was written at `place`: later bodies of `conversation` may build on it."""
        if known.root.length == 0:
            known.root = place
        first, held = self._roots.get(known.root.offset, (known.data[:FRAME_DICTIONARY_BYTES], 0))
        self._roots[known.root.offset] = (first, held + 1)
        known.place = place
        bodies = self._conversations.setdefault(conversation, [])
        self._conversations.move_to_end(conversation)
        bodies.append(known)
        self._held_bytes += len(known.data)
        if len(bodies) > self.PER_CONVERSATION:
            self._forget(bodies, self._least_useful(bodies))
        while self._held_bytes > DELTA_MEMORY_BYTES or len(self._conversations) > self.CONVERSATIONS:
            oldest = next(iter(self._conversations))
            bodies = self._conversations[oldest]
            self._forget(bodies, 0)
            if not bodies:
                del self._conversations[oldest]

    def _forget(self, bodies: list[_Known], position: int) -> None:
        gone = bodies.pop(position)
        self._held_bytes -= len(gone.data)
        first, held = self._roots.pop(gone.root.offset)
        if held > 1:
            self._roots[gone.root.offset] = (first, held - 1)
        else:
            self._compressors.pop(gone.root.offset, None)

    @staticmethod
    def _least_useful(bodies: list[_Known]) -> int:
        """The oldest body that is neither the newest of its chain nor one of the two latest heads of it."""
        newest: set[int] = set()
        heads: dict[int, int] = {}
        spare = 0
        for position in range(len(bodies) - 1, -1, -1):
            one = bodies[position]
            root = one.root.offset
            if one.head and heads.get(root, 0) < 2:
                heads[root] = heads.get(root, 0) + 1
            elif root in newest:
                spare = position
            newest.add(root)
        return spare


BOUND_OVER_FULL = 1.5
"""A body that costs much by itself may cost this many times as much through a chain."""


def cost_of(literal_bytes: int, size: int, count: int, packed_bytes: int | None = None) -> float:
    """Estimated microseconds for one step of a chain: read a frame, decompress the literals, move what stands behind each splice.

    Measured on a 2 GHz core: 12 us a frame, 450 bytes of compressed and 4,000 bytes of plain text a microsecond, a splice in the
    middle of a body moves half of it.
    """
    packed = literal_bytes * 0.35 if packed_bytes is None else packed_bytes
    return 12 + packed / 450 + literal_bytes / 4_000 + count * (0.5 + size / 40_000)


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


class BodyDecoder:
    """Decodes bodies by the place of their frame. Keeps the last few whole bodies and dictionaries; memory is bounded."""

    HELD_BYTES = 16 * 1024 * 1024
    DICTIONARIES = 8

    def __init__(self, frame_at: Callable[[Place], bytes]) -> None:
        self._frame_at = frame_at
        self._plain = zstandard.ZstdDecompressor()
        self._held: OrderedDict[int, _Held] = OrderedDict()
        self._held_bytes = 0
        self._by_root: OrderedDict[int, zstandard.ZstdDecompressor] = OrderedDict()

    def decode(self, place: Place, digest: Digest) -> bytes:
        """The body at `place`, compared with `digest`. Raises Corrupt."""
        chain, held = self._chain(place)
        name = chain[0].digest if chain else digest
        if name != digest:
            raise Corrupt(f"the body at offset {place.offset} is {name}, expected {digest}")
        if held is not None and not chain:
            data, root = held
        else:
            data, root = self._build(chain, held, place)
        if digest_of(data) != digest:
            raise Corrupt(f"the body at offset {place.offset} is not {digest}")
        self._hold(place.offset, _Held(data, root))
        return data

    def _chain(self, place: Place) -> tuple[list[Encoded], _Held | None]:
        """The frames from `place` down to the chain's first, or to a body that is held."""
        chain: list[Encoded] = []
        while True:
            held = self._held.get(place.offset)
            if held is not None:
                self._held.move_to_end(place.offset)
                return chain, held
            body = unpack(self._frame_at(place))
            chain.append(body)
            if body.base is None:
                return chain, None
            if body.base.offset >= place.offset:
                raise Corrupt(f"the body at offset {place.offset} refers forward")
            if len(chain) > CHAIN_FRAMES:
                raise Corrupt(f"the body at offset {place.offset} stands on more than {CHAIN_FRAMES} others")
            place = body.base

    def _build(self, chain: list[Encoded], held: _Held | None, place: Place) -> _Held:
        if held is None:
            first = self._full(chain.pop())
            held = _Held(first, chain[-1].base or place if chain else place)
        if not chain:
            return held
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
            content = root.data if root is not None else self._full(unpack(self._frame_at(held.root)))
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
"""Longest chain that is followed; the writer stays far below, by cost."""

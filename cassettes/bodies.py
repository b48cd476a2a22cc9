"""Which bodies of a recording are kept whole, and which as ranges of a strand's text (strands.py).

For each conversation the last few bodies are remembered. A new one is compared with them; it joins the strand of the one it is most like,
as long as reading it back stays within limits.DECODE_COST_US. Small ones that are like none join a strand as they are: what they have in
common with the text is zstd's to find.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from typing import NamedTuple, Self

import zstandard

from secondtake.cassettes import journal, splices, strands
from secondtake.cassettes.codec import Encoded, Encoding, compresses
from secondtake.cassettes.exchange import Digest
from secondtake.cassettes.journal import Place
from secondtake.cassettes.limits import DECODE_COST_US, DELTA_BODY_BYTES, DELTA_MEMORY_BYTES, OBJECT_BYTES, STRAND_RANGES
from secondtake.cassettes.splices import Splice
from secondtake.cassettes.strands import Range, cost_of, cost_to_join


@dataclass(slots=True, eq=False)
class _Strand:
    """One that is being written, or could be begun."""

    root: bytes
    root_cost_us: float
    root_at: Place
    position: int
    """Bytes of its text so far."""
    last: Place
    frames: int = 0
    packed_bytes: int = 0
    compressor: strands.Compressor | None = None
    over: bool = False
    """Nothing more is added: its compressor was given up, or another strand began with its root."""

    @classmethod
    def begun(cls, root: bytes, cost_us: float, at: Place) -> Self:
        """A strand that has its root only."""
        return cls(root, cost_us, at, len(root), at)

    def cost_with(self, literal_bytes: int, ranges: int, size: int) -> float:
        """Estimated microseconds to read back a body that is added to it."""
        text = self.position - len(self.root) + literal_bytes
        packed = self.packed_bytes + literal_bytes * PACKED
        return self.root_cost_us + cost_of(self.frames + 1, packed, text) + cost_to_join(ranges, size)


@dataclass(slots=True, eq=False)
class Known:
    """A body that a later one may repeat ranges of."""

    data: bytes
    ranges: list[Range]
    strand: _Strand
    whole: bool
    """Its frame can be the root of a strand."""


class _Choice(NamedTuple):
    """Where a body goes."""

    joined: Known
    """A body of the strand."""
    like: bool = False
    """It is also what the body is like: `made` leads from it to the body."""
    made: tuple[Splice, ...] = ()
    anew: bool = False
    """A new strand begins with it."""


@dataclass(slots=True)
class BodyEncoder:
    """Encodes the bodies of one recording, in order. Deterministic: the same bodies in the same order give the same bytes."""

    _conversations: OrderedDict[str, list[Known]] = field(default_factory=OrderedDict)
    _held_bytes: int = 0
    _plain: zstandard.ZstdCompressor = field(default_factory=lambda: zstandard.ZstdCompressor(level=journal.LEVEL, write_content_size=True))
    _quick: zstandard.ZstdCompressor = field(default_factory=lambda: zstandard.ZstdCompressor(level=1))
    _written: OrderedDict[int, _Strand] = field(default_factory=OrderedDict)
    """Strands that have a compressor, by their identity, in order of use."""

    PER_CONVERSATION = 12
    CONVERSATIONS = 1024
    """Each path is one: of very many, the oldest are forgotten, however small their bodies."""
    STRANDS = 16
    """How many are written at a time."""
    UNLIKE = 4
    """After so many large bodies that share little, the search is given up."""

    def encode(self, digest: Digest, data: bytes, conversation: str) -> tuple[Encoded, Known | None] | None:
        """The frame payload for `data`, and what to `remember` once it has its place; None when it should be a file of its own.

        What was encoded is part of its strand: it must be written, and remembered before the next is encoded.
        """
        middling = 64 <= len(data) <= DELTA_BODY_BYTES
        chosen = self._choose(data, conversation) if middling else None
        if chosen is not None:
            return self._add(digest, data, chosen)
        if len(data) >= OBJECT_BYTES and not compresses(data, self._quick):
            return None
        packed = self._plain.compress(data) if len(data) >= 64 else data
        if len(packed) < len(data):
            encoded = Encoded(digest, len(data), Encoding.ZSTD, packed)
        else:
            encoded = Encoded(digest, len(data), Encoding.PLAIN, data)
        if not middling:
            return encoded, None
        strand = _Strand.begun(data, cost_of(1, len(packed), len(data)), Place(0, 0))
        return encoded, Known(data, [Range(0, len(data))], strand, True)

    def _add(self, digest: Digest, data: bytes, chosen: _Choice) -> tuple[Encoded, Known]:
        """Make `data` the next body of a strand."""
        base = chosen.joined
        if chosen.anew:
            self._end(base.strand)
            base.strand = _Strand.begun(base.strand.root, base.strand.root_cost_us, base.strand.root_at)
        strand = base.strand
        whole = [Range(strand.position, len(data))]
        ranges, literal = strands.follow(base.ranges, chosen.made, data, strand.position) if chosen.like else (whole, data)
        if len(ranges) > STRAND_RANGES:
            ranges, literal = whole, data
        table = strands.pack(ranges)
        blocks = self._compressor(strand).add(literal + table)
        text = len(literal) + len(table)
        encoded = Encoded(digest, len(data), Encoding.STRAND, blocks, strand.last, (), text, len(table))
        strand.position += text
        strand.frames += 1
        strand.packed_bytes += len(blocks)
        return encoded, Known(data, ranges, strand, False)

    def _compressor(self, strand: _Strand) -> strands.Compressor:
        if strand.compressor is None:
            strand.compressor = strands.Compressor(strand.root)
            self._written[id(strand)] = strand
            if len(self._written) > self.STRANDS:
                self._end(next(iter(self._written.values())))
        self._written.move_to_end(id(strand))
        return strand.compressor

    def _end(self, strand: _Strand) -> None:
        strand.over = True
        strand.compressor = None
        self._written.pop(id(strand), None)

    def _choose(self, data: bytes, conversation: str) -> _Choice | None:
        """The strand to join, by the body of it that is most like `data`, if one is."""
        known = self._conversations.get(conversation)
        if not known:
            return None
        alone = cost_of(1, len(data) * PACKED, len(data)) + cost_to_join(1, len(data))
        bound = max(DECODE_COST_US, BOUND_OVER_WHOLE * alone)
        fitting: list[tuple[int, _Choice]] = []
        unlike = 0
        for one in reversed(known):
            if one.strand.over and not one.whole:
                continue
            made = _likeness(one.data, data)
            if made is None:
                unlike += len(data) > SMALL_BYTES
                if unlike == self.UNLIKE:
                    break
                continue
            literal_bytes = sum(splice.size for splice in made)
            cost = one.strand.cost_with(literal_bytes, len(one.ranges) + 2 * len(made), len(data))
            if not one.strand.over and cost <= bound:
                if literal_bytes <= max(len(data) - len(one.data), 0) + 1024:
                    return _Choice(one, True, made)
                fitting.append((literal_bytes, _Choice(one, True, made)))
            elif one.whole and literal_bytes * 2 <= len(data):
                # Its strand has become too long. What came since the root is written once more, in a new one.
                fitting.append((literal_bytes + len(data), _Choice(one, True, made, True)))
        if fitting:
            return min(fitting, key=lambda fit: fit[0])[1]
        return self._joined(known, data, bound) if len(data) <= SMALL_BYTES else None

    @staticmethod
    def _joined(known: list[Known], data: bytes, bound: float) -> _Choice | None:
        """A strand for a small body that is like none: what they have in common is left to zstd."""
        for one in reversed(known):
            if not one.strand.over and one.strand.cost_with(len(data), 1, len(data)) <= bound:
                return _Choice(one)
        for one in reversed(known):
            if one.whole and len(one.data) <= SMALL_BYTES:
                return _Choice(one, anew=True)
        return None

    def remember(self, known: Known, place: Place, conversation: str) -> None:
        """`known` was written at `place`: later bodies of `conversation` may build on it."""
        known.strand.last = place
        if known.whole:
            known.strand.root_at = place
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

    def _forget(self, bodies: list[Known], position: int) -> None:
        gone = bodies.pop(position)
        self._held_bytes -= len(gone.data)
        if gone.whole:
            self._end(gone.strand)

    @staticmethod
    def _least_useful(bodies: list[Known]) -> int:
        """The oldest body of a strand that is over; else the oldest that is neither the newest of its strand nor the root of one that is
        written; else the oldest that nothing stands on."""
        newest = {id(one.strand): one for one in bodies}
        ranks = [
            0
            if one.strand.over and not one.whole
            else 1
            if newest[id(one.strand)] is not one and not one.whole
            else 2 + bool(one.strand.frames)
            for one in bodies
        ]
        return ranks.index(min(ranks))


def _likeness(base: bytes, data: bytes) -> tuple[Splice, ...] | None:
    """How `base` becomes `data`; None when they share too little, or it would cost too much to see what."""
    if len(data) <= SMALL_BYTES:
        same = splices.common_prefix(base, data)
        same += splices.common_suffix(base, data, min(len(base), len(data)) - same)
        return splices.between(base, data) if same * 2 >= len(data) else None
    made = splices.between(base, data)
    return made if sum(splice.size for splice in made) * 4 <= len(data) * 3 else None


SMALL_BYTES = 64 * 1024
"""Up to this size a body is compared with earlier ones by beginning and end only, and joins a strand whatever it is like."""

BOUND_OVER_WHOLE = 1.5
"""A body that costs much by itself may cost this many times as much in a strand."""

PACKED = 0.3
"""Compressed over plain size of what is new, before it is known."""

"""Two lists of what was done, set side by side at the least cost: an edit distance whose substitutions know what is alike.

Equal is free; the same tools with other arguments cost 1, a step only one side took 2, tools in common 2, nothing in common 3.
So a step is set beside another one rather than beside nothing, and beside the most alike. What both sides begin and end with is
set aside first; the rest is a table of at most `CELLS` cells (about a second). A larger one is cut where a step that occurs once on
each side fixes the order; what is still too large is set side by side by position, and `Alignment.bounded` says so.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

CELLS = 4_000_000
"""2,000 × 2,000 steps that share neither beginning nor end."""

OTHER_ARGUMENTS, IN_COMMON, NOTHING_IN_COMMON, ONE_SIDE = 1, 2, 3, 2

_PAIR, _LEFT_ONLY, _RIGHT_ONLY = 0, 1, 2


@dataclass(frozen=True, slots=True)
class Mark:
    """What is known of a step here: `key` decides equality, `parts` (tools, a program) how alike two unequal ones are."""

    key: str
    parts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Pair:
    """Positions of two steps set side by side; None where the other side has none."""

    a: int | None
    b: int | None
    same: bool = False


@dataclass(frozen=True, slots=True)
class Alignment:
    pairs: tuple[Pair, ...]
    bounded: bool = False
    """Part of it was too large for the least cost to be found."""

    @property
    def first(self) -> int | None:
        """The place in `pairs` of the first that is not the same."""
        return next((number for number, pair in enumerate(self.pairs) if not pair.same), None)


def align(a: Sequence[Mark], b: Sequence[Mark], *, cells: int = CELLS) -> Alignment:
    """Set `a` and `b` side by side. Exchanging the two exchanges the sides of each pair and changes nothing else."""
    if [mark.key for mark in b] < [mark.key for mark in a]:
        turned = align(b, a, cells=cells)
        return Alignment(_left_first([Pair(pair.b, pair.a, pair.same) for pair in turned.pairs]), turned.bounded)
    work = _Work(a, b, cells)
    pairs = list(work.between(0, len(a), 0, len(b)))
    return Alignment(_left_first(pairs), work.bounded)


def _left_first(pairs: list[Pair]) -> tuple[Pair, ...]:
    """Of steps without an opposite that follow each other, those of the left side come first."""
    made: list[Pair] = []
    right: list[Pair] = []
    for pair in pairs:
        if pair.a is None:
            right.append(pair)
            continue
        if pair.b is not None:
            made += right
            right = []
        made.append(pair)
    return (*made, *right)


class _Work:
    """One alignment under way. Keys and sets of parts are numbers, and each part one bit."""

    def __init__(self, a: Sequence[Mark], b: Sequence[Mark], cells: int) -> None:
        self.bounded = False
        self._cells = cells
        keys: dict[str, int] = {}
        kinds: dict[tuple[str, ...], int] = {}
        bits: dict[str, int] = {}

        def read(marks: Sequence[Mark]) -> list[tuple[int, int, int]]:
            made = []
            for mark in marks:
                mask = 0
                for part in mark.parts:
                    mask |= 1 << bits.setdefault(part, len(bits))
                made.append((keys.setdefault(mark.key, len(keys)), kinds.setdefault(mark.parts, len(kinds)), mask))
            return made

        self._a, self._b = read(a), read(b)

    def between(self, a1: int, a2: int, b1: int, b2: int) -> Iterator[Pair]:
        """Yield the pairs of two stretches."""
        a, b = self._a, self._b
        while a1 < a2 and b1 < b2 and a[a1][0] == b[b1][0]:
            yield Pair(a1, b1, same=True)
            a1, b1 = a1 + 1, b1 + 1
        tail = 0
        while a1 < a2 - tail and b1 < b2 - tail and a[a2 - tail - 1][0] == b[b2 - tail - 1][0]:
            tail += 1
        a2, b2 = a2 - tail, b2 - tail
        if (a2 - a1) * (b2 - b1) <= self._cells:
            self._cells -= (a2 - a1) * (b2 - b1)
            yield from self._least(a1, a2, b1, b2)
        else:
            yield from self._cut(a1, a2, b1, b2)
        yield from (Pair(a2 + number, b2 + number, same=True) for number in range(tail))

    def _least(self, a1: int, a2: int, b1: int, b2: int) -> Iterator[Pair]:
        """The least cost, by a table; only the moves are kept, a byte each."""
        right = self._b[b1:b2]
        row = list(range(0, ONE_SIDE * (len(right) + 1), ONE_SIDE))
        moves = [bytearray([_RIGHT_ONLY]) * (len(right) + 1)]
        for key, kind, mask in self._a[a1:a2]:
            move = bytearray(len(right) + 1)
            move[0] = _LEFT_ONLY
            diagonal = row[0]
            before = diagonal + ONE_SIDE
            made = [before]
            for column, (other_key, other_kind, other_mask) in enumerate(right, 1):
                above = row[column]
                if key == other_key:
                    least = diagonal
                elif kind == other_kind:
                    least = diagonal + OTHER_ARGUMENTS
                else:
                    least = diagonal + (IN_COMMON if mask & other_mask else NOTHING_IN_COMMON)
                if above + ONE_SIDE < least:
                    least = above + ONE_SIDE
                    move[column] = _LEFT_ONLY
                if before + ONE_SIDE < least:
                    least = before + ONE_SIDE
                    move[column] = _RIGHT_ONLY
                made.append(least)
                before, diagonal = least, above
            row = made
            moves.append(move)
        found: list[Pair] = []
        at, beside = a2 - a1, b2 - b1
        while at or beside:
            match moves[at][beside]:
                case 0:
                    at, beside = at - 1, beside - 1
                    found.append(Pair(a1 + at, b1 + beside, self._a[a1 + at][0] == self._b[b1 + beside][0]))
                case 1:
                    at -= 1
                    found.append(Pair(a1 + at, None))
                case _:
                    beside -= 1
                    found.append(Pair(None, b1 + beside))
        yield from reversed(found)

    def _cut(self, a1: int, a2: int, b1: int, b2: int) -> Iterator[Pair]:
        """Too large for a table: cut at what occurs once on each side, else by position."""
        self.bounded = True
        anchors = self._anchors(a1, a2, b1, b2)
        if not anchors:
            yield from self._by_position(a1, a2, b1, b2)
            return
        for at, beside in [*anchors, (a2, b2)]:
            if a1 < at or b1 < beside:
                yield from self.between(a1, at, b1, beside)
            if at < a2:
                yield Pair(at, beside, same=True)
            a1, b1 = at + 1, beside + 1

    def _anchors(self, a1: int, a2: int, b1: int, b2: int) -> list[tuple[int, int]]:
        """The longest run of steps, in order on both sides, each of which occurs once on each (patience sorting)."""
        once_a, once_b = (Counter(mark[0] for mark in side) for side in (self._a[a1:a2], self._b[b1:b2]))
        places = {self._b[beside][0]: beside for beside in range(b1, b2) if once_b[self._b[beside][0]] == 1}
        both = [(at, places[self._a[at][0]]) for at in range(a1, a2) if once_a[self._a[at][0]] == 1 and self._a[at][0] in places]
        tops: list[int] = []
        piles: list[int] = []
        previous: list[int | None] = []
        for number, (_, beside) in enumerate(both):
            pile = bisect_left(tops, beside)
            previous.append(piles[pile - 1] if pile else None)
            if pile == len(tops):
                tops.append(beside)
                piles.append(number)
            else:
                tops[pile], piles[pile] = beside, number
        chain: list[tuple[int, int]] = []
        step: int | None = piles[-1] if piles else None
        while step is not None:
            chain.append(both[step])
            step = previous[step]
        return chain[::-1]

    def _by_position(self, a1: int, a2: int, b1: int, b2: int) -> Iterator[Pair]:
        for number in range(max(a2 - a1, b2 - b1)):
            at, beside = a1 + number, b1 + number
            if at >= a2:
                yield Pair(None, beside)
            elif beside >= b2:
                yield Pair(at, None)
            else:
                yield Pair(at, beside, self._a[at][0] == self._b[beside][0])

"""Ranges that overlap made one, and redaction repeated until it changes nothing."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from dataclasses import replace

from secondtake.cassettes.exchange import Redaction
from secondtake.cassettes.needles import Hit

_PASSES = 16
"""More are a mistake; then the body is withheld."""


def settled[T](work: Callable[[T], tuple[T, tuple[Redaction, ...]]], value: T) -> tuple[T, tuple[Redaction, ...]]:
    """Redact until nothing more is found: a placeholder may take away a quote or a `=` by which a place was known.

    Thus doing it twice is doing it once. Without a hit the first pass is the last.
    """
    told: tuple[Redaction, ...] = ()
    for _ in range(_PASSES):
        before = value
        value, more = work(value)
        if value == before:
            return value, told or more
        told = (*_uncovered(told, more), *more)
    raise RecursionError("placeholders that never settle")


def _uncovered(told: tuple[Redaction, ...], more: tuple[Redaction, ...]) -> list[Redaction]:
    """Those of `told` that lie in none of `more`, whose ranges do not overlap within one place."""
    by_place: dict[str, list[tuple[int, int]]] = {}
    for one in more:
        by_place.setdefault(one.place, []).append((one.start, one.stop))
    for ranges in by_place.values():
        ranges.sort()
    kept: list[Redaction] = []
    for one in told:
        ranges = by_place.get(one.place, [])
        at = bisect_right(ranges, (one.start, 1 << 62)) - 1
        if at < 0 or ranges[at][1] < one.stop:
            kept.append(one)
    return kept


def merged(hits: list[tuple[str, Hit]]) -> list[tuple[str, Hit]]:
    """Hits in order, those that overlap made one: the range of all, the kind of the longest, of equals the last one's.

    So a known value's own kind wins over what its place or its shape says, and a dummy for it counts as the same (C-13).
    """
    ordered = sorted(hits, key=lambda one: (one[1].start, -one[1].stop))
    out: list[tuple[str, Hit]] = []
    for place, hit in ordered:
        if out and hit.start < out[-1][1].stop:
            first_place, first = out[-1]
            longer = hit if hit.stop - hit.start >= first.stop - first.start else first
            out[-1] = (first_place, replace(longer, start=first.start, stop=max(first.stop, hit.stop)))
        else:
            out.append((place, hit))
    return out

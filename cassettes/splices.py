"""A body as an earlier one with a few ranges replaced: found in two comparisons and a bounded search, applied in place."""

from __future__ import annotations

from typing import NamedTuple

from secondtake.cassettes import varint
from secondtake.cassettes.errors import Corrupt
from secondtake.cassettes.limits import RECORD_BYTES


class Splice(NamedTuple):
    """Bytes start:stop of the base are replaced by the next `size` literal bytes."""

    start: int
    stop: int
    size: int


MAX_SPLICES = 64
_ANCHOR_BYTES = 48
_FIRST_STEP, _LAST_STEP = 64, 1 << 16
"""Bytes compared at once: few at first, since two ranges often differ soon; then eight times as many each time they do not."""
_BY_NUMBER = 1024
"""In a range this short the first difference is found by taking both sides as one number each."""
_STEPS = (0, 64, 256, 1024, 4096, 16384, 65536)


def common_prefix(a: bytes, b: bytes, start_a: int = 0, start_b: int = 0, limit: int | None = None) -> int:
    """How many bytes from `start_a` and `start_b` on are equal, at most `limit`."""
    longest = min(len(a) - start_a, len(b) - start_b)
    if limit is not None:
        longest = min(longest, limit)
    view = memoryview(a)
    same, step = 0, _FIRST_STEP
    while same < longest:
        step = min(step, longest - same)
        at, to = start_a + same, start_b + same
        if b.startswith(view[at : at + step], to):
            same += step
            step = min(step * 8, _LAST_STEP)
        elif step > _BY_NUMBER:
            longest = same + step
            step //= 8
        else:
            differ = int.from_bytes(a[at : at + step], "big") ^ int.from_bytes(b[to : to + step], "big")
            return same + step - (differ.bit_length() + 7) // 8
    return same


def common_suffix(a: bytes, b: bytes, limit: int, end_a: int | None = None, end_b: int | None = None) -> int:
    """How many bytes before `end_a` and `end_b` are equal, at most `limit`."""
    end_a, end_b = len(a) if end_a is None else end_a, len(b) if end_b is None else end_b
    longest = min(end_a, end_b, limit)
    view = memoryview(a)
    same, step = 0, _FIRST_STEP
    while same < longest:
        step = min(step, longest - same)
        at, to = end_a - same, end_b - same
        if b.endswith(view[at - step : at], 0, to):
            same += step
            step = min(step * 8, _LAST_STEP)
        elif step > _BY_NUMBER:
            longest = same + step
            step //= 8
        else:
            differ = int.from_bytes(a[at - step : at], "little") ^ int.from_bytes(b[to - step : to], "little")
            return same + step - (differ.bit_length() + 7) // 8
    return same


def between(base: bytes, new: bytes) -> tuple[Splice, ...]:
    """Ranges of `base` to replace so that it becomes `new`, in order, at most MAX_SPLICES. Not minimal, but quick: two comparisons, and
    a bounded search for where the two meet again after each difference."""
    here = common_prefix(base, new)
    tail = common_suffix(base, new, min(len(base), len(new)) - here)
    base_end, new_end = len(base) - tail, len(new) - tail
    made: list[Splice] = []
    there = here
    budget = 8 * len(new) + (1 << 16)
    while here < base_end and there < new_end and len(made) < MAX_SPLICES - 1 and budget > 0:
        for step in _STEPS:
            anchor = base[here + step : min(here + step + _ANCHOR_BYTES, base_end)]
            if len(anchor) < _ANCHOR_BYTES:
                budget = 0
                break
            found = new.find(anchor, there, new_end)
            budget -= (found if found >= 0 else new_end) - there
            if found >= 0:
                back = common_suffix(base, new, min(step, found - there), here + step, found)
                start, stop = here, here + step - back
                made.append(Splice(start, stop, found - back - there))
                along = common_prefix(base, new, here + step, found, min(base_end - here - step, new_end - found))
                here, there = here + step + along, found + along
                break
        else:
            break
    if here < base_end or there < new_end:
        made.append(Splice(here, base_end, new_end - there))
    return tuple(made)


def literals(new: bytes, made: tuple[Splice, ...]) -> bytes:
    """The bytes of `new` that the splices bring in."""
    parts: list[bytes] = []
    shift = 0
    for splice in made:
        start = splice.start + shift
        parts.append(new[start : start + splice.size])
        shift += splice.size - (splice.stop - splice.start)
    return b"".join(parts)


def apply(base: bytearray, made: tuple[Splice, ...], literal: bytes) -> None:
    """Turn `base` into the body, in place; last splice first, so that earlier offsets stay right."""
    end = len(literal)
    for splice in reversed(made):
        base[splice.start : splice.stop] = literal[end - splice.size : end]
        end -= splice.size


def pack(made: tuple[Splice, ...]) -> bytes:
    """Three varints a splice: bytes kept before it, bytes replaced, bytes put in."""
    table = bytearray()
    before = 0
    for splice in made:
        varint.put(table, splice.start - before)
        varint.put(table, splice.stop - splice.start)
        varint.put(table, splice.size)
        before = splice.stop
    return bytes(table)


def unpack(table: bytes) -> tuple[Splice, ...]:
    """The counterpart of `pack`. Raises Corrupt; the splices are in order and do not overlap."""
    numbers = varint.all_of(table, 3 * MAX_SPLICES)
    if len(numbers) % 3:
        raise Corrupt("a body frame's splices are cut short")
    made: list[Splice] = []
    before = 0
    for gap, length, size in zip(numbers[::3], numbers[1::3], numbers[2::3], strict=True):
        start = before + gap
        before = start + length
        if before > RECORD_BYTES or size > RECORD_BYTES:
            raise Corrupt("a body frame's splices are out of range")
        made.append(Splice(start, before, size))
    return tuple(made)

"""Integers of any size in as few bytes as they need: seven bits a byte, least significant first (LEB128); signed ones zigzagged."""

from __future__ import annotations

from secondtake.cassettes.errors import BadInput, Corrupt

LONGEST_BYTES = 10


def put(out: bytearray, value: int) -> None:
    """Append `value`, 0 to 2^64-1."""
    if not 0 <= value < 1 << 64:
        raise BadInput(f"a number is out of range: {value}")
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)


def put_signed(out: bytearray, value: int) -> None:
    """Append `value`, -2^63 to 2^63-1."""
    put(out, value << 1 if value >= 0 else ~value << 1 | 1)


def signed(value: int) -> int:
    """Undo the zigzag."""
    return ~(value >> 1) if value & 1 else value >> 1


def all_of(data: bytes, limit: int) -> list[int]:
    """Every number in `data`, at most `limit`. Raises Corrupt when it does not end with one, or one is not in its shortest form."""
    numbers: list[int] = []
    value = shift = 0
    for byte in data:
        if byte < 0x80 and not shift:
            numbers.append(byte)
            continue
        value |= (byte & 0x7F) << shift
        if byte & 0x80:
            shift += 7
            if shift >= 7 * LONGEST_BYTES:
                raise Corrupt("a number is too long")
        else:
            if not byte and shift:
                raise Corrupt("a number is not in its shortest form")
            numbers.append(value)
            value = shift = 0
    if len(numbers) > limit:
        raise Corrupt(f"more than {limit} numbers")
    if shift:
        raise Corrupt("a number is cut short")
    return numbers

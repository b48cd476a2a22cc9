"""Integers of any size."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from secondtake.cassettes import varint
from secondtake.cassettes.errors import BadInput, Corrupt


@given(st.lists(st.integers(0, 2**64 - 1)), st.lists(st.integers(-(2**63), 2**63 - 1)))
def test_numbers_are_read_back(numbers: list[int], signed: list[int]) -> None:
    """B4.9: read and write are inverse."""
    out = bytearray()
    for number in numbers:
        varint.put(out, number)
    assert varint.all_of(bytes(out), len(numbers)) == numbers
    out = bytearray()
    for number in signed:
        varint.put_signed(out, number)
    assert [varint.signed(number) for number in varint.all_of(bytes(out), len(signed))] == signed


@pytest.mark.parametrize("data", [b"\x80", b"\x80\x00", b"\xff" * 10 + b"\x01", b"\x01\x02\x03"])
def test_what_no_writer_writes_is_damage(data: bytes) -> None:
    """B4.7: cut short, not the shortest form, too long, too many."""
    with pytest.raises(Corrupt):
        varint.all_of(data, 2)


@pytest.mark.parametrize("number", [-1, 2**64])
def test_a_number_out_of_range_is_refused(number: int) -> None:
    """B4.7: negative offsets and too large lengths never get in."""
    with pytest.raises(BadInput):
        varint.put(bytearray(), number)

"""The small files of a cassette's folder."""

from __future__ import annotations

import pytest

from secondtake.cassettes.exchange import Side
from secondtake.cassettes.folder import durable_mark, read_mark, spool_name


@pytest.mark.parametrize("offset", [0, 16, 2**40, 2**64 - 1])
def test_the_mark_is_read_back(offset: int) -> None:
    """How much is durable, as it was last written."""
    assert read_mark(durable_mark(offset) + bytes(100)) == offset


def test_a_damaged_mark_is_none() -> None:
    """A mark that is torn or was never written claims nothing."""
    mark = durable_mark(1234)
    assert read_mark(bytes(16384)) is None
    assert read_mark(mark[:11]) is None
    for bit in range(8 * len(mark)):
        flipped = bytearray(mark)
        flipped[bit // 8] ^= 1 << bit % 8
        assert read_mark(bytes(flipped)) is None


def test_each_side_has_a_spool_of_its_own() -> None:
    """T-C7: a request and its answer may stream at once."""
    assert spool_name(3, Side.REQUEST) != spool_name(3, Side.RESPONSE)

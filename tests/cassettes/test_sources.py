"""Sources made of other sources."""

from __future__ import annotations

import gzip
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from secondtake.cassettes.errors import BadInput
from secondtake.cassettes.exchange import Bytes, Slice
from secondtake.cassettes.sources import Joined, Undone


@given(st.lists(st.binary(max_size=20), max_size=6), st.integers(0, 130), st.integers(0, 130))
def test_joined_sources_read_like_their_bytes_joined(pieces: list[bytes], offset: int, size: int) -> None:
    """I: any offset, any size."""
    whole = b"".join(pieces)
    joined = Joined([Bytes(piece) for piece in pieces])
    assert joined.size_bytes == len(whole)
    assert joined.read(offset, size) == whole[offset : offset + size]


@given(st.lists(st.tuples(st.integers(0, 210_000), st.integers(0, 70_000)), max_size=8))
def test_an_undone_source_reads_like_the_decoded_bytes_in_any_order(reads: list[tuple[int, int]]) -> None:
    """T-E3: forward, back, beyond the end."""
    data = random.Random(5).randbytes(1000) * 200
    source = Undone(Bytes(gzip.compress(data, 1)), ["gzip"])
    assert source.size_bytes == len(data)
    for offset, size in reads:
        assert source.read(offset, size) == data[offset : offset + size]


def test_an_undone_source_of_damaged_bytes_is_never_made() -> None:
    """T-E3: found out before the first byte is sent."""
    with pytest.raises(BadInput):
        Undone(Bytes(gzip.compress(b"x" * 100)[:-3]), ["gzip"])


def test_a_slice_of_joined_sources_is_exact() -> None:
    """T-I1."""
    joined = Joined([Bytes(b"0123"), Bytes(b""), Bytes(b"456789")])
    assert Slice(joined, 2, 7).read(0, 100) == b"23456"
    assert Slice(joined, 2, 7).read(3, 100) == b"56"

"""Bodies as ranges of a text."""

from __future__ import annotations

import itertools
import struct

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from secondtake.cassettes import splices, strands
from secondtake.cassettes.errors import Corrupt
from secondtake.cassettes.limits import STRAND_RANGES
from secondtake.cassettes.strands import Compressor, Range, Text
from tests.cassettes.scenes import noise, prose, transcript


@given(st.lists(st.tuples(st.integers(0, 2000), st.integers(0, 500), st.integers(0, 5)), max_size=12))
def test_a_body_is_the_ranges_that_follow_from_its_base(edits: list[tuple[int, int, int]]) -> None:
    """B4.9: step by step, each body from the one before, in one text."""
    new = prose(2000, 9)
    text, ranges = new, [Range(0, len(new))]
    for at, gone, which in edits:
        base, new = new, new[:at] + (b"", b"x", prose(300, 8), new[100:900], noise(70, 2), b"y" * 33)[which] + new[at + gone :]
        if not new:
            return
        ranges, literal = strands.follow(ranges, splices.between(base, new), new, len(text))
        text += literal
        assert b"".join(text[start : start + size] for start, size in ranges) == new
        assert strands.unpack(strands.pack(ranges), len(text), len(new)) == [(start, start + size) for start, size in ranges]


def test_a_turn_adds_few_ranges() -> None:
    """DESIGN 8: a table does not grow by more than what moved."""
    session = transcript(20, 1000)
    text, ranges = session[0], [Range(0, len(session[0]))]
    for base, new in itertools.pairwise(session):
        ranges, literal = strands.follow(ranges, splices.between(base, new), new, len(text))
        text += literal
    assert len(ranges) <= 2 * len(session) + 4


def test_a_text_is_read_in_steps_of_any_size() -> None:
    """DESIGN 4: what was written body by body is read body by body, or at once."""
    root = prose(5000, 1)
    parts = [prose(size, size) for size in (1, 500, 200_000, 7)] + [noise(150_000, 4)]
    compressor = Compressor(root)
    blocks = [compressor.add(part) for part in parts]
    once, steps = Text(root), Text(root)
    once.grow(b"".join(blocks), sum(map(len, parts)))
    for part, block in zip(parts, blocks, strict=True):
        steps.grow(block, len(part))
    assert bytes(once._text) == bytes(steps._text) == root + b"".join(parts)


def test_any_zstd_reads_a_strand_that_is_given_an_end() -> None:
    """format.md: the blocks and an empty last one are one frame, its dictionary the root."""
    root, more = prose(200_000, 1), prose(3000, 2)
    compressor = Compressor(root)
    frame = compressor.add(more[:1000]) + compressor.add(more[1000:]) + b"\x01\x00\x00"
    known = zstandard.ZstdCompressionDict(root[-128 * 1024 :], dict_type=zstandard.DICT_TYPE_RAWCONTENT)
    assert zstandard.ZstdDecompressor(dict_data=known).decompress(frame, max_output_size=5000) == more


@pytest.mark.parametrize("claimed", [0, 999, 1001, 2**31, 5_000_000])
def test_blocks_that_hold_another_size_than_claimed_are_damage(claimed: int) -> None:
    """B4.7: fewer, more, and far more bytes than there are; nothing is unpacked beyond what is claimed."""
    root = prose(100, 1)
    blocks = Compressor(root).add(prose(1000, 2))
    text = Text(root)
    if claimed == 999:
        # What is left over is found by the next step, or by the digest of the body.
        text.grow(blocks, claimed)
        assert len(text) == 100 + 999
        return
    with pytest.raises(Corrupt):
        text.grow(blocks, claimed)


def test_a_bomb_costs_what_it_claims() -> None:
    """B-11: a few bytes that stand for gigabytes."""
    how = zstandard.ZstdCompressionParameters.from_level(3, window_log=20, write_content_size=False)
    bomb = zstandard.ZstdCompressor(compression_params=how).compress(bytes(200_000_000))
    text = Text(b"root" * 20)
    with pytest.raises(Corrupt):
        text.grow(bomb, 1_000_000_000)
    with pytest.raises(Corrupt):
        Text(b"root" * 20).grow(b"\x00" * 9, 1_000_000_000)
    small = Text(b"root" * 20)
    small.grow(bomb, 1000)
    assert len(small) == 80 + 1000


@pytest.mark.parametrize("blocks", [b"", b"\x00", b"no zstd at all", zstandard.ZstdCompressor(level=3).compress(b"x" * 50)[:-2]])
def test_bytes_that_are_no_blocks_are_damage(blocks: bytes) -> None:
    """B4.8: cut short, or of another format."""
    with pytest.raises(Corrupt):
        Text(prose(100, 1)).grow(blocks, 100)


def test_a_window_larger_than_a_writer_uses_is_refused() -> None:
    """B-11: memory is not allocated because a frame asks for it."""
    how = zstandard.ZstdCompressionParameters.from_level(3, window_log=27, write_content_size=False)
    frame = zstandard.ZstdCompressor(compression_params=how).compressobj()
    blocks = frame.compress(prose(1000, 1)) + frame.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK)
    with pytest.raises(Corrupt):
        Text(prose(100, 1)).grow(blocks, 1000)


@pytest.mark.parametrize(
    ("numbers", "size"),
    [
        ([], 1),
        ([0, 5], 4),
        ([0, 4], 5),
        ([98, 3], 3),
        ([0, 0, 0, 3], 3),
        ([2**32 - 1, 2], 2),
        ([0, 2**32 - 1], 2**32 - 1),
        ([0, 1] * (STRAND_RANGES + 1), STRAND_RANGES + 1),
    ],
)
def test_a_table_no_writer_writes_is_damage(numbers: list[int], size: int) -> None:
    """B4.7, B-11: beyond the text, nothing, too many, other sizes than claimed."""
    with pytest.raises(Corrupt):
        strands.unpack(struct.pack(f"<{len(numbers)}I", *numbers), 100, size)


def test_a_table_that_is_cut_short_is_damage() -> None:
    """B4.7: half a range."""
    with pytest.raises(Corrupt):
        strands.unpack(strands.pack([Range(0, 5), Range(9, 5)])[:-1], 100, 10)

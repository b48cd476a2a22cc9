"""Which bodies are kept whole, and which in strands."""

from __future__ import annotations

import random

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from secondtake.cassettes import bodies, strands
from secondtake.cassettes.bodies import BodyEncoder
from secondtake.cassettes.codec import BodyDecoder, Encoding
from secondtake.cassettes.digest import digest_of
from secondtake.cassettes.journal import Place
from secondtake.cassettes.limits import DECODE_COST_US, DELTA_MEMORY_BYTES, OBJECT_BYTES
from tests.cassettes.scenes import noise, prose, transcript
from tests.cassettes.tapes import Tape


@given(st.lists(st.tuples(st.integers(0, 4), st.binary(max_size=400), st.integers(0, 1)), max_size=20))
def test_bodies_are_read_back_whatever_came_before(parts: list[tuple[int, bytes, int]]) -> None:
    """B4.9: any bodies, in any order, in two conversations."""
    tape = Tape()
    texts = [prose(600, seed) for seed in range(5)]
    kept: list[tuple[Place, bytes]] = []
    for which, extra, conversation in parts:
        data = texts[which] + extra + texts[which - 1][:200]
        place = tape.keep(data, str(conversation))
        assert place is not None
        kept.append((place, data))
    shared = BodyDecoder(tape)
    for place, data in reversed(kept):
        assert tape.read(place, digest_of(data)) == data
        assert shared.decode(place, digest_of(data)) == data


@given(st.data())
def test_edited_bodies_are_read_back(data: st.DataObject) -> None:
    """B4.9: inserted, removed, repeated and moved parts, of bodies above and below the size from which a search is made."""
    tape = Tape()
    now = prose(data.draw(st.sampled_from([3_000, bodies.SMALL_BYTES + 5_000])), 1)
    kept: list[tuple[Place, bytes]] = []
    for _ in range(data.draw(st.integers(1, 8))):
        start = data.draw(st.integers(0, len(now)))
        stop = data.draw(st.integers(start, min(len(now), start + 2_000)))
        put = data.draw(st.sampled_from([b"", b"x", b"\n" * 90, now[200:700], noise(3_000, 3), prose(9_000, 4)]))
        now = now[:start] + put + now[stop:]
        place = tape.keep(now)
        assert place is not None
        kept.append((place, now))
    shared = BodyDecoder(tape)
    for place, body in kept:
        assert shared.decode(place, digest_of(body)) == body
        assert tape.read(place, digest_of(body)) == body


def test_a_session_costs_what_is_new_in_it() -> None:
    """T-J1, DESIGN 8: 100 turns, 45 MB, at least 25 times smaller than each record compressed by itself, and no body above the bound."""
    session = transcript(100)
    tape = Tape()
    each = zstandard.ZstdCompressor(level=3)
    for data in session:
        tape.keep(data)
    assert sum(map(len, session)) > 40_000_000
    assert tape.size < 1_000_000
    assert tape.size * 25 < sum(len(each.compress(data)) for data in session[::10]) * 10
    known = [one for many in tape.encoder._conversations.values() for one in many]
    alone = strands.cost_of(1, len(session[-1]) * bodies.PACKED, len(session[-1])) + strands.cost_to_join(1, len(session[-1]))
    assert all(one.strand.cost_with(0, 1, 0) < max(DECODE_COST_US, bodies.BOUND_OVER_WHOLE * alone) for one in known)


def test_every_body_of_a_session_is_read_back() -> None:
    """DESIGN 4: identity is the digest of the bytes, whatever the encoding."""
    tape = Tape()
    session = transcript(30, 3000)
    places = [tape.keep(data) for data in session]
    for place, data in zip(places, session, strict=True):
        assert place is not None
        assert tape.read(place, digest_of(data)) == data


def test_what_is_too_long_to_read_begins_anew() -> None:
    """DESIGN 8, "any body decoded in <= 2 ms": polls begin another strand with the same root, and nothing is kept whole twice."""
    tape = Tape()
    root = prose(20_000, 1)
    places = []
    for number in range(1200):
        place = tape.keep(root + b"%d" % number)
        assert place is not None
        places.append(place)
    assert [tape.encoding(place) for place in places].count(Encoding.ZSTD) == 1
    for number in (1, 350, 1199):
        assert tape.read(places[number], digest_of(root + b"%d" % number)) == root + b"%d" % number
    (known,) = tape.encoder._conversations.values()
    assert known[-1].strand.frames < 600
    assert tape.size < 1200 * 150


def test_conversations_side_by_side_do_not_spoil_each_other() -> None:
    """DESIGN 4: subagents share host and path; the base is found by likeness."""
    several = [transcript(12, 2000, seed) for seed in (1, 1001, 2001)]
    alone = sum(_size([one]) for one in several)
    assert _size(several) < alone * 1.15


def _size(several: list[list[bytes]]) -> int:
    tape = Tape()
    for turn in zip(*several, strict=True):
        for data in turn:
            tape.keep(data)
    return tape.size


def test_a_conversation_goes_on_in_its_strand_whatever_else_is_recorded() -> None:
    """T-J3: files of many paths between two turns take no compressor from it."""
    tape = Tape()
    session = transcript(6, 4000)
    for turn, data in enumerate(session):
        place = tape.keep(data)
        for number in range(50):
            tape.keep(prose(2000, turn * 100 + number), f"path {turn} {number}")
        assert place is not None
        assert tape.encoding(place) is (Encoding.STRAND if turn else Encoding.ZSTD)


def test_memory_for_bases_is_bounded() -> None:
    """T-J3: what an encoder holds does not grow with the recording."""
    tape = Tape()
    rng = random.Random(3)
    for number in range(400):
        tape.keep(rng.randbytes(2000), f"conversation {number}")
    held = sum(len(one.data) for many in tape.encoder._conversations.values() for one in many)
    assert held == tape.encoder._held_bytes
    for number in range(80):
        tape.keep(b"%d " % number * 300_000, f"large {number}")
    assert tape.encoder._held_bytes <= DELTA_MEMORY_BYTES


def test_very_many_small_bodies_cost_neither_memory_nor_time_each(monkeypatch: pytest.MonkeyPatch) -> None:
    """T-J3: each path is a conversation of its own, and a compressor for each would be 2 MB for 100 bytes."""
    made = 0
    real = strands.Compressor

    def counted(root: bytes) -> strands.Compressor:
        nonlocal made
        made += 1
        return real(root)

    monkeypatch.setattr(strands, "Compressor", counted)
    tape = Tape()
    rng = random.Random(4)
    for number in range(3000):
        tape.keep(rng.randbytes(100), f"path {number}")
    encoder = tape.encoder
    assert made == 0
    assert len(encoder._conversations) == BodyEncoder.CONVERSATIONS
    held = prose(4000, 7)
    for number in range(100):
        tape.keep(held + b"%d" % number, f"pair {number}")
        tape.keep(held + b"%d" % number + b"more", f"pair {number}")
    assert made == 100
    assert len(encoder._written) <= BodyEncoder.STRANDS
    assert (
        sum(one.strand.compressor is not None for many in encoder._conversations.values() for one in many if one.whole)
        <= BodyEncoder.STRANDS
    )


def test_a_strand_whose_compressor_was_given_up_begins_anew() -> None:
    """T-J3: more conversations at a time than compressors cost bytes, never a body."""
    tape = Tape()
    kept = []
    for turn in range(4):
        for number in range(BodyEncoder.STRANDS + 3):
            data = prose(4000, number) + b"%d" % turn
            place = tape.keep(data, str(number))
            assert place is not None
            kept.append((place, data))
    shared = BodyDecoder(tape)
    for place, data in kept:
        assert shared.decode(place, digest_of(data)) == data
    assert tape.size < (BodyEncoder.STRANDS + 3) * (4000 + 3 * 200)


def test_what_is_large_and_does_not_compress_becomes_a_file() -> None:
    """DESIGN 4: both sides of the boundary."""
    tape = Tape()
    assert tape.keep(noise(OBJECT_BYTES, 1)) is None
    assert tape.keep(noise(OBJECT_BYTES - 1, 1)) is not None
    assert tape.keep(prose(OBJECT_BYTES, 1)) is not None


def test_an_incompressible_body_costs_its_size() -> None:
    """A body that does not compress is kept as it is, alone and in a strand."""
    tape = Tape()
    tape.keep(noise(10_000, 1))
    assert tape.size < 10_100
    tape.keep(noise(10_000, 2))
    assert tape.size < 20_200


def test_the_same_bodies_give_the_same_bytes() -> None:
    """DESIGN 4: the encoder has no state but what it was given."""
    first, second = Tape(), Tape()
    for data in transcript(8, 3000):
        first.keep(data)
        second.keep(data)
    assert first.frames == second.frames

"""Bodies in the journal: full, or splices of an earlier one."""

from __future__ import annotations

import random

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from secondtake.cassettes import codec, journal
from secondtake.cassettes.codec import BodyDecoder, BodyEncoder, Encoded, Encoding
from secondtake.cassettes.digest import digest_of
from secondtake.cassettes.errors import Corrupt
from secondtake.cassettes.exchange import Digest
from secondtake.cassettes.journal import HEADER_BYTES, Place
from secondtake.cassettes.limits import DECODE_COST_US, DELTA_MEMORY_BYTES, OBJECT_BYTES
from secondtake.cassettes.splices import Splice
from tests.cassettes.scenes import noise, prose, transcript


class Tape:
    """Body frames one after the other, in memory."""

    def __init__(self) -> None:
        self.encoder = BodyEncoder()
        self.frames: dict[int, bytes] = {}
        self.size = 16

    def put(self, encoded: Encoded) -> Place:
        frame = journal.frame(journal.Kind.BODY, 0, self.size, codec.pack(encoded))
        place = Place(self.size, len(frame))
        self.frames[self.size] = frame
        self.size += len(frame)
        return place

    def keep(self, data: bytes, conversation: str = "c") -> Place | None:
        made = self.encoder.encode(digest_of(data), data, conversation)
        if made is None:
            return None
        place = self.put(made[0])
        if made[1] is not None:
            self.encoder.remember(made[1], place, conversation)
        return place

    def frame(self, place: Place) -> bytes:
        return self.frames[place.offset][HEADER_BYTES:]

    def read(self, place: Place, digest: Digest) -> bytes:
        return BodyDecoder(self.frame).decode(place, digest)


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
    shared = BodyDecoder(tape.frame)
    for place, data in reversed(kept):
        assert tape.read(place, digest_of(data)) == data
        assert shared.decode(place, digest_of(data)) == data


def test_a_session_costs_what_is_new_in_it() -> None:
    """T-J1, DESIGN 8: 100 turns, 45 MB, at least 12 times smaller than each record compressed by itself, and no body above the bound."""
    bodies = transcript(100)
    tape = Tape()
    each = zstandard.ZstdCompressor(level=3)
    for data in bodies:
        tape.keep(data)
    known = [one for many in tape.encoder._conversations.values() for one in many]
    assert sum(map(len, bodies)) > 40_000_000
    assert tape.size < 1_500_000
    assert tape.size * 12 < sum(len(each.compress(data)) for data in bodies[::10]) * 10
    assert all(one.cost_us < 2 * DECODE_COST_US for one in known)


def test_every_body_of_a_session_is_read_back() -> None:
    """DESIGN 4: identity is the digest of the bytes, whatever the encoding."""
    tape = Tape()
    bodies = transcript(30, 3000)
    places = [tape.keep(data) for data in bodies]
    for place, data in zip(places, bodies, strict=True):
        assert place is not None
        assert tape.read(place, digest_of(data)) == data


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
    assert len(tape.encoder._roots) <= 400


def test_very_many_small_bodies_cost_neither_memory_nor_time_each(monkeypatch: pytest.MonkeyPatch) -> None:
    """T-J3: each path is a conversation of its own, and a compressor for each would be 40 KB for 100 bytes."""
    made = 0
    real = journal.dictionary_compressor

    def counted(content: bytes) -> zstandard.ZstdCompressor:
        nonlocal made
        made += 1
        return real(content)

    monkeypatch.setattr(journal, "dictionary_compressor", counted)
    tape = Tape()
    rng = random.Random(4)
    for number in range(3000):
        tape.keep(rng.randbytes(100), f"path {number}")
    encoder = tape.encoder
    assert made == 0
    assert len(encoder._conversations) == len(encoder._roots) == BodyEncoder.CONVERSATIONS
    held = prose(4000, 7)
    for number in range(100):
        tape.keep(held + b"%d" % number, f"pair {number}")
        tape.keep(held + b"%d" % number + b"more", f"pair {number}")
    assert made == 100
    assert len(encoder._compressors) <= BodyEncoder.ROOTS


def test_what_is_large_and_does_not_compress_becomes_a_file() -> None:
    """DESIGN 4: both sides of the boundary."""
    tape = Tape()
    assert tape.keep(noise(OBJECT_BYTES, 1)) is None
    assert tape.keep(noise(OBJECT_BYTES - 1, 1)) is not None
    assert tape.keep(prose(OBJECT_BYTES, 1)) is not None


def test_an_incompressible_body_costs_its_size() -> None:
    """A body that does not compress is kept as it is."""
    tape = Tape()
    tape.keep(noise(10_000, 1))
    assert tape.size < 10_100


def _zstd(data: bytes, *, with_size: bool = True) -> bytes:
    return zstandard.ZstdCompressor(level=3, write_content_size=with_size).compress(data)


@pytest.mark.parametrize(
    "case",
    [
        "forward",
        "self",
        "splice-beyond",
        "size-lies",
        "literal-short",
        "claims-much",
        "no-size",
        "trailing",
        "other-digest",
        "unknown-encoding",
        "bomb",
    ],
)
def test_a_hostile_body_frame_is_damage(case: str) -> None:
    """B4.7: cycles, ranges and sizes that lie, decompression bombs; a typed error, at once."""
    tape = Tape()
    root = b"root" * 50
    name = digest_of(root)
    at = tape.put(Encoded(name, len(root), Encoding.PLAIN, root))
    dictionary = journal.dictionary_compressor(root)
    literal = dictionary.compress(b"x" * 10)
    splice = (Splice(0, 10, 10),)
    made = {
        "forward": Encoded(name, 200, Encoding.DELTA, literal, Place(10_000, 50), splice),
        "self": Encoded(name, 200, Encoding.DELTA, literal, Place(tape.size, 50), splice),
        "splice-beyond": Encoded(name, 200, Encoding.DELTA, literal, at, (Splice(0, 201, 10),)),
        "size-lies": Encoded(name, 199, Encoding.DELTA, literal, at, splice),
        "literal-short": Encoded(name, 210, Encoding.DELTA, literal, at, (Splice(0, 10, 20),)),
        "claims-much": Encoded(name, 1 << 32 - 1, Encoding.ZSTD, _zstd(root)),
        "no-size": Encoded(name, 200, Encoding.ZSTD, _zstd(root, with_size=False)),
        "trailing": Encoded(name, 200, Encoding.ZSTD, _zstd(root) + b"x"),
        "other-digest": Encoded(name, 4, Encoding.PLAIN, b"else"),
        "unknown-encoding": Encoded(name, 4, 9, b"else"),  # type: ignore[arg-type]
        "bomb": Encoded(name, 200, Encoding.ZSTD, _zstd(bytes(50_000_000))),
    }[case]
    place = tape.put(made)
    with pytest.raises(Corrupt):
        tape.read(place, name)


def test_a_very_long_chain_is_damage() -> None:
    """B-11: a chain no writer makes is refused, not followed for ever."""
    tape = Tape()
    place = tape.put(Encoded(digest_of(b"r"), 1, Encoding.PLAIN, b"r"))
    for _ in range(codec.CHAIN_FRAMES + 1):
        place = tape.put(Encoded(digest_of(b"r"), 1, Encoding.DELTA, b"", place, ()))
    with pytest.raises(Corrupt, match="stands on more"):
        tape.read(place, digest_of(b"r"))


@given(st.binary(max_size=80))
def test_any_bytes_as_a_body_frame_are_damage_or_a_body(payload: bytes) -> None:
    """B4.8: the parser never crashes."""
    try:
        codec.unpack(payload)
    except Corrupt:
        pass

"""Frames, and what stands between them."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from secondtake.cassettes import journal
from secondtake.cassettes.errors import Corrupt, TooNew
from secondtake.cassettes.journal import PREFACE_BYTES, Frame, FrameReader, FrameWriter, Gap, Kind, Place
from secondtake.cassettes.limits import RECORD_BYTES
from tests.cassettes.scenes import noise, prose


@dataclass(frozen=True)
class Memory:
    """A journal in memory."""

    data: bytes

    @property
    def size_bytes(self) -> int:
        return len(self.data)

    def read(self, offset: int, size: int) -> bytes:
        return self.data[offset : offset + size]


def tape(payloads: list[tuple[Kind, bytes, str | None]]) -> tuple[Memory, list[Place]]:
    writer, data, places = FrameWriter(), journal.preface(), []
    for kind, payload, family in payloads:
        made = writer.make(kind, payload, len(data), family)
        places.append(Place(len(data), len(made)))
        data += made
    return Memory(data), places


@given(st.lists(st.tuples(st.sampled_from(Kind), st.binary(max_size=300), st.sampled_from([None, "a", "b"])), max_size=12))
def test_frames_are_read_back_in_order_and_by_place(payloads: list[tuple[Kind, bytes, str | None]]) -> None:
    """B4.9: with and without compression and dictionary."""
    memory, places = tape(payloads)
    reader = FrameReader(memory)
    assert [reader.at(place, kind) for place, (kind, _, _) in zip(places, payloads, strict=True)] == [one for _, one, _ in payloads]
    walked = list(journal.walk(memory))
    assert [one.place for one in walked if isinstance(one, Frame)] == places
    assert len(walked) == len(places)


def test_frames_of_one_family_cost_what_differs() -> None:
    """T-J3: 1,000 records of one host are small."""
    text = prose(900, 1)
    memory, _ = tape([(Kind.END, text + b"%d" % number, "host") for number in range(1000)])
    assert memory.size_bytes < 1000 * 100


def test_a_later_version_is_refused_by_name() -> None:
    """B-09: a newer major version says so; a newer minor one is read."""
    made = bytearray(journal.preface())
    with pytest.raises(TooNew, match="version 2"):
        journal.check_preface(_checked(made, 8, 2))
    assert journal.check_preface(_checked(bytearray(journal.preface()), 10, 7)) == (1, 7)


def _checked(data: bytearray, at: int, value: int) -> bytes:
    import struct
    import zlib

    data[at] = value
    data[12:16] = struct.pack("<I", zlib.crc32(bytes(data[:12])))
    return bytes(data)


def test_every_flipped_bit_of_the_preface_is_noticed() -> None:
    """B4.4: the first 16 bytes."""
    for bit in range(8 * PREFACE_BYTES):
        made = bytearray(journal.preface())
        made[bit // 8] ^= 1 << bit % 8
        with pytest.raises(Corrupt):
            journal.check_preface(bytes(made))


def test_every_flipped_bit_of_a_frame_is_a_gap() -> None:
    """B4.4: header and payload; the frames before and behind are still found."""
    memory, places = tape([(Kind.HEAD, b"first", None), (Kind.END, prose(90, 2), None), (Kind.CLOSE, b"last", None)])
    for at in range(places[1].offset, places[2].offset):
        for bit in range(8):
            data = bytearray(memory.data)
            data[at] ^= 1 << bit
            found = list(journal.walk(Memory(bytes(data))))
            gaps = [one for one in found if isinstance(one, Gap)]
            assert gaps == [Gap(places[1].offset, places[2].offset)], (at, bit)
            assert [one.place for one in found if isinstance(one, Frame)] == [places[0], places[2]]


def test_a_frame_moved_elsewhere_is_damage() -> None:
    """B-06: a checksum covers the place, so frames cannot be swapped unnoticed even without a root."""
    memory, places = tape([(Kind.END, b"one", None), (Kind.END, b"two", None)])
    first, second = (memory.read(*place) for place in places)
    swapped = Memory(memory.data[:PREFACE_BYTES] + second + first)
    assert all(isinstance(one, Gap) for one in journal.walk(swapped))


def test_walking_does_not_hold_the_journal() -> None:
    """DESIGN 4: frames larger and smaller than the read-ahead."""
    memory, places = tape([(Kind.BODY, noise(size, size), None) for size in (3_000_000, 10, 1_048_564, 1_048_576, 7)])
    assert [one.place for one in journal.walk(memory) if isinstance(one, Frame)] == places


def test_marks_that_lead_nowhere_cost_little() -> None:
    """B4.7, B-11: a million false marks with lengths that lie."""
    false = journal.MARK + bytes([4, 0]) + (RECORD_BYTES).to_bytes(4, "little") + bytes(4)
    memory = Memory(journal.preface() + false * 100_000)
    assert list(journal.walk(memory)) == [Gap(PREFACE_BYTES, memory.size_bytes)]


@pytest.mark.parametrize("place", [Place(0, 20), Place(16, 5), Place(16, RECORD_BYTES * 2), Place(2**63, 20), Place(17, 30), Place(16, 13)])
def test_a_place_where_no_frame_stands_is_damage(place: Place) -> None:
    """B4.7: offsets and lengths from data are checked before anything is read or allocated."""
    memory, _ = tape([(Kind.END, b"payload", None)])
    with pytest.raises(Corrupt):
        FrameReader(memory).at(place, Kind.END)
    with pytest.raises(Corrupt):
        FrameReader(memory).body_at(place)


def test_a_frame_of_another_kind_is_damage() -> None:
    """An index that points at the wrong frame does not turn one record into another."""
    memory, places = tape([(Kind.END, b"payload", None)])
    with pytest.raises(Corrupt):
        FrameReader(memory).at(places[0], Kind.CLOSE)


@pytest.mark.parametrize("case", ["forward", "nested", "short", "self"])
def test_a_dictionary_that_no_writer_names_is_damage(case: str) -> None:
    """B4.7: forward, nested and missing references."""
    plain = prose(300, 1)
    packed = journal.dictionary_compressor(plain).compress(plain)
    data = journal.preface()
    first = journal.frame(Kind.END, 0, len(data), plain)
    nested = journal.frame(Kind.END, 3, len(data) + len(first), journal._DICTIONARY.pack(len(data), len(first)) + packed)
    at = len(data) + len(first) + len(nested)
    places = {"forward": (at + 500, 30), "nested": (len(data) + len(first), len(nested)), "self": (at, 30), "short": (0, 0)}
    stored = b"1234" if case == "short" else journal._DICTIONARY.pack(*places[case]) + packed
    last = journal.frame(Kind.END, 3, at, stored)
    memory = Memory(data + first + nested + last)
    with pytest.raises(Corrupt):
        FrameReader(memory).at(Place(at, len(last)), Kind.END)

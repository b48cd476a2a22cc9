"""Bodies in the journal: full, in strands, or as format 1.0 kept them."""

from __future__ import annotations

import itertools

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from secondtake.cassettes import codec, journal, strands
from secondtake.cassettes.codec import BodyDecoder, Encoded, Encoding
from secondtake.cassettes.digest import digest_of
from secondtake.cassettes.errors import Corrupt
from secondtake.cassettes.journal import Place
from secondtake.cassettes.splices import Splice
from secondtake.cassettes.strands import Compressor, Range
from tests.cassettes.scenes import prose, transcript
from tests.cassettes.tapes import Tape


def test_a_chain_of_deltas_of_format_1_0_is_read() -> None:
    """B4.11: what that version wrote, forwards, backwards and each alone."""
    tape = Tape()
    session = transcript(12, 2000)
    places = [tape.put(Encoded(digest_of(session[0]), len(session[0]), Encoding.PLAIN, session[0]))]
    for base, data in itertools.pairwise(session):
        places.append(tape.keep_delta(data, base, places[-1], session[0]))
    shared = BodyDecoder(tape)
    for place, data in [*zip(places, session, strict=True), *reversed(list(zip(places, session, strict=True)))]:
        assert shared.decode(place, digest_of(data)) == data
        assert tape.read(place, digest_of(data)) == data


def test_a_strand_is_read_in_any_order_and_from_wherever_it_was_read_to() -> None:
    """DESIGN 4: one decoder, one body after the other."""
    tape = Tape()
    session = transcript(12, 2000)
    places = [place for data in session if (place := tape.keep(data)) is not None]
    shared = BodyDecoder(tape)
    for number in (5, 3, 11, 0, 7, 11, 1, *range(12)):
        assert shared.decode(places[number], digest_of(session[number])) == session[number]
    assert [tape.encoding(place) for place in places] == [Encoding.ZSTD] + [Encoding.STRAND] * 11


def test_what_a_decoder_holds_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """T-J3: of many strands the last few are held."""
    monkeypatch.setattr(BodyDecoder, "HELD_BYTES", 60_000)
    tape = Tape()
    kept = []
    for number in range(40):
        for turn in range(3):
            data = prose(5000, number) + b"%d" % turn
            place = tape.keep(data, str(number))
            assert place is not None
            kept.append((place, data))
    shared = BodyDecoder(tape)
    for place, data in kept * 2:
        assert shared.decode(place, digest_of(data)) == data
        assert sum(len(one.text) for one in shared._strands.values()) <= 60_000
    monkeypatch.setattr(BodyDecoder, "HELD_BYTES", 1 << 24)
    for place, data in kept:
        assert shared.decode(place, digest_of(data)) == data
        assert len(shared._strands) <= BodyDecoder.STRANDS


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


def strand_of(tape: Tape, root: bytes, *adds: bytes) -> list[Encoded]:
    """Frames of a strand, not yet put: each body is what it adds."""
    compressor, at, made = Compressor(root), len(root), []
    for data in adds:
        table = strands.pack([Range(at, len(data))])
        at += len(data) + len(table)
        blocks = compressor.add(data + table)
        made.append(Encoded(digest_of(data), len(data), Encoding.STRAND, blocks, None, (), len(data) + len(table), len(table)))
    return made


@pytest.mark.parametrize(
    "case",
    [
        "forward",
        "self",
        "no-frame",
        "on-a-delta",
        "skips-one",
        "other-root",
        "text-lies",
        "table-lies",
        "table-beyond",
        "size-lies",
        "claims-much",
        "ended",
        "other-digest",
        "cut",
    ],
)
def test_a_hostile_strand_is_damage(case: str) -> None:
    """B4.7: cycles, other roots, missing links, sizes that lie; a typed error, at once, and for the bodies before none."""
    tape = Tape()
    root, other = prose(300, 1), prose(300, 5)
    at = tape.put(Encoded(digest_of(root), len(root), Encoding.PLAIN, root))
    elsewhere = tape.put(Encoded(digest_of(other), len(other), Encoding.PLAIN, other))
    delta = tape.keep_delta(root + b"more", root, at, root)
    first, second, last = strand_of(tape, root, root[:90] + prose(200, 2), prose(250, 3), root[50:200] + prose(250, 4))
    one = tape.put(first._replace(base=at))
    two = tape.put(second._replace(base=one))
    good = last._replace(base=two)
    made = {
        "forward": good._replace(base=Place(10_000, 50)),
        "self": good._replace(base=Place(tape.size, 50)),
        "no-frame": good._replace(base=Place(17, 50)),
        "on-a-delta": first._replace(base=delta),
        "skips-one": good._replace(base=one),
        "other-root": first._replace(base=elsewhere),
        "text-lies": good._replace(text_bytes=good.text_bytes + 1),
        "table-lies": good._replace(table_bytes=0),
        "table-beyond": good._replace(table_bytes=good.text_bytes + 1),
        "size-lies": good._replace(size_bytes=good.size_bytes - 1),
        "claims-much": good._replace(text_bytes=1 << 32 - 1),
        "ended": good._replace(data=b"\x01\x00\x00"),
        "other-digest": good._replace(digest=digest_of(b"else")),
        "cut": good._replace(data=good.data[:-1]),
    }[case]
    place = tape.put(made)
    shared = BodyDecoder(tape)
    for decoder in (BodyDecoder(tape), shared, shared):
        with pytest.raises(Corrupt):
            decoder.decode(place, made.digest)
        assert decoder.decode(two, second.digest) == prose(250, 3)
    assert BodyDecoder(tape).decode(tape.put(good), good.digest) == root[50:200] + prose(250, 4)


def test_a_very_long_strand_is_damage() -> None:
    """B-11: cold, and step by step."""
    tape = Tape()
    root = prose(100, 1)
    place = tape.put(Encoded(digest_of(root), len(root), Encoding.PLAIN, root))
    shared = BodyDecoder(tape)
    (*most, last) = strand_of(tape, root, *(b"%d" % number for number in range(codec.CHAIN_FRAMES + 1)))
    for one in most:
        place = tape.put(one._replace(base=place))
        shared.decode(place, one.digest)
    assert tape.read(place, one.digest) == b"%d" % (codec.CHAIN_FRAMES - 1)
    place = tape.put(last._replace(base=place))
    for decoder in (shared, BodyDecoder(tape)):
        with pytest.raises(Corrupt):
            decoder.decode(place, last.digest)


@given(st.binary(max_size=80))
def test_any_bytes_as_a_body_frame_are_damage_or_a_body(payload: bytes) -> None:
    """B4.8: the parser never crashes."""
    for data in (payload, payload[:32] + b"\x03" + payload[33:]):
        frame = journal.frame(journal.Kind.BODY, 0, 16, data)
        for parse in (lambda: codec.unpack(data), lambda: codec.link_in(frame, 0, len(frame))):  # noqa: B023
            try:
                parse()
            except Corrupt:
                pass

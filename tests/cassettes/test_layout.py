"""Exchanges as bytes."""

from __future__ import annotations

import msgpack
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from secondtake.cassettes import layout
from secondtake.cassettes.digest import digest_of
from secondtake.cassettes.errors import BadInput, Corrupt, RecordedError
from secondtake.cassettes.exchange import (
    Answer,
    Answered,
    Body,
    Channel,
    Ending,
    Exchange,
    Interim,
    Keys,
    Named,
    Piece,
    Redaction,
    Request,
    Side,
)
from secondtake.cassettes.limits import MSGPACK_DEPTH
from secondtake.cassettes.records import Head
from tests.cassettes.scenes import exchange, head

numbers = st.integers(-(2**63), 2**63 - 1)
sizes = st.integers(0, 2**63 - 1)
texts = st.text(max_size=12)
names = st.none() | texts
fields = st.lists(st.tuples(st.binary(max_size=8), st.binary(max_size=8)), max_size=4).map(tuple)
pieces = st.lists(st.builds(Piece, sizes, st.integers(-(2**61), 2**61)), max_size=5).map(tuple)
bodies = st.just(Body()) | st.builds(Body, st.binary(max_size=4).map(digest_of), sizes, pieces)
requests = st.builds(
    Request, texts, texts, texts, numbers, st.binary(max_size=9), texts, fields, bodies, fields, st.builds(Named, names, names, names)
)
interims = st.lists(st.builds(Interim, numbers, st.binary(max_size=4), fields, numbers), max_size=2).map(tuple)
answers = st.builds(Answer, numbers, st.binary(max_size=4), texts, fields, interims, bodies, fields, numbers, st.booleans())
redactions = st.builds(Redaction, st.sampled_from(Side), texts, numbers, numbers, texts, names)
values = st.recursive(
    st.none() | st.booleans() | numbers | st.floats(allow_nan=False) | texts | st.binary(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)
exchanges = st.builds(
    Exchange,
    numbers,
    st.sampled_from(Channel),
    numbers,
    requests,
    st.none() | answers,
    st.sampled_from(Ending),
    numbers,
    st.none() | st.builds(Keys, st.binary(max_size=16), st.binary(max_size=16), texts),
    st.lists(texts, max_size=3).map(tuple),
    st.lists(redactions, max_size=3).map(tuple),
    st.lists(texts, max_size=3).map(tuple),
    st.sampled_from(Answered),
    names,
    st.dictionaries(texts, values, max_size=3),
)


@settings(max_examples=40)
@given(exchanges)
def test_an_exchange_is_read_back_and_has_one_encoding(one: Exchange) -> None:
    """B4.9: header bytes, order, pieces, interim heads, trailers, redactions, keys and details; encode(decode(x)) = x."""
    record = layout.pack_exchange(one)
    assert layout.unpack_exchange(record) == one
    assert layout.pack_exchange(layout.unpack_exchange(record)) == record


@settings(max_examples=30)
@given(st.builds(Head, numbers, numbers, st.sampled_from(Channel), requests))
def test_a_head_is_read_back(one: Head) -> None:
    """B4.9, for what a died cassette knows of its last requests."""
    assert layout.unpack_head(layout.pack_head(one)) == one


def test_the_order_of_details_does_not_change_the_record() -> None:
    """B-14: one value, one encoding."""
    import dataclasses

    one = exchange(1)
    turned = dataclasses.replace(one, details=dict(reversed(list(one.details.items()))))
    assert layout.pack_exchange(one) == layout.pack_exchange(turned)


def test_lone_surrogates_are_kept() -> None:
    """T-E1: text that is not valid Unicode comes back as it was."""
    import dataclasses

    one = dataclasses.replace(exchange(1), notes=("\udcff",))
    assert layout.unpack_exchange(layout.pack_exchange(one)) == one


def test_a_thousand_pieces_cost_little() -> None:
    """DESIGN 4: boundaries are kept compactly."""
    cut = tuple(Piece(90 + number % 40, number * 20_000) for number in range(1000))
    assert len(layout.pack_pieces(cut)) < 5000
    assert layout.unpack_pieces(layout.pack_pieces(cut)) == cut


def test_fields_of_a_later_version_are_kept() -> None:
    """B-09: unknown minor fields survive reading and writing."""
    made = msgpack.unpackb(layout.pack_exchange(exchange(1)))
    record = layout.pack({**made, "new": {"a": [1, b"x"]}})
    read = layout.unpack_exchange(record)
    assert read.details[layout.LATER] == {"new": {"a": [1, b"x"]}}
    assert layout.pack_exchange(read) == record


@given(st.data())
def test_damaged_records_are_damage_and_never_a_crash(data: st.DataObject) -> None:
    """B4.4, B4.8: any byte of a record changed, removed or cut."""
    record = bytearray(layout.pack_exchange(exchange(3, b"abc", b"def")))
    at = data.draw(st.integers(0, len(record) - 1))
    match data.draw(st.sampled_from(["flip", "cut", "drop"])):
        case "flip":
            record[at] ^= 1 << data.draw(st.integers(0, 7))
        case "cut":
            del record[at:]
        case _:
            del record[at]
    try:
        layout.unpack_exchange(bytes(record))
    except Corrupt:
        pass


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xc1",
        b"\xdd\xff\xff\xff\xff",
        b"\xdf\xff\xff\xff\xff",
        b"\xc6\xff\xff\xff\xff",
        b"\x91" * 100_000 + b"\x90",
        b"\x90\x90",
        b"\xd4\x01\x00",
        b"\xa1\xff",
    ],
    ids=["empty", "unused", "array-claims", "map-claims", "bin-claims", "deep", "trailing", "extension", "not-utf8"],
)
def test_hostile_msgpack_is_damage(data: bytes) -> None:
    """B3, B4.7: lengths that lie, depth, repeated keys."""
    with pytest.raises(Corrupt):
        layout.unpack(data)


@pytest.mark.parametrize("value", [object(), {"a": object()}, [set()], 2**70])
def test_values_that_msgpack_cannot_say_are_refused(value: object) -> None:
    """Details and meta hold msgpack values only."""
    with pytest.raises(BadInput):
        layout.pack(layout.ordered(value))


def test_depth_is_bounded_on_both_sides() -> None:
    """B-11: MSGPACK_DEPTH, and one more."""
    nested: object = 1
    for _ in range(MSGPACK_DEPTH):
        nested = [nested]
    layout.ordered(nested)
    with pytest.raises(RecordedError):
        layout.ordered([nested])


def test_heads_do_not_hold_a_body() -> None:
    """records.py: a head is written before the body came."""
    assert head(exchange(1, b"sent")).request.body == Body()

"""Bodies as earlier ones with ranges replaced."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from secondtake.cassettes import splices
from secondtake.cassettes.errors import Corrupt
from secondtake.cassettes.splices import Splice
from tests.cassettes.scenes import noise, prose, transcript


def through(base: bytes, new: bytes) -> tuple[Splice, ...]:
    made = splices.between(base, new)
    built = bytearray(base)
    splices.apply(built, made, splices.literals(new, made))
    assert built == new
    assert splices.unpack(splices.pack(made)) == made
    return made


@given(st.binary(max_size=300), st.binary(max_size=300))
def test_any_body_is_any_other_with_ranges_replaced(base: bytes, new: bytes) -> None:
    """B4.9: apply is the inverse of between."""
    through(base, new)


@given(st.integers(0, 200_000), st.integers(0, 2_000), st.integers(0, 5), st.integers(0, 5), st.booleans())
def test_what_two_bodies_share_is_counted_to_the_byte(same: int, rest: int, before_a: int, before_b: int, bounded: bool) -> None:
    """B4.9: beginnings and ends of any length, from any place on, with and without a bound."""
    shared, a, b = prose(same, 1), b"a" * rest, b"b" * (rest // 2)
    limit = same // 2 if bounded else None
    first, second = b"x" * before_a + shared + a, b"y" * before_b + shared + b
    assert splices.common_prefix(first, second, before_a, before_b, limit) == (same if limit is None else limit)
    first, second = a + shared + b"x" * before_a, b + shared + b"y" * before_b
    most = len(first) if limit is None else limit
    assert splices.common_suffix(first, second, most, len(first) - before_a, len(second) - before_b) == (same if limit is None else limit)


@given(st.data())
def test_edits_of_a_text_are_found(data: st.DataObject) -> None:
    """B4.9: inserted, removed, changed and repeated parts."""
    base = prose(3000, 1)
    new = base
    for _ in range(data.draw(st.integers(0, 6))):
        start = data.draw(st.integers(0, len(new)))
        stop = data.draw(st.integers(start, min(len(new), start + 500)))
        new = new[:start] + data.draw(st.sampled_from([b"", b"x", b"\n" * 90, base[200:700], noise(100, 3)])) + new[stop:]
    through(base, new)


def test_a_turn_costs_what_is_new_in_it() -> None:
    """DESIGN 4: a changed identifier, the moved marker and the new messages, whatever stands before, between and behind."""
    bodies = transcript(6)
    for before, after in itertools.pairwise(bodies):
        made = through(before, after)
        assert sum(splice.size for splice in made) < len(after) - len(before) + 200
        assert len(made) <= 4


@pytest.mark.parametrize(
    ("base", "new"), [(b"a" * 100_000, b"a" * 90_000), (b"ab" * 50_000, b"ba" * 50_000), (noise(200_000, 1), noise(200_000, 2))]
)
def test_repetitive_and_unlike_bodies_are_handled(base: bytes, new: bytes) -> None:
    """B4.7: a search that could match everywhere or nowhere stays bounded."""
    assert len(through(base, new)) <= splices.MAX_SPLICES


@pytest.mark.parametrize(
    "table", [b"\x01", b"\x01\x01", b"\xff\xff\xff\xff\x7f\x00\x00", b"\x00\x00\xff\xff\xff\xff\x7f", b"\x00" * 3 * 65]
)
def test_a_table_no_writer_writes_is_damage(table: bytes) -> None:
    """B4.7, B-11: cut short, out of range, too many."""
    with pytest.raises(Corrupt):
        splices.unpack(table)

"""Preconditions and ranges as values. What they make of a recorded answer is in test_derive.py."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from secondtake.cassettes.conditional import (
    Conditions,
    Outcome,
    Unsatisfiable,
    Validators,
    content_range,
    date,
    evaluate,
    parse_range,
    range_applies,
    tags,
)
from secondtake.cassettes.memory import fields


@given(st.binary(max_size=40), st.integers(0, 5000))
def test_any_range_field_gives_spans_inside_the_file_or_does_not_count(value: bytes, size: int) -> None:
    """T-I1: hostile fields."""
    for field in (value, b"bytes=" + value):
        found = parse_range(field, size)
        if isinstance(found, tuple):
            assert found
            assert all(0 <= start < stop <= size for start, stop in found)


@given(st.integers(0, 3000), st.integers(0, 3000), st.integers(1, 2000))
def test_a_range_is_what_slicing_would_give(first: int, last: int, size: int) -> None:
    """T-I1."""
    found = parse_range(b"bytes=%d-%d" % (first, last), size)
    data = bytes(size)
    if last < first:
        assert found is None
    elif first >= size:
        assert isinstance(found, Unsatisfiable)
    else:
        assert found == ((first, first + len(data[first : last + 1])),)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (b"bytes 0-9/100", (0, 10, 100)),
        (b" BYTES  0-9/10 ", (0, 10, 10)),
        (b"bytes 0-9/*", None),
        (b"bytes */100", None),
        (b"bytes 9-0/100", None),
        (b"bytes 0-100/100", None),
        (b"items 0-9/100", None),
        (b"bytes 0-9,20-29/100", None),
        (b"", None),
        (None, None),
    ],
)
def test_only_one_range_of_a_known_length_is_a_content_range(value: bytes | None, expected: tuple[int, int, int] | None) -> None:
    """I: vexa's 206 without Content-Range."""
    assert content_range(value) == expected


def test_a_head_without_conditions_has_none() -> None:
    """D."""
    assert not Conditions.of(fields("Accept: a", "Host: b")).any
    assert Conditions.of(fields("if-NONE-match: a", "Range: bytes=0-1")) == Conditions(none_match=b"a", range=b"bytes=0-1")


def test_tags_may_hold_commas_and_lack_quotes() -> None:
    """T-D4."""
    assert tags(b'"a,b", W/"c"') == [b'"a,b"', b'W/"c"']
    assert tags(b"abc") == [b"abc"]


@pytest.mark.parametrize("value", [None, b"", b"0", b"tomorrow", b"x" * 100, b"Wed, 99 Oct 2015 07:28:00 GMT", b"\xff"])
def test_a_date_that_is_none_counts_as_absent(value: bytes | None) -> None:
    """T-D4."""
    assert date(value) is None
    conditions = Conditions(modified_since=value, unmodified_since=value)
    assert evaluate(conditions, Validators(None, b"Wed, 21 Oct 2015 07:28:00 GMT")) is Outcome.GO_ON


def test_without_validators_nothing_is_confirmed() -> None:
    """T-D4: uv throws away a 304 without ETag."""
    bare = Validators(None, None)
    assert evaluate(Conditions(none_match=b'"a"'), bare) is Outcome.GO_ON
    assert evaluate(Conditions(modified_since=b"Wed, 21 Oct 2015 07:28:00 GMT"), bare) is Outcome.GO_ON
    assert evaluate(Conditions(match=b'"a"'), bare) is Outcome.FAILED
    assert not range_applies(Conditions(if_range=b'"a"'), bare)
    assert range_applies(Conditions(), bare)


def test_only_a_strong_validator_names_bytes() -> None:
    """RFC 9110 15.3.7.3."""
    assert Validators(b'W/"a"', b"d").strong is None
    assert Validators(b'"a"', b"d").strong == b'"a"'
    assert Validators(None, b"d").strong == b"d"

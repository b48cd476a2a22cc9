"""Untrusted JSON: every function takes anything."""

from __future__ import annotations

import pytest

from secondtake.cassettes.adapters import Fault
from secondtake.cassettes.adapters.reading import canonical, count, digest, field_value, loads, mapping, sequence, string, too_deep
from secondtake.cassettes.limits import JSON_DEPTH


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (b"", "not-json"),
        (b"{", "not-json"),
        (b'"\xff"', "not-utf8"),
        (b"9" * 5000, "not-json"),
        (b"[" * (JSON_DEPTH + 1) + b"]" * (JSON_DEPTH + 1), "too-deep"),
        ("[" * 1_000_000, "too-deep"),
    ],
    ids=lambda value: str(value[:8]),
)
def test_what_cannot_be_read_is_a_fault(content: bytes | str, kind: str) -> None:
    """A-08, B-11."""
    fault = loads(content)
    assert isinstance(fault, Fault)
    assert fault.kind == kind


def test_the_deepest_that_is_taken_is_read_and_written() -> None:
    """B-11: the other side of the boundary."""
    text = "[" * JSON_DEPTH + "]" * JSON_DEPTH
    value = loads(text)
    assert not isinstance(value, Fault)
    assert not too_deep(value)
    assert too_deep([value])
    assert canonical(value) == text
    assert isinstance(canonical([value]), Fault)


def test_json_beyond_the_standard_is_read_as_clients_send_it() -> None:
    """Duplicate keys: the last; a lone surrogate; a byte order mark; large integers."""
    assert loads(b'\xef\xbb\xbf{"a":1,"a":' + b"9" * 40 + b',"b":"\\ud800"}') == {"a": int("9" * 40), "b": "\ud800"}
    assert len(digest("\ud800")) == 64


@pytest.mark.parametrize("value", [None, 1, "x", [1], {"a": 1}, True, 1.5])
def test_a_value_of_another_type_is_the_empty_one(value: object) -> None:
    """No reader asks first."""
    assert mapping(value) == (value if isinstance(value, dict) else {})
    assert sequence(value) == (value if isinstance(value, list) else [])
    assert string(value) == (value if isinstance(value, str) else "")
    assert count(value) == (value if isinstance(value, int) and not isinstance(value, bool) else None)


def test_counts_are_bounded() -> None:
    """No sum of tokens grows without bound."""
    assert (count(-1), count(2**53), count(2**53 - 1)) == (None, None, 2**53 - 1)


def test_a_field_is_found_in_any_case() -> None:
    """RFC 9110 section 5.1."""
    assert field_value(((b"X-A", b"1"), (b"x-a", b"2")), b"x-a") == b"1"
    assert field_value((), b"x-a") is None

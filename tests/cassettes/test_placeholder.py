"""What stands where a secret stood."""

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from secondtake.cassettes.kinds import KINDS, OPAQUE, Kind
from secondtake.cassettes.placeholder import PLACEHOLDER, collapse, fingerprint, is_placeholder, placed, placeholder

KEY = b"k" * 32
MARK = fingerprint(KEY, "github-pat", b"value")
PREFIXES = [b"", b"sk-ant-api03-", b"ghp_", b"AKIA", b"ya29.", b"eyJ"]


@given(st.sampled_from([*KINDS]), st.integers(0, 200), st.sampled_from(PREFIXES), st.booleans())
def test_it_is_exactly_as_long_as_what_it_replaces(kind: Kind, length: int, prefix: bytes, marked: bool) -> None:
    """K, DESIGN 4: lengths, offsets and chunk boundaries stay; printable, safe in JSON, URL, form and header."""
    put = placeholder(kind.name, length, prefix=prefix[:length], mark=MARK if marked else None)
    assert len(put) == length
    assert re.fullmatch(rb"[A-Za-z0-9._-]*", put)


@given(st.sampled_from([*KINDS]), st.integers(5, 200), st.sampled_from(PREFIXES), st.booleans())
def test_from_five_bytes_it_is_recognised_as_one(kind: Kind, length: int, prefix: bytes, marked: bool) -> None:
    """The grammar is unambiguous: one match, the whole, prefix included."""
    put = placeholder(kind.name, length, prefix=prefix if len(prefix) < length else b"", mark=MARK if marked else None)
    assert is_placeholder(put)
    assert [found.end() for found in PLACEHOLDER.finditer(put)] == [length]
    assert placed(b"x=" + put + b"&") == [(2, 2 + length)]


@given(
    st.sampled_from([kind.name for kind in KINDS if kind.name != OPAQUE]),
    st.integers(8, 150),
    st.integers(8, 150),
    st.sampled_from(PREFIXES),
)
def test_two_keys_of_one_kind_collapse_to_the_same(kind: str, first: int, second: int, prefix: bytes) -> None:
    """T-K3, C-13: a rotated key of another length, with another fingerprint, equals the recorded one."""
    one = placeholder(kind, first, prefix=prefix if len(prefix) < first else b"", mark=fingerprint(KEY, kind, b"1"))
    two = placeholder(kind, second, mark=fingerprint(KEY, kind, b"2"))
    assert collapse(b'{"a":"' + one + b'"}') == collapse(b'{"a":"' + two + b'"}')


def test_kinds_are_not_mixed_up_by_collapsing() -> None:
    """C4: equal by kind, not merely by being secret."""
    assert collapse(placeholder("cookie", 30)) != collapse(placeholder("password", 30))


def test_opaque_values_stay_apart() -> None:
    """`?key=` of a key-value service: two values are never taken for one another (A)."""
    one, two = (placeholder(OPAQUE, 20, mark=fingerprint(KEY, OPAQUE, value)) for value in (b"1", b"2"))
    assert collapse(one) != collapse(two)


@given(st.binary(max_size=200))
def test_content_without_a_placeholder_is_not_touched(content: bytes) -> None:
    """Collapsing is for what we put there."""
    assert collapse(content) == content or PLACEHOLDER.search(content)


@given(st.lists(st.one_of(st.binary(max_size=20), st.integers(5, 60).map(lambda n: placeholder("jwt", n, prefix=b""))), max_size=6))
def test_collapsing_twice_is_collapsing_once(parts: list[bytes]) -> None:
    """Idempotent, so a canonical form is canonical."""
    once = collapse(b"".join(parts))
    assert collapse(once) == once


def test_a_kind_outside_the_table_has_a_code_too() -> None:
    """Later issues and users name kinds of their own."""
    put = placeholder("corp-ticket", 40)
    assert is_placeholder(put)
    assert collapse(put) == collapse(placeholder("corp-ticket", 12))


def test_the_fingerprint_needs_the_key() -> None:
    """C-11: same credential, same key: same fingerprint; other key: another."""
    assert fingerprint(KEY, "jwt", b"v") == fingerprint(KEY, "jwt", b"v")
    assert len({fingerprint(KEY, "jwt", b"v"), fingerprint(b"o" * 32, "jwt", b"v"), fingerprint(KEY, "cookie", b"v")}) == 3


@pytest.mark.parametrize("text", [b"_2T", b"_2T._x", b"_2T.ab_", b"2T.abc_", b"_2T.abc", b"_2T.ABC_"])
def test_near_placeholders_are_content(text: bytes) -> None:
    """Recognition is exact."""
    assert not is_placeholder(text)
    assert collapse(text) == text


def test_the_manual_shows_the_grammar_that_is_used() -> None:
    """STYLE 2: a page that cannot drift."""
    page = (Path(__file__).parents[2] / "docs" / "redaction.md").read_text()
    [pattern] = re.findall(r"As a regular expression: `(.*)`\.", page)
    documented = re.compile(pattern.encode())
    for length in range(5, 60):
        for mark in (None, MARK):
            assert documented.fullmatch(placeholder("jwt", length, mark=mark))
            assert length < 8 or documented.fullmatch(placeholder(OPAQUE, length, mark=mark))

"""Canonical forms: equal where the meaning is equal, never where it is not."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from secondtake.cassettes import limits
from secondtake.cassettes.canonical import (
    canonical,
    canonical_path,
    canonical_query,
    canonical_target,
    document,
    dump_json,
    parse_json,
    parts,
    query_pairs,
)

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=20,
)


def same(one: bytes, other: bytes, kind: bytes = b"application/json") -> bool:
    return canonical(document(one, kind)) == canonical(document(other, kind))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (b'{"a":1,"b":2}', b'{ "b" : 2, "a" : 1 }'),
        (b'{"a":"\\u0041\\/"}', b'{"a":"A/"}'),
        (b'{"t":1}', b'{"t":1.0}'),
        (b'{"t":1.0}', b'{"t":1e0}'),
        (b'{"t":0.5}', b'{"t":5e-1}'),
        ('{"a":"é"}'.encode(), b'{"a":"\\u00e9"}'),
        (b'{"a":"\\ud83d\\ude00"}', '{"a":"😀"}'.encode()),
        (b"\n[1, 2]", b"[1,2]"),
    ],
)
def test_documents_that_mean_the_same_are_the_same(one: bytes, other: bytes) -> None:
    """A: mitmproxy misses a changed key order."""
    assert same(one, other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (b'{"a":1,"a":2}', b'{"a":2}'),
        (b'{"a":1,"a":2}', b'{"a":1}'),
        (b"[1,2]", b"[2,1]"),
        (b"[true]", b"[1]"),
        (b"[1]", b'["1"]'),
        (b"[null]", b"[]"),
        (b'{"a":null}', b"{}"),
        (b"[18446744073709551616]", b"[18446744073709551617]"),
        (b"[0.1]", b"[0.10000000000000001]"),
        (b"[1e400]", b"[2e400]"),
        (b"[NaN]", b"[null]"),
        (b"[NaN]", b"[Infinity]"),
        (b'["\\ud800"]', b'["\\ud801"]'),
        (b'["\\ud800"]', b'["\\ufffd"]'),
        (b'["\xff"]', b'["\xfe"]'),
        (b'["\xff"]', '["\ufffd"]'.encode()),
        (b"[" * 5000 + b"]" * 5000, b"[" * 4999 + b"]" * 4999),
        (b"{}", b"[]"),
        (b'{"a":1}', b'{"a":1} x'),
        (b'{"\\u00e9":1}', b'{"e\\u0301":1}'),
    ],
)
def test_documents_that_differ_are_never_made_equal(one: bytes, other: bytes) -> None:
    """A: a wrong equality is a wrong answer."""
    assert not same(one, other)


@given(JSON)
def test_the_canonical_form_of_a_canonical_form_is_itself(value: object) -> None:
    """A: idempotent."""
    once = canonical(document(json.dumps(value).encode(), b"application/json")).partition(b"\n")[2]
    assert canonical(document(once, b"application/json")).partition(b"\n")[2] == once


@given(JSON)
def test_white_space_and_key_order_never_count(value: object) -> None:
    """A: other serialisers of the same value."""
    assert same(json.dumps(value).encode(), json.dumps(value, indent=3, sort_keys=True, ensure_ascii=True).encode())


@given(st.binary(max_size=200))
def test_any_bytes_have_a_form_and_it_says_what_they_are(content: bytes) -> None:
    """A: content that does not fit its label."""
    for kind in (b"application/json", b"multipart/form-data; boundary=x", b"application/x-www-form-urlencoded", b"", b"text/plain"):
        assert canonical(document(content, kind)).partition(b"\n")[0] in (b"json", b"form", b"parts", b"bytes")


def test_json_is_recognised_under_a_wrong_label_and_opaque_bytes_never_equal_a_document() -> None:
    """E: content-type lies."""
    assert same(b'{"a": 1}', b'{"a":1}', b"text/plain")
    assert canonical(document(b"json\n{}")) != canonical(document(b"{}"))


def test_depth_is_bounded_on_both_sides() -> None:
    """B-11: limits.JSON_DEPTH."""
    at = limits.JSON_DEPTH
    assert parse_json(b"[" * at + b"]" * at) is not None
    assert parse_json(b"[" * (at + 3) + b"]" * (at + 3)) is None
    assert parse_json(b'{"a":' * 100_000) is None


def test_numbers_keep_their_value() -> None:
    """A: numbers are compared by exact value, not by what a double makes of them."""
    assert dump_json(parse_json(b"[10000000000000000000000, 1.25, -0, 1E2]") or []) == b"[10000000000000000000000,1.25,0,100]"
    assert parse_json(b"[" + b"9" * 5000 + b"]") is None


def form(boundary: str, *bodies: bytes) -> tuple[bytes, bytes]:
    mark = boundary.encode()
    content = b"".join(
        b"--" + mark + b'\r\nContent-Disposition: form-data; name="f%d"\r\n\r\n' % index + body + b"\r\n"
        for index, body in enumerate(bodies)
    )
    return content + b"--" + mark + b"--\r\n", b"multipart/form-data; boundary=" + mark


def test_two_uploads_that_differ_in_their_boundary_are_the_same() -> None:
    """T-A5."""
    one, kind_one = form("AaB03x", b"\x00\xff", b"--not-it")
    other, kind_other = form("----zzz9", b"\x00\xff", b"--not-it")
    assert canonical(document(one, kind_one)) == canonical(document(other, kind_other))


def test_two_uploads_that_differ_in_a_part_are_not() -> None:
    """T-A5."""
    one, kind_one = form("AaB03x", b"\x00\xff", b"b")
    other, kind_other = form("AaB03y", b"\x00\xfe", b"b")
    assert canonical(document(one, kind_one)) != canonical(document(other, kind_other))


def test_the_length_of_parts_counts() -> None:
    """T-A5: no two lists of parts join to the same bytes."""
    one, kind = form("x", b"ab", b"c")
    other, _ = form("x", b"a", b"bc")
    assert canonical(document(one, kind)) != canonical(document(other, kind))


@pytest.mark.parametrize("broken", [b"", b"--x", b"--x\r\n", b"junk--x\r\n\r\na\r\n--x--", b"--x\r\nA: b\r\na\r\n--x--", b"--x--\r\nmore"])
def test_a_multipart_body_that_is_not_well_formed_stays_opaque(broken: bytes) -> None:
    """T-A5: never half read."""
    assert parts(broken, b"multipart/mixed; boundary=x") is None
    assert parts(broken, b"multipart/mixed") is None


def test_part_names_are_read_quoted_or_not() -> None:
    """T-A5: a miss names the part."""
    content = b'--q r\r\ncontent-disposition: form-data; filename="a"; name="the file"\r\n\r\nx\r\n--q r--'
    found = parts(content, b'multipart/form-data; charset=x; boundary="q r"')
    assert found is not None
    assert found[0].name == "the file"


def test_a_form_is_sorted_by_key_and_keeps_the_order_within_one() -> None:
    """A: `+` and `%20` are one in a form."""
    kind = b"application/x-www-form-urlencoded"
    assert same(b"b=2&a=1+x&a=0", b"a=1%20x&b=%32&a=0", kind)
    assert not same(b"a=1&a=0", b"a=0&a=1", kind)
    assert not same(b"a=1%26b=2", b"a=1&b=2", kind)


@pytest.mark.parametrize(
    ("target", "form_of_it"),
    [
        (b"/a%2fb", b"/a%2Fb"),
        (b"/%7Euser/%41", b"/~user/A"),
        (b"/a/%2e%2e/b", b"/a/../b"),
        (b"/a//b/", b"/a//b/"),
        (b"/caf\xc3\xa9", b"/caf%C3%A9"),
        (b"/a b", b"/a%20b"),
        (b"/x?b=2&a=1&b=1&c", b"/x?a=1&b=2&b=1&c"),
        (b"/x?a=%7e&a=%2F", b"/x?a=~&a=%2F"),
        (b"/x?", b"/x?"),
        (b"/x?a=1+2", b"/x?a=1+2"),
        (b"/100%", b"/100%"),
        (b"/%zz", b"/%zz"),
        (b"/x?q=a?b/c", b"/x?q=a?b/c"),
        (b"/@scope%2fname", b"/@scope%2Fname"),
    ],
)
def test_targets_have_one_spelling(target: bytes, form_of_it: bytes) -> None:
    """A: RFC 3986 6.2.2; what origins tell apart stays apart."""
    assert canonical_target(target) == form_of_it
    assert canonical_target(form_of_it) == form_of_it


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (b"/a%2Fb", b"/a/b"),
        (b"/a", b"/a/"),
        (b"/A", b"/a"),
        (b"/x?a", b"/x?a="),
        (b"/x", b"/x?"),
        (b"/x?a=1&a=2", b"/x?a=2&a=1"),
        (b"/a+b", b"/a%2Bb"),
    ],
)
def test_targets_that_origins_tell_apart_stay_apart(one: bytes, other: bytes) -> None:
    """A: never a wrong equality."""
    assert canonical_target(one) != canonical_target(other)


@given(st.binary(max_size=60))
def test_the_form_of_any_path_and_query_is_stable(octets: bytes) -> None:
    """A: idempotent for any octets."""
    assert canonical_path(canonical_path(octets)) == canonical_path(octets)
    assert canonical_query(canonical_query(octets)) == canonical_query(octets)
    assert query_pairs(canonical_query(octets)) == query_pairs(octets)

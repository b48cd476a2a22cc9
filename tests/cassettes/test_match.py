"""The two keys of a request."""

from __future__ import annotations

import gzip
import time
from dataclasses import replace

import pytest

from secondtake.cassettes.exchange import EMPTY, Request
from secondtake.cassettes.match import exact_key, meaning, representation, request_keys
from secondtake.cassettes.memory import digest_of, fields
from secondtake.cassettes.volatile import VERSION


def ask(path: bytes = b"/a", *head: str, method: str = "GET", host: str = "h.example") -> Request:
    return Request(method, "https", host, 443, path, fields=fields(*head))


def test_headers_are_not_in_the_keys() -> None:
    """DESIGN 3, T-M4."""
    bare, dressed = ask(), ask(b"/a", "X-Id: 1", "Authorization: b", "Accept: text/html", "If-None-Match: x", "traceparent: 0")
    assert request_keys(bare, b"") == request_keys(dressed, b"")
    assert request_keys(bare, b"").rules == VERSION


@pytest.mark.parametrize(
    "other",
    [
        {"method": "HEAD"},
        {"scheme": "http"},
        {"host": "g.example"},
        {"port": 8443},
        {"path": b"/b"},
        {"path": b"/a?x"},
        {"fields": fields("Range: bytes=0-1")},
        {"fields": fields("Git-Protocol: version=2")},
        {"fields": fields("Accept: application/vnd.pypi.simple.v1+json")},
    ],
)
def test_each_part_of_the_key_counts(other: dict[str, object]) -> None:
    """T-A15, DESIGN 3."""
    one, two = request_keys(ask(), b""), request_keys(replace(ask(), **other), b"")  # type: ignore[arg-type]  # names of Request
    assert one.exact != two.exact
    assert one.normal != two.normal


def test_no_two_splits_of_the_parts_make_one_key() -> None:
    """A: a key made of joined parts must not be ambiguous."""
    assert exact_key(ask(b"/a\nr:x"), EMPTY) != exact_key(ask(b"/a", "Range: x"), EMPTY)
    one = request_keys(ask(b"/a", method="POST"), b"x")
    two = request_keys(ask(b"/ax", method="POST"), b"")
    assert (one.exact, one.normal) != (two.exact, two.normal)
    assert one.normal != two.normal


def test_the_exact_key_is_of_the_bytes_and_the_normal_key_of_the_meaning() -> None:
    """A, T-E4."""
    plain, spaced = b'{"a":1,"b":[2]}', b'{ "b":[2.0], "a":1 }'
    json_head = "Content-Type: application/json"
    one = request_keys(ask(b"/a?x=1&b=%7E", json_head, method="POST"), plain, digest=digest_of(plain))
    packed = gzip.compress(spaced)
    two = request_keys(ask(b"/a?b=~&x=1", json_head, "Content-Encoding: gzip", method="POST"), packed, digest=digest_of(packed))
    assert one.exact != two.exact
    assert one.normal == two.normal


@pytest.mark.parametrize(
    ("content", "label"),
    [(b"not gzip", "gzip"), (b"x", "exi"), (gzip.compress(b"{}")[:-4], "gzip"), (gzip.compress(bytes(80 << 20), 1), "gzip")],
)
def test_a_body_whose_coding_cannot_be_undone_is_compared_by_its_bytes(content: bytes, label: str) -> None:
    """T-E4, B-11: over a cap too."""
    request = ask(b"/a", f"Content-Encoding: {label}", method="POST")
    assert meaning(request, content).content == content


def test_a_body_kept_decoded_under_its_label_equals_the_coded_one() -> None:
    """T-K6: redaction keeps what had a secret under a coding decoded."""
    request = ask(b"/a", "Content-Encoding: gzip", "Content-Type: application/json", method="POST")
    document = b'{"key":"_2T.ant.abcdefghijklmxxxx_"}'
    packed = gzip.compress(document)
    assert request_keys(request, document, digest=EMPTY).normal == request_keys(request, packed, digest=EMPTY).normal


def test_placeholders_of_one_kind_are_equal() -> None:
    """T-K3: recorded with one key, replayed with another."""
    one, two = b"key _2T.aak.abcdefghijklmxxxxxxx_", b"key _2T.aak.zyxwvutsrqponxx_"
    assert request_keys(ask(method="POST"), one, digest=EMPTY).normal == request_keys(ask(method="POST"), two, digest=EMPTY).normal
    other = one.replace(b"aak", b"gho")
    assert request_keys(ask(method="POST"), one, digest=EMPTY).normal != request_keys(ask(method="POST"), other, digest=EMPTY).normal


def test_a_body_too_large_to_hold_counts_by_its_digest() -> None:
    """T-R10."""
    large = ask(method="PUT")
    assert request_keys(large, None, digest=digest_of(b"a")) != request_keys(large, None, digest=digest_of(b"b"))
    assert request_keys(large, None, digest=EMPTY).normal == request_keys(large, b"").normal


def test_ranges_are_compared_without_white_space_and_only_on_get() -> None:
    """I."""
    assert representation("GET", fields("Range: Bytes = 0-9")) == b"r:bytes=0-9"
    assert representation("HEAD", fields("Range: bytes=0-9")) == b""
    assert representation("POST", fields("Range: bytes=0-9")) == b""


def test_an_exact_key_takes_a_few_microseconds() -> None:
    """DESIGN 8: replay CPU is a headline figure."""
    request = ask(b"/packages/aa/bb/demo-1.0-py3-none-any.whl", *(f"X-Field-{n}: value" for n in range(10)))
    start = time.perf_counter()
    for _ in range(2000):
        exact_key(request, EMPTY)
    assert (time.perf_counter() - start) / 2000 < 60e-6

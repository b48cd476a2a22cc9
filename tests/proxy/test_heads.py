"""Heads are read in one way only, or refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from secondtake.cassettes import limits
from secondtake.proxy.heads import (
    BadHead,
    assemble,
    body_length,
    read_fields,
    read_request_head,
    read_response_head,
    refuse_head,
    split_head,
    trailer_block,
)

TOKEN = st.text(alphabet="abcXYZ019-_!#", min_size=1, max_size=12).map(str.encode)
VALUE = st.binary(max_size=20).filter(lambda value: not set(value) & {0, 10, 13} and value == value.strip(b" \t"))


@given(fields=st.lists(st.tuples(TOKEN, VALUE), max_size=10).map(tuple), rest=st.binary(max_size=30))
def test_what_is_assembled_is_read_again(fields: tuple[tuple[bytes, bytes], ...], rest: bytes) -> None:
    """Every octet that may stand in a value survives; what follows the head is left."""
    raw = assemble(b"GET / HTTP/1.1\r\n", fields)
    found = split_head(raw + rest)
    assert found is not None
    lines, taken = found
    assert taken == len(raw)
    assert read_fields(lines[1:]) == fields


@given(data=st.binary(max_size=200))
def test_no_bytes_make_the_reader_fail_otherwise(data: bytes) -> None:
    try:
        found = split_head(data)
        if found is not None:
            read_request_head(found[0])
    except BadHead:
        pass


def test_a_head_is_read_only_when_it_is_whole() -> None:
    raw = b"GET /a HTTP/1.1\r\nHost: b\r\n\r\n"
    assert [split_head(raw[:cut]) for cut in range(len(raw))] == [None] * len(raw)
    assert split_head(b"\r\n\r\n" + raw) == ([b"GET /a HTTP/1.1", b"Host: b"], len(raw) + 4)


@pytest.mark.parametrize("size", [limits.HEAD_BYTES - 40, limits.HEAD_BYTES + 1])
def test_the_limit_of_a_head_holds_on_both_sides(size: int) -> None:
    """B-11."""
    raw = b"GET / HTTP/1.1\r\nX: " + b"y" * size
    if size < limits.HEAD_BYTES:
        assert split_head(raw + b"\r\n\r\n") is not None
    else:
        for data in (raw, raw + b"\r\n\r\n"):
            with pytest.raises(BadHead) as caught:
                split_head(data)
            assert caught.value.status == 431


def test_the_limit_of_fields_holds() -> None:
    """B-11."""
    line = b"a: b\r\n"
    assert split_head(b"GET / HTTP/1.1\r\n" + line * limits.FIELD_COUNT + b"\r\n") is not None
    with pytest.raises(BadHead):
        split_head(b"GET / HTTP/1.1\r\n" + line * (limits.FIELD_COUNT + 1) + b"\r\n")


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        (b"/a?b", (b"", b"", b"/a?b")),
        (b"*", (b"", b"", b"*")),
        (b"http://Host.example:81/x", (b"http", b"Host.example:81", b"/x")),
        (b"HTTP://host.example", (b"http", b"host.example", b"/")),
        (b"http://host.example?q", (b"http", b"host.example", b"/?q")),
        (b"http://user:p%40ss@host.example/", (b"http", b"host.example", b"/")),
        (b"https://[::1]:8443/", (b"https", b"[::1]:8443", b"/")),
    ],
)
def test_every_form_of_target_is_understood(target: bytes, expected: tuple[bytes, bytes, bytes]) -> None:
    """RFC 9112 3.2; userinfo never becomes part of the host."""
    head = read_request_head([b"GET " + target + b" HTTP/1.1"])
    assert (head.scheme, head.authority, head.path) == expected


@pytest.mark.parametrize(
    "line",
    [
        b"GET /",
        b"GET  / HTTP/1.1",
        b"G T / HTTP/1.1",
        b"GET / HTTP/2.0",
        b"GET / http/1.1",
        b"GET ftp://a/ HTTP/1.1",
        b"CONNECT a HTTP/1.1",
        b"CONNECT a:99999 HTTP/1.1",
        b"GET http:///x HTTP/1.1",
        b"GET http://a b/ HTTP/1.1",
        b"",
    ],
)
def test_a_bad_request_line_is_refused(line: bytes) -> None:
    with pytest.raises(BadHead):
        read_request_head([line])


@pytest.mark.parametrize("line", [b"HTTP/1.1", b"HTTP/1.1 20 OK", b"HTTP/2 200", b"200 OK", b"HTTP/1.1 099 x", b"HTTP/1.1 2000 OK"])
def test_a_bad_status_line_is_refused(line: bytes) -> None:
    with pytest.raises(BadHead):
        read_response_head([line])


def test_a_reason_may_be_missing_and_is_kept_as_it_is() -> None:
    assert read_response_head([b"HTTP/1.1 200"]).data.reason == b""
    assert read_response_head([b"HTTP/1.1 200 \xe9 ok"]).data.reason == b"\xe9 ok"


@pytest.mark.parametrize(
    ("fields", "response_to", "status", "expected"),
    [
        ((), None, 0, 0),
        ((), "GET", 200, -1),
        ((), "HEAD", 200, 0),
        (((b"Content-Length", b"7"),), "GET", 200, 7),
        (((b"Content-Length", b"7"),), "GET", 204, 0),
        (((b"Content-Length", b"7"),), "GET", 304, 0),
        (((b"Transfer-Encoding", b"Chunked "),), "GET", 200, None),
        (((b"Transfer-Encoding", b"chunked"),), None, 0, None),
    ],
)
def test_the_length_of_a_body(fields: tuple[tuple[bytes, bytes], ...], response_to: str | None, status: int, expected: int | None) -> None:
    """RFC 9112 6.3."""
    assert body_length(fields, protocol="HTTP/1.1", response_to=response_to, status=status) == expected


def test_a_refusal_has_its_own_length() -> None:
    raw = refuse_head(BadHead("both Transfer-Encoding and Content-Length"))
    head, _, body = raw.partition(b"\r\n\r\n")
    assert b"Content-Length: %d" % len(body) in head
    assert trailer_block(((b"A", b"1"),)) == b"0\r\nA: 1\r\n\r\n"

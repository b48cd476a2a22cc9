"""How a message is delimited on the next hop."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from secondtake.proxy.framing import (
    Delimiter,
    content_length,
    frame_request,
    frame_response,
    tokens,
    without_body,
)

NAMES = st.sampled_from(
    [
        b"Content-Length",
        b"content-length",
        b"Transfer-Encoding",
        b"Connection",
        b"Keep-Alive",
        b"X-Hop",
        b"Upgrade",
        b"Set-Cookie",
        b"X-A",
        b"TE",
    ]
)
FIELDS = st.lists(st.tuples(NAMES, st.sampled_from([b"5", b"0", b"chunked", b"x-hop", b"close", b"trailers", b"v", b""])), max_size=8).map(
    tuple
)


@given(
    fields=FIELDS,
    method=st.sampled_from(["GET", "HEAD", "POST"]),
    status=st.sampled_from([200, 204, 206, 304, 404, 426, 502]),
    protocol=st.sampled_from(["HTTP/1.0", "HTTP/1.1", "HTTP/2.0"]),
    size=st.sampled_from([None, 0, 5]),
    trailers=st.booleans(),
)
def test_a_framed_head_never_says_two_things(
    fields: tuple[tuple[bytes, bytes], ...], method: str, status: int, protocol: str, size: int | None, trailers: bool
) -> None:
    """T-C1: never both a length and chunks, no connection field on HTTP/2, nothing that Connection named, no length on 204."""
    framed = frame_response(fields, method=method, status=status, protocol=protocol, size_bytes=size, has_trailers=trailers)
    names = [name.lower() for name, _ in framed.fields]
    lengths = [value for name, value in framed.fields if name.lower() == b"content-length"]
    assert not (b"content-length" in names and b"transfer-encoding" in names)
    assert len(lengths) <= 1 or without_body(method, status) or protocol == "HTTP/2.0"
    assert names.count(b"transfer-encoding") == (framed.delimiter is Delimiter.CHUNKED)
    assert (framed.delimiter is Delimiter.CHUNKED) <= (protocol == "HTTP/1.1")
    assert b"keep-alive" not in names
    if b"x-hop" in tokens(fields, b"connection"):
        assert b"x-hop" not in names
    if protocol == "HTTP/2.0":
        assert not {b"connection", b"transfer-encoding", b"upgrade"} & set(names)
        assert names == [name for name, _ in framed.fields]
    if status == 204:
        assert b"content-length" not in names
    if framed.delimiter is Delimiter.LENGTH:
        assert lengths == [b"%d" % (size or 0)]
    if framed.delimiter is Delimiter.CLOSE:
        assert framed.close


@given(fields=FIELDS)
def test_other_fields_keep_their_order_count_and_case(fields: tuple[tuple[bytes, bytes], ...]) -> None:
    """T-F1: what is not of one hop goes on as it came."""
    hop = {b"connection", b"keep-alive", b"te", b"transfer-encoding", b"upgrade", b"content-length", *tokens(fields, b"connection")}
    expected = [field for field in fields if field[0].lower() not in hop]
    framed = frame_response(fields, method="GET", status=200, protocol="HTTP/1.1", size_bytes=5, has_trailers=False)
    assert [field for field in framed.fields if field[0].lower() not in hop] == expected


def test_head_and_304_keep_the_length_they_speak_of() -> None:
    """T-D1: the length of what is not sent."""
    fields = ((b"Content-Length", b"1234"),)
    for method, status in (("HEAD", 200), ("GET", 304)):
        framed = frame_response(fields, method=method, status=status, protocol="HTTP/1.1", size_bytes=None, has_trailers=False)
        assert framed.fields == fields
        assert framed.delimiter is Delimiter.NONE


def test_a_declared_length_stays_in_its_place() -> None:
    fields = ((b"A", b"1"), (b"content-LENGTH", b"9"), (b"B", b"2"))
    framed = frame_response(fields, method="GET", status=200, protocol="HTTP/1.1", size_bytes=3, has_trailers=False)
    assert framed.fields == ((b"A", b"1"), (b"content-LENGTH", b"3"), (b"B", b"2"))


@pytest.mark.parametrize(
    ("values", "expected"), [((b"5",), 5), ((b"5", b"5"), 5), ((b"5", b"6"), None), ((b"+5",), None), ((b"",), None), ((), None)]
)
def test_one_length_or_none(values: tuple[bytes, ...], expected: int | None) -> None:
    assert content_length(tuple((b"Content-Length", value) for value in values)) == expected


def test_an_upgrade_goes_up_whole_and_other_hop_fields_do_not() -> None:
    """The upgrade is what is asked for; our credential and what Connection names stay here."""
    fields = (
        (b"Connection", b"keep-alive, Upgrade, X-Hop"),
        (b"Upgrade", b"websocket"),
        (b"X-Hop", b"1"),
        (b"Proxy-Authorization", b"Basic x"),
        (b"TE", b"trailers, deflate"),
        (b"A", b"1"),
    )
    kept, dropped = frame_request(fields, protocol="HTTP/1.1", has_body=False)
    assert kept == ((b"Connection", b"Upgrade"), (b"Upgrade", b"websocket"), (b"TE", b"trailers"), (b"A", b"1"))
    assert dropped


def test_a_request_that_needs_no_change_is_not_changed() -> None:
    fields = ((b"Host", b"a"), (b"Transfer-Encoding", b"chunked"), (b"TE", b"trailers"))
    assert frame_request(fields, protocol="HTTP/1.1", has_body=True) == (fields, False)


@pytest.mark.parametrize(("written", "declared"), [(b"Upgrade", False), (b"upgrade", True), (b"keep-alive, Upgrade", True)])
def test_a_rewritten_connection_field_is_declared(written: bytes, declared: bool) -> None:
    """DESIGN 3: the client's socket bytes, the origin's, and the list of rules between them."""
    fields, dropped = frame_request(((b"Connection", written), (b"Upgrade", b"websocket")), protocol="HTTP/1.1", has_body=False)
    assert fields == ((b"Connection", b"Upgrade"), (b"Upgrade", b"websocket"))
    assert dropped is declared

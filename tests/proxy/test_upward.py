"""What goes up differs from what came by listed rules only."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from secondtake.cassettes.exchange import Named, Request
from secondtake.cassettes.recorder import FORWARDED_RULES
from secondtake.proxy.routes import Route
from secondtake.proxy.upward import head_up

ROUTE = Route(("a.example", 443), True, None, ("a.example", 443))
NAMES = st.sampled_from([b"X-A", b"x-b", b"Cookie", b"Connection", b"TE", b"If-None-Match", b"Content-Length", b"Accept"])
FIELDS = st.lists(st.tuples(NAMES, st.sampled_from([b"1", b"x-b", b"trailers"])), max_size=6).map(tuple)


def request(fields: tuple[tuple[bytes, bytes], ...], *, protocol: str = "HTTP/1.1", connect: str | None = "a.example") -> Request:
    return Request("GET", "https", "a.example", 443, b"/p?q", protocol, (*fields,), named=Named(connect, None, "a.example"))


@given(fields=FIELDS, http2=st.booleans(), protocol=st.sampled_from(["HTTP/1.1", "HTTP/2.0"]), drops=st.booleans())
def test_every_difference_is_declared(fields: tuple[tuple[bytes, bytes], ...], http2: bool, protocol: str, drops: bool) -> None:
    """C-08: with no rule declared, nothing differs; every declared rule is on the closed list."""
    made, rules = head_up(
        request(((b"Host", b"a.example"), *fields), protocol=protocol), ROUTE, http2=http2, has_body=False, drops_validators=drops
    )
    assert all(rule in FORWARDED_RULES for rule in rules)
    if not rules and not http2:
        assert made.headers.fields == ((b"Host", b"a.example"), *fields)
    assert made.data.path == b"/p?q"
    assert made.data.authority == (b"a.example" if http2 else b"")


def test_http2_gets_its_authority_and_http1_its_host() -> None:
    """RFC 9113 8.3.1."""
    up, rules = head_up(request(((b"Host", b"a.example"), (b"X-A", b"1"))), ROUTE, http2=True, has_body=False)
    assert (up.data.authority, up.headers.fields, rules) == (b"a.example", ((b"x-a", b"1"),), ("version-conversion",))
    down, rules = head_up(request(((b"x-a", b"1"),), protocol="HTTP/2.0"), ROUTE, http2=False, has_body=True)
    assert down.headers.fields == ((b"Host", b"a.example"), (b"x-a", b"1"), (b"Transfer-Encoding", b"chunked"))
    assert rules == ("version-conversion",)


def test_split_cookies_are_joined_for_http1_and_said() -> None:
    """RFC 9113 8.2.3."""
    made, rules = head_up(request(((b"cookie", b"a=1"), (b"cookie", b"b=2")), protocol="HTTP/2.0"), ROUTE, http2=False, has_body=False)
    assert (b"cookie", b"a=1; b=2") in made.headers.fields
    assert "cookie-joined" in rules

"""From a head to our request: which of its names is the key."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mitmproxy import http

from secondtake.cassettes.exchange import Request
from secondtake.proxy.translate import Head, Traits, Unreadable, request_message, request_of, response_message, split_authority


def made(
    *,
    host: str | None = "origin.example",
    connect: tuple[str, int] | None = ("origin.example", 443),
    sni: str | None = None,
    authority: bytes = b"",
) -> tuple[Request, bool]:
    fields = ((b"Host", host.encode()),) if host is not None else ()
    head = Head(b"GET", b"http" if authority else b"", authority, b"/", "HTTP/1.1", fields)
    return request_of(head, Traits.of(fields), connect=connect, sni=sni, tls=connect is not None)


@pytest.mark.parametrize(
    ("host", "connect", "sni", "key", "agree"),
    [
        ("origin.example", ("origin.example", 443), "origin.example", "origin.example", True),
        ("ORIGIN.example:443", ("origin.example", 443), "Origin.Example.", "origin.example", True),
        ("other.example", ("origin.example", 443), None, "origin.example", False),
        ("origin.example", ("origin.example", 443), "other.example", "origin.example", False),
        ("origin.example", ("192.0.2.1", 443), "origin.example", "origin.example", True),
        ("origin.example", ("192.0.2.1", 443), None, "origin.example", True),
        ("other.example", ("192.0.2.1", 443), "origin.example", "origin.example", False),
        (None, ("192.0.2.1", 443), None, "192.0.2.1", True),
        ("[2001:db8::1]:8443", ("2001:db8::1", 8443), None, "2001:db8::1", True),
    ],
)
def test_the_key_is_the_connect_name_then_sni_then_host(
    host: str | None, connect: tuple[str, int], sni: str | None, key: str, agree: bool
) -> None:
    """DESIGN 3: all names are kept; disagreement is told."""
    request, agreed = made(host=host, connect=connect, sni=sni)
    assert (request.host, request.port, agreed) == (key, connect[1], agree)
    assert (request.named.connect, request.named.sni, request.named.host) == (connect[0], sni, host)


def test_heads_made_for_mitmproxy_are_the_ones_it_makes() -> None:
    """Its constructors are gone round, so what they would have made is compared with what is."""
    fields = ((b"Host", b"origin.example"), (b"X-One", b"1"))
    request = request_message(("origin.example", 443), b"GET", b"https", b"", b"/", b"HTTP/1.1", fields)
    theirs = http.Request("origin.example", 443, b"GET", b"https", b"", b"/", b"HTTP/1.1", http.Headers(fields), None, None, 0.0, None)
    assert vars(request.data) == vars(request.copy().data) == vars(theirs.data)
    response = response_message(b"HTTP/1.1", 200, b"OK", fields)
    assert vars(response.data) == vars(http.Response(b"HTTP/1.1", 200, b"OK", http.Headers(fields), None, None, 0.0, None).data)


def test_outside_a_tunnel_the_target_names_the_host() -> None:
    request, agree = made(connect=None, authority=b"index.example:81", host="index.example:81")
    assert (request.scheme, request.host, request.port, agree) == ("http", "index.example", 81, True)
    assert made(connect=None, authority=b"index.example", host="other.example")[1] is False
    assert made(connect=None, host="index.example")[0].port == 80
    with pytest.raises(Unreadable):
        made(connect=None, host=None)


def test_a_second_host_field_is_refused() -> None:
    """C-08: which one is meant cannot be told."""
    fields = ((b"Host", b"a.example"), (b"host", b"b.example"))
    with pytest.raises(Unreadable):
        request_of(Head(b"GET", b"", b"", b"/", "HTTP/1.1", fields), Traits.of(fields), connect=("a.example", 443), sni=None, tls=True)


@pytest.mark.parametrize("bad", [b"", b"a/b", b"a@b", b"a b", b"[::1", b"a:port", b"a:70000", b"a\\b"])
def test_a_host_that_is_none_is_refused(bad: bytes) -> None:
    with pytest.raises(Unreadable):
        split_authority(bad)


@given(st.binary(max_size=40))
def test_any_authority_is_read_or_refused(data: bytes) -> None:
    try:
        host, port = split_authority(data)
    except Unreadable:
        return
    assert host == host.lower()
    assert port is None or 0 <= port < 65536


def test_traits_come_from_one_pass_whatever_the_case() -> None:
    fields = (
        (b"HOST", b"a"),
        (b"connection", b"Keep-Alive, Upgrade"),
        (b"Proxy-Connection", b"close"),
        (b"EXPECT", b"100-Continue"),
        (b"upgrade", b"websocket"),
        (b"User-Agent", b"x/1"),
        (b"Proxy-Authorization", b"Basic z"),
    )
    traits = Traits.of(fields)
    assert (traits.hosts, traits.connection, traits.agents, traits.credentials) == (
        [b"a"],
        [b"keep-alive", b"upgrade", b"close"],
        [b"x/1"],
        [b"Basic z"],
    )
    assert traits.expects_continue
    assert traits.upgrades

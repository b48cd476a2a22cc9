"""Where a request goes when it goes out."""

from __future__ import annotations

import pytest

from secondtake.cassettes.errors import BadInput
from secondtake.cassettes.exchange import Request
from secondtake.proxy.routes import Route, Routes, choose
from secondtake.proxy.upstream import Upstream

DIRECT = Upstream.from_environ({})
CHAINED = Upstream.from_environ(
    {"HTTPS_PROXY": "http://u:p@proxy.example:3128", "HTTP_PROXY": "http://u:p@proxy.example:3128", "NO_PROXY": ".inside.example"}
)


def request(url_scheme: str, host: str, port: int) -> Request:
    return Request("GET", url_scheme, host, port, b"/x")


def test_straight() -> None:
    assert choose(request("https", "a.example", 443), ("a.example", 443), Routes.of({}), DIRECT) == Route(
        ("a.example", 443), True, None, ("a.example", 443)
    )


def test_a_tunnel_to_an_address_is_dialled_as_it_was_named() -> None:
    """The key host may be the name inside; what is connected to is what the client asked for."""
    route = choose(request("https", "a.example", 443), ("192.0.2.7", 443), Routes.of({}), DIRECT)
    assert route.dial == route.address == ("192.0.2.7", 443)


def test_tls_goes_through_a_tunnel_and_plain_http_in_absolute_form() -> None:
    """T-R9: many proxies refuse CONNECT to port 80."""
    tls = choose(request("https", "a.example", 443), None, Routes.of({}), CHAINED)
    assert (tls.address, tls.via, tls.dial, tls.trusted) == (
        ("a.example", 443),
        ("http", ("proxy.example", 3128)),
        ("proxy.example", 3128),
        True,
    )
    plain = choose(request("http", "a.example", 80), None, Routes.of({}), CHAINED)
    assert (plain.address, plain.via, plain.absolute, plain.tls) == (("proxy.example", 3128), None, True, False)
    assert plain.fields == ((b"Proxy-Authorization", b"Basic dTpw"),)
    assert choose(request("https", "x.inside.example", 443), None, Routes.of({}), CHAINED).via is None


def test_a_route_changes_the_origin_and_says_so() -> None:
    routes = Routes.of({"API.provider.example": "http://127.0.0.1:8080/base/", "two.example:8443": "https://[::1]"})
    route = choose(request("https", "api.provider.example", 443), None, routes, DIRECT)
    assert (route.address, route.tls, route.authority, route.prefix, route.rule, route.trusted) == (
        ("127.0.0.1", 8080),
        False,
        b"127.0.0.1:8080",
        b"/base",
        "route",
        True,
    )
    assert choose(request("https", "two.example", 443), None, routes, DIRECT).rule == ""
    assert choose(request("https", "two.example", 8443), None, routes, DIRECT).authority == b"[::1]"


@pytest.mark.parametrize("url", ["", "127.0.0.1:80", "ftp://a", "http://", "http://a:port", "http://u@a", "http://a/?q", "http://a/#f"])
def test_a_route_that_is_no_url_is_refused(url: str) -> None:
    with pytest.raises(BadInput) as caught:
        Routes.of({"a.example": url})
    assert caught.value.hint

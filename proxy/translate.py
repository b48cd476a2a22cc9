"""Between mitmproxy's messages and ours. Nothing else in this room reads a flow, and nothing at all reads its decoded content."""

from __future__ import annotations

import ipaddress

from mitmproxy import http

from secondtake.cassettes.exchange import Answer, Fields, Interim, Named, Request
from secondtake.proxy.framing import HTTP_1_0, HTTP_1_1, HTTP_2, OURS, values

_PROTOCOLS = {b"HTTP/1.0": HTTP_1_0, b"HTTP/2.0": HTTP_2}


class Unreadable(ValueError):
    """The request names no host, or names it in a way that cannot be read."""


def is_address(host: str) -> bool:
    """Whether `host` is an IP address, not a name."""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def split_authority(authority: bytes) -> tuple[str, int | None]:
    """`host:port` as (lower-case host without brackets, port or None). Raises Unreadable."""
    text = authority.decode("latin-1").strip().lower()
    if text.startswith("["):
        host, closed, rest = text[1:].partition("]")
        if not closed:
            raise Unreadable(f"bad host {text[:80]!r}")
        port = rest.removeprefix(":")
    else:
        host, _, port = text.partition(":")
    if not host or any(character in host for character in "/@ \t\\"):
        raise Unreadable(f"bad host {text[:80]!r}")
    if port and not (port.isascii() and port.isdigit() and int(port) < 65536):
        raise Unreadable(f"bad port in {text[:80]!r}")
    return host.rstrip("."), int(port) if port else None


def request_of(message: http.Request, *, connect: tuple[str, int] | None, sni: str | None, tls: bool) -> tuple[Request, bool]:
    """Our request, and whether the names it was given agree.

    `connect` is the tunnel's host and port, None outside one. The key host is the CONNECT name; where that is an address,
    the SNI, else Host. Proxy credentials are left out: they are ours, not the request's. Raises Unreadable.
    """
    data = message.data
    fields: Fields = tuple(field for field in data.headers.fields if field[0].lower() not in OURS)
    given = values(fields, b"host")
    if len(given) > 1:
        raise Unreadable("more than one Host field")
    authority = data.authority or (given[0] if given else b"")
    named_host, named_port = split_authority(authority) if authority else (None, None)
    agree = True
    if connect is not None:
        host, port = connect
        scheme = "https" if tls else "http"
        name = (sni or "").lower().rstrip(".") or None
        if is_address(host):
            host = name or named_host or host
        if named_host is not None and named_host != host:
            agree = False
        if name is not None and name != host:
            agree = False
    else:
        if named_host is None:
            raise Unreadable("no host named: this is a proxy, use it as HTTPS_PROXY")
        scheme = data.scheme.decode() if data.scheme else "http"
        host, port = named_host, named_port or (443 if scheme == "https" else 80)
        if given and data.authority and split_authority(given[0])[0] != host:
            agree = False
    request = Request(
        method=data.method.decode("latin-1"),
        scheme=scheme,
        host=host,
        port=port,
        path=data.path or b"/",
        protocol=_PROTOCOLS.get(data.http_version, HTTP_1_1),
        fields=fields,
        named=Named(
            connect=connect[0] if connect else None,
            sni=sni,
            host=authority.decode("latin-1") if authority else None,
        ),
    )
    return request, agree


def answer_of(message: http.Response, offset_us: int) -> Answer:
    """Our answer's head."""
    data = message.data
    protocol = _PROTOCOLS.get(data.http_version, HTTP_1_1)
    return Answer(data.status_code, data.reason, protocol, data.headers.fields, offset_us=offset_us)


def interim_of(message: http.Response, offset_us: int) -> Interim:
    """A 1xx head of ours."""
    return Interim(message.data.status_code, message.data.reason, message.data.headers.fields, offset_us)


def interim_message(interim: Interim) -> http.Response:
    """A 1xx head of mitmproxy's."""
    return http.Response(b"HTTP/1.1", interim.status, interim.reason, http.Headers(interim.fields), None, None, 0.0, None)

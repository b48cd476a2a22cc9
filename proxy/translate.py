"""Between mitmproxy's messages and ours. Nothing else in this room reads a flow, and nothing at all reads its decoded content."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from functools import lru_cache

from mitmproxy import http

from secondtake.cassettes.exchange import Answer, Fields, Interim, Named, Request
from secondtake.proxy.framing import HTTP_1_0, HTTP_1_1, HTTP_2, OURS

_PROTOCOLS = {b"HTTP/1.0": HTTP_1_0, b"HTTP/2.0": HTTP_2}


class Unreadable(ValueError):
    """The request names no host, or names it in a way that cannot be read."""


@lru_cache(1024)
def is_address(host: str) -> bool:
    """Whether `host` is an IP address, not a name."""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


@lru_cache(1024)
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
    if port and not (port.isascii() and port.isdigit() and len(port) <= 5 and int(port) < 65536):
        raise Unreadable(f"bad port in {text[:80]!r}")
    return host.rstrip("."), int(port) if port else None


@dataclass(slots=True)
class Head:
    """A request's head as either parser reads it; takes the place of mitmproxy's message on our side."""

    method: bytes
    scheme: bytes
    authority: bytes
    path: bytes
    protocol: str
    fields: Fields
    arrival: object = None
    """What was already decided about it, where it was decided before its stream was made (arrival.py)."""


@dataclass(slots=True)
class Traits:
    """What the fields of a request say about how to treat it, from one pass over them."""

    hosts: list[bytes]
    connection: list[bytes]
    """Lower-case tokens of Connection and Proxy-Connection."""
    credentials: list[bytes]
    agents: list[bytes]
    expects_continue: bool = False
    upgrades: bool = False

    @classmethod
    def of(cls, fields: Fields) -> Traits:
        found = cls([], [], [], [])
        for name, value in fields:
            if len(name) not in _TRAIT_LENGTHS:
                continue
            match name.lower():
                case b"host":
                    found.hosts.append(value)
                case b"connection" | b"proxy-connection":
                    found.connection += [token.strip().lower() for token in value.split(b",")]
                case b"proxy-authorization":
                    found.credentials.append(value)
                case b"user-agent":
                    found.agents.append(value)
                case b"expect":
                    found.expects_continue = found.expects_continue or b"100-continue" in value.lower()
                case b"upgrade":
                    found.upgrades = True
        return found


_TRAIT_LENGTHS = frozenset(
    map(len, (b"host", b"connection", b"proxy-connection", b"proxy-authorization", b"user-agent", b"expect", b"upgrade"))
)


def request_of(head: Head, traits: Traits, *, connect: tuple[str, int] | None, sni: str | None, tls: bool) -> tuple[Request, bool]:
    """Our request, and whether the names it was given agree.

    `connect` is the tunnel's host and port, None outside one. The key host is the CONNECT name; where that is an address,
    the SNI, else Host. Proxy credentials are left out: they are ours, not the request's. Raises Unreadable.
    """
    fields = head.fields
    if traits.credentials:
        fields = tuple(field for field in fields if field[0].lower() not in OURS)
    if len(traits.hosts) > 1:
        raise Unreadable("more than one Host field")
    authority = head.authority or (traits.hosts[0] if traits.hosts else b"")
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
        scheme = head.scheme.decode() if head.scheme else "http"
        host, port = named_host, named_port if named_port is not None else 443 if scheme == "https" else 80
        if traits.hosts and head.authority and split_authority(traits.hosts[0])[0] != host:
            agree = False
    request = Request(
        method=head.method.decode("latin-1"),
        scheme=scheme,
        host=host,
        port=port,
        path=head.path or b"/",
        protocol=head.protocol,
        fields=fields,
        named=Named(
            connect=connect[0] if connect else None,
            sni=sni,
            host=authority.decode("latin-1") if authority else None,
        ),
    )
    return request, agree


class _RequestData(http.RequestData):
    """A head of ours. mitmproxy looks up and checks the type of each part when one is made, which costs more than reading the head."""

    def __post_init__(self) -> None:
        """Nothing: the types are mypy's to check."""


class _ResponseData(http.ResponseData):
    """As above."""

    def __post_init__(self) -> None:
        """Nothing."""


def request_message(
    address: tuple[str, int], method: bytes, scheme: bytes, authority: bytes, path: bytes, version: bytes, fields: Fields
) -> http.Request:
    """A request's head of mitmproxy's."""
    made = http.Request.__new__(http.Request)
    made.data = _RequestData(version, http.Headers(fields), None, None, 0.0, None, *address, method, scheme, authority, path)
    return made


def response_message(version: bytes, status: int, reason: bytes, fields: Fields) -> http.Response:
    """A response's head of mitmproxy's. When it came is told by the wire's clock, not by the message."""
    made = http.Response.__new__(http.Response)
    made.data = _ResponseData(version, http.Headers(fields), None, None, 0.0, None, status, reason)
    return made


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
    return response_message(b"HTTP/1.1", interim.status, interim.reason, interim.fields)

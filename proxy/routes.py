"""Where a request goes when it goes out: straight, through the caller's own proxy, or by `--route` to another origin. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from mitmproxy.net.server_spec import ServerSpec

from secondtake.cassettes.errors import BadInput
from secondtake.cassettes.exchange import Fields, Request
from secondtake.proxy.upstream import Upstream, Via


@dataclass(frozen=True, slots=True)
class Route:
    """How one request reaches its origin."""

    address: tuple[str, int]
    """What the HTTP connection is to: the origin, or a proxy that takes absolute-form requests."""
    tls: bool
    via: ServerSpec | None = None
    dial: tuple[str, int] = ("", 0)
    """What the socket is to; the only address the gate opens for it."""
    trusted: bool = False
    """`dial` was configured by the user: not judged by C-04."""
    authority: bytes = b""
    """Host for the origin where it is not the one the agent asked for."""
    prefix: bytes = b""
    absolute: bool = False
    fields: Fields = ()
    rule: str = ""
    proxy: Via | None = None
    """The chained proxy, to explain what it refuses."""
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Routes:
    """`--route HOST=URL`: a host's traffic, sent to another origin. Matching and the record keep HOST."""

    targets: Mapping[str, tuple[str, str, int, str]]
    """HOST or HOST:PORT, lower-case, to (scheme, host, port, path prefix)."""

    @classmethod
    def of(cls, given: Mapping[str, str]) -> Routes:
        """Raises BadInput on a URL that is none, or has a query or a user."""
        targets = {}
        for host, text in given.items():
            url = urlsplit(text)
            hint = "a route is HOST=URL, for example api.provider.example=http://127.0.0.1:8080"
            try:
                port = url.port
            except ValueError:
                port = -1
            if url.scheme not in ("http", "https") or not url.hostname or port == -1 or url.query or url.fragment or url.username:
                raise BadInput(f"cannot route {host} to {text!r}", hint=hint)
            targets[host.lower()] = (url.scheme, url.hostname, port or (443 if url.scheme == "https" else 80), url.path.rstrip("/"))
        return cls(targets)

    def find(self, request: Request) -> tuple[str, str, int, str] | None:
        """The target of a request's host; HOST:PORT goes before HOST."""
        return self.targets.get(f"{request.host}:{request.port}") or self.targets.get(request.host)


def choose(request: Request, connect: tuple[str, int] | None, routes: Routes, upstream: Upstream) -> Route:
    """The way of one request. `connect` is the tunnel's address, which is dialled as the client named it."""
    target = routes.find(request)
    if target is not None:
        scheme, host, port, prefix = target
        default = 443 if scheme == "https" else 80
        shown = f"[{host}]" if ":" in host else host
        authority = shown if port == default else f"{shown}:{port}"
        rule = "route"
        trusted = True
    else:
        scheme, prefix, authority, rule, trusted = request.scheme, "", "", "", False
        host, port = connect or (request.host, request.port)
        prefix = _without_overlap(prefix, request.path)
    tls = scheme == "https"
    via = upstream.via(scheme, host, port)
    base = Route((host, port), tls, None, (host, port), trusted, authority.encode(), prefix.encode(), rule=rule)
    return base if via is None else _through(base, via)


def _through(base: Route, via: Via) -> Route:
    """Through a proxy: a tunnel for TLS, an absolute-form request for plain HTTP."""
    if base.tls:
        return Route(base.address, True, spec(via), via.address, True, base.authority, base.prefix, rule=base.rule, proxy=via)
    fields: Fields = ((b"Proxy-Authorization", via.authorization),) if via.authorization else ()
    return Route(via.address, via.scheme == "https", None, via.address, True, base.authority, base.prefix, True, fields, base.rule, via)


def _without_overlap(prefix: str, path: bytes) -> str:
    """What of a URL's path goes before a request's: of `/api/v1` and `/v1/messages`, `/api`, so that either way of writing it works."""
    parts = prefix.split("/")
    for start in range(1, len(parts)):
        tail = "/" + "/".join(parts[start:])
        if path.startswith(tail.encode() + b"/"):
            return "/".join(parts[:start])
    return prefix


def spec(via: Via) -> ServerSpec:
    """A proxy as mitmproxy names it."""
    return ("https" if via.scheme == "https" else "http", via.address)

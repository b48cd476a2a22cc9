"""A request's head as it goes to its origin, and each rule by which it differs from what the client sent. Pure.

The rules are a closed list (recorder.FORWARDED_RULES); a test compares the client's socket bytes, the origin's, and the rules.
"""

from __future__ import annotations

from mitmproxy import http

from secondtake.cassettes.exchange import Fields, Request
from secondtake.cassettes.websocket import without_extensions
from secondtake.proxy.framing import HTTP_1_1, HTTP_2, frame_request, values
from secondtake.proxy.routes import Route
from secondtake.proxy.translate import request_message

VALIDATORS = (b"if-none-match", b"if-modified-since")


def head_up(
    request: Request, route: Route, *, http2: bool, has_body: bool, drops_validators: bool = False, drops_extensions: bool = False
) -> tuple[http.Request, tuple[str, ...]]:
    """The message for an origin that speaks HTTP/2 (`http2`) or HTTP/1.1, and the rules that were applied, in order."""
    rules: list[str] = []
    fields, dropped = frame_request(request.fields, protocol=HTTP_2 if http2 else HTTP_1_1, has_body=has_body)
    if dropped:
        rules.append("hop-by-hop")
    if drops_validators:
        kept = tuple(field for field in fields if field[0].lower() not in VALIDATORS)
        if kept != fields:
            fields = kept
            rules.append("validators-dropped")
    if drops_extensions and (kept := without_extensions(fields)) != fields:
        fields = kept
        rules.append("extensions-dropped")
    if (request.protocol == HTTP_2) != http2:
        rules.append("version-conversion")
    if route.rule:
        rules.append(route.rule)
    given = values(fields, b"host")
    named = request.named.host.encode("latin-1") if request.named.host else given[0] if given else b""
    authority = route.authority or named
    absolute = b""
    if http2:
        fields = tuple((name.lower(), value) for name, value in fields if name.lower() != b"host")
        absolute = authority
    else:
        fields = _for_http1(fields, authority, rules, replaces=bool(route.authority), has_body=has_body)
        if route.absolute:
            absolute = authority
            fields = (*fields, *route.fields)
        elif request.named.connect is None and request.scheme == "http":
            rules.append("target-form")
    message = request_message(
        route.address,
        request.method.encode("latin-1"),
        b"https" if route.tls else b"http",
        absolute,
        route.prefix + request.path,
        b"HTTP/2.0" if http2 else b"HTTP/1.1",
        fields,
    )
    return message, tuple(rules)


def _for_http1(fields: Fields, authority: bytes, rules: list[str], *, replaces: bool, has_body: bool) -> Fields:
    """Host in its place, one Cookie field, and a body that says where it ends."""
    if values(fields, b"host"):
        if replaces:
            fields = tuple((name, authority if name.lower() == b"host" else value) for name, value in fields)
    elif authority:
        fields = ((b"Host", authority), *fields)
    cookies = values(fields, b"cookie")
    if len(cookies) > 1:  # RFC 9113 8.2.3: HTTP/2 may split it, HTTP/1 may not
        first = next(name for name, _ in fields if name.lower() == b"cookie")
        fields = (*(field for field in fields if field[0].lower() != b"cookie"), (first, b"; ".join(cookies)))
        rules.append("cookie-joined")
    if has_body and not values(fields, b"content-length") and not values(fields, b"transfer-encoding"):
        fields = (*fields, (b"Transfer-Encoding", b"chunked"))
    return fields

"""Heads of HTTP/1 messages, read in one way only or refused (C-08). Pure, but for mitmproxy's response value.

Sources: RFC 9112 2.2, 3, 5 and 6; a bare CR or LF, obs-fold, a bad name, and framing that can be read two ways are errors.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from mitmproxy import http

from secondtake.cassettes import limits
from secondtake.cassettes.exchange import Fields
from secondtake.proxy.framing import HTTP_1_0, HTTP_1_1, without_body
from secondtake.proxy.translate import Head, Unreadable, response_message, split_authority

_TOKEN = re.compile(rb"[!#$%&'*+\-.^_`|~0-9a-zA-Z]+")
_TARGET = re.compile(rb"[^\x00-\x20\x7f]+")
_VERSION = re.compile(rb"HTTP/1\.[0-9]")
_STATUS_LINE = re.compile(rb"(HTTP/1\.[0-9]) +([1-9][0-9]{2})(?: (.*))?", re.DOTALL)

REASONS = {
    200: b"OK",
    201: b"Created",
    202: b"Accepted",
    204: b"No Content",
    206: b"Partial Content",
    304: b"Not Modified",
    400: b"Bad Request",
    404: b"Not Found",
    407: b"Proxy Authentication Required",
    416: b"Range Not Satisfiable",
    424: b"Failed Dependency",
    426: b"Upgrade Required",
    429: b"Too Many Requests",
    431: b"Request Header Fields Too Large",
    502: b"Bad Gateway",
}
"""Reason phrases for heads that came without one (HTTP/2) or are our own."""


class BadHead(ValueError):
    """A head that is refused rather than read in one of two ways. `status` is what a client is told."""

    def __init__(self, message: str, status: int = 400) -> None:
        super().__init__(message)
        self.status = status


def split_head(data: bytes) -> tuple[list[bytes], int] | None:
    """Cut a head off the front of `data`: its lines, and how many bytes it took; None when it is not whole yet.

    Raises BadHead on a bare CR or LF, a NUL, or a head over limits.HEAD_BYTES.
    """
    start = 0
    while data.startswith(b"\r\n", start):  # RFC 9112 2.2: empty lines before a request line are passed over
        start += 2
    end = data.find(b"\r\n\r\n", start)
    if end < 0:
        if len(data) - start > limits.HEAD_BYTES:
            raise BadHead(f"head over {limits.HEAD_BYTES} bytes", 431)
        if b"\n\n" in data or data.startswith((b"\n", b"\r\r")):
            raise BadHead("a line that does not end in CR LF")
        return None
    if end - start > limits.HEAD_BYTES:
        raise BadHead(f"head over {limits.HEAD_BYTES} bytes", 431)
    head = data[start:end]
    lines = head.split(b"\r\n")
    breaks = len(lines) - 1
    if breaks > limits.FIELD_COUNT:
        raise BadHead(f"more than {limits.FIELD_COUNT} fields", 431)
    if b"\0" in head or head.count(b"\r") != breaks or head.count(b"\n") != breaks:
        raise BadHead("a bare CR, LF or NUL in the head")
    return lines, end + 4


def read_fields(lines: Sequence[bytes]) -> Fields:
    """Header lines as fields, byte for byte but for outer white space. Raises BadHead on obs-fold or a bad name."""
    fields = []
    for line in lines:
        name, colon, value = line.partition(b":")
        if not colon or not _TOKEN.fullmatch(name):
            what = "a folded line (obs-fold)" if line[:1] in (b" ", b"\t") else f"a bad field line, {name[:80]!r}"
            raise BadHead(what)
        fields.append((name, value.strip(b" \t")))
    return tuple(fields)


def body_length(fields: Fields, *, protocol: str, response_to: str | None = None, status: int = 0) -> int | None:
    """The size of a body by its fields: bytes, None for chunked, -1 for until the connection closes.

    `response_to` is the request's method for a response, None for a request. Raises BadHead where two readings are possible.
    """
    if response_to is not None and (without_body(response_to, status) or (response_to == "CONNECT" and status < 300)):
        return 0
    coding: list[bytes] = []
    length: list[bytes] = []
    for name, value in fields:
        if len(name) == 17 and name.lower() == b"transfer-encoding":
            coding.append(value)
        elif len(name) == 14 and name.lower() == b"content-length":
            length.append(value)
    if coding and length:
        raise BadHead("both Transfer-Encoding and Content-Length")
    if len(length) > 1:
        raise BadHead(f"{len(length)} Content-Length fields: {b', '.join(length)[:80]!r}")
    if coding:
        if len(coding) > 1 or coding[0].strip().lower() != b"chunked":
            raise BadHead(f"Transfer-Encoding {b', '.join(coding)[:80]!r}")
        if protocol == HTTP_1_0:
            raise BadHead("Transfer-Encoding on HTTP/1.0")
        return None
    if length:
        if not re.fullmatch(rb"[0-9]{1,19}", length[0]):
            raise BadHead(f"Content-Length {length[0][:80]!r}")
        return int(length[0])
    return 0 if response_to is None else -1


def read_request_head(lines: Sequence[bytes]) -> Head:
    """A request's head. Raises BadHead."""
    parts = lines[0].split(b" ")
    if len(parts) != 3 or not _TOKEN.fullmatch(parts[0]) or not _VERSION.fullmatch(parts[2]):
        raise BadHead(f"bad request line {lines[0][:80]!r}")
    method, target, version = parts
    if not _TARGET.fullmatch(target):
        raise BadHead(f"bad request target {target[:80]!r}")
    scheme, authority, path = b"", b"", target
    try:
        if method == b"CONNECT":
            if split_authority(target)[1] is None:
                raise BadHead("CONNECT without a port")
            authority, path = target, b""
        elif not target.startswith(b"/") and target != b"*":
            scheme, separator, rest = target.partition(b"://")
            scheme = scheme.lower()
            if not separator or scheme not in (b"http", b"https"):
                raise BadHead(f"bad request target {target[:80]!r}")
            cut = min((rest.find(mark) for mark in (b"/", b"?") if mark in rest), default=len(rest))
            authority, path = rest[:cut].rpartition(b"@")[2], rest[cut:] or b"/"
            if path.startswith(b"?"):
                path = b"/" + path
            split_authority(authority)
    except Unreadable:
        raise BadHead(f"bad request target {target[:80]!r}") from None
    protocol = HTTP_1_0 if version == b"HTTP/1.0" else HTTP_1_1
    return Head(method, scheme, authority, path, protocol, read_fields(lines[1:]))


def is_request_line(method: bytes, path: bytes) -> bool:
    """Whether an HTTP/2 request's method and path make a request line that HTTP/1 reads in one way only (RFC 9113 8.3.1, 10.3)."""
    return _TOKEN.fullmatch(method) is not None and _TARGET.fullmatch(path) is not None and (path[:1] == b"/" or path == b"*")


def read_response_head(lines: Sequence[bytes]) -> http.Response:
    """A response's head. Raises BadHead."""
    match = _STATUS_LINE.fullmatch(lines[0])
    if match is None:
        raise BadHead(f"bad status line {lines[0][:80]!r}")
    version, status, reason = match.groups()
    return response_message(version, int(status), reason or b"", read_fields(lines[1:]))


def as_lines(raw: bytes) -> str:
    """Bytes that are no head, as text with a line for what may be a field: unfolded, `name: value`, nothing unprintable."""
    unfolded = re.sub(rb"[\r\n]+[ \t]+", b"", raw)  # without a space: what stands before one is taken for a scheme
    named = re.sub(rb"(?m)^([^:\r\n]{1,80}?)[ \t]*:[ \t]*", rb"\1: ", unfolded.replace(b"\r", b"\n"))
    shown = named.decode("latin-1")
    return "\n".join("".join(character if character.isprintable() else "?" for character in line) for line in shown.splitlines() if line)


def refuse_head(error: BadHead) -> bytes:
    """What a client is told whose request cannot be read in one way only."""
    text = f"secondtake: the request was refused: {error}\n".encode()
    reason = REASONS.get(error.status, b"Bad Request")
    head = b"HTTP/1.1 %d %s\r\nContent-Type: text/plain\r\nContent-Length: %d\r\nConnection: close\r\n\r\n"
    return head % (error.status, reason, len(text)) + text


def assemble(first: bytes, fields: Fields) -> bytes:
    """A head from its first line (with CR LF) and fields."""
    return b"".join([first, *[b"%s: %s\r\n" % field for field in fields], b"\r\n"])


def trailer_block(fields: Fields) -> bytes:
    """The last chunk and the trailers after it."""
    return b"".join([b"0\r\n", *[b"%s: %s\r\n" % field for field in fields], b"\r\n"])

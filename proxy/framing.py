"""How a message is delimited on the next hop: chosen when it is sent, never copied from the hop before. Pure.

Sources: RFC 9110 6.4, 7.6 and 15.2; RFC 9112 6 and 7; RFC 9113 8.1 and 8.2.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from secondtake.cassettes.exchange import Fields

HTTP_1_0 = "HTTP/1.0"
HTTP_1_1 = "HTTP/1.1"
HTTP_2 = "HTTP/2.0"

HOP_BY_HOP = frozenset({b"connection", b"keep-alive", b"proxy-connection", b"te", b"transfer-encoding", b"upgrade", b"http2-settings"})
"""Fields that speak of one connection only (RFC 9110 7.6.1). `trailer` stays: it announces fields that are relayed."""

LENGTH_DIGITS = 19
"""The longest decimal that is read as a length: 2**63 has as many."""

OURS = frozenset({b"proxy-authorization", b"proxy-authenticate"})
"""Fields between a client and its proxy."""


class Delimiter(StrEnum):
    """What tells the receiver that a body is over."""

    NONE = "none"
    LENGTH = "length"
    CHUNKED = "chunked"
    CLOSE = "close"
    STREAM = "stream"
    """END_STREAM of HTTP/2."""


@dataclass(frozen=True, slots=True)
class Framed:
    """A head's fields as the next hop shall see them, and how its body ends."""

    fields: Fields
    delimiter: Delimiter
    trailers: bool
    """Whether trailers can be sent on this hop."""
    close: bool
    """Whether the connection ends with this message."""


def values(fields: Fields, name: bytes) -> list[bytes]:
    """Every value of the field `name` (lower-case), in order."""
    size = len(name)
    return [value for key, value in fields if len(key) == size and key.lower() == name]


def tokens(fields: Fields, name: bytes) -> list[bytes]:
    """The comma-separated, lower-cased tokens of every field `name`."""
    return [token.strip().lower() for value in values(fields, name) for token in value.split(b",") if token.strip()]


def without_body(method: str, status: int) -> bool:
    """Whether a response can have no body whatever its fields say (RFC 9112 6.3, rules 1 and 2)."""
    return method == "HEAD" or status in (204, 304) or 100 <= status < 200


def content_length(fields: Fields) -> int | None:
    """The one declared length, or None. Conflicting or malformed values count as none; who must refuse them does so earlier."""
    found = set(values(fields, b"content-length"))
    if len(found) != 1:
        return None
    value = found.pop()
    return int(value) if value.isdigit() and len(value) <= LENGTH_DIGITS else None


def hop_names(fields: Fields) -> frozenset[bytes]:
    """The names that must not go further: the fixed ones and those listed in `Connection`."""
    return HOP_BY_HOP | {name for name in tokens(fields, b"connection") if name not in (b"close", b"keep-alive")}


def frame_response(
    fields: Fields,
    *,
    method: str,
    status: int,
    protocol: str,
    size_bytes: int | None,
    has_trailers: bool,
    keep_alive: bool = True,
) -> Framed:
    """Choose the framing of a response for a client.

    `protocol` is the client's, `size_bytes` the body's full length where it is known beforehand (declared by the origin, or
    measured in the cassette). A declared length is kept in its place when it is right.
    """
    if status == 101:
        return Framed(fields, Delimiter.NONE, trailers=False, close=False)
    hop = hop_names(fields)
    if protocol == HTTP_2:
        return _frame_http2(fields, hop, method, status, size_bytes, has_trailers)
    empty = without_body(method, status)
    kept: list[tuple[bytes, bytes]] = []
    length_seen = False
    chunk_place: int | None = None
    chunked = not empty and protocol == HTTP_1_1 and (size_bytes is None or has_trailers)
    for name, value in fields:
        lower = name.lower()
        if lower == b"content-length":
            if empty and status != 204:
                kept.append((name, value))
            elif not empty and not chunked and size_bytes is not None and not length_seen:
                kept.append((name, value if value == b"%d" % size_bytes else b"%d" % size_bytes))
                length_seen = True
            elif chunked and chunk_place is None:
                chunk_place = len(kept)
            continue
        if lower == b"transfer-encoding":
            if chunked and chunk_place is None:
                chunk_place = len(kept)
            continue
        if lower in hop and lower != b"upgrade":
            continue
        if lower == b"upgrade" and status != 426:
            continue
        kept.append((name, value))
    close = not keep_alive
    if empty:
        delimiter = Delimiter.NONE
    elif chunked:
        kept.insert(len(kept) if chunk_place is None else chunk_place, (b"Transfer-Encoding", b"chunked"))
        delimiter = Delimiter.CHUNKED
    elif size_bytes is not None:
        if not length_seen:
            kept.append((b"Content-Length", b"%d" % size_bytes))
        delimiter = Delimiter.LENGTH
    else:
        delimiter, close = Delimiter.CLOSE, True
    if close:
        kept.append((b"Connection", b"close"))
    elif protocol == HTTP_1_0:
        kept.append((b"Connection", b"keep-alive"))
    return Framed(tuple(kept), delimiter, trailers=chunked, close=close)


def _frame_http2(fields: Fields, hop: frozenset[bytes], method: str, status: int, size_bytes: int | None, has_trailers: bool) -> Framed:
    """Lower-case names, no connection fields, and a length only where it is right."""
    empty = without_body(method, status)
    kept = []
    for name, value in fields:
        lower = name.lower()
        if lower in hop:
            continue
        if lower == b"content-length":
            if status == 204 or (not empty and size_bytes is None):
                continue
            if not empty and value != b"%d" % (size_bytes or 0):
                continue
        kept.append((lower, value))
    return Framed(tuple(kept), Delimiter.NONE if empty and not has_trailers else Delimiter.STREAM, trailers=True, close=False)


def frame_request(fields: Fields, *, protocol: str, has_body: bool) -> tuple[Fields, bool]:
    """A request's fields for an HTTP/1.1 or HTTP/2 origin, and whether hop-by-hop fields had to go.

    `Upgrade` with its `Connection` is kept on HTTP/1.1, because the upgrade is what is asked for. `TE: trailers` is kept
    where the client offered it. The body's delimiting is kept on HTTP/1.1: a request streams up as it comes.
    """
    hop = hop_names(fields)
    upgrade = protocol == HTTP_1_1 and b"upgrade" in tokens(fields, b"connection")
    kept: list[tuple[bytes, bytes]] = []
    dropped = False
    for name, value in fields:
        lower = name.lower()
        if lower == b"transfer-encoding" and protocol == HTTP_1_1 and has_body:
            kept.append((name, value))
        elif lower == b"te" and b"trailers" in value.lower():
            kept.append((name, b"trailers"))
            dropped = dropped or value.strip().lower() != b"trailers"
        elif lower == b"upgrade" and upgrade:
            kept.append((name, value))
        elif lower == b"connection" and upgrade:
            kept.append((name, b"Upgrade"))
            dropped = dropped or value != b"Upgrade"
        elif lower in hop or lower in OURS:
            dropped = True
        else:
            kept.append((name.lower() if protocol == HTTP_2 else name, value))
    return tuple(kept), dropped

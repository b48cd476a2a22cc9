"""The values that carry everything: a request, its answer, and the exchange they make.

Shapes only; nothing here does I/O. Heads are fields of bytes exactly as received (names, values, order, case,
duplicates); outer white space and chunk extensions are not kept. Times are microseconds since the recording began.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NewType, Protocol

Digest = NewType("Digest", str)
"""SHA-256 of bytes, 64 lower-case hexadecimal digits."""

EMPTY = Digest("e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855")
"""The digest of no bytes."""

type Fields = tuple[tuple[bytes, bytes], ...]
"""Header or trailer fields in order: (name, value)."""


class Channel(StrEnum):
    """What an exchange is for."""

    MODEL = "model"
    INDEX = "index"
    VCS = "vcs"
    WEB = "web"
    MCP = "mcp"
    AUTH = "auth"
    CONTROL = "control"
    TELEMETRY = "telemetry"
    LOOPBACK = "loopback"


class Ending(StrEnum):
    """How an exchange ended."""

    COMPLETE = "complete"
    RESET = "reset"
    CLIENT_LEFT = "client-left"
    REFUSED = "refused"
    TIMEOUT = "timeout"
    TLS_FAILED = "tls-failed"
    RECORDER_DIED = "recorder-died"


class Answered(StrEnum):
    """How a request was answered; the counts of these add up to the requests seen on the socket."""

    LIVE = "live"
    EXACT = "exact"
    NORMALISED = "normalised"
    DERIVED = "derived"
    POSITIONAL = "positional"
    LOCAL = "local"
    MISS = "miss"


class Side(StrEnum):
    """Which of the two messages of an exchange."""

    REQUEST = "request"
    RESPONSE = "response"


@dataclass(frozen=True, slots=True)
class Piece:
    """Bytes that arrived together: how many, and when (microseconds since the exchange began)."""

    size_bytes: int
    offset_us: int


@dataclass(frozen=True, slots=True)
class Body:
    """A reference to kept bytes, and how they were cut. `digest` names the bytes as kept (redacted)."""

    digest: Digest = EMPTY
    size_bytes: int = 0
    pieces: tuple[Piece, ...] = ()


@dataclass(frozen=True, slots=True)
class Named:
    """Every name the client gave for the host it wanted; `Request.host` is the one chosen as key.

    The key host is the CONNECT name; where that is an address, the SNI, else Host.
    """

    connect: str | None = None
    sni: str | None = None
    host: str | None = None


@dataclass(frozen=True, slots=True)
class Request:
    """A request as the client sent it.

    `host` is lower-case without brackets, `path` the origin-form target with its query, `protocol` one of
    `HTTP/1.0`, `HTTP/1.1`, `HTTP/2.0`.
    """

    method: str
    scheme: str
    host: str
    port: int
    path: bytes
    protocol: str = "HTTP/1.1"
    fields: Fields = ()
    body: Body = Body()
    trailers: Fields = ()
    named: Named = Named()

    @property
    def url(self) -> str:
        """For people: the absolute URL, default port left out, non-ASCII bytes percent-shown."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        default = {"http": 80, "https": 443, "stdio": 0}.get(self.scheme)
        port = "" if self.port == default else f":{self.port}"
        return f"{self.scheme}://{host}{port}{self.path.decode('ascii', 'backslashreplace')}"


@dataclass(frozen=True, slots=True)
class Interim:
    """A 1xx head that came before the final one."""

    status: int
    reason: bytes
    fields: Fields
    offset_us: int


@dataclass(frozen=True, slots=True)
class Answer:
    """A response as received. `offset_us` is when its head came, since the exchange began."""

    status: int
    reason: bytes = b""
    protocol: str = "HTTP/1.1"
    fields: Fields = ()
    interim: tuple[Interim, ...] = ()
    body: Body = Body()
    trailers: Fields = ()
    offset_us: int = 0
    synthetic: bool = False
    """Made by the proxy (for example a 502 because the origin could not be reached), not by the origin."""


@dataclass(frozen=True, slots=True)
class Redaction:
    """One byte range in which a secret stood. No value, only what kind, where, and a keyed fingerprint."""

    side: Side
    place: str
    """`field:authorization`, `query:key`, `body`, `trailer:…`."""
    start: int
    stop: int
    """Byte range in the value (fields, query) or in the decoded body."""
    kind: str
    fingerprint: str | None = None


@dataclass(frozen=True, slots=True)
class Keys:
    """What a request is matched by, computed once while recording and kept in the index.

    `rules` names the normaliser list the second key was made with; a player with other rules computes it anew.
    """

    exact: bytes
    """16 bytes: method, scheme, host, port, path as sent, representation, digest of the body as kept."""
    normal: bytes
    """16 bytes: the same after canonical query, decoding, normalisers."""
    rules: str


@dataclass(frozen=True, slots=True)
class Exchange:
    """One request and all that answered it."""

    seq: int
    channel: Channel
    started_us: int
    """Request start, since the recording began."""
    request: Request
    answer: Answer | None
    """None when nothing came back at all."""
    ended: Ending
    ended_us: int
    keys: Keys | None = None
    forwarded: tuple[str, ...] = ()
    """Each rule by which what went upstream differs from `request`, from a closed list."""
    redactions: tuple[Redaction, ...] = ()
    notes: tuple[str, ...] = ()
    """Things a person should know, one line each: `error: connection refused`, `parser-failed: …`."""
    answered: Answered = Answered.LIVE
    adapter: str | None = None
    """The wire format of a model call, for example `anthropic`."""
    details: Mapping[str, object] = field(default_factory=dict)
    """Room for later issues; msgpack values only."""


class Source(Protocol):
    """Bytes that can be read in parts, so that a large body is never whole in memory."""

    @property
    def size_bytes(self) -> int: ...

    def read(self, offset: int, size: int) -> bytes:
        """Return `size` bytes from `offset` (fewer at the end). Raises Corrupt when the bytes are not the kept ones."""
        ...


@dataclass(frozen=True, slots=True)
class Bytes:
    """A Source in memory."""

    data: bytes

    @property
    def size_bytes(self) -> int:
        return len(self.data)

    def read(self, offset: int, size: int) -> bytes:
        return self.data[offset : offset + size]


@dataclass(frozen=True, slots=True)
class Slice:
    """A part of another Source."""

    source: Source
    start: int
    stop: int

    @property
    def size_bytes(self) -> int:
        return self.stop - self.start

    def read(self, offset: int, size: int) -> bytes:
        begin = min(self.start + offset, self.stop)
        return self.source.read(begin, min(size, self.stop - begin))

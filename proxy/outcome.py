"""What happened on the wire in one session: counts that add up to the requests seen on the socket, and what a person must know."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from secondtake.cassettes.divergence import Course
from secondtake.cassettes.errors import NotStored
from secondtake.cassettes.exchange import Answered, Channel, Ending
from secondtake.cassettes.misses import Miss


@dataclass(frozen=True, slots=True)
class Missed:
    """One request that the cassette could not answer."""

    number: int
    """The how-manieth request on the socket it was, from 1."""
    method: str
    url: str
    channel: Channel
    miss: Miss
    at_us: int = 0
    """When, since the proxy's start."""


@dataclass(frozen=True, slots=True)
class TlsFailure:
    """A client that would not shake hands with us."""

    host: str
    error: str
    client: str
    """What is known of the client: its User-Agent on CONNECT, or its process; may be empty."""


@dataclass(slots=True)
class Outcome:
    """Grows while the proxy runs."""

    requests: int = 0
    answered: Counter[Answered] = field(default_factory=Counter)
    channels: Counter[Channel] = field(default_factory=Counter)
    live: Counter[Channel] = field(default_factory=Counter)
    """Of those answered live."""
    endings: Counter[Ending] = field(default_factory=Counter)
    reused: int = 0
    misses: list[Missed] = field(default_factory=list)
    refused: Counter[str] = field(default_factory=Counter)
    tls_failures: list[TlsFailure] = field(default_factory=list)
    silent: list[TlsFailure] = field(default_factory=list)
    """Clients that shook hands, and left without a request."""
    trusting: set[tuple[str, str]] = field(default_factory=set)
    """(host, client) of those that were heard inside TLS."""
    unreachable: list[tuple[str, str]] = field(default_factory=list)
    """(URL, why) of requests that no origin answered."""
    not_http: list[tuple[str, bytes]] = field(default_factory=list)
    """(host, first bytes) of connections that spoke no HTTP and were closed."""
    passed_through: Counter[str] = field(default_factory=Counter)
    strangers: int = 0
    """Connections of another user that were refused."""
    blocked: list[str] = field(default_factory=list)
    """What the gate refused to open: in replay, anything at all."""
    unkept: list[str] = field(default_factory=list)
    """What was passed on while recording, and could not be kept."""
    damaged: list[str] = field(default_factory=list)
    crashed: list[str] = field(default_factory=list)
    failed: NotStored | None = None
    notes: list[str] = field(default_factory=list)
    sessions: int = 0
    course: Course = field(default_factory=Course)
    """Where it first left the recording."""

    @property
    def clean(self) -> bool:
        """Whether everything asked was answered from where it should be, and everything seen was kept."""
        return not (
            self.misses
            or self.failed
            or self.damaged
            or self.crashed
            or self.blocked
            or self.unkept
            or self.tls_failures
            or self.not_http
            or self.refused["names-disagree"]
        )

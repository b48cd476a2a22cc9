"""How a proxy is to behave: values from the caller; nothing here reads the environment or a clock."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from secondtake.cassettes.exchange import Channel
from secondtake.proxy.policy import Mode, Pace, Sockets
from secondtake.proxy.upstream import Upstream


@dataclass(frozen=True, slots=True)
class Settings:
    """One proxy's settings."""

    mode: Mode
    trust: Path
    """A PEM bundle that origins are verified against."""
    host: str = "127.0.0.1"
    port: int = 0
    routes: Mapping[str, str] = field(default_factory=dict)
    pace: Pace = Pace.FAST
    upstream: Upstream = field(default_factory=Upstream)
    strict: bool = False
    credential: str | None = None
    """`user:password` a client must give; None asks for none."""
    uid: int | None = None
    """On loopback the peer must be this user; None does not look."""
    loopback: bool = False
    """Origins on loopback may be reached through the proxy."""
    passthrough: tuple[str, ...] = ()
    only_hosts: tuple[str, ...] = ()
    client_certs: Mapping[str, Path] = field(default_factory=dict)
    quiet_telemetry: bool = False
    websocket: Sockets = Sockets.REFUSE
    live: frozenset[Channel] = frozenset()
    """In a retake: channels whose requests go out all the same."""
    extend: frozenset[Channel] = frozenset()
    """In a retake: channels whose requests go out where the cassette does not hold them."""
    one_session: bool = False
    """All connections are one run, however long a pause between them; else a pause begins the recording anew."""

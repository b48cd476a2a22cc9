"""What a request gets, by mode, channel and what the cassette holds. The line that lets a miss out, or not, is here. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import assert_never

from secondtake.cassettes.exchange import Channel, Request
from secondtake.cassettes.misses import Miss
from secondtake.cassettes.player import Serve
from secondtake.proxy.framing import tokens


class Mode(StrEnum):
    """What the proxy does with model calls, and with everything else."""

    RECORD = "record"
    REPLAY = "replay"
    RETAKE = "retake"


class Pace(StrEnum):
    """When a recorded piece is sent again: at its recorded offset, or as soon as the client takes it."""

    REAL = "real"
    FAST = "fast"


@dataclass(frozen=True, slots=True)
class Live:
    """Send it to the world and record it. (A retake's model calls go out too, as another model's: see retake.py.)"""


@dataclass(frozen=True, slots=True)
class Collect:
    """Read the whole request first; then `decide`."""


class Sockets(StrEnum):
    """What becomes of WebSocket upgrades while recording, and of a model's in a retake."""

    REFUSE = "refuse"
    """A model's gets 426, so that its client falls back to HTTP; any other is relayed and kept as opaque bytes."""
    RECORD = "record"
    """They go live, and their messages are kept."""


class Upgrade(StrEnum):
    """What can be done with one WebSocket upgrade (taps.py)."""

    KEEP = "keep"
    """Send it live and keep its messages."""
    PLAY = "play"
    """Messages of a socket of this address are on the cassette."""
    ANSWER = "answer"
    """The origin declined it while recording; that answer is on the cassette."""


@dataclass(frozen=True, slots=True)
class Converse:
    """A WebSocket: played from the cassette, or in a retake (`live`) sent on with another model in each of its calls."""

    live: bool


@dataclass(frozen=True, slots=True)
class Hear:
    """A word of `secondtake mcp` to the proxy itself (shims.py)."""


@dataclass(frozen=True, slots=True)
class Refuse:
    """Answer it ourselves: what was missed, or why nothing may be asked."""

    reason: str
    """One word: `miss`, `ws-refused`, `telemetry`, `strict`, `names-disagree`, `own-address`, …"""
    miss: Miss | None = None
    adapter: str | None = None
    """The wire format of a model call that is refused for another reason than a miss."""


@dataclass(frozen=True, slots=True)
class Policy:
    """Decides; opens nothing."""

    mode: Mode
    quiet_telemetry: bool = False
    strict: bool = False
    live: frozenset[Channel] = frozenset()
    """In a retake: what goes out all the same, and is kept. Never the model's, which goes out swapped."""
    extend: frozenset[Channel] = frozenset()
    """In a retake: what goes out where the cassette does not hold it, and is kept, for later takes to be played."""

    def opening(
        self, request: Request, channel: Channel, *, failed: bool, upgrade: Upgrade | None = None
    ) -> Live | Collect | Converse | Refuse:
        """By the head alone. `failed`: this recording can store nothing any more. `upgrade`: what can be done with a WebSocket."""
        if upgrade is None and channel is Channel.MODEL and is_websocket(request):
            return Refuse("ws-refused")
        if upgrade is Upgrade.PLAY or (upgrade is Upgrade.KEEP and self.mode is Mode.RETAKE):
            return Converse(live=upgrade is Upgrade.KEEP)
        match self.mode:
            case Mode.RECORD:
                if self.quiet_telemetry and channel is Channel.TELEMETRY:
                    return Refuse("telemetry")
                if failed and self.strict:
                    return Refuse("strict")
                return Live()
            case Mode.REPLAY | Mode.RETAKE:
                return Live() if self.mode is Mode.RETAKE and channel in self.live else Collect()
            case _:
                assert_never(self.mode)

    def decide(self, channel: Channel, found: Serve | Miss) -> Serve | Live | Refuse:
        """By what the cassette holds. Live is only what may extend it: a retake's model calls were claimed before, a live channel let
        go."""
        if isinstance(found, Serve):
            return found
        # The miss was told apart with the body in hand, `channel` by the head alone: some telemetry is recognised by its content only.
        if Channel.TELEMETRY in (channel, found.channel):
            return Refuse("telemetry")
        if found.burst:
            return Refuse("burst")
        if self.mode is Mode.RETAKE and channel in self.extend:
            return Live()
        return Refuse("miss", found)


def is_websocket(request: Request) -> bool:
    """Whether a request asks for an upgrade to WebSocket (RFC 6455 4.1; RFC 8441 is not offered to HTTP/2 clients)."""
    return b"websocket" in tokens(request.fields, b"upgrade")

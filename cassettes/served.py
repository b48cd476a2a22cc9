"""What goes into a player and comes out: options, the live body, the answer. Values only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from secondtake.cassettes.channels import Recognise
from secondtake.cassettes.differences import Difference
from secondtake.cassettes.exchange import Answer, Answered, Channel, Digest, Ending, Request, Source
from secondtake.cassettes.normalise import NO_ALIASES, Aliases, Rule
from secondtake.cassettes.volatile import RULES


class Reuse(StrEnum):
    """What a GET or HEAD gets after its last recorded answer was given. Other methods are never repeated."""

    REPEAT_LAST = "repeat-last"
    STRICT = "strict"


@dataclass(frozen=True, slots=True)
class Route:
    """Requests a rule of `Options.routes` is for. Empty parts match any; `path` is a prefix of the target."""

    host: str = ""
    path: bytes = b""
    method: str = ""

    def matches(self, request: Request) -> bool:
        return self.host in ("", request.host) and self.method in ("", request.method) and request.path.startswith(self.path)


@dataclass(frozen=True, slots=True)
class Options:
    """How a player decides. The defaults are those of `secondtake replay`."""

    reuse: Reuse = Reuse.REPEAT_LAST
    routes: tuple[tuple[Route, Reuse], ...] = ()
    """First match wins over `reuse`."""
    rules: tuple[Rule, ...] = RULES
    """The rules that ship, and behind them what a person declared (declared.py)."""
    aliases: Aliases = NO_ALIASES
    recorded_aliases: Aliases = NO_ALIASES
    """Those of the recording, as far as it says: where its keys are made anew they are needed again."""
    allow_push: bool = False
    positional: bool = False
    """Place a model call that misses by content by its position in the conversation; the differences become notes."""
    derive: bool = True
    recognise: Recognise | None = None


@dataclass(frozen=True, slots=True)
class Live:
    """The body of a live request. `content` is None over limits.BODY_IN_MEMORY_BYTES; `kept` is then the digest after redaction."""

    size_bytes: int
    digest: Digest
    content: bytes | None
    kept: Digest | None = None


@dataclass(frozen=True, slots=True)
class Serve:
    """What to send. Framing, protocol and pacing are the wire's. `answer.body.pieces` is empty where the body is derived."""

    answer: Answer
    body: Source
    ended: Ending
    answered: Answered
    seq: int
    """Of the exchange it is from; 0 where none gave it."""
    reused: bool = False
    notes: tuple[str, ...] = ()
    channel: Channel | None = None
    """Of the exchange it is from."""
    details: Mapping[str, object] | None = None
    differences: tuple[Difference, ...] = ()
    """Where the request is not the recorded one, of a `positional` answer."""
    more: int = 0
    """Differences beyond those."""
    """`Exchange.details` of the exchange it is from, for what has to be made of its answer (logins.py)."""

"""Where a replay first left the recording, and what became of it from there. Pure: answers in, in their order; one value out.

A divergence is the first request that was not asked while recording: a miss, or a model call that only its position in the conversation
placed. What is answered by content, whole or without what the rules forgive, is none, in whatever order it is asked.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from secondtake.cassettes.differences import Difference
from secondtake.cassettes.exchange import Answered, Channel, Request
from secondtake.cassettes.misses import Miss, printable
from secondtake.cassettes.served import Serve

URL_CHARACTERS = 300


@dataclass(frozen=True, slots=True)
class Divergence:
    """The first request that left the recording. All text is redacted, on one line, and bounded."""

    request: int
    """The how-manieth request it was, from 1."""
    call: int | None
    """The how-manieth model call, where it was one."""
    answered: Answered
    """`positional` or `miss`."""
    kind: str | None
    """The class of a miss."""
    method: str
    url: str
    channel: Channel
    seq: int | None
    """The recorded exchange it was compared with."""
    differences: tuple[Difference, ...]
    more: int
    """Differences beyond those listed."""
    rule: str | None
    """The line that would forgive it, where one may."""
    followed: Mapping[Answered, int] = field(default_factory=lambda: MappingProxyType({}))
    """How what was asked afterwards was answered."""

    @property
    def first(self) -> Difference | None:
        """The first place that differs."""
        return self.differences[0] if self.differences else None


class Course:
    """One run, as it is answered."""

    def __init__(self) -> None:
        self._requests = 0
        self._calls = 0
        self._left: Divergence | None = None
        self._followed: Counter[Answered] = Counter()

    def answered(self, channel: Channel, how: Answered) -> None:
        """A request was answered. `missed` or `placed` may say more of it."""
        self._requests += 1
        self._calls += channel is Channel.MODEL
        if self._left is not None:
            self._followed[how] += 1

    def missed(self, request: Request, miss: Miss) -> None:
        """The request that was answered last missed. `request` must be redacted."""
        if self._left is None:
            nearest = miss.nearest
            self._leave(
                request,
                miss.channel,
                Answered.MISS,
                seq=nearest.seq if nearest else None,
                differences=nearest.differences if nearest else (),
                more=nearest.more if nearest else 0,
                rule=nearest.rule if nearest else None,
                kind=str(miss.kind),
            )

    def placed(self, request: Request, serve: Serve) -> None:
        """The request that was answered last was placed by its position. `request` must be redacted."""
        if self._left is None:
            channel = serve.channel or Channel.MODEL
            self._leave(request, channel, Answered.POSITIONAL, seq=serve.seq, differences=serve.differences, more=serve.more)

    def _leave(
        self,
        request: Request,
        channel: Channel,
        answered: Answered,
        *,
        seq: int | None,
        differences: tuple[Difference, ...],
        more: int,
        rule: str | None = None,
        kind: str | None = None,
    ) -> None:
        self._left = Divergence(
            self._requests,
            self._calls if channel is Channel.MODEL else None,
            answered,
            kind,
            printable(request.method, 20),
            printable(request.url, URL_CHARACTERS),
            channel,
            seq,
            differences,
            more,
            rule,
        )

    @property
    def divergence(self) -> Divergence | None:
        """Where it left, or None where it never did."""
        left = self._left
        if left is None:
            return None
        return replace(left, followed=MappingProxyType(dict(self._followed)))

"""Another model in the part: which requests leave, as what, to which one host, and what came of each.

Everything else is replay. The policy asks `claims`; what it claims is prepared by `prepare`, sent by `live.py`, and judged here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from secondtake.cassettes import adapters
from secondtake.cassettes.adapters import CallKind, ModelAnswer, Usage
from secondtake.cassettes.casting import Casting
from secondtake.cassettes.content import Decoder, codings, plain
from secondtake.cassettes.errors import RecordedError, TooLarge
from secondtake.cassettes.exchange import Answer, Ending, Request
from secondtake.cassettes.ownership import Given
from secondtake.cassettes.stops import Stops, Tripped
from secondtake.cassettes.swap import Refused, prepare
from secondtake.cassettes.verdicts import Verdict, judge
from secondtake.proxy.signing import Signer, needs_signature

if TYPE_CHECKING:
    from secondtake.cassettes.history import Recorded
    from secondtake.proxy.credentials import Credentials


@dataclass(frozen=True, slots=True)
class Claim:
    """A request that goes to a model instead of the cassette."""

    adapter: str
    kind: CallKind
    step: int
    """Which model call of this take it is, from 1."""


@dataclass(frozen=True, slots=True)
class Outgoing:
    """What is sent in its place. `request` has the path and fields to send; the body's framing is in the fields."""

    claim: Claim
    request: Request
    body: bytes
    requested: tuple[str, ...]
    forwarded: str
    notes: tuple[str, ...]
    pins: tuple[str, ...] = ()
    """Every model the request now names."""


@dataclass(frozen=True, slots=True)
class ModelCall:
    """What came of one live call."""

    seq: int
    step: int
    adapter: str
    requested: tuple[str, ...]
    forwarded: str
    status: int | None
    verdict: Verdict


@dataclass(slots=True)
class Retake:
    """One retake as it runs."""

    casting: Casting
    stops: Stops
    rules: frozenset[str] = frozenset()
    strip_reasoning: bool = False
    from_step: int = 0
    gateway: str | None = None
    credentials: Credentials | None = None
    signer: Signer | None = None
    steps: int = 0
    calls: list[ModelCall] = field(default_factory=list)
    tripped: Tripped | None = None
    own: set[str] = field(default_factory=set)
    """What this retake was given live, IDs of answers and digests of tokens: a request may go on from these."""
    earlier: Callable[[str], Recorded | None] | None = None
    """A recorded answer by its ID, for a history that the provider held."""
    refused: list[str] = field(default_factory=list)
    """Why model calls were not sent: they could not be swapped, must not go there, or had no credential."""
    on_refusal: Callable[[], None] = lambda: None
    """Called when a model call was refused: no later one will fare better."""

    def claims(self, request: Request, content: bytes | None) -> Claim | None:
        """Whether this request asks a model, and is past the part that is played. Counts it.

        Counting a prompt's tokens is a model call of the second kind: the cassette is asked first.
        """
        call = adapters.classify(request, plain(content, request.fields) if content is not None else None)
        if call is None or call.kind not in (CallKind.COMPLETION, CallKind.COUNT):
            return None
        if call.kind is CallKind.COMPLETION:
            self.steps += 1
            if self.steps <= self.from_step:
                return None
        return Claim(call.adapter, call.kind, self.steps)

    def prepare(self, claim: Claim, request: Request, content: bytes) -> Outgoing | str:
        """The request as another model gets it, or why it cannot be sent."""
        made = prepare(
            request,
            content,
            claim.adapter,
            self.casting,
            rules=self.rules,
            strip_reasoning=self.strip_reasoning,
            continues=0 < self.from_step < claim.step,
            own=self.own,
            earlier=self.earlier,
        )
        if isinstance(made, Refused):
            return self.unsent(made.reason)
        return Outgoing(claim, made.request, made.content, made.requested, made.forwarded, made.notes, made.pins)

    def unsent(self, why: str) -> str:
        """Remember that a model call was not sent, and why: the take is not what was asked for then."""
        self.refused.append(why)
        self.on_refusal()
        return why

    def unready(self, request: Request, content: bytes, outgoing: Outgoing) -> bool:
        """Whether what is sent in place of `request` needs a credential of the operator's, or a signature made anew (A-07)."""
        return self.credentials is not None or needs_signature(request, outgoing.request, content_changed=outgoing.body != content)

    async def authorised(self, outgoing: Outgoing) -> Outgoing | str:
        """The same with the real credential in place of the agent's, or signed anew; or why that cannot be."""
        try:
            if self.credentials is not None:
                request = await self.credentials.apply(outgoing.claim.adapter, outgoing.request, outgoing.body)
            elif self.signer is not None:
                request = await self.signer.sign(outgoing.request, outgoing.body)
            else:
                return "the agent's signature does not fit the swapped call"
        except RecordedError as error:
            return str(error)
        return replace(outgoing, request=request)

    def stopped(self, now_us: int) -> Tripped | None:
        """Whether a stopping rule has been reached; the first one is remembered."""
        found = self.stops.before(now_us)
        if found is not None and self.tripped is None:
            self.tripped = found
            self.on_refusal()
        return found


class Listener:
    """Reads a live call's answer beside the relay, to tell which model gave it."""

    def __init__(self, retake: Retake, outgoing: Outgoing) -> None:
        self._retake = retake
        self.outgoing = outgoing
        self._reader: adapters.AnswerReader | None = None
        self._decoder: Decoder | None = None
        self._given: Given | None = None
        self._answer: Answer | None = None

    def head(self, answer: Answer) -> None:
        """The answer's head."""
        self._answer = answer
        if self._retake.credentials is not None:
            self._retake.credentials.answered(answer.status)
        self._reader = adapters.reader(self.outgoing.claim.adapter, self.outgoing.request, answer.status, answer.fields)
        if self._retake.from_step:
            self._given = Given(self.outgoing.claim.adapter, answer.status, answer.fields)
        names = codings(answer.fields)
        self._decoder = Decoder(names) if names else None

    def piece(self, data: bytes) -> None:
        """The next bytes as they came. What cannot be read is left unread: the verdict says so."""
        if self._reader is None:
            return
        try:
            for part in self._decoder.feed(data) if self._decoder is not None else (data,):
                self._reader.receive(part)
                if self._given is not None:
                    self._given.receive(part)
        except TooLarge:
            self._reader = self._given = None

    def end(self, seq: int, how: Ending, now_us: int) -> ModelCall:
        """The call is over."""
        read: ModelAnswer | None = None
        if self._reader is not None:
            self._reader.receive(b"")
            read = self._reader.answer()
        answer = self._answer
        outgoing = self.outgoing
        verdict = judge(
            read,
            adapter=outgoing.claim.adapter,
            forwarded=outgoing.forwarded,
            status=answer.status if answer is not None and not answer.synthetic else None,
            fields=answer.fields if answer is not None else (),
            ended=how,
            host="" if self._retake.gateway is not None else outgoing.request.host,
            pins=outgoing.pins,
        )
        if read is not None and read.id:
            self._retake.own.add(read.id)
        if self._given is not None:
            self._given.receive(b"")
            self._retake.own |= self._given.found()
        if outgoing.claim.kind is CallKind.COMPLETION:
            answered = answer is not None and answer.status < 400
            self._retake.stops.after(read.usage if read is not None else Usage(), outgoing.forwarded, answered=answered)
        call = ModelCall(
            seq,
            outgoing.claim.step,
            outgoing.claim.adapter,
            outgoing.requested,
            outgoing.forwarded,
            answer.status if answer else None,
            verdict,
        )
        self._retake.calls.append(call)
        return call


def details(call: ModelCall) -> Mapping[str, object]:
    """What stands on the exchange of a live call (A-06)."""
    return {
        "step": call.step,
        "requested": list(call.requested),
        "forwarded": call.forwarded,
        **call.verdict.described(),
    }

"""One exchange being written: events of the wire in, records of the journal out. Does no I/O.

Two rules. Everything in a record is redacted. And nothing said here can harm the relay: whatever a body holds, a recording ends in an
End record; only a caller that breaks the order of events below gets an error (OutOfOrder), which is a mistake in our code.

Theory of operation. The two messages are two small machines that move independently, since an answer may begin, and end, before its
request has ended. TABLE holds every move there is. A body is held until it is larger than `limits.BODY_IN_MEMORY_BYTES`; from then on it
streams out as Chunk records. A held request is redacted when it ends (the model is thinking then), a held answer at the end.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from enum import Enum, auto

from secondtake.cassettes import limits
from secondtake.cassettes.exchange import (
    Answer,
    Answered,
    Body,
    Channel,
    Digest,
    Ending,
    Exchange,
    Fields,
    Interim,
    Keys,
    Redaction,
    Request,
    Side,
)
from secondtake.cassettes.match import partial_keys
from secondtake.cassettes.message import Message, State
from secondtake.cassettes.records import End, Head, Record
from secondtake.cassettes.redact import RedactedBody, Redactor
from secondtake.cassettes.streams import BINARY
from secondtake.cassettes.tokens import TOKENS, tokens_in

FORWARDED_RULES = frozenset(
    {
        "hop-by-hop",
        "target-form",
        "version-conversion",
        "route",
        "validators-dropped",
        "model-swap",
        "expect",
        "framing",
        "proxy-credential",
        "trailers-dropped",
        "cookie-joined",
        "upgrade-refused",
        "extensions-dropped",
    }
)
"""Every rule by which what goes upstream may differ from what came. A rule may be followed by `:` and a detail."""


_NO_BODY = Body()


class OutOfOrder(AssertionError):
    """An event that cannot come now: a mistake in the code that calls, never in what the wire sent."""


class Event(Enum):
    """What may be said to a recording."""

    REQUEST_HEAD = auto()
    REQUEST_PIECE = auto()
    REQUEST_END = auto()
    INTERIM = auto()
    RESPONSE_HEAD = auto()
    RESPONSE_PIECE = auto()
    RESPONSE_TRAILERS = auto()


_REQUEST_MOVES: dict[tuple[State, Event], State] = {
    (State.IDLE, Event.REQUEST_HEAD): State.OPEN,
    (State.OPEN, Event.REQUEST_PIECE): State.OPEN,
    (State.OPEN, Event.REQUEST_END): State.ENDED,
}
_RESPONSE_MOVES: dict[tuple[State, Event], State] = {
    (State.IDLE, Event.INTERIM): State.IDLE,
    (State.IDLE, Event.RESPONSE_HEAD): State.OPEN,
    (State.OPEN, Event.RESPONSE_PIECE): State.OPEN,
    (State.OPEN, Event.RESPONSE_TRAILERS): State.TRAILED,
}
TABLE: dict[Side, dict[tuple[State, Event], State]] = {Side.REQUEST: _REQUEST_MOVES, Side.RESPONSE: _RESPONSE_MOVES}
"""Every move. `end` may come in any state once the request's head came; after it nothing may."""


class Recording:
    """One exchange. Each method returns the records to write now, in order; most return none. `offset_us` counts from `started_us`."""

    def __init__(self, seq: int, started_us: int, redactor: Redactor, *, keys: Callable[[Request, bytes | None], Keys]) -> None:
        self.seq = seq
        self._started_us = started_us
        self._redactor = redactor
        self._keys = keys
        self._request: Request | None = None
        self._answer: Answer | None = None
        self._interim: list[Interim] = []
        self._trailers: dict[Side, Fields] = {Side.REQUEST: (), Side.RESPONSE: ()}
        self._messages = {side: Message(seq, side, redactor) for side in Side}
        self._early: RedactedBody | None = None
        self._channel = Channel.WEB
        self._adapter: str | None = None
        self._how = Answered.LIVE
        self._forwarded: list[str] = []
        self._notes: list[str] = []
        self._details: dict[str, object] = {}
        self._redactions: list[Redaction] = []
        self._partial = False
        self._over = False

    # ---- the request ----

    def request_head(self, request: Request, channel: Channel) -> tuple[Record, ...]:
        """The request's head is known. `request.body` and `trailers` are ignored: they are still coming."""
        message = self._move(Side.REQUEST, Event.REQUEST_HEAD)
        message.fields = request.fields
        self._channel = channel
        bare = request if request.body == _NO_BODY and not request.trailers else replace(request, body=_NO_BODY, trailers=())
        try:
            self._request, redactions = self._redactor.request(bare)
        except Exception as error:  # noqa: BLE001  # fail closed: a head that cannot be judged keeps its names only
            self._note_failure("head", error)
            self._request, redactions = replace(bare, fields=_nameless(bare.fields), path=bare.path.partition(b"?")[0]), ()
        self._redactions += redactions
        return (Head(self.seq, self._started_us, channel, self._request),)

    def request_piece(self, data: bytes, offset_us: int) -> tuple[Record, ...]:
        """Bytes of the request's body as they came."""
        return self._move(Side.REQUEST, Event.REQUEST_PIECE).piece(data, offset_us, withhold=self._withheld)

    def request_end(self, trailers: Fields, offset_us: int) -> tuple[Record, ...]:
        """The request is whole."""
        message = self._move(Side.REQUEST, Event.REQUEST_END)
        self._trailers[Side.REQUEST] = self._redact_fields(trailers, Side.REQUEST)
        self._details["request_ended_us"] = offset_us
        if not message.streaming and self._channel is not Channel.AUTH:
            self._early = self._redacted(message, Side.REQUEST)
        return ()

    def partial(self) -> tuple[Record, ...]:
        """It was answered before it was whole, and nothing more of it comes: it is known by how it begins."""
        self._living()
        self._partial = True
        self._details["request_partial"] = True
        return ()

    # ---- the answer ----

    def interim(self, interim: Interim) -> tuple[Record, ...]:
        """A 1xx head."""
        self._move(Side.RESPONSE, Event.INTERIM)
        self._interim.append(replace(interim, fields=self._redact_fields(interim.fields, Side.RESPONSE, "interim")))
        return ()

    def response_head(self, answer: Answer) -> tuple[Record, ...]:
        """The final head. `answer.body`, `trailers` and `interim` are ignored: they are told by the other methods."""
        message = self._move(Side.RESPONSE, Event.RESPONSE_HEAD)
        message.fields = answer.fields
        whole = answer.body == _NO_BODY and not answer.trailers and not answer.interim
        bare = answer if whole else replace(answer, body=_NO_BODY, trailers=(), interim=())
        try:
            self._answer, redactions = self._redactor.answer(bare)
        except Exception as error:  # noqa: BLE001  # as for the request
            self._note_failure("head", error)
            self._answer, redactions = replace(bare, fields=_nameless(bare.fields), reason=b""), ()
        self._redactions += redactions
        return ()

    def response_piece(self, data: bytes, offset_us: int) -> tuple[Record, ...]:
        """Bytes of the answer's body as they came."""
        return self._move(Side.RESPONSE, Event.RESPONSE_PIECE).piece(data, offset_us, withhold=self._withheld)

    def response_trailers(self, trailers: Fields) -> tuple[Record, ...]:
        """The answer's trailer fields; no piece comes after them."""
        self._move(Side.RESPONSE, Event.RESPONSE_TRAILERS)
        self._trailers[Side.RESPONSE] = self._redact_fields(trailers, Side.RESPONSE)
        return ()

    # ---- said about it, at any time before the end ----

    def forwarded(self, rule: str) -> tuple[Record, ...]:
        """What went upstream differs by `rule`, one of FORWARDED_RULES, perhaps with `: detail`."""
        self._living()
        if rule.partition(":")[0] not in FORWARDED_RULES:
            raise OutOfOrder(f"no such rule: {rule}")
        text = self._redactor.text(rule)
        if text not in self._forwarded:
            self._forwarded.append(text)
        return ()

    def note(self, text: str) -> tuple[Record, ...]:
        """One line a person should know."""
        self._living()
        self._notes.append(" ".join(self._redactor.text(text).splitlines()))
        return ()

    def reclassify(self, channel: Channel, adapter: str | None) -> tuple[Record, ...]:
        """The channel is another than its head let suppose; `adapter` reads the body."""
        self._living()
        self._channel = channel
        self._adapter = adapter
        return ()

    def answered(self, how: Answered) -> tuple[Record, ...]:
        """How the request was answered, where it was not by the origin."""
        self._living()
        self._how = how
        return ()

    def detail(self, name: str, value: object) -> tuple[Record, ...]:
        """A msgpack value for `Exchange.details`. It is not redacted: no bytes of the wire."""
        self._living()
        self._details[name] = value
        return ()

    def redacted(self, redactions: tuple[Redaction, ...]) -> tuple[Record, ...]:
        """What the next piece hides, where who gave it has redacted it already (frames.py)."""
        self._living()
        self._redactions += redactions
        return ()

    # ---- the end ----

    def end(self, how: Ending, offset_us: int) -> tuple[Record, ...]:
        """The exchange is over, in whatever state it is. The last record returned is its End."""
        self._living()
        if self._request is None:
            raise OutOfOrder("an exchange ended that never began")
        self._over = True
        records: list[Record] = []
        bodies: dict[Digest, bytes] = {}
        references: dict[Side, Body] = {}
        content: bytes | None = None
        described = self._request.fields
        for side in Side:
            message = self._messages[side]
            if message.streaming:
                last, told, references[side] = message.finish()
                records += last
            else:
                early = self._early if side is Side.REQUEST and not self._withheld else None
                told = early if early is not None else self._redacted(message, side)
                references[side] = message.reference(told.content)
                if side is Side.REQUEST:
                    content = told.content
                if told.content:
                    bodies[references[side].digest] = told.content
            self._tell(side, told)
            if side is Side.REQUEST:
                described = told.described(self._request.fields)
        listed = self._redactions[: limits.REDACTIONS]
        if len(listed) < len(self._redactions):
            self._notes.append(f"redactions: {len(self._redactions) - len(listed)} more ranges are not listed")
        request = self._request
        if references[Side.REQUEST] != _NO_BODY or self._trailers[Side.REQUEST]:
            request = replace(request, body=references[Side.REQUEST], trailers=self._trailers[Side.REQUEST])
        answer = self._answer
        if answer is not None:
            answer = replace(answer, body=references[Side.RESPONSE], trailers=self._trailers[Side.RESPONSE], interim=tuple(self._interim))
        elif self._interim:
            self._details["interim_only"] = [[one.status, one.offset_us] for one in self._interim]
        exchange = Exchange(
            seq=self.seq,
            channel=self._channel,
            started_us=self._started_us,
            request=request,
            answer=answer,
            ended=how,
            ended_us=self._started_us + offset_us,
            keys=self._matched_by(request if described is request.fields else replace(request, fields=described), content),
            forwarded=tuple(self._forwarded),
            redactions=tuple(listed),
            notes=tuple(self._notes),
            answered=self._how,
            adapter=self._adapter,
            details=self._details,
        )
        return (*records, End(exchange, bodies))

    # ---- inside ----

    @property
    def _withheld(self) -> bool:
        return self._channel is Channel.AUTH

    def _living(self) -> None:
        if self._over:
            raise OutOfOrder("an event after the end")

    def _move(self, side: Side, event: Event) -> Message:
        self._living()
        message = self._messages[side]
        state = TABLE[side].get((message.state, event))
        if state is None or (side is Side.RESPONSE and self._request is None):
            raise OutOfOrder(f"{event.name} while the {side} is {message.state.name}")
        message.state = state
        return message

    def _redacted(self, message: Message, side: Side) -> RedactedBody:
        work = self._redactor.withhold_auth if self._withheld else self._redactor.body
        try:
            return work(bytes(message.held), message.fields, side)
        except Exception as error:  # noqa: BLE001  # fail closed, whichever redactor this is
            return RedactedBody(b"", withheld=f"the redactor failed: {type(error).__name__}")

    def _redact_fields(self, fields: Fields, side: Side, place: str = "trailer") -> Fields:
        try:
            kept, redactions = self._redactor.fields(fields, side, place)
        except Exception as error:  # noqa: BLE001  # fail closed
            self._note_failure(place, error)
            return _nameless(fields)
        self._redactions += redactions
        return kept

    def _tell(self, side: Side, told: RedactedBody) -> None:
        """Write down what was done to a body of `side`."""
        self._redactions += told.redactions
        if side is Side.RESPONSE and any(one.place == BINARY for one in told.redactions):
            self._notes.append("the answer's body is no text and holds a credential: what is kept, and played, has a placeholder there")
        message = self._messages[side]
        if self._withheld and side is Side.RESPONSE and told.redactions:
            self._describe(message)
        if told.withheld is not None and message.size_bytes:
            self._details[f"{side}_withheld"] = told.withheld
            self._details[f"{side}_wire_bytes"] = message.size_bytes
            prefix = "parser-failed: " if told.withheld.startswith("the redactor failed") else "withheld: "
            self._notes.append(f"{prefix}{side} body: {told.withheld}")
        if told.decoded:
            self._details[f"{side}_kept"] = "decoded"
            self._details[f"{side}_codings"] = list(told.codings)
            self._details[f"{side}_wire_bytes"] = message.size_bytes

    def _describe(self, message: Message) -> None:
        """Of a login's answer, what may be said of its tokens, for a replay that makes others in their place."""
        try:
            tokens = tokens_in(bytes(message.held), message.fields)
        except Exception as error:  # noqa: BLE001  # kept all the same (T-L6)
            self._note_failure("tokens", error)
            return
        if tokens:
            self._details[TOKENS] = tokens

    def _matched_by(self, request: Request, content: bytes | None) -> Keys | None:
        try:
            return partial_keys(request, self._keys) if self._partial else self._keys(request, content)
        except Exception as error:  # noqa: BLE001  # one exchange our code cannot read is kept all the same (T-L6)
            self._note_failure("keys", error)
            return None

    def _note_failure(self, what: str, error: Exception) -> None:
        self._notes.append(f"parser-failed: {what}: {type(error).__name__}")


def _nameless(fields: Fields) -> Fields:
    return tuple((name, b"x" * len(value)) for name, value in fields)

"""The ordered log of a recording, derived from its exchanges alone: a pure function (DESIGN 5).

Theory of operation. Exchanges come in by the order of their requests. Each model exchange is read by its adapter; what a
request's history holds and no request before it held is new: a tool result is an event the first time it is sent. Events
leave in order of time, so those of an answer wait until no earlier one can come. The same exchanges always give the same
events. Payloads are named by SHA-256; `Event.payloads` holds them for who wants to keep them.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from secondtake.cassettes import adapters
from secondtake.cassettes.adapters import ModelAnswer, ModelRequest, Outcome, ToolCall
from secondtake.cassettes.adapters.base import Json
from secondtake.cassettes.adapters.reading import canonical, digest
from secondtake.cassettes.calls import Calls, Found
from secondtake.cassettes.content import Opaque, codings, decode
from secondtake.cassettes.errors import RecordedError
from secondtake.cassettes.event import INLINE_CHARACTERS, Event, EventKind, fields, line, payload
from secondtake.cassettes.exchange import Answered, Channel, Exchange, Side
from secondtake.cassettes.exit_codes import exit_code
from secondtake.cassettes.frames import listed
from secondtake.cassettes.lanes import calls
from secondtake.cassettes.limits import ANSWER_BYTES
from secondtake.cassettes.mcp_calls import messages
from secondtake.cassettes.memory import Recorded
from secondtake.cassettes.verdicts import of_a_call

__all__ = ["Content", "Event", "EventKind", "contents", "events", "fields", "line"]

type Content = Callable[[Exchange, Side], bytes | None]
"""Gives a body without content codings, as far as it came; None where it cannot be had."""


def contents(cassette: Recorded) -> Content:
    """Read bodies of a cassette for `events`. A cut stream is decoded as far as it goes.

    The reader raises:
        Corrupt: kept bytes are damaged.
    """

    def read(exchange: Exchange, side: Side) -> bytes | None:
        message = exchange.request if side is Side.REQUEST else exchange.answer
        if message is None or message.body.size_bytes > ANSWER_BYTES:
            return None
        data = cassette.body(message.body).read(0, message.body.size_bytes)
        if exchange.details.get(f"{side.value}_kept") == "decoded":
            return data
        try:
            content = decode(data, codings(message.fields), partly=True)
        except RecordedError:
            return None
        return None if isinstance(content, Opaque) else content

    return read


def events(exchanges: Iterable[Exchange], content: Content) -> Iterator[Event]:
    """Yield the events of `exchanges`, which come in the order of their `seq`.

    Memory grows with what is in flight together and with the number of tool calls, not with bodies.
    """
    log = _Log(content)
    sequence = 0
    for exchange in exchanges:
        log.take(exchange)
        for draft in log.due(exchange.started_us):
            yield draft.numbered(sequence)
            sequence += 1
    log.finish()
    for draft in log.due(None):
        yield draft.numbered(sequence)
        sequence += 1


@dataclass(frozen=True, slots=True, order=True)
class _Draft:
    """An event that has no number yet. Ends sort before beginnings of the same instant, then by exchange, then as read."""

    offset_us: int
    begins: bool
    seq: int
    order: int
    event: EventKind = field(compare=False)
    model: str | None = field(compare=False)
    data: Mapping[str, Json] = field(compare=False)
    payloads: Mapping[str, bytes] = field(compare=False)

    def numbered(self, sequence: int) -> Event:
        exchange = None if self.event is EventKind.STOP else self.seq
        return Event(self.event, sequence, self.offset_us, exchange, self.model, self.data, self.payloads)


@dataclass(frozen=True, slots=True)
class _Try:
    """The last attempt at one request."""

    seq: int
    ended_us: int
    attempt: int
    failure: str | None


class _Log:
    """Turns exchanges into drafts of events and keeps them until they are due."""

    def __init__(self, content: Content) -> None:
        self._content = content
        self._waiting: list[_Draft] = []
        self._order = 0
        self._calls = Calls()
        self._tries: dict[str, _Try] = {}
        self._stop: tuple[int, int, str | None, str] | None = None
        self._stop_weight = (False, 0)
        self._last_us = 0

    def due(self, before_us: int | None) -> Iterator[_Draft]:
        """Give what lies before `before_us`, in order; all of it for None."""
        while self._waiting and (before_us is None or self._waiting[0].offset_us < before_us):
            yield heapq.heappop(self._waiting)

    def take(self, exchange: Exchange) -> None:
        """Read one exchange."""
        self._last_us = max(self._last_us, exchange.ended_us)
        if exchange.answered is Answered.MISS:
            self._missed(exchange)
        if exchange.channel is Channel.MCP:
            self._mcp(exchange)
        if exchange.channel is not Channel.MODEL:
            return
        if listed(exchange.details):
            for part, said, heard in calls(exchange, self._content):
                self._read(part, said, heard)
            return
        received = None if exchange.answer is None else self._content(exchange, Side.RESPONSE)
        self._read(exchange, self._content(exchange, Side.REQUEST), received)

    def _mcp(self, exchange: Exchange) -> None:
        """What a client asked of an MCP server in this exchange, and what the server replied in it."""
        sent = self._content(exchange, Side.REQUEST)
        received = None if exchange.answer is None else self._content(exchange, Side.RESPONSE)
        for said in messages(exchange, sent, received):
            kind = EventKind.MCP_RESULT if said.ends else EventKind.MCP_CALL
            self._add(exchange, kind, None, said.data, said.payloads, ends=said.ends)

    def _read(self, exchange: Exchange, sent: bytes | None, received: bytes | None) -> None:
        """Read one model call: what was asked, and what came back."""
        name = exchange.adapter or (None if sent is None else adapters.recognise(exchange.request, sent))
        if sent is None or name is None or name not in adapters.ADAPTERS:
            why = "the request's body cannot be had" if sent is None else "no adapter knows this request"
            self._add(exchange, EventKind.UNREAD, None, {"url": exchange.request.url, "reason": why})
            return
        asked = adapters.read_request(name, exchange.request, sent)
        conversation = self._calls.conversation(asked)
        if exchange.answer is None or received is None:
            self._asked(exchange, asked, conversation, f"no answer ({exchange.ended})")
            self._silent(exchange, asked)
            return
        answer = adapters.read_answer(name, exchange.request, exchange.answer, received)
        self._asked(exchange, asked, conversation, _failure(exchange, answer))
        self._answered(exchange, asked, answer, conversation)

    def finish(self) -> None:
        """All exchanges were taken: say why it ended."""
        if self._stop is not None:
            _, seq, model, reason = self._stop
            self._push(self._last_us, True, seq, EventKind.STOP, model, {"reason": reason, "last_exchange": seq}, {})

    def _missed(self, exchange: Exchange) -> None:
        kind = exchange.details.get("miss")
        data: dict[str, Json] = {"channel": exchange.channel.value, "method": exchange.request.method, "url": exchange.request.url}
        data |= {"kind": kind if isinstance(kind, str) else None, "notes": list(exchange.notes)}
        self._add(exchange, EventKind.MISS, None, data)

    def _asked(self, exchange: Exchange, asked: ModelRequest, conversation: str, failure: str | None) -> None:
        payloads: dict[str, bytes] = {}
        data: dict[str, Json] = {
            "adapter": asked.adapter,
            "kind": asked.kind.value,
            "host": exchange.request.host,
            "stream": asked.stream,
            "conversation": conversation[:16],
            "turns": len(asked.turns),
            "tools": [tool.name for tool in asked.tools],
            "request_sha256": exchange.request.body.digest,
            "system_sha256": payload(payloads, "\n\n".join(asked.system)),
            "tools_sha256": payload(payloads, _json([[tool.name, tool.description, tool.schema] for tool in asked.tools])),
            "parameters_sha256": payload(payloads, _json(dict(asked.parameters))),
            "held": [f"{held.kind.value}: {held.path}" for held in asked.held[:100]],
            "faults": [fault.message for fault in asked.faults],
        }
        self._retried(exchange, asked, failure)
        for found in self._calls.results(asked, conversation):
            self._result(exchange, asked, found)
        self._add(exchange, EventKind.MODEL_REQUEST, asked.model, data, payloads)

    def _retried(self, exchange: Exchange, asked: ModelRequest, failure: str | None) -> None:
        """The same conversation asked again after an attempt that failed, and had failed before this one began, is a retry."""
        tools = [tool.name for tool in asked.tools]
        key = digest(repr((exchange.request.host, asked.model, asked.kind.value, asked.continues, asked.turns, tools)))
        before = self._tries.get(key)
        again = before is not None and before.failure is not None and before.ended_us <= exchange.started_us
        attempt = before.attempt + 1 if before is not None and again else 1
        if before is not None and again:
            data: dict[str, Json] = {"of": before.seq, "attempt": attempt, "after": before.failure}
            self._add(exchange, EventKind.RETRY, asked.model, data)
        self._tries[key] = _Try(exchange.seq, exchange.ended_us, attempt, failure)

    def _result(self, exchange: Exchange, asked: ModelRequest, found: Found) -> None:
        payloads: dict[str, bytes] = {}
        result = found.result
        data: dict[str, Json] = {
            "tool": result.name or found.name,
            "call_id": result.call_id,
            "matched": found.called_in is not None,
            "call_exchange": found.called_in,
            "exit_code": exit_code(result.text),
            "is_error": result.is_error,
            "stdout_sha256": payload(payloads, result.text),
            "duration_us": None if found.called_us is None else exchange.started_us - found.called_us,
        }
        self._add(exchange, EventKind.TOOL_RESULT, asked.model, data, payloads)

    def _silent(self, exchange: Exchange, asked: ModelRequest) -> None:
        """Nothing readable came back."""
        data: dict[str, Json] = {"status": None if exchange.answer is None else exchange.answer.status, "ended": exchange.ended.value}
        data |= {"complete": False, "outcome": Outcome.INFRASTRUCTURE.value, "answered": exchange.answered.value}
        data |= of_a_call(exchange.details)
        self._add(exchange, EventKind.MODEL_RESPONSE, asked.model, data, ends=True)
        if exchange.answer is not None and exchange.answer.status < 400:
            self._add(exchange, EventKind.STREAM_ERROR, asked.model, {"reason": "unreadable", "ended": exchange.ended.value}, ends=True)
        self._stopped(exchange, asked, "no-answer")

    def _answered(self, exchange: Exchange, asked: ModelRequest, answer: ModelAnswer, conversation: str) -> None:
        assert exchange.answer is not None
        outcome = adapters.outcome(exchange.answer.status, answer)
        payloads: dict[str, bytes] = {}
        usage = answer.usage
        data: dict[str, Json] = {
            "adapter": asked.adapter,
            "status": exchange.answer.status,
            "answered": exchange.answered.value,
            "ended": exchange.ended.value,
            "outcome": "miss" if exchange.answered is Answered.MISS else outcome.value,
            "complete": answer.complete,
            "served": [one.model for one in answer.served],
            "stop": None if answer.stop is None else answer.stop.value,
            "stop_on_wire": answer.stop_wire,
            "tool_calls": len(answer.calls),
            "text_sha256": payload(payloads, answer.text),
            "response_sha256": exchange.answer.body.digest,
            "duration_us": exchange.ended_us - exchange.started_us,
            "usage": {
                "input": usage.input,
                "output": usage.output,
                "cache_read": usage.cache_read,
                "cache_write": usage.cache_write,
                "reasoning": usage.reasoning,
                "partial": usage.partial,
            },
            "faults": [fault.message for fault in answer.faults[:20]],
            **of_a_call(exchange.details),
        }
        if answer.error is not None:
            data["error"] = {"type": answer.error.type, "message": answer.error.message, "infrastructure": answer.error.infrastructure}
        self._add(exchange, EventKind.MODEL_RESPONSE, asked.model, data, payloads, ends=True)
        if exchange.answer.status < 400 and (answer.error is not None or not answer.complete):
            reason = answer.error.type if answer.error is not None else "ended without its end"
            self._add(exchange, EventKind.STREAM_ERROR, asked.model, {"reason": reason, "ended": exchange.ended.value}, ends=True)
        for signal in answer.signals:
            if signal.kind in ("input_transformation", "cache_miss", "fallback", "provider_side_effect"):
                self._add(exchange, EventKind.SIGNAL, asked.model, {"signal": signal.kind, "detail": signal.detail}, ends=True)
        for call in answer.calls:
            self._called(exchange, asked, call)
        self._calls.answered(asked, answer, conversation, exchange.seq, exchange.ended_us)
        self._stopped(exchange, asked, _reason(answer, outcome))

    def _called(self, exchange: Exchange, asked: ModelRequest, call: ToolCall) -> None:
        payloads: dict[str, bytes] = {}
        data: dict[str, Json] = {
            "tool": call.name,
            "call_id": call.id,
            "arguments_sha256": payload(payloads, call.arguments),
            "arguments": call.arguments if len(call.arguments) <= INLINE_CHARACTERS else None,
            "well_formed": call.well_formed,
            "server_side": call.server_side,
        }
        self._add(exchange, EventKind.TOOL_CALL, asked.model, data, payloads, ends=True)

    def _stopped(self, exchange: Exchange, asked: ModelRequest, reason: str) -> None:
        """The last answer to end says why all ended; calls without tools (titles, routers) give way to those with."""
        weight = (bool(asked.tools), exchange.ended_us)
        if self._stop is None or weight >= self._stop_weight:
            self._stop_weight = weight
            self._stop = (exchange.ended_us, exchange.seq, asked.model, reason)

    def _add(
        self,
        exchange: Exchange,
        event: EventKind,
        model: str | None,
        data: Mapping[str, Json],
        payloads: Mapping[str, bytes] | None = None,
        *,
        ends: bool = False,
    ) -> None:
        offset_us = exchange.ended_us if ends else exchange.started_us
        self._push(offset_us, not ends, exchange.seq, event, model, data, payloads or {})

    def _push(
        self,
        offset_us: int,
        begins: bool,
        seq: int,
        event: EventKind,
        model: str | None,
        data: Mapping[str, Json],
        payloads: Mapping[str, bytes],
    ) -> None:
        self._order += 1
        heapq.heappush(self._waiting, _Draft(offset_us, begins, seq, self._order, event, model, data, payloads))


def _failure(exchange: Exchange, answer: ModelAnswer) -> str | None:
    """Why an attempt failed, or None. A 200 stream may hold the error."""
    assert exchange.answer is not None
    if exchange.answer.status >= 400:
        return f"status {exchange.answer.status}"
    if answer.error is not None:
        return f"stream error {answer.error.type}"
    return None if answer.complete else f"incomplete ({exchange.ended})"


def _reason(answer: ModelAnswer, outcome: Outcome) -> str:
    if outcome is not Outcome.ANSWERED:
        return outcome.value
    if any(not call.server_side for call in answer.calls):
        return "tool-calls-unanswered"
    return "end" if answer.stop is None else answer.stop.value


def _json(value: Json) -> str:
    made = canonical(value)
    return made if isinstance(made, str) and value else ""

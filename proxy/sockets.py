"""A WebSocket answered from the cassette, or sent on with another model in it.

Frames are made here, messages come from `dialogues.py`. Pings of the client are answered, its close is returned; at the recorded pace a
message waits for its moment without keeping the client from being heard.
"""

from __future__ import annotations

import heapq
import os
from typing import TYPE_CHECKING

from mitmproxy.proxy import commands
from mitmproxy.proxy.layers.http._base import HttpEvent
from mitmproxy.proxy.layers.http._events import (
    ErrorCode,
    RequestData,
    ResponseData,
    ResponseEndOfMessage,
    ResponseHeaders,
    ResponseProtocolError,
)

from secondtake.cassettes import adapters, lanes, websocket
from secondtake.cassettes.adapters import CallKind
from secondtake.cassettes.dialogues import Dialogue, Drop, Out, Say
from secondtake.cassettes.errors import RecordedError
from secondtake.cassettes.exchange import Answer, Answered, Body, Ending, Fields, Request, Side
from secondtake.cassettes.misses import Miss, MissKind, describe
from secondtake.cassettes.websocket import Message, Opcode, Reader, Unreadable, frame
from secondtake.proxy import local
from secondtake.proxy.arrival import Arrival
from secondtake.proxy.commands import Await, ResponseAbort, ResponseHead
from secondtake.proxy.framing import frame_response
from secondtake.proxy.handler import BEHIND_BYTES
from secondtake.proxy.live import LivePart
from secondtake.proxy.policy import Pace, Refuse
from secondtake.proxy.retake import Claim, Listener, Outgoing, details
from secondtake.proxy.taps import Tap

if TYPE_CHECKING:
    from secondtake.proxy.stream import Commands, WireStream

CLOSE_S = 5.0
"""How long a client may take to answer a close."""


class PlayedSocket:
    """Answers an upgrade with the recorded one, and each message with what was said to it then."""

    def __init__(self, stream: WireStream, arrival: Arrival) -> None:
        assert arrival.request is not None
        self.stream = stream
        self.request = arrival.request
        self.channel = arrival.channel
        self.dialogue: Dialogue | None = None
        self.how = Answered.EXACT
        self.reader = Reader(masked=True)
        self.tap: Tap | None = None
        """In a retake, what is played is kept on the take as well; in a replay, for its events."""
        self.waiting: list[tuple[int, int, Out]] = []
        """By moment, then by order: what is still to be said."""
        self.lanes_us: dict[str | None, int] = {}
        self.order = 0
        self.unflushed = 0
        self.closing = False
        self.patience_us = 0
        """Until when the client's close is waited for."""

    # -- the upgrade ---------------------------------------------------------------------------------------------------

    def request_end(self) -> Commands:
        stream, wire, request = self.stream, self.stream.wire, self.request
        if self.dialogue is not None:  # the end of the upgraded connection
            yield from self.over()
            return
        try:
            dialogue = wire.session(stream.handler).dialogues.open(request)
        except RecordedError as error:
            wire.damaged(request, error)
            yield from local.send(stream, wire.refusals.damaged(error))
            yield from stream.finish()
            return
        if dialogue is None:
            shown = wire.redactor.request(request)[0]
            refusal = Refuse("miss", Miss(MissKind.EXHAUSTED, None, describe(MissKind.EXHAUSTED, shown, None), self.channel))
            wire.counted_local(request, self.channel, refusal)
            yield from local.send(stream, wire.refusals.of(refusal, request, self.channel, host_known=wire.host_known(request)))
            yield from stream.finish()
            return
        self.dialogue = dialogue
        wire.counted(self.channel, Answered.EXACT)
        begun_us = wire.now_us()
        answer = dialogue.socket.answer
        fields = websocket.accepted(answer.fields, request.fields)
        if wire.keeps_played:
            self.keep(answer, fields)
        framed = frame_response(
            fields, method="GET", status=answer.status, protocol=request.protocol, size_bytes=None, has_trailers=False, keep_alive=True
        )
        yield from stream.to_client(ResponseHead(stream.stream_id, answer.status, answer.reason, framed.fields, framed.delimiter, False))
        yield from self.say(dialogue.opened(), begun_us)  # before what the client sent behind its upgrade is read
        if not stream.over:
            yield from stream.to_client(ResponseEndOfMessage(stream.stream_id))

    def keep(self, answer: Answer, fields: Fields) -> None:
        """Begin to write the exchange of the take."""
        stream = self.stream
        assert self.dialogue is not None
        tape = stream.wire.tape(self.request, self.channel, stream.handler)
        tape.answered(Answered.EXACT)
        tape.detail("source_seq", self.dialogue.socket.seq)
        tape.response_head(Answer(answer.status, answer.reason, answer.protocol, fields, body=Body(), offset_us=answer.offset_us))
        self.tap = Tap(tape, stream.wire.redactor, self.request, self.channel)

    # -- what the client says ------------------------------------------------------------------------------------------

    def request_data(self, data: bytes) -> Commands:
        if self.dialogue is None:
            return
        try:
            for message in self.reader.feed(data):
                yield from self.heard(message)
                if self.stream.over:
                    return
        except Unreadable as error:
            yield from self.leave(error.code, str(error))

    def heard(self, message: Message) -> Commands:
        """Answer one message."""
        assert self.dialogue is not None
        if self.tap is not None:
            self.tap.said(Side.REQUEST, message.opcode, message.data)
        match message.opcode:
            case Opcode.PING:
                if not self.closing:
                    yield from self.send(Message(Opcode.PONG, message.data))
            case Opcode.PONG:
                pass
            case Opcode.CLOSE:
                if not self.closing:
                    yield from self.send(self.dialogue.socket.parting or websocket.close(message.code))
                yield from self.over()
            case _:
                if self.closing:
                    return
                found = self.dialogue.heard(message)
                if isinstance(found, Miss):
                    yield from self.diverged(found)
                    return
                self.count(self.dialogue.how)
                yield from self.say(found, self.stream.wire.now_us())

    def diverged(self, miss: Miss) -> Commands:
        """The client says what it did not say then: told, counted, closed."""
        wire = self.stream.wire
        self.count(Answered.MISS)
        wire.outcome.refused[str(miss.kind)] += 1
        wire.missed(self.request, self.channel, miss)
        if self.tap is not None:
            self.tap.tape.answered(Answered.MISS)
            self.tap.tape.detail("miss", str(miss.kind))
            self.tap.tape.note(miss.message)
        places = [one.path for one in miss.nearest.differences if one.path] if miss.nearest is not None else []
        yield from self.leave(websocket.POLICY_VIOLATION, ": ".join(("secondtake", str(miss.kind), *places[:1])))

    def count(self, how: Answered) -> None:
        """The upgrade was counted once; it counts as the worst that was said on it."""
        counts = self.stream.wire.outcome.answered
        if how is not self.how and self.how is not Answered.MISS:
            counts[self.how] -= 1
            counts += type(counts)({how: 1})  # in place; what fell to nothing goes
            self.how = how

    # -- what is said to it --------------------------------------------------------------------------------------------

    def say(self, out: list[Out], since_us: int) -> Commands:
        """Say these: each at its moment after `since_us`, and none of a lane before what was said before it there."""
        paced = self.stream.wire.settings.pace is Pace.REAL
        for one in out:
            lane = one.lane if isinstance(one, Say) else None
            due_us = max(since_us + one.after_us, self.lanes_us.get(lane, 0)) if paced else 0
            self.lanes_us[lane] = due_us
            self.order += 1
            heapq.heappush(self.waiting, (due_us, self.order, one))
        yield from self.flush()

    def flush(self) -> Commands:
        """Say what is due; ask to be woken for the next."""
        stream = self.stream
        while self.waiting and not stream.over and not self.closing and stream.client_waiting():
            delay_us = self.waiting[0][0] - stream.wire.now_us()
            if delay_us > 0:
                yield commands.RequestWakeup(delay_us / 1e6)
                return
            _, _, one = heapq.heappop(self.waiting)
            if isinstance(one, Drop):
                yield Await(lambda: stream.handler.flushed(stream))
                yield from self.dropped()
                return
            yield from self.send(one.message)

    def send(self, message: Message) -> Commands:
        """Send one message as one frame."""
        stream = self.stream
        if self.tap is not None:
            self.tap.said(Side.RESPONSE, message.opcode, message.data)
        data = frame(message)
        yield from stream.to_client(ResponseData(stream.stream_id, data))
        self.unflushed += len(data)
        if message.opcode is Opcode.CLOSE and not self.closing:
            self.closing = True
            self.patience_us = stream.wire.now_us() + int(CLOSE_S * 1e6)
            yield commands.RequestWakeup(CLOSE_S)
        elif self.unflushed >= BEHIND_BYTES:
            self.unflushed = 0
            yield Await(lambda: stream.handler.room(stream))

    def leave(self, code: int, reason: str) -> Commands:
        """Close from our side; the client's own close is waited for, so that it can read ours."""
        if not self.closing:
            self.waiting.clear()
            yield from self.send(websocket.close(code, reason))

    def dropped(self) -> Commands:
        """End it as the recorded one ended: without a close frame."""
        yield from self.end_tape(Ending.RESET)
        yield from self.stream.to_client(ResponseAbort(self.stream.stream_id))
        yield from self.stream.finish()

    def over(self) -> Commands:
        """Both sides have closed, or one is gone."""
        stream = self.stream
        yield from self.end_tape(Ending.COMPLETE if not stream.gone else Ending.CLIENT_LEFT)
        yield from stream.to_client(ResponseProtocolError(stream.stream_id, "socket over", ErrorCode.PASSTHROUGH_CLOSE))
        yield from stream.finish()

    def end_tape(self, how: Ending) -> Commands:
        if self.tap is not None:
            yield from self.tap.tape.end(self.tap.finish(how))

    def client_left(self, message: str) -> Commands:
        yield from self.over()

    def wakeup(self) -> Commands:
        if not self.closing:
            yield from self.flush()
        elif self.stream.wire.now_us() >= self.patience_us:
            yield from self.over()

    def request_trailers(self, trailers: Fields) -> Commands:
        yield from ()

    def upstream(self, event: HttpEvent) -> Commands:
        raise AssertionError(f"an upstream event in replay: {event}")
        yield


class RecastSocket(LivePart):
    """In a retake: a model's socket goes to its origin, each `response.create` with another model in it."""

    def __init__(self, stream: WireStream, arrival: Arrival) -> None:
        assert arrival.request is not None
        assert stream.wire.retake is not None
        super().__init__(stream, arrival.request, arrival.channel)
        self.retake = stream.wire.retake
        self.agree = arrival.agree
        self.going: Request = arrival.request
        self.from_client = Reader(masked=True)
        self.asked: lanes.Lanes[Listener] = lanes.Lanes()
        self.calls: list[object] = []

    @property
    def outgoing(self) -> Request:
        return self.going

    def enter(self) -> Commands:
        """Put the real credential on the upgrade, and send it."""
        if self.retake.credentials is not None:
            retake, request = self.retake, self.request
            adapter = adapters.recognise(lanes.as_request(request), None)
            assert adapter is not None
            claim = Claim(adapter, CallKind.COMPLETION, retake.steps)
            sent = yield Await(lambda: retake.authorised(Outgoing(claim, request, b"", (), "", ())))
            if isinstance(sent, str):
                yield from self.refuse(retake.unsent(sent), adapter)
                return
            assert isinstance(sent, Outgoing)
            self.going = sent.request
        yield from self.begin(end_stream=True, agree=self.agree)

    def refuse(self, why: str, adapter: str) -> Commands:
        """The upgrade is not sent: the provider's own refusal, which its clients do not try again."""
        answer = self.stream.wire.refusals.model(adapter, f"no credential: {why}")
        self.tape.answered(Answered.LOCAL)
        self.tape.response_head(Answer(answer.status, b"", "HTTP/1.1", answer.fields, synthetic=True))
        self.tape.response_piece(answer.body)
        yield from self.over(Ending.REFUSED, note=f"refused: no credential: {why}")
        yield from local.send(self.stream, answer)
        yield from self.stream.finish()

    def response_head(self, event: ResponseHeaders) -> Commands:
        if self.retake.credentials is not None:
            self.retake.credentials.answered(event.response.status_code)
        yield from super().response_head(event)

    def request_data(self, data: bytes) -> Commands:
        if not self.upgraded or self.tap is None:
            yield from super().request_data(data)
            return
        try:
            for message in self.from_client.feed(data):
                self.tap.said(Side.REQUEST, message.opcode, message.data)
                yield from self.forward(message)
        except Unreadable as error:
            yield from self.tell(websocket.close(error.code, str(error)))

    def forward(self, message: Message) -> Commands:
        """Send one message on; a call with the pin in it, or not at all."""
        told = lanes.parsed(message.opcode, message.data)
        if lanes.creates(told):
            swapped = self.swapped(message.data)
            if isinstance(swapped, str):
                self.tape.note(f"refused: {swapped}")
                yield from self.tell(lanes.error(f"secondtake: {swapped}", "refused", lanes.lane_of(told)))
                return
            listener = Listener(self.retake, swapped)
            listener.head(Answer(200, fields=lanes.SSE_FIELDS))
            self.asked.begin(lanes.lane_of(told), listener)
            self.tape.forwarded("model-swap")
            for note in swapped.notes:
                self.tape.note(note)
            message = Message(Opcode.TEXT, swapped.body)
        yield from self.stream.to_origin(RequestData(self.stream.stream_id, frame(message, mask=os.urandom(4))))

    def swapped(self, content: bytes) -> Outgoing | str:
        """The call as another model gets it, or why it is not sent."""
        retake = self.retake
        request = lanes.as_request(self.request)
        claim = retake.claims(request, content)
        if claim is None:
            return "not a call that can be read"
        if (tripped := retake.stopped(self.stream.wire.now_us())) is not None:
            return f"stopped: {tripped.message}"
        made = retake.prepare(claim, request, content)
        if isinstance(made, Outgoing):
            retake.stops.sent()
            return made
        return f"not swapped: {made}"

    def tell(self, message: Message) -> Commands:
        """Say something of our own to the client."""
        assert self.tap is not None
        self.tap.said(Side.RESPONSE, message.opcode, message.data)
        yield from self.stream.to_client(ResponseData(self.stream.stream_id, frame(message)))

    def response_data(self, data: bytes) -> Commands:
        if not self.upgraded or self.tap is None:
            yield from super().response_data(data)
            return
        yield from self.stream.to_client(ResponseData(self.stream.stream_id, data))
        for message in self.tap.feed(Side.RESPONSE, data):
            if message.opcode is Opcode.TEXT:
                told = lanes.parsed(message.opcode, message.data)
                listener, ends = self.asked.said(told)
                if listener is not None:
                    listener.piece(lanes.as_event(message.data))
                    if ends:
                        self.judge(listener, Ending.COMPLETE)

    def judge(self, listener: Listener, how: Ending) -> None:
        """A call is over: which model answered stands with it."""
        call = listener.end(self.tape.seq, how, self.stream.wire.now_us())
        self.calls.append(details(call))

    def over(self, how: Ending, *, note: str | None = None) -> Commands:
        if self.tape.ended is None:
            for listener in self.asked.unfinished():
                self.judge(listener, Ending.RESET if how is Ending.COMPLETE else how)
            if self.calls:
                self.tape.detail("model_calls", list(self.calls))
        yield from super().over(how, note=note)

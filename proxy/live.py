"""A request that goes to the world and is recorded. Each piece goes on first and is kept second; the end waits for the commit.

The client's end of message, the piece that completes a declared length included, is sent after the exchange is durable:
acknowledged means kept (DESIGN 4). An answer whose body came with its head is sent in one piece then.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from mitmproxy import http
from mitmproxy.connection import Connection
from mitmproxy.proxy import commands
from mitmproxy.proxy.layers.http import GetHttpConnection
from mitmproxy.proxy.layers.http._base import HttpEvent
from mitmproxy.proxy.layers.http._events import (
    ErrorCode,
    RequestData,
    RequestEndOfMessage,
    RequestHeaders,
    RequestTrailers,
    ResponseData,
    ResponseEndOfMessage,
    ResponseHeaders,
    ResponseProtocolError,
    ResponseTrailers,
)

from secondtake.cassettes.exchange import Answer, Answered, Channel, Ending, Fields, Request
from secondtake.proxy import local
from secondtake.proxy.commands import OriginHead, ResponseAbort, ResponseHead, ResponseInterim
from secondtake.proxy.early import Rest, cancel
from secondtake.proxy.failures import explain
from secondtake.proxy.framing import HTTP_1_0, HTTP_1_1, Delimiter, content_length, frame_response, tokens, values, without_body
from secondtake.proxy.retake import Listener, details
from secondtake.proxy.tape import Tape
from secondtake.proxy.taps import Tap, keeps_messages
from secondtake.proxy.terminal import Tail
from secondtake.proxy.translate import answer_of, interim_of
from secondtake.proxy.upward import head_up

if TYPE_CHECKING:
    from secondtake.proxy.stream import Commands, WireStream

DRAIN_S = 10.0
"""How long upstream is read on after a client has left."""

DRAIN_BYTES = 16 * 1024 * 1024
"""How much of it."""

BEHIND_BYTES = 1024 * 1024
"""An HTTP/2 client with more than this waiting for its window makes upstream reading pause."""

IDEMPOTENT = frozenset({"GET", "HEAD", "OPTIONS", "PUT", "DELETE", "TRACE"})
"""RFC 9110 9.2.2: may be sent again on a new connection when the reused one was closed without a byte of answer."""


class LivePart:
    """Relays and records one exchange."""

    def __init__(
        self, stream: WireStream, request: Request, channel: Channel, *, tape: Tape | None = None, listener: Listener | None = None
    ) -> None:
        self.stream = stream
        self.request = request
        self.channel = channel
        self.listener = listener
        """In a retake: what is sent in this request's place, and what listens to its answer."""
        self.tape = tape or stream.wire.tape(request, channel, stream.handler)
        stream.wire.counted(channel, Answered.LIVE)
        self.route = stream.wire.route(request, stream.parent.connect)
        self.request_over = False
        self.rest: Rest | None = None
        """It was answered before it was whole, and what is still coming is only kept."""
        self.answer: Answer | None = None
        self.delimiter = Delimiter.NONE
        self.trailers_up: Fields = ()
        self.trailers: Fields = ()
        self.remaining: int | None = None
        """Bytes to come until a declared length is complete."""
        self.held: list[HttpEvent] = []
        """What completes the message for the client, kept back until the commit."""
        self.tail = Tail()
        self.left = False
        self.drained = 0
        self.upgraded = False
        self.tap: Tap | None = None
        """Reads an upgraded connection's messages, where they are kept."""
        self.switching = False
        """101 was seen; the end of its (empty) message is still to come."""
        self.retry: tuple[http.Request, bool] | None = None

    # -- the request ---------------------------------------------------------------------------------------------------

    def begin(self, *, end_stream: bool, agree: bool) -> Commands:
        """Record the head, open (or reuse) the one connection this request is granted, and send the head up."""
        if not agree:
            self.tape.note("names-disagree: CONNECT, SNI and Host do not name one host")
        yield from self.connect(end_stream=end_stream)

    def connect(self, *, end_stream: bool) -> Commands:
        """Get the connection. What the client sends meanwhile waits in the layer."""
        stream, route = self.stream, self.route
        if route.error is not None:
            yield from self.failed(route.error)
            return
        stream.handler.grant(route.dial, trusted=route.trusted)
        reply: tuple[Connection | None, str | None] = yield GetHttpConnection(route.address, route.tls, route.via, "tcp")
        connection, error = reply
        if connection is None:
            yield from self.failed(error or "cannot connect")
            return
        reused = connection in stream.handler.used
        stream.handler.used.add(connection)
        stream.context.server = connection  # type: ignore[assignment]
        message = self.message(http2=connection.alpn == b"h2", has_body=not end_stream)
        self.retry = (message, end_stream) if reused and end_stream and self.request.method in IDEMPOTENT else None
        yield from stream.to_origin(RequestHeaders(stream.stream_id, message, end_stream))

    @property
    def outgoing(self) -> Request:
        """The request as it goes up: the agent's own, or the one with another model in it."""
        return self.listener.outgoing.request if self.listener is not None else self.request

    def message(self, *, http2: bool, has_body: bool) -> http.Request:
        """The head as it goes up, each difference to the client's declared on the tape."""
        wire, request = self.stream.wire, self.request
        made, rules = head_up(
            self.outgoing,
            self.route,
            http2=http2,
            has_body=has_body,
            drops_validators=wire.drops_validators(request, self.channel),
            drops_extensions=keeps_messages(wire, request),
        )
        for rule in (*(("model-swap",) if self.listener is not None else ()), *rules):
            self.tape.forwarded(rule)
        return made

    def request_data(self, data: bytes) -> Commands:
        if self.tape.ended is not None:
            return
        if self.rest is not None:
            yield from self.rest.piece(data)
            return
        yield from self.stream.to_origin(RequestData(self.stream.stream_id, data))
        (self.tap or self.tape).request_piece(data)

    def resume(self, content: bytes) -> Commands:
        """Send a request that was read whole before: another model's, in a retake."""
        self.request_over = True
        yield from self.connect(end_stream=not content)
        if self.tape.ended is None:
            if content:
                yield from self.stream.to_origin(RequestData(self.stream.stream_id, content))
            yield from self.stream.to_origin(RequestEndOfMessage(self.stream.stream_id))

    def request_trailers(self, trailers: Fields) -> Commands:
        self.trailers_up = trailers
        if self.tape.ended is None and self.rest is None:
            yield from self.stream.to_origin(RequestTrailers(self.stream.stream_id, http.Headers(trailers)))

    def request_end(self) -> Commands:
        if self.tape.ended is not None:
            return
        if self.upgraded:
            yield from self.upgrade_over(Ending.COMPLETE if self.tap is None else Ending.CLIENT_LEFT)
            return
        self.request_over = True
        if not tokens(self.request.fields, b"upgrade"):  # else what follows a 101 still belongs to it
            self.tape.request_end(self.trailers_up)
        if self.rest is not None:
            yield from self.rest.conclude(whole=True)
        else:
            yield from self.stream.to_origin(RequestEndOfMessage(self.stream.stream_id))

    def when_whole(self, then: Callable[[], Commands]) -> Commands:
        """Do `then` when the request is whole, or no more of it is waited for."""
        if self.request_over:
            yield from then()
            return
        self.rest = Rest(self.tape, self.stream.wire.now_us, then)
        if tokens(self.request.fields, b"expect") and not self.tape.continued:
            yield from self.rest.conclude(whole=False)
        else:
            yield from self.rest.wait()

    # -- the answer ----------------------------------------------------------------------------------------------------

    def upstream(self, event: HttpEvent) -> Commands:
        if self.tape.ended is not None or self.rest is not None:
            return
        if isinstance(event, ResponseData):
            yield from self.response_data(event.data)
        elif isinstance(event, ResponseHeaders):
            yield from self.response_head(event)
        elif isinstance(event, ResponseEndOfMessage):
            yield from self.response_end()
        elif isinstance(event, ResponseTrailers):
            self.trailers = event.trailers.fields
        elif isinstance(event, ResponseInterim):
            self.tape.interim(interim_of(event.response, self.tape.offset_us))
            if self.stream.client_protocol() != HTTP_1_0:
                yield from self.stream.to_client(ResponseInterim(self.stream.stream_id, event.response))
        elif isinstance(event, ResponseProtocolError):
            yield from self.upstream_failed(event)

    def response_head(self, event: ResponseHeaders) -> Commands:
        stream, request = self.stream, self.request
        answer = answer_of(event.response, self.tape.offset_us)
        self.answer = answer
        self.retry = None
        self.tape.response_head(answer)
        if self.listener is not None:
            self.listener.head(answer)
        length = None if values(answer.fields, b"transfer-encoding") else content_length(answer.fields)
        framed = frame_response(
            answer.fields,
            method=request.method,
            status=answer.status,
            protocol=request.protocol,
            size_bytes=0 if event.end_stream and length is None and not without_body(request.method, answer.status) else length,
            has_trailers=bool(values(answer.fields, b"trailer")),
            keep_alive=stream.keep_alive,
        )
        self.delimiter = framed.delimiter
        whole = self.request_over and isinstance(event, OriginHead) and event.whole
        head = ResponseHead(stream.stream_id, answer.status, answer.reason, framed.fields, framed.delimiter, framed.close, more=whole)
        if answer.status == 101:
            yield from self.upgrade(head)
        elif event.end_stream or framed.delimiter is Delimiter.NONE:
            self.held.append(head)  # the head is the whole message
        else:
            self.remaining = length if not without_body(request.method, answer.status) else None
            if self.remaining == 0 or whole:
                self.held.append(head)
            else:
                yield from stream.to_client(head)

    def response_data(self, data: bytes) -> Commands:
        stream = self.stream
        if self.left:
            self.drained += len(data)
        event = ResponseData(stream.stream_id, data)
        if self.remaining is not None:
            self.remaining -= len(data)
        if self.remaining is not None and self.remaining <= 0:
            self.held.append(event)
        else:
            yield from stream.to_client(event)
        (self.tap or self.tape).response_piece(data)
        if self.listener is not None:
            self.listener.piece(data)
        self.tail.feed(data)
        if self.left and self.drained > DRAIN_BYTES:
            yield from self.give_up()
        elif stream.parent.buffered_bytes(stream.stream_id) > BEHIND_BYTES:
            stream.handler.hold(stream)

    def response_end(self) -> Commands:
        """All is here: commit, then let the client have its end."""
        if self.switching:
            self.switching = False
            return
        if self.upgraded:
            yield from self.upgrade_over(Ending.COMPLETE)
            return
        if self.trailers:
            self.tape.response_trailers(self.trailers)
        if not self.request_over:
            self.tape.note("answered before the request was whole")
            yield from cancel(self.stream)
        yield from self.when_whole(self.answered)

    def answered(self) -> Commands:
        """Commit, and end the client's message."""
        stream = self.stream
        yield from self.over(Ending.COMPLETE)
        for event in self.held:
            yield from stream.to_client(event)
        if self.trailers:
            yield from stream.to_client(ResponseTrailers(stream.stream_id, http.Headers(self.trailers)))
        yield from stream.to_client(ResponseEndOfMessage(stream.stream_id))
        yield from stream.finish()

    def over(self, how: Ending, *, note: str | None = None) -> Commands:
        """End the tape; in a retake, judge the call first, so that the verdict is kept with it."""
        if self.listener is not None and self.tape.ended is None:
            call = self.listener.end(self.tape.seq, how, self.stream.wire.now_us())
            self.tape.detail("model_call", details(call))
        yield from self.tape.end(how, note=note)

    # -- what can go wrong ---------------------------------------------------------------------------------------------

    def upstream_failed(self, event: ResponseProtocolError) -> Commands:
        stream = self.stream
        if self.upgraded:
            yield from self.upgrade_over(Ending.RESET)
            return
        if self.answer is None:
            if self.retry is not None and event.message == "server closed connection":
                # RFC 9112 9.3.1: the reused connection was closed before it could take this request.
                (_, end_stream), self.retry = self.retry, None
                self.tape.note("retried: the reused connection was closed without an answer")
                yield from self.connect(end_stream=end_stream)
                if self.tape.ended is None and self.request_over:
                    yield from stream.to_origin(RequestEndOfMessage(stream.stream_id))
                return
            yield from self.failed(event.message)
            return
        broken = Ending.COMPLETE if self.tail.finished else Ending.CLIENT_LEFT
        ending = broken if self.left else Ending.RESET

        def cut() -> Commands:
            yield from self.over(ending, note=f"upstream: {event.message}")
            for held in self.held:
                yield from stream.to_client(held)
            yield from stream.to_client(ResponseAbort(stream.stream_id))
            yield from stream.finish()

        yield from self.when_whole(cut)

    def failed(self, message: str) -> Commands:
        """No answer came: ours is a 502, kept as synthetic, and played as such."""
        stream, wire = self.stream, self.stream.wire
        message, ending = explain(message, self.route, wire.redactor)
        answer = wire.refusals.unreachable(self.request, message)
        self.tape.response_head(Answer(answer.status, b"", HTTP_1_1, answer.fields, offset_us=self.tape.offset_us, synthetic=True))
        self.tape.response_piece(answer.body)
        wire.unreachable(self.request, message)

        def told() -> Commands:
            yield from self.over(ending, note=f"error: {message}")
            yield from local.send(stream, answer)
            yield from stream.finish()

        yield from self.when_whole(told)

    def client_left(self, message: str) -> Commands:
        """Go on without the client, within bounds; a request that never became whole ends here."""
        stream = self.stream
        if self.tape.ended is not None:
            yield from stream.finish()
            return
        if self.upgraded:
            yield from self.upgrade_over(Ending.CLIENT_LEFT)
            return
        if self.rest is not None:
            yield from self.rest.conclude(whole=self.request_over)
            return
        if not self.request_over:
            yield from self.over(Ending.CLIENT_LEFT, note="the client left before its request was whole")
            yield from cancel(self.stream)
            yield from stream.finish()
            return
        self.left = True
        self.tape.note("client-left: the client left before the end; upstream was read on")
        yield commands.RequestWakeup(DRAIN_S)

    def wakeup(self) -> Commands:
        if self.rest is not None:
            yield from self.rest.wakeup()
        elif self.left and self.tape.ended is None:
            yield from self.give_up()

    def give_up(self) -> Commands:
        """The bounds of reading on are reached."""
        yield from self.over(Ending.COMPLETE if self.tail.finished else Ending.CLIENT_LEFT)
        yield from cancel(self.stream)
        yield from self.stream.finish()

    # -- upgrades ------------------------------------------------------------------------------------------------------

    def upgrade(self, head: ResponseHead) -> Commands:
        """101: what follows is relayed and kept, both ways, until one side ends: a WebSocket's messages where they are asked for,
        else opaque bytes."""
        if keeps_messages(self.stream.wire, self.request):
            self.tap = Tap(self.tape, self.stream.wire.redactor, self.request, self.channel)
        self.upgraded = self.switching = self.request_over = True
        self.tape.note(f"upgraded: {b', '.join(tokens(head.fields, b'upgrade')).decode('latin-1')}")
        yield from self.stream.to_client(head)
        yield from self.stream.to_client(ResponseEndOfMessage(self.stream.stream_id))

    def upgrade_over(self, how: Ending) -> Commands:
        stream = self.stream
        if self.tap is not None:
            how = self.tap.finish(how)
        yield from self.over(how)
        if how is Ending.RESET:
            yield from stream.to_client(ResponseAbort(stream.stream_id))
        else:
            yield from stream.to_client(ResponseProtocolError(stream.stream_id, "upgrade over", ErrorCode.PASSTHROUGH_CLOSE))
        yield from cancel(self.stream)
        yield from self.stream.finish()

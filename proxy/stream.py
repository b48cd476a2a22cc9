"""One request on the wire. Moves bytes; what to do with them is the policy's to say.

One class for all modes: the head decides whether a request goes out at once (`live.py`) or is read whole and answered from
the cassette (`played.py`). A client that leaves is told to the part at work; commands to a client that is gone are dropped.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from mitmproxy.connection import ConnectionState
from mitmproxy.proxy import commands, events, layer
from mitmproxy.proxy.context import Context
from mitmproxy.proxy.layers.http import DropStream, HttpStream, SendHttp
from mitmproxy.proxy.layers.http._base import HttpEvent
from mitmproxy.proxy.layers.http._events import (
    RequestData,
    RequestEndOfMessage,
    RequestHeaders,
    RequestProtocolError,
    RequestTrailers,
    ResponseData,
    ResponseEndOfMessage,
    ResponseHeaders,
    ResponseProtocolError,
    ResponseTrailers,
)

from secondtake.cassettes.exchange import Fields, Request
from secondtake.proxy.arrival import Arrival, arrive
from secondtake.proxy.commands import ResponseInterim
from secondtake.proxy.framing import HTTP_1_0, HTTP_2
from secondtake.proxy.live import LivePart
from secondtake.proxy.local import LocalPart
from secondtake.proxy.played import PlayedPart
from secondtake.proxy.policy import Collect, Converse, Hear, Live, Refuse
from secondtake.proxy.shims import ShimPart
from secondtake.proxy.sockets import PlayedSocket, RecastSocket
from secondtake.proxy.translate import Head

if TYPE_CHECKING:
    from secondtake.proxy.layers import WireLayer

type Commands = layer.CommandGenerator[None]


class Part(Protocol):
    """What answers a request once its head is known. Every method is a step that may yield commands."""

    def request_data(self, data: bytes) -> Commands: ...
    def request_trailers(self, trailers: Fields) -> Commands: ...
    def request_end(self) -> Commands: ...
    def client_left(self, message: str) -> Commands: ...
    def upstream(self, event: HttpEvent) -> Commands: ...
    def wakeup(self) -> Commands: ...


class WireStream(HttpStream):
    """One request and its answer."""

    def __init__(self, context: Context, stream_id: int, parent: WireLayer) -> None:
        layer.Layer.__init__(self, context)
        self.stream_id = stream_id
        self.parent = parent
        self.wire = parent.wire
        self.handler = parent.handler
        self.part: Part | None = None
        self.gone = False
        """The client left, or its stream was reset: nothing more is sent to it."""
        self.keep_alive = True
        self.request: Request | None = None
        self.over = False

    def __repr__(self) -> str:
        return f"WireStream({self.stream_id}, {type(self.part).__name__})"

    def _handle_event(self, event: events.Event) -> Commands:
        if self.over:
            return
        if isinstance(event, events.Start):
            return
        if isinstance(event, RequestHeaders):
            yield from self.opened(event)
            return
        part = self.part
        if part is None:
            return
        if isinstance(event, RequestData):
            yield from part.request_data(event.data)
        elif isinstance(event, RequestEndOfMessage):
            yield from part.request_end()
        elif isinstance(event, RequestTrailers):
            yield from part.request_trailers(event.trailers.fields)
        elif isinstance(event, RequestProtocolError):
            self.gone = True
            yield from part.client_left(event.message)
        elif isinstance(event, events.Wakeup):
            yield from part.wakeup()
        elif isinstance(
            event, (ResponseHeaders, ResponseData, ResponseTrailers, ResponseEndOfMessage, ResponseProtocolError, ResponseInterim)
        ):
            yield from part.upstream(event)

    def opened(self, event: RequestHeaders) -> Commands:
        """The head is here: choose who answers."""
        self.handler.streams += 1
        head: Head = event.request  # type: ignore[assignment]  # our parsers give ours
        arrival = head.arrival if isinstance(head.arrival, Arrival) else arrive(self.parent, head)
        self.keep_alive = arrival.keep_alive
        self.request = request = arrival.request
        match arrival.decision:
            case Live():
                assert request is not None
                self.part = live = LivePart(self, request, arrival.channel)
                yield from live.begin(end_stream=event.end_stream, agree=arrival.agree)
            case Converse(live=True):
                self.part = recast = RecastSocket(self, arrival)
                yield from recast.enter()
            case Converse():
                self.part = PlayedSocket(self, arrival)
            case Collect():
                self.part = played = PlayedPart(self, arrival)
                yield from played.begin()
            case Hear():
                assert request is not None
                self.part = ShimPart(self, request.path)
            case Refuse() as refusal:
                assert request is not None
                answer = self.wire.refusals.of(refusal, request, arrival.channel)
                self.part = local = LocalPart(self, answer, refusal, request=request, channel=arrival.channel)
                yield from local.begin(end_stream=event.end_stream)
            case answer:
                self.part = local = LocalPart(self, answer, None)
                yield from local.begin(end_stream=event.end_stream)

    # -- what the parts send with --------------------------------------------------------------------------------------

    def to_client(self, event: HttpEvent) -> Commands:
        """Send to the client, if it is still there."""
        if not self.gone:
            yield SendHttp(event, self.context.client)

    def to_origin(self, event: HttpEvent) -> Commands:
        """Send upstream, on the connection this stream was given."""
        yield SendHttp(event, self.context.server)

    def client_protocol(self) -> str:
        if self.request is not None:
            return self.request.protocol
        return HTTP_2 if self.context.client.alpn == b"h2" else HTTP_1_0

    def client_waiting(self) -> bool:
        """Whether the client is known to have left while this stream was waiting for something."""
        if not self.gone:
            for event in self._paused_event_queue:
                if isinstance(event, RequestProtocolError):
                    return False
        return not self.gone

    def finish(self) -> Commands:
        """The stream's work is over."""
        if self.over:
            return
        self.over = True
        self.handler.streams -= 1
        self.handler.release(self)
        yield DropStream(self.stream_id)
        self.parent.forget()
        client = self.context.client
        # It may have left while this stream waited, for its commit say, and nobody else will see to it.
        left = not client.state & ConnectionState.CAN_READ or (self.gone and client.alpn != b"h2")
        if left and self.handler.streams == 0:
            yield commands.CloseConnection(client)

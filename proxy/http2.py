"""HTTP/2 on both sides: heads framed by us, interim responses relayed, resets as resets, farewells as farewells, and windows.

A stream is on its own: one whose client is slow, or whose peer says that it will take no more, does not stop the others.
"""

from __future__ import annotations

import collections
import time
from collections.abc import Callable
from typing import Protocol, runtime_checkable

import h2.connection
import h2.errors
import h2.events
from hyperframe.frame import Frame, GoAwayFrame
from mitmproxy import http
from mitmproxy.connection import Connection, ConnectionState
from mitmproxy.proxy import commands, events, layer
from mitmproxy.proxy.context import Context
from mitmproxy.proxy.layers import http as stock
from mitmproxy.proxy.layers.http._base import ReceiveHttp
from mitmproxy.proxy.layers.http._events import (
    ErrorCode,
    RequestData,
    RequestHeaders,
    RequestProtocolError,
    ResponseEndOfMessage,
    ResponseProtocolError,
)
from mitmproxy.proxy.layers.http._http2 import Http2Client, Http2Server, StreamState, split_pseudo_headers
from mitmproxy.proxy.layers.http._http_h2 import BufferedH2Connection

from secondtake.proxy.arrival import Whole
from secondtake.proxy.commands import ResponseAbort, ResponseHead, ResponseInterim
from secondtake.proxy.framing import HTTP_2, Delimiter
from secondtake.proxy.heads import is_request_line
from secondtake.proxy.translate import Head


class Farewells(BufferedH2Connection):
    """A connection that outlives a GOAWAY without an error: it says only that no new stream is taken (RFC 9113 6.8).

    h2 4.4 closes at once, and refuses what still comes on the streams that were promised to end well.
    """

    def _receive_goaway_frame(self, frame: GoAwayFrame) -> tuple[list[Frame], list[h2.events.Event]]:
        if frame.error_code != h2.errors.ErrorCodes.NO_ERROR:
            return super()._receive_goaway_frame(frame)
        said = h2.events.ConnectionTerminated()
        said.error_code = h2.errors.ErrorCodes.NO_ERROR
        said.last_stream_id = frame.last_stream_id
        return [], [said]

    def acknowledge_received_data(self, acknowledged_size: int, stream_id: int) -> None:
        """Nothing where the connection broke in the same read."""
        if self.state_machine.state is not h2.connection.ConnectionState.CLOSED:
            super().acknowledge_received_data(acknowledged_size, stream_id)


def _leaves_in_good_order(event: h2.events.Event) -> bool:
    return isinstance(event, h2.events.ConnectionTerminated) and event.error_code == h2.errors.ErrorCodes.NO_ERROR


STREAM_WINDOW_BYTES = 4 * 1024 * 1024
"""What a peer may send on one stream before it has been taken on the other side; its other streams go on."""

BEHIND_BYTES = 1024 * 1024
"""With more than this of a stream waiting for the other side, its sender is given no more window for it."""

LOOK_AGAIN_S = 0.02
"""How soon it is looked again whether the other side has caught up."""


class Windows:
    """The windows that a peer is given: stream by stream, for what the other side has taken."""

    def __init__(self, connection: Connection, made: Farewells, waiting: Callable[[int], int]) -> None:
        """`waiting` tells of a stream, by its number on this connection, how many bytes have still to be taken."""
        self.connection = connection
        self.made = made
        self.waiting = waiting
        settings = made.local_settings
        settings.initial_window_size = STREAM_WINDOW_BYTES
        settings.acknowledge()  # else it is the former ones that are sent
        self.withheld: dict[int, int] = {}
        """By stream, bytes that were received and not acknowledged yet: the other side is behind."""
        self.looking: set[commands.Command] = set()

    def received(self, stream_id: int, size: int) -> layer.CommandGenerator[None]:
        """So much came and was handed on."""
        self.withheld[stream_id] = self.withheld.get(stream_id, 0) + size
        yield from self.acknowledge()

    def looks_again(self, event: events.Event) -> bool:
        """Whether it is time to look again, by our own clock."""
        if isinstance(event, events.Wakeup) and event.command in self.looking:
            self.looking.discard(event.command)
            return True
        return False

    def acknowledge(self) -> layer.CommandGenerator[None]:
        """Give window for what was taken; look again where it was not."""
        for stream_id, size in list(self.withheld.items()):
            if self.waiting(stream_id) > BEHIND_BYTES:
                continue
            del self.withheld[stream_id]
            self.made.acknowledge_received_data(size, stream_id)
        if data := self.made.data_to_send():
            yield commands.SendData(self.connection, data)
        if self.withheld and not self.looking:
            again = commands.RequestWakeup(LOOK_AGAIN_S)
            self.looking.add(again)
            yield again


@runtime_checkable
class Tells(Protocol):
    """What can tell how much of a stream its client has still to take."""

    def buffered_bytes(self, stream_id: int) -> int: ...


class ClientSide(Http2Server):
    """The server we are to an HTTP/2 client."""

    def __init__(
        self, context: Context, at_once: Callable[[Head], Whole | None], busy: Callable[[], bool], untaken: Callable[[int], int]
    ) -> None:
        """`untaken` tells how much of a stream's request its origin has still to take."""
        super().__init__(context)
        self.h2_conn = made = Farewells(self.h2_conf)
        self.windows = Windows(self.conn, made, untaken)
        self.at_once = at_once
        self.busy = busy

    def _handle_event(self, event: events.Event) -> layer.CommandGenerator[None]:
        if self.windows.looks_again(event):
            yield from self.windows.acknowledge()
        elif isinstance(event, events.ConnectionClosed):
            # The streams are told and decide; the last of them that still reads its origin on closes (stream.py).
            streams, self.streams = list(self.streams), {}
            self.h2_conn.stream_buffers.clear()
            self._handle_event = self.done  # type: ignore[method-assign]
            for stream_id in streams:
                yield ReceiveHttp(RequestProtocolError(stream_id, "client left", ErrorCode.CLIENT_DISCONNECTED))
            if not self.busy():
                yield commands.CloseConnection(self.conn)
        elif isinstance(event, ResponseHead):
            if self.is_open_for_us(event.stream_id):
                self.h2_conn.send_headers(
                    event.stream_id,
                    [(b":status", b"%d" % event.status), *event.fields],
                    end_stream=event.delimiter is Delimiter.NONE,
                )
                if not event.more or event.delimiter is Delimiter.NONE:
                    yield commands.SendData(self.conn, self.h2_conn.data_to_send())
        elif isinstance(event, ResponseInterim):
            if self.is_open_for_us(event.stream_id):
                fields = [(name.lower(), value) for name, value in event.response.headers.fields]
                self.h2_conn.send_headers(event.stream_id, [(b":status", b"%d" % event.response.status_code), *fields])
                yield commands.SendData(self.conn, self.h2_conn.data_to_send())
        elif isinstance(event, ResponseAbort):
            if not self.is_closed(event.stream_id):
                # What is buffered for a slow reader is dropped with the stream; a reset gives no promise of delivery.
                self.h2_conn.reset_stream(event.stream_id, h2.errors.ErrorCodes.INTERNAL_ERROR.value)
                yield commands.SendData(self.conn, self.h2_conn.data_to_send())
        else:
            yield from super()._handle_event(event)
        if isinstance(event, ResponseEndOfMessage | ResponseAbort):
            self.streams.pop(event.stream_id, None)

    def handle_h2_event(self, event: h2.events.Event) -> layer.CommandGenerator[bool]:
        if _leaves_in_good_order(event):
            return False  # it will ask for nothing more, and closes when it has all its answers
        if isinstance(event, h2.events.DataReceived) and self.streams.get(event.stream_id) is StreamState.HEADERS_RECEIVED:
            if event.data:
                yield ReceiveHttp(self.ReceiveData(event.stream_id, event.data))
            yield from self.windows.received(event.stream_id, event.flow_controlled_length or 0)
            return False
        if not isinstance(event, h2.events.RequestReceived):
            return (yield from super().handle_h2_event(event))
        pseudo, headers = split_pseudo_headers(list(event.headers))
        try:
            head = Head(
                method=pseudo.pop(b":method"),
                scheme=pseudo.pop(b":scheme"),
                authority=pseudo.pop(b":authority", b""),
                path=pseudo.pop(b":path"),
                protocol=HTTP_2,
                fields=headers.fields,
            )
        except KeyError as error:
            yield from self.protocol_error(f"a pseudo header is missing: {error}")
            return True
        if pseudo:
            yield from self.protocol_error(f"unknown pseudo headers: {list(pseudo)}")
            return True
        if not is_request_line(head.method, head.path):
            if not self.is_closed(event.stream_id):
                self.h2_conn.reset_stream(event.stream_id, h2.errors.ErrorCodes.PROTOCOL_ERROR.value)
            yield commands.Log(f"refused a request: {head.method[:80]!r} {head.path[:80]!r}")
            return False
        # A stream that was opened and cancelled in one read is closed by now.
        whole = self.at_once(head) if event.stream_ended and self.is_open_for_us(event.stream_id) else None
        if whole is not None:
            # What is sent leaves with whatever else this read brings about: one write for all of it.
            status = (b":status", b"%d" % whole.status)
            self.h2_conn.send_headers(event.stream_id, [status, *whole.framed.fields], end_stream=not whole.body)
            if whole.body:
                # mitmproxy 12.3 cuts a body to frames and forgets, on the last of several, that it ends the stream.
                framed = len(whole.body) <= self.h2_conn.max_outbound_frame_size
                self.h2_conn.send_data(event.stream_id, whole.body, end_stream=framed)
                if not framed:
                    self.h2_conn.end_stream(event.stream_id)
            return False
        self.streams[event.stream_id] = StreamState.HEADERS_RECEIVED
        yield ReceiveHttp(RequestHeaders(event.stream_id, head, end_stream=bool(event.stream_ended)))  # type: ignore[arg-type]
        return False

    def buffered_bytes(self, stream_id: int) -> int:
        """Bytes of this stream that wait for the client's window."""
        waiting = self.h2_conn.stream_buffers.get(stream_id)
        return sum(len(piece.data) for piece in waiting) if waiting else 0


NUMBERS = 4096
"""Streams whose numbers are remembered; with more, those that are over are forgotten. mitmproxy forgets none."""


class OriginSide(Http2Client):
    """The client we are to an HTTP/2 origin."""

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.h2_conn = made = Farewells(self.h2_conf)
        made.local_settings.enable_push = 0
        self.windows = Windows(self.conn, made, self.behind)
        self.leaving = False
        """The origin takes no new stream."""

    def _handle_event(self, event: events.Event) -> layer.CommandGenerator[None]:
        if self.windows.looks_again(event):
            yield from self.windows.acknowledge()
        else:
            yield from super()._handle_event(event)
        if len(self.their_stream_id) > NUMBERS:
            self.their_stream_id = {
                ours: theirs for ours, theirs in self.their_stream_id.items() if ours in self.streams or ours in self.windows.withheld
            }
            self.our_stream_id = {theirs: ours for ours, theirs in self.their_stream_id.items()}
        if self.leaving and not self.streams and self.conn.state is not ConnectionState.CLOSED:
            yield commands.CloseConnection(self.conn)

    def behind(self, stream_id: int) -> int:
        """Bytes of a stream that its client has still to take."""
        # The layer above both sides knows; it is asked by what it can tell, since layers.py imports this module.
        theirs = self.their_stream_id[stream_id]
        return sum(above.buffered_bytes(theirs) for above in self.context.layers if isinstance(above, Tells))

    def untaken(self, stream_id: int) -> int:
        """Bytes of a request, by its client's number, that wait for the origin's window, or for a stream to be free."""
        queued = sum(len(event.data) for event in self.stream_queue.get(stream_id, ()) if isinstance(event, RequestData))
        waiting = self.h2_conn.stream_buffers.get(self.our_stream_id.get(stream_id, 0))
        return queued + (sum(len(piece.data) for piece in waiting) if waiting else 0)

    def close_connection(self, msg: str) -> layer.CommandGenerator[None]:
        """As mitmproxy's, which forgets the requests that wait for a free stream."""
        yield from super().close_connection(msg)
        yield from self.turn_away(msg)

    def turn_away(self, msg: str) -> layer.CommandGenerator[None]:
        """Tell the requests that wait for a free stream that there will be none."""
        waiting, self.stream_queue = list(self.stream_queue), collections.defaultdict(list)
        for theirs in waiting:
            self.their_stream_id[-theirs] = theirs  # a number of ours that was never used
            yield ReceiveHttp(ResponseProtocolError(-theirs, msg, ResponseProtocolError.code))

    def handle_h2_event(self, event: h2.events.Event) -> layer.CommandGenerator[bool]:
        if _leaves_in_good_order(event):
            assert isinstance(event, h2.events.ConnectionTerminated)
            self.leaving = True
            self.conn.state &= ~ConnectionState.CAN_WRITE  # for requests to come; what is on its way still ends
            for stream_id in [ours for ours in self.streams if ours > (event.last_stream_id or 0)]:
                del self.streams[stream_id]
                yield ReceiveHttp(ResponseProtocolError(stream_id, CLOSED, ResponseProtocolError.code))
            yield from self.turn_away(CLOSED)
            return False
        if isinstance(event, h2.events.DataReceived) and self.streams.get(event.stream_id) is StreamState.HEADERS_RECEIVED:
            if event.data:
                yield ReceiveHttp(self.ReceiveData(event.stream_id, event.data))
            yield from self.windows.received(event.stream_id, event.flow_controlled_length or 0)
            return False
        if isinstance(event, h2.events.InformationalResponseReceived):
            pseudo, headers = split_pseudo_headers(list(event.headers))
            now = time.time()  # noqa: TID251 - mitmproxy's message wants a time; ours come from the wire's clock
            response = http.Response(b"HTTP/2.0", int(pseudo.get(b":status", b"103")), b"", headers, None, None, now, None)
            assert event.stream_id is not None
            yield ReceiveHttp(ResponseInterim(event.stream_id, response))
            return False
        return (yield from super().handle_h2_event(event))


CLOSED = "server closed connection"
"""mitmproxy's words for a connection that ended before it answered; what is safe to send again is sent again."""


def install() -> None:
    """Put the origin's side in place, as for HTTP/1."""
    setattr(stock, "Http2Client", OriginSide)  # noqa: B010 - the name is imported there, not exported

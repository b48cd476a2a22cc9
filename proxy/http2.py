"""HTTP/2 on both sides: heads framed by us, interim responses relayed, resets as resets, and how full a stream's buffer is."""

from __future__ import annotations

import time
from collections.abc import Callable

import h2.errors
import h2.events
from mitmproxy import http
from mitmproxy.proxy import commands, events, layer
from mitmproxy.proxy.context import Context
from mitmproxy.proxy.layers import http as stock
from mitmproxy.proxy.layers.http._base import ReceiveHttp
from mitmproxy.proxy.layers.http._events import RequestHeaders
from mitmproxy.proxy.layers.http._http2 import Http2Client, Http2Server, StreamState, split_pseudo_headers

from secondtake.proxy.arrival import Whole
from secondtake.proxy.commands import ResponseAbort, ResponseHead, ResponseInterim
from secondtake.proxy.framing import HTTP_2, Delimiter
from secondtake.proxy.translate import Head


class ClientSide(Http2Server):
    """The server we are to an HTTP/2 client."""

    def __init__(self, context: Context, at_once: Callable[[Head], Whole | None]) -> None:
        super().__init__(context)
        self.at_once = at_once

    def _handle_event(self, event: events.Event) -> layer.CommandGenerator[None]:
        if isinstance(event, ResponseHead):
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

    def handle_h2_event(self, event: h2.events.Event) -> layer.CommandGenerator[bool]:
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
        whole = self.at_once(head) if event.stream_ended else None
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


class OriginSide(Http2Client):
    """The client we are to an HTTP/2 origin."""

    def handle_h2_event(self, event: h2.events.Event) -> layer.CommandGenerator[bool]:
        if isinstance(event, h2.events.InformationalResponseReceived):
            pseudo, headers = split_pseudo_headers(list(event.headers))
            now = time.time()  # noqa: TID251 - mitmproxy's message wants a time; ours come from the wire's clock
            response = http.Response(b"HTTP/2.0", int(pseudo.get(b":status", b"103")), b"", headers, None, None, now, None)
            assert event.stream_id is not None
            yield ReceiveHttp(ResponseInterim(event.stream_id, response))
            return False
        return (yield from super().handle_h2_event(event))


def install() -> None:
    """Put the origin's side in place, as for HTTP/1."""
    setattr(stock, "Http2Client", OriginSide)  # noqa: B010 - the name is imported there, not exported

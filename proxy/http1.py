"""HTTP/1 on both sides: what mitmproxy's own parsers leave out or do otherwise (DESIGN 3).

Trailers, interim responses, framing chosen by us, strict heads (C-08), a client that leaves without ending the stream's
work, and resets that are resets. `install()` puts the origin's side where mitmproxy looks for it.
"""

from __future__ import annotations

from collections.abc import Callable

import h11
from h11._readers import Http10Reader
from mitmproxy.connection import ConnectionState
from mitmproxy.proxy import commands, events, layer
from mitmproxy.proxy.context import Context
from mitmproxy.proxy.layers import http as stock
from mitmproxy.proxy.layers.http._base import HttpEvent, ReceiveHttp
from mitmproxy.proxy.layers.http._events import (
    ErrorCode,
    RequestData,
    RequestEndOfMessage,
    RequestHeaders,
    RequestProtocolError,
    RequestTrailers,
    ResponseData,
    ResponseEndOfMessage,
    ResponseProtocolError,
    ResponseTrailers,
)
from mitmproxy.proxy.layers.http._http1 import Http1Client, Http1Server, should_make_pipe

from secondtake.proxy import early
from secondtake.proxy.arrival import Whole
from secondtake.proxy.commands import Abort, OriginHead, ResponseAbort, ResponseHead, ResponseInterim
from secondtake.proxy.framing import Delimiter, values
from secondtake.proxy.heads import (
    REASONS,
    BadHead,
    as_lines,
    assemble,
    body_length,
    read_request_head,
    read_response_head,
    refuse_head,
    split_head,
    trailer_block,
)
from secondtake.proxy.http1_bodies import body_reader, closes, read_body
from secondtake.proxy.translate import Head


class ClientSide(Http1Server):
    """The server we are to an HTTP/1 client."""

    def __init__(self, context: Context, at_once: Callable[[Head], Whole | None]) -> None:
        super().__init__(context)
        self.at_once = at_once
        self.delimiter = Delimiter.NONE
        self.close_after = False
        self.upgraded = False
        self.head_sent = False
        self.pending = b""
        self.reading = False
        self.more = False
        """A next request is in the buffer, for the frame that reads."""
        self.unread = self.seen = 0
        """Bytes of a request that was answered before it was whole: read off since, and up to when it was last looked."""

    def _handle_event(self, event: events.Event) -> layer.CommandGenerator[None]:
        """Read however many requests came at once in one frame, not in one for each."""
        if isinstance(event, events.Wakeup):
            yield from self.look_again()
            return
        if self.reading or not isinstance(event, events.DataReceived):
            yield from super()._handle_event(event)
            return
        self.reading = True
        try:
            yield from super()._handle_event(event)
            while self.more:
                self.more = False
                yield from self.state(events.DataReceived(self.conn, b""))
        finally:
            self.reading = False

    def send(self, event: HttpEvent) -> layer.CommandGenerator[None]:
        if event.stream_id != self.stream_id:
            return  # a stream whose connection has already gone on
        if isinstance(event, ResponseHead):
            reason = event.reason or REASONS.get(event.status, b"")
            raw = assemble(b"HTTP/1.1 %d %s\r\n" % (event.status, reason), event.fields)
            self.delimiter, self.close_after, self.head_sent = event.delimiter, event.close, True
            self.upgraded = event.status == 101
            if event.more:
                self.pending = raw
            else:
                yield commands.SendData(self.conn, raw)
        elif isinstance(event, ResponseData):
            raw = event.data
            if self.delimiter is Delimiter.CHUNKED and raw:
                raw = b"%x\r\n%s\r\n" % (len(raw), raw)
            raw, self.pending = self.pending + raw, b""
            if raw:
                yield commands.SendData(self.conn, raw)
        elif isinstance(event, ResponseTrailers):
            if self.delimiter is Delimiter.CHUNKED:
                self.pending += trailer_block(event.trailers.fields)
                self.delimiter = Delimiter.NONE
        elif isinstance(event, ResponseEndOfMessage):
            if self.delimiter is Delimiter.CHUNKED:
                self.pending += b"0\r\n\r\n"
            if self.pending:
                raw, self.pending = self.pending, b""
                yield commands.SendData(self.conn, raw)
            yield from self.mark_done(response=True)
        elif isinstance(event, ResponseInterim):
            response = event.response
            reason = response.data.reason or REASONS.get(response.status_code, b"")
            yield commands.SendData(self.conn, assemble(b"HTTP/1.1 %d %s\r\n" % (response.status_code, reason), response.headers.fields))
        elif isinstance(event, ResponseAbort):
            if self.pending:
                raw, self.pending = self.pending, b""
                yield commands.SendData(self.conn, raw)
            self.state = self.done
            yield Abort(self.conn)
        elif isinstance(event, ResponseProtocolError):
            self.state = self.done
            yield commands.CloseConnection(self.conn)
        else:
            raise AssertionError(f"unexpected event: {event}")  # noqa: TRY004 - not a caller's mistake

    def read_headers(self, event: events.ConnectionEvent) -> layer.CommandGenerator[None]:
        if isinstance(event, events.ConnectionClosed):
            yield commands.CloseConnection(self.conn)
            return
        while self.buf:
            try:
                found = split_head(bytes(self.buf))
                if found is None:
                    return
                head = read_request_head(found[0])
                size = body_length(head.fields, protocol=head.protocol)
            except BadHead as error:
                yield commands.SendData(self.conn, refuse_head(error))
                yield commands.Log(f"refused a request: {error}")
                yield commands.CloseConnection(self.conn)
                self.state = self.done
                return
            self.buf.maybe_extract_at_most(found[1])
            whole = self.at_once(head) if size == 0 else None
            if whole is None:
                break
            raw = assemble(b"HTTP/1.1 %d %s\r\n" % (whole.status, whole.reason or REASONS.get(whole.status, b"")), whole.framed.fields)
            if whole.framed.delimiter is Delimiter.CHUNKED:
                raw += b"%x\r\n%s\r\n0\r\n\r\n" % (len(whole.body), whole.body) if whole.body else b"0\r\n\r\n"
            else:
                raw += whole.body
            self.stream_id += 2
            yield commands.SendData(self.conn, raw)
            if whole.framed.close:
                self.state = self.done
                yield commands.CloseConnection(self.conn)
                return
        else:
            return
        self.request = head  # type: ignore[assignment]  # ours; what mitmproxy would read of it is overridden here
        self.head_sent = False
        self.body_reader = body_reader(size)
        self.state = self.read_body
        yield ReceiveHttp(RequestHeaders(self.stream_id, head, size == 0))  # type: ignore[arg-type]
        if self.state == self.read_body:
            yield from self.state(events.DataReceived(self.conn, b""))

    def read_body(self, event: events.Event) -> layer.CommandGenerator[None]:
        yield from read_body(self, event, RequestTrailers)

    def wait(self, event: events.Event) -> layer.CommandGenerator[None]:
        """A client that goes while it is being answered: the stream is told, and decides; nothing is closed here."""
        if isinstance(event, events.ConnectionClosed):
            yield ReceiveHttp(RequestProtocolError(self.stream_id, "client left", ErrorCode.CLIENT_DISCONNECTED))

    def read_off(self, event: events.Event) -> layer.CommandGenerator[None]:
        """Read the rest of such a request off the connection, so that the next can be told from it; nobody wants it any more."""
        try:
            found = self.body_reader(self.buf) if isinstance(event, events.DataReceived) else self.body_reader.read_eof()
            while isinstance(found, h11.Data):
                self.unread += len(found.data)
                found = self.body_reader(self.buf)
        except h11.ProtocolError:
            yield from self.leave()
            return
        if found is not None:
            yield from self.mark_done(request=True)
        elif self.unread > early.MOST_BYTES:
            yield from self.leave()

    def look_again(self) -> layer.CommandGenerator[None]:
        """Close once nothing more of it comes."""
        if self.state == self.read_off:
            idle, self.seen = self.unread == self.seen, self.unread
            if idle:
                yield from self.leave()
            else:
                yield commands.RequestWakeup(early.IDLE_S)

    def leave(self) -> layer.CommandGenerator[None]:
        self.state = self.done
        yield commands.CloseConnection(self.conn)

    def answering(self) -> bool:
        """Whether the request that came is whole, and its answer is not."""
        return self.request_done and self.state == self.wait

    def done(self, event: events.ConnectionEvent) -> layer.CommandGenerator[None]:
        if isinstance(event, events.ConnectionClosed):
            yield commands.CloseConnection(self.conn)

    def mark_done(self, *, request: bool = False, response: bool = False) -> layer.CommandGenerator[None]:
        self.request_done = self.request_done or request
        self.response_done = self.response_done or response
        if self.response_done and not self.request_done and not self.upgraded and self.delimiter is not Delimiter.CLOSE:
            # Answered before it was whole. Closing now would reset the connection, and with it the answer.
            self.state, self.unread, self.seen = self.read_off, 0, 0
            yield commands.RequestWakeup(early.IDLE_S)
        elif self.response_done and (self.close_after or not self.request_done):
            self.state = self.done
            yield commands.CloseConnection(self.conn)
        elif self.response_done:
            if self.upgraded:
                yield from self.make_pipe()
                return
            self.request_done = self.response_done = False
            self.request = None
            self.stream_id += 2
            self.state = self.read_headers
            if self.buf and self.reading:
                self.more = True
            elif self.buf:
                yield from self._handle_event(events.DataReceived(self.conn, b""))


INTERIM_HEADS = 1000
"""1xx heads before one answer; an origin that sends more is not going to answer."""


class OriginSide(Http1Client):
    """The client we are to an HTTP/1 origin."""

    interims = 0
    """1xx heads before this answer."""
    chunked = False
    """How the body of the request is framed."""

    def send(self, event: HttpEvent) -> layer.CommandGenerator[None]:
        if isinstance(event, RequestTrailers):
            if self.chunked:
                yield commands.SendData(self.conn, trailer_block(event.trailers.fields))
                yield from self.mark_done(request=True)
            return
        if isinstance(event, RequestEndOfMessage) and self.request_done:
            return  # the trailers were the end
        if isinstance(event, RequestHeaders) and self.stream_id is None:
            self.stream_id, self.request = event.stream_id, event.request
            data = event.request.data
            self.chunked = bool(values(data.headers.fields, b"transfer-encoding"))
            target = b"%s://%s%s" % (data.scheme, data.authority, data.path) if data.authority else data.path
            yield commands.SendData(self.conn, assemble(b"%s %s HTTP/1.1\r\n" % (data.method, target), data.headers.fields))
            return
        if event.stream_id != self.stream_id:
            return
        if isinstance(event, RequestData):
            chunked = self.chunked and self.state != self.passthrough
            yield commands.SendData(self.conn, b"%x\r\n%s\r\n" % (len(event.data), event.data) if chunked else event.data)
        elif isinstance(event, RequestEndOfMessage):
            if self.chunked:
                yield commands.SendData(self.conn, b"0\r\n\r\n")
            yield from self.mark_done(request=True)
        else:
            yield from super().send(event)

    def read_headers(self, event: events.ConnectionEvent) -> layer.CommandGenerator[None]:
        if isinstance(event, events.ConnectionClosed) and self.buf and self.stream_id is not None:
            yield from self.unreadable("it ends within its head")
            return
        if not isinstance(event, events.DataReceived) or self.request is None or self.stream_id is None:
            yield from super().read_headers(event)
            return
        while True:
            try:
                found = split_head(bytes(self.buf))
                if found is None:
                    return
                lines, taken = found
                response = read_response_head(lines)
                fields = response.headers.fields
                if response.status_code == 101 and not values(self.request.headers.fields, b"upgrade"):
                    raise BadHead("101 to a request that asked for no upgrade")
                interim = 100 <= response.status_code < 200 and response.status_code != 101
                self.interims = self.interims + 1 if interim else 0
                if self.interims > INTERIM_HEADS:
                    raise BadHead(f"more than {INTERIM_HEADS} interim responses")
                size = (
                    0
                    if interim
                    else body_length(fields, protocol=response.http_version, response_to=self.request.method, status=response.status_code)
                )
            except BadHead as error:
                yield from self.unreadable(str(error))
                return
            self.buf.maybe_extract_at_most(taken)
            if interim:
                yield ReceiveHttp(ResponseInterim(self.stream_id, response))
                continue
            break
        self.response = response
        self.body_reader = body_reader(size)
        self.state = self.read_body
        whole = size is not None and 0 < size <= len(self.buf)
        yield ReceiveHttp(OriginHead(self.stream_id, response, size == 0, whole))
        if self.state == self.read_body:
            yield from self.state(events.DataReceived(self.conn, b""))

    def mark_done(self, *, request: bool = False, response: bool = False) -> layer.CommandGenerator[None]:
        """As mitmproxy's, by what is known of the heads already."""
        self.request_done = self.request_done or request
        self.response_done = self.response_done or response
        if not (self.request_done and self.response_done):
            return
        assert self.request is not None
        assert self.response is not None
        if should_make_pipe(self.request, self.response):
            yield from self.make_pipe()
        elif isinstance(self.body_reader, Http10Reader) or closes(self.request) or closes(self.response):
            self.state = self.done
            yield commands.CloseConnection(self.conn)
        else:
            self.request_done = self.response_done = False
            self.request = self.response = self.stream_id = None
            self.state = self.read_headers
            if self.buf:
                yield from self.state(events.DataReceived(self.conn, b""))

    def unreadable(self, why: str) -> layer.CommandGenerator[None]:
        """The head that came is not one: who asked is told why, with what came, line by line, so that it can be redacted as fields are."""
        assert self.stream_id is not None
        self.state = self.done
        yield commands.CloseConnection(self.conn)
        message = f"{UNREADABLE}{why}\n{as_lines(bytes(self.buf)[:SHOWN_BYTES])}"
        yield ReceiveHttp(ResponseProtocolError(self.stream_id, message, ErrorCode.RESPONSE_VALIDATION_FAILED))

    def read_body(self, event: events.Event) -> layer.CommandGenerator[None]:
        yield from read_body(self, event, ResponseTrailers)

    def done(self, event: events.ConnectionEvent) -> layer.CommandGenerator[None]:
        if isinstance(event, events.ConnectionClosed) and self.conn.state is not ConnectionState.CLOSED:
            yield commands.CloseConnection(self.conn)


UNREADABLE = "the origin's response cannot be read in one way only: "
"""How the message of a refused response head begins."""

SHOWN_BYTES = 16 * 1024
"""What of such a head is told further; less of it is shown."""


def install() -> None:
    """Put the origin's side in place. mitmproxy names it in one spot, which the tests compare with what we expect."""
    setattr(stock, "Http1Client", OriginSide)  # noqa: B010 - the name is imported there, not exported

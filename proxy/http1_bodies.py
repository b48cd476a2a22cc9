"""Bodies of HTTP/1 messages as they are read, trailers with them; for both sides."""

from __future__ import annotations

from collections.abc import Callable

import h11
from h11._readers import ChunkedReader, ContentLengthReader, Http10Reader
from mitmproxy import http
from mitmproxy.proxy import commands, events, layer
from mitmproxy.proxy.layers.http._base import HttpEvent, ReceiveHttp
from mitmproxy.proxy.layers.http._http1 import Http1Client, Http1Server, TBodyReader

from secondtake.proxy.framing import tokens


def body_reader(size: int | None) -> TBodyReader:
    """Return what reads a body of `size` bytes; None: in chunks; -1: to the connection's end."""
    if size is None:
        return ChunkedReader()
    return Http10Reader() if size == -1 else ContentLengthReader(size)


def read_body(
    side: Http1Client | Http1Server, event: events.Event, trailers: Callable[[int, http.Headers], HttpEvent]
) -> layer.CommandGenerator[None]:
    """Read a body and its trailers, which mitmproxy leaves out, on either side."""
    assert side.stream_id is not None
    while True:
        try:
            if isinstance(event, events.DataReceived):
                found = side.body_reader(side.buf)
            elif side.conn.error:
                raise h11.RemoteProtocolError(side.conn.error)
            else:
                found = side.body_reader.read_eof()
        except h11.ProtocolError as error:
            side.state = side.done
            yield ReceiveHttp(side.ReceiveProtocolError(side.stream_id, f"body cut short: {error}", side.ReceiveProtocolError.code))
            if isinstance(side, Http1Client):
                yield commands.CloseConnection(side.conn)
            return
        if found is None:
            return
        if isinstance(found, h11.Data):
            data = bytes(found.data)
            if data:
                yield ReceiveHttp(side.ReceiveData(side.stream_id, data))
            continue
        if found.headers:
            yield ReceiveHttp(trailers(side.stream_id, http.Headers([(name, value) for name, value in found.headers.raw_items()])))
        if isinstance(side, Http1Server):
            # Before it is told: it may be answered, and the next request begun, while it is.
            side.request_done, side.state = True, side.wait
            yield ReceiveHttp(side.ReceiveEndOfMessage(side.stream_id))
        else:
            yield ReceiveHttp(side.ReceiveEndOfMessage(side.stream_id))
            yield from side.mark_done(response=True)
        return


def closes(message: http.Message) -> bool:
    """Whether a connection ends with this message (RFC 9112 9.3)."""
    wanted = tokens(message.data.headers.fields, b"connection")
    return b"close" in wanted or (message.data.http_version != b"HTTP/1.1" and b"keep-alive" not in wanted)

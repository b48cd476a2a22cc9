"""The layers between a socket and a `WireStream`: the front door that reads how a client wants to speak, and HTTP.

A client's first bytes are a CONNECT (then TLS, or plain HTTP, inside the tunnel), or plain HTTP in absolute form. Whatever
else comes is closed (T-R8): nothing here opens a connection.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from mitmproxy.connection import Connection
from mitmproxy.net.server_spec import ServerSpec
from mitmproxy.proxy import commands, events, layer
from mitmproxy.proxy.context import Context
from mitmproxy.proxy.layers import tcp
from mitmproxy.proxy.layers.http import GetHttpConnection, GetHttpConnectionCompleted, HttpLayer, HTTPMode, RegisterHttpConnection
from mitmproxy.proxy.layers.http._events import RequestData
from mitmproxy.proxy.layers.http._upstream_proxy import HttpUpstreamProxy
from mitmproxy.proxy.layers.tls import ClientTLSLayer
from mitmproxy.proxy.tunnel import TunnelState
from OpenSSL import SSL

from secondtake.proxy import heads, http1, http2
from secondtake.proxy.arrival import Whole, arrive, at_once
from secondtake.proxy.framing import values
from secondtake.proxy.policy import Mode
from secondtake.proxy.translate import Head, split_authority

if TYPE_CHECKING:
    from secondtake.proxy.addon import Wire
    from secondtake.proxy.handler import WireHandler

_METHOD = re.compile(rb"[A-Z][A-Z!#$%&'*+.^_`|~0-9-]{0,31} ")
_METHOD_START = re.compile(rb"[A-Z][A-Z!#$%&'*+.^_`|~0-9-]{0,31}")

READ_BYTES = 65_536
"""What is taken from TLS at once, to be sent."""

CONNECTED = b"HTTP/1.1 200 Connection established\r\n\r\n"


class WireLayer(HttpLayer):
    """HTTP, either version, on both sides, with our parsers and our streams."""

    def __init__(self, context: Context, mode: HTTPMode, wire: Wire, handler: WireHandler, connect: tuple[str, int] | None) -> None:
        super().__init__(context, mode)
        self.wire = wire
        self.handler = handler
        self.connect = connect if mode is HTTPMode.transparent else None
        """Host and port the client gave to CONNECT, None outside a tunnel."""
        self.ended: set[Connection] = set()
        """Connections to origins that are over, until no stream names them any more."""

    def _handle_event(self, event: events.Event) -> layer.CommandGenerator[None]:
        if isinstance(event, events.Start):
            if self.context.client.alpn == b"h2":
                self.connections[self.context.client] = http2.ClientSide(self.context.fork(), self.at_once, self.busy, self.untaken_bytes)
                self.handler.windows = True
            else:
                self.connections[self.context.client] = side = http1.ClientSide(self.context.fork(), self.at_once)
                self.handler.whole = side.answering
                self.handler.untaken = lambda: self.untaken_bytes(side.stream_id)
        if isinstance(event, events.ConnectionEvent) and event.connection not in self.connections:
            return  # the last word of a connection that was forgotten
        yield from super()._handle_event(event)
        if isinstance(event, events.ConnectionClosed) and event.connection is not self.context.client:
            self.over(event.connection)

    def busy(self) -> bool:
        """Whether a request is still at work."""
        return bool(self.streams)

    # -- connections to origins ----------------------------------------------------------------------------------------

    def get_connection(self, event: GetHttpConnection, *, reuse: bool = True) -> layer.CommandGenerator[None]:
        """A connection that is free, else a new one.

        mitmproxy answers with a connection's first error for as long as the client stays; here a failure is of one request.
        It also never takes an HTTP/1 connection again for an HTTP/2 client; here it does once the request on it is over.
        """
        multiplexed = self.context.client.alpn == b"h2"
        taken = {stream.context.server for stream in self.streams.values()} if multiplexed else set()
        for connection in self.connections if reuse else ():
            if not event.connection_spec_matches(connection):
                continue
            if connection in self.waiting_for_establishment:
                self.waiting_for_establishment[connection].append(event)
                return
            if connection.error is None and connection.connected and (connection.alpn == b"h2" or connection not in taken):
                yield from self.event_to_child(self.command_sources.pop(event), GetHttpConnectionCompleted(event, (connection, None)))
                return
        yield from super().get_connection(event, reuse=False)

    def register_connection(self, command: RegisterHttpConnection) -> layer.CommandGenerator[None]:
        yield from super().register_connection(command)
        if command.err:
            self.over(command.connection)

    def same_socket(self, one: Connection, other: Connection) -> bool:
        """Whether two connections are one on the wire: an origin's, and that to the proxy it is reached through."""
        return one is other or (one in self.connections and self.connections[one] is self.connections.get(other))

    def over(self, connection: Connection) -> None:
        """A connection ended, or could not be made; so did what it carried, if it was to a proxy."""
        self.ended.update([known for known in self.connections if self.same_socket(connection, known)])
        self.forget()

    def forget(self) -> None:
        """Let go of ended connections that no stream names any more: an agent may keep its own for many thousand requests."""
        if self.ended:
            named = {stream.context.server for stream in self.streams.values()}
            for connection in self.ended - named:
                self.connections.pop(connection, None)
                self.handler.used.discard(connection)
            self.ended &= named

    # -- streams -------------------------------------------------------------------------------------------------------

    def make_stream(self, stream_id: int) -> layer.CommandGenerator[None]:
        from secondtake.proxy.stream import WireStream

        self.streams[stream_id] = WireStream(self.forked(), stream_id, self)
        yield from self.event_to_child(self.streams[stream_id], events.Start())

    def forked(self) -> Context:
        """A context for one stream. As `Context.fork`, which makes a server connection first only to replace it."""
        made = Context.__new__(Context)
        made.client, made.options, made.server, made.layers = (
            self.context.client,
            self.context.options,
            self.context.server,
            self.context.layers.copy(),
        )
        return made

    def at_once(self, head: Head) -> Whole | None:
        """A request without a body, answered without a stream where that can be done; see arrival.py."""
        if self.wire.policy.mode is not Mode.REPLAY:
            return None
        head.arrival = arrival = arrive(self, head)
        return at_once(self, arrival)

    def buffered_bytes(self, stream_id: int) -> int:
        """Bytes of one stream that wait for its client's flow control; 0 on HTTP/1, where the socket's buffer tells."""
        side = self.connections.get(self.context.client)
        return side.buffered_bytes(stream_id) if isinstance(side, http2.ClientSide) else 0

    def untaken_bytes(self, stream_id: int) -> int:
        """Bytes of a request that its client has sent and that are still here: a connection is made first, or its origin is slow."""
        stream = self.streams.get(stream_id)
        if stream is None:
            return 0
        queued = sum(len(event.data) for event in stream._paused_event_queue if isinstance(event, RequestData))
        server = stream.context.server
        if (side := self.connections.get(server)) is None:
            return queued
        # Between the two may stand layers of TLS and of a proxy.
        queued += sum(below.untaken(stream_id) for below in side.context.layers if isinstance(below, http2.OriginSide))
        return queued + sum(self.handler.unwritten(known) for known in self.handler.transports if self.same_socket(server, known))


class ClientTls(ClientTLSLayer):
    """TLS with the agent. Notes whether it spoke inside: GnuTLS looks at our certificate only after the handshake, and then leaves."""

    def __init__(self, context: Context, wire: Wire) -> None:
        super().__init__(context)
        self.wire = wire
        self.said: bool | None = None
        """Whether the client has said something, None before that is known."""

    def tls_interact(self) -> layer.CommandGenerator[None]:
        """As mitmproxy's, which asks once more after all has come: to be told so by an exception."""
        more = True
        while more:
            try:
                data = self.tls.bio_read(READ_BYTES)
            except SSL.WantReadError:
                return
            yield commands.SendData(self.conn, data)
            more = len(data) == READ_BYTES

    def event_to_child(self, event: events.Event) -> layer.CommandGenerator[None]:
        if self.said is None and self.tunnel_state is TunnelState.OPEN:
            if isinstance(event, events.DataReceived):
                self.said = True
                self.wire.clients.heard(self.context.client, shown_host(self.context))
            elif isinstance(event, events.ConnectionClosed):
                self.said = False
                self.wire.clients.silent(self.context.client, shown_host(self.context))
        yield from super().event_to_child(event)


def shown_host(context: Context) -> str:
    """The host a client shook hands for."""
    return context.client.sni or (context.server.address or ("?",))[0]


class Front(layer.Layer):
    """Reads the first bytes of a client, and of a tunnel, and puts the right layer in its own place."""

    def __init__(self, context: Context, wire: Wire, handler: WireHandler) -> None:
        super().__init__(context)
        self.wire = wire
        self.handler = handler
        self.buffer = b""
        self.connect: tuple[str, int] | None = None

    def _handle_event(self, event: events.Event) -> layer.CommandGenerator[None]:
        if isinstance(event, events.DataReceived):
            self.buffer += event.data
            yield from self.read()
        elif isinstance(event, events.ConnectionClosed):
            yield commands.CloseConnection(self.context.client)

    def read(self) -> layer.CommandGenerator[None]:
        """Decide as soon as it can be decided; more bytes are waited for where not."""
        data = self.buffer.lstrip(b"\r\n")
        if not data:
            return
        if self.connect is not None and data[0] == 0x16:  # a TLS handshake record
            yield from self.become(self.tls())
        elif self.connect is None and data.startswith(b"CONNECT "):
            yield from self.tunnel()
        elif _METHOD.match(data):
            mode = HTTPMode.regular if self.connect is None else HTTPMode.transparent
            yield from self.become(WireLayer(self.context, mode, self.wire, self.handler, self.connect))
        elif not _METHOD_START.fullmatch(data[:33]):
            self.wire.not_http(self.handler, self.connect[0] if self.connect else None, data[:16])
            yield commands.CloseConnection(self.context.client)
            self._handle_event = self.closed  # type: ignore[method-assign]

    def tunnel(self) -> layer.CommandGenerator[None]:
        """Read a CONNECT, ask for the proxy credential where one is set, and answer it."""
        try:
            found = heads.split_head(self.buffer)
            if found is None:
                return
            request = heads.read_request_head(found[0])
            host, port = split_authority(request.authority)
            assert port is not None
        except heads.BadHead as error:
            yield commands.SendData(self.context.client, heads.refuse_head(error))
            yield commands.CloseConnection(self.context.client)
            return
        self.buffer = self.buffer[found[1] :]
        fields = request.fields
        if not self.wire.admit(self.handler, values(fields, b"proxy-authorization")):
            yield commands.SendData(self.context.client, self.wire.refusals.credential)
            return  # the client may ask again on this connection
        if (refusal := self.wire.refuse_tunnel(host, port)) is not None:
            yield commands.SendData(self.context.client, refusal)
            yield commands.CloseConnection(self.context.client)
            return
        self.wire.greeted(self.handler, values(fields, b"user-agent"), host)
        self.connect = (host, port)
        self.context.server.address = (host, port)
        yield commands.SendData(self.context.client, CONNECTED)
        if (unread := self.wire.passes_through(self.handler, host, port)) is not False:
            yield from self.become(self.relay(unread))
        elif self.buffer:
            yield from self.read()

    def relay(self, via: ServerSpec | bool) -> layer.Layer:
        """A tunnel relayed unread, through the caller's own proxy where there is one."""
        if via is True or via is False:
            return tcp.TCPLayer(self.context, ignore=True)
        self.context.server.via = via
        stack = HttpUpstreamProxy.make(self.context, True)
        stack /= tcp.TCPLayer(self.context, ignore=True)
        return stack[0]

    def tls(self) -> ClientTls:
        """TLS with the agent, and HTTP inside it."""
        outer = ClientTls(self.context, self.wire)
        outer.child_layer = WireLayer(self.context, HTTPMode.transparent, self.wire, self.handler, self.connect)
        return outer

    def become(self, successor: layer.Layer) -> layer.CommandGenerator[None]:
        """Put `successor` where this layer stands and give it what was read."""
        self.handler.layer = successor
        self.handle_event = successor.handle_event  # type: ignore[method-assign]
        data, self.buffer = self.buffer, b""
        yield from successor.handle_event(events.Start())
        if data:
            yield from successor.handle_event(events.DataReceived(self.context.client, data))

    def closed(self, event: events.Event) -> layer.CommandGenerator[None]:
        """What still comes is dropped."""
        yield from ()

"""One client connection: sockets on one side, layers on the other. Moves bytes and waits; decides nothing.

mitmproxy's `ConnectionHandler` is the base; its parts that cost most or do otherwise than we promise are ours: hooks are
answered in place instead of through an addon fan-out, a client that left does not cancel its upstream, reading pauses
while a receiver is behind, an address is resolved and judged once, and a recorded reset is sent as one.
"""

from __future__ import annotations

import asyncio
import collections
import contextlib
import fcntl
import logging
import socket
import struct
import termios
from collections.abc import Callable, Coroutine
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from mitmproxy import options
from mitmproxy.connection import Connection, ConnectionState, Server
from mitmproxy.proxy import commands, events, layer, mode_specs, server, server_hooks
from mitmproxy.proxy.context import Context

from secondtake.proxy import peer
from secondtake.proxy.commands import Abort, Await, AwaitCompleted

if TYPE_CHECKING:
    from secondtake.proxy.stream import WireStream
    from secondtake.proxy.tape import Tape

logger = logging.getLogger(__name__)

READ_BYTES = 65_536
"""One read from a socket; also the largest piece a body is cut into by us."""

BEHIND_BYTES = 256 * 1024
"""A writer with more than this waiting is behind: nothing further is read for it until it has caught up."""

IDLE_S = 24 * 3600
"""A connection without a byte either way for so long is closed. A model may think for many minutes (T-R4)."""

FLUSH_S = 2.0
"""How long a recorded reset waits for what came before it to be sent."""

CONNECT_S = 30.0
"""How long one address may take to accept a connection."""

LOOK_S = 0.25
"""How often it is looked whether a client that ended its side still holds its connection."""

LOOK_AGAIN_S = 0.02
"""How soon it is looked again whether a request that waits for its connection goes on."""


class Hooks(Protocol):
    """What the wire answers; see `addon.py`."""

    def client_connected(self, handler: WireHandler) -> str | None: ...
    def first_layer(self, context: Context, handler: WireHandler) -> layer.Layer: ...
    def hook(self, hook: commands.StartHook) -> None: ...
    def server_connect(self, handler: WireHandler, connection: Server) -> str | None: ...
    async def resolve(self, host: str, port: int, *, trusted: bool) -> list[tuple[str, int]]: ...
    async def room(self) -> None: ...
    def crashed(self, handler: WireHandler, error: Exception) -> None: ...
    def disconnected(self, handler: WireHandler) -> None: ...


class Discard:
    """A writer for a client that is gone: what its stream still sends goes nowhere, and upstream is read to its end."""

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self._writer = writer

    def write(self, data: bytes) -> None:
        """Nothing."""

    def write_eof(self) -> None:
        """Nothing."""

    def is_closing(self) -> bool:
        return False

    def close(self) -> None:
        self._writer.close()


class WireHandler(server.LiveConnectionHandler):
    """The I/O of one client connection."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, opts: options.Options, mode: mode_specs.ProxyMode, hooks: Hooks
    ) -> None:
        super().__init__(reader, writer, opts, mode)
        self.hooks = hooks
        self.timeout_watchdog.timeout = IDLE_S
        self.layer = hooks.first_layer(self.layer.context, self)
        self.user: str | None = None
        """The user name the client gave to the proxy: whose session it is."""
        self.admitted = False
        """The client gave the credential on this connection."""
        self.grants: set[tuple[str, int]] = set()
        """Addresses this connection may open; the gate refuses every other one."""
        self.trusted: set[tuple[str, int]] = set()
        """Granted addresses the user configured (routes, an upstream proxy): not judged by C-04."""
        self.used: set[Connection] = set()
        """Connections that have carried a request: reused ones may turn out to be closed."""
        self.held: set[WireStream] = set()
        """Streams whose client is behind with its HTTP/2 window; the connections they are answered on are not read meanwhile."""
        self.progress = asyncio.Event()
        """Set whenever the client has said something (its window may have grown), or is behind with one stream less."""
        self.streams = 0
        """Streams still at work, so that a client's leaving does not end them."""
        self.whole: Callable[[], bool] = lambda: False
        """Whether all that the client asked for is whole and waits for its answer: then its side may end before ours (HTTP/1)."""
        self.windows = False
        """The client speaks HTTP/2: what its requests may send is bounded stream by stream (http2.py), and no origin stops it here."""
        self.untaken: Callable[[], int] = lambda: 0
        """Bytes of an HTTP/1 client's request that are still here."""
        self.tapes: set[Tape] = set()
        """Exchanges being written on this connection."""
        self.sockets: list[asyncio.Future[Any]] = []

    @property
    def context(self) -> Context:
        return self.layer.context

    async def handle_hook(self, hook: commands.StartHook) -> None:
        if isinstance(hook, server_hooks.ClientConnectedHook):
            self.client.error = self.hooks.client_connected(self)
        elif isinstance(hook, server_hooks.ClientDisconnectedHook):
            self.hooks.disconnected(self)

    async def server_event(self, event: events.Event) -> None:
        self.process(event)

    def process(self, event: events.Event) -> None:
        """Feed one event through the layers and carry out what they say, hooks included. Never waits, never raises."""
        self.timeout_watchdog.register_activity()  # type: ignore[no-untyped-call]
        todo = collections.deque([event])
        try:
            while todo:
                for command in self.layer.handle_event(todo.popleft()):
                    if isinstance(command, commands.SendData):
                        io = self.transports.get(command.connection)
                        if io is not None and io.writer is not None and not io.writer.is_closing():
                            io.writer.write(command.data)
                    elif isinstance(command, commands.StartHook):
                        self.hooks.hook(command)
                        if command.blocking:
                            todo.append(events.HookCompleted(command))
                    elif isinstance(command, Await):
                        self._await(command)
                    elif isinstance(command, commands.OpenConnection):
                        task = self._spawn(self.open_connection(command))
                        self.transports[command.connection] = server.ConnectionIO(handler=task)
                    elif isinstance(command, commands.RequestWakeup):
                        self.wakeup_timer.add(self._spawn(self.wakeup(command)))
                    elif isinstance(command, commands.ConnectionCommand):
                        self._close(command)
                    elif isinstance(command, commands.Log):
                        logger.log(command.level, command.message)
                    else:
                        raise AssertionError(f"unexpected command: {command}")  # noqa: TRY004 - not a caller's mistake
        except Exception as error:  # noqa: BLE001 - a fault of ours ends this connection, and is told; it never hangs a client
            self.hooks.crashed(self, error)
            self._abort(self.client)

    def _spawn(self, work: Coroutine[None, None, None]) -> asyncio.Task[None]:
        return self._watch(asyncio.get_running_loop().create_task(work))

    def _watch[F: asyncio.Future[Any]](self, task: F) -> F:
        self.sockets.append(task)
        task.add_done_callback(self._finished)
        return task

    def _finished(self, task: asyncio.Future[Any]) -> None:
        with contextlib.suppress(ValueError):
            self.sockets.remove(task)
        if not task.cancelled() and (error := task.exception()) is not None and isinstance(error, Exception):
            self.hooks.crashed(self, error)
            self._abort(self.client)  # whoever waits for it would wait for ever

    def _await(self, command: Await) -> None:
        """Go on with the reply. A future is waited for as it is: a task around each commit would cost more than the wait."""
        awaited = asyncio.ensure_future(command.make())
        awaited.add_done_callback(partial(self._reply, command))
        self._watch(awaited)

    def _reply(self, command: Await, done: asyncio.Future[object]) -> None:
        if not done.cancelled() and done.exception() is None:
            self.process(AwaitCompleted(command, done.result()))

    def _close(self, command: commands.ConnectionCommand) -> None:
        if command.connection not in self.transports:
            return
        if isinstance(command, Abort):
            self._abort(command.connection)
        elif isinstance(command, commands.CloseTcpConnection):
            self.close_connection(command.connection, command.half_close)
        else:
            self.close_connection(command.connection, half_close=False)

    def _abort(self, connection: Connection) -> None:
        """Close with a reset. What the kernel holds unsent is given up, so callers drain first."""
        io = self.transports.get(connection)
        if io is None or io.writer is None:
            return
        connection.state = ConnectionState.CLOSED
        writer = self.writer(connection)
        if writer is not None:
            raw: socket.socket | None = writer.get_extra_info("socket")
            if raw is not None:
                with contextlib.suppress(OSError):
                    raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            writer.transport.abort()
        if io.handler is not None:
            io.handler.cancel("aborted")

    async def open_connection(self, command: commands.OpenConnection) -> None:
        """Ask the gate, resolve once, judge, connect to what was judged, and read until the end."""
        connection = command.connection
        error = self.hooks.server_connect(self, connection) or None
        if error is None:
            error = await self._dial(connection)
        if error is not None:
            connection.error = error
            self.transports.pop(connection, None)
            self.process(events.OpenConnectionCompleted(command, error))
            return
        self.process(events.OpenConnectionCompleted(command, None))
        await self.handle_connection(connection)

    async def _dial(self, connection: Server) -> str | None:
        """Connect to the first address that accepts. Returns what went wrong, or None."""
        if connection.address is None:
            return "no host named"
        host, port = connection.address[:2]
        try:
            candidates = await self.hooks.resolve(host, port, trusted=(host, port) in self.trusted)
        except OSError as error:
            return str(error) or type(error).__name__
        last = "no address"
        for address in candidates:
            try:
                reader, writer = await asyncio.wait_for(asyncio.open_connection(*address), CONNECT_S)
            except TimeoutError:
                last = f"no answer from {address[0]} within {CONNECT_S:.0f} s"
            except OSError as error:
                last = error.strerror or str(error)
            else:
                connection.state = ConnectionState.OPEN
                connection.peername = writer.get_extra_info("peername")
                connection.sockname = writer.get_extra_info("sockname")
                self.transports[connection] = server.ConnectionIO(handler=asyncio.current_task(), reader=reader, writer=writer)
                return None
        return last

    async def handle_connection(self, connection: Connection) -> None:
        """Read one socket until its end, then keep it for writing until it is closed."""
        io = self.transports[connection]
        reader = io.reader
        assert isinstance(reader, asyncio.StreamReader)
        cancelled: asyncio.CancelledError | None = None
        try:
            while data := await reader.read(READ_BYTES):
                self.process(events.DataReceived(connection, data))
                if connection is self.client:
                    self.progress.set()
                    for stream in [held for held in self.held if held.parent.buffered_bytes(held.stream_id) <= BEHIND_BYTES]:
                        self.release(stream)
                await self.drain_writers(connection)
                await self.hooks.room()
                while connection is self.client and self.untaken() > BEHIND_BYTES:  # noqa: ASYNC110 - layers between know of no event
                    await asyncio.sleep(LOOK_AGAIN_S)
                while self.waits(connection):
                    self.progress.clear()
                    await self.progress.wait()
            if connection is self.client:
                await self.answered()
        except OSError as error:
            connection.error = error.strerror or str(error)  # a reset, not an end: who reads until the close must know
        except asyncio.CancelledError as error:
            cancelled = error
        if cancelled is None:
            connection.state &= ~ConnectionState.CAN_READ
            if connection is self.client:
                if self.streams and (writer := self.writer(connection)) is not None:
                    io.writer = Discard(writer)  # type: ignore[assignment]  # as much of a writer as is used
                self.held.clear()
                self.progress.set()
        else:
            connection.state = ConnectionState.CLOSED
        self.process(events.ConnectionClosed(connection))
        if connection.state is ConnectionState.CAN_WRITE:
            try:
                await asyncio.Event().wait()  # until closed by command
            except asyncio.CancelledError as error:
                cancelled = error
        if io.writer is not None:
            with contextlib.suppress(OSError):
                io.writer.close()
        self.transports.pop(connection, None)
        if cancelled is not None:
            raise cancelled

    async def answered(self) -> None:
        """Wait for the answers of a client that has ended its side after whole requests, as `nc -N` does, and is still there.

        One that closed sends the same as one that only ended its side. What tells them apart is whether anybody holds the other
        end; where that cannot be known, it has left.
        """
        client, server = self.client.peername, self.client.sockname
        while self.streams and self.whole() and (writer := self.writer(self.client)) is not None and not writer.is_closing():
            if peer.peer_uid((client[0], client[1]), (server[0], server[1])) is None:
                return
            self.progress.clear()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self.progress.wait(), LOOK_S)

    def unwritten(self, connection: Connection) -> int:
        """Bytes for a connection that its socket has not taken yet."""
        writer = self.writer(connection)
        return writer.transport.get_write_buffer_size() if writer is not None else 0

    def writer(self, connection: Connection) -> asyncio.StreamWriter | None:
        """The writer of a connection that still takes bytes."""
        io = self.transports.get(connection)
        return io.writer if io is not None and isinstance(io.writer, asyncio.StreamWriter) else None

    async def drain_writers(self, source: Connection | None = None) -> None:
        """Wait until no writer is behind that takes what `source` says: an origin's goes to the client, an HTTP/1 client's anywhere.

        What could not be written ends its own connection, not the reader's.
        """
        anywhere = source is self.client and not self.windows
        for connection, io in list(self.transports.items()):
            writer = io.writer if anywhere or connection is self.client else None
            if isinstance(writer, asyncio.StreamWriter) and writer.transport.get_write_buffer_size() > BEHIND_BYTES:
                try:
                    await writer.drain()
                except OSError:
                    if io.handler is not None and connection is not self.client:
                        io.handler.cancel("cannot write")

    async def room(self, stream: WireStream) -> None:
        """Wait until the client has taken most of what this stream sent to it, or is gone."""
        while self.client.state & ConnectionState.CAN_READ and (writer := self.writer(self.client)) is not None:
            if writer.transport.get_write_buffer_size() > BEHIND_BYTES:
                try:
                    await writer.drain()
                except OSError:
                    return
            if stream.parent.buffered_bytes(stream.stream_id) <= BEHIND_BYTES:
                return
            self.progress.clear()
            await self.progress.wait()

    async def flushed(self, stream: WireStream) -> None:
        """Wait until the kernel has been given, and has sent, all of it: what follows is a reset, which would drop it."""
        loop = asyncio.get_running_loop()
        give_up = loop.time() + FLUSH_S
        while loop.time() < give_up and (writer := self.writer(self.client)) is not None:
            waiting = writer.transport.get_write_buffer_size() + stream.parent.buffered_bytes(stream.stream_id)
            if not waiting and not _unsent(writer.get_extra_info("socket")):
                return
            await asyncio.sleep(0.001)

    def grant(self, address: tuple[str, int], *, trusted: bool) -> None:
        """Let this connection open `address`."""
        self.grants.add(address)
        if trusted:
            self.trusted.add(address)

    def hold(self, stream: WireStream) -> None:
        """A stream's client is behind: the connection that answers it is not read. One that answers others too has windows (http2.py)."""
        if self.client.state & ConnectionState.CAN_READ and stream.context.server.alpn != b"h2":
            self.held.add(stream)

    def release(self, stream: WireStream) -> None:
        """It has caught up, or is over."""
        if stream in self.held or not self.streams:
            self.held.discard(stream)
            self.progress.set()

    def waits(self, connection: Connection) -> bool:
        """Whether a connection is not to be read now."""
        return any(stream.parent.same_socket(stream.context.server, connection) for stream in self.held)


def _unsent(raw: socket.socket | None) -> int:
    """Bytes in the kernel that the peer has not acknowledged (Linux SIOCOUTQ); 0 where that cannot be known."""
    if raw is None:
        return 0
    try:
        return int(struct.unpack("i", fcntl.ioctl(raw.fileno(), termios.TIOCOUTQ, b"\0\0\0\0"))[0])
    except OSError:
        return 0

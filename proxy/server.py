"""The proxy: a listening socket, its connections, and what came of them. Everything runs on the caller's event loop."""

from __future__ import annotations

import asyncio
import errno
import logging
import socket
import sys

from mitmproxy import options
from mitmproxy.proxy import mode_specs

from secondtake.cassettes.errors import BadInput
from secondtake.proxy import http1, http2
from secondtake.proxy.addon import Wire
from secondtake.proxy.handler import WireHandler
from secondtake.proxy.outcome import Outcome
from secondtake.proxy.settings import Settings
from secondtake.proxy.versions import require

GRACE_S = 3.0
"""How long exchanges in flight may take to end when the proxy stops."""

BACKLOG = 1024


class CannotListen(BadInput):
    """The address cannot be listened on."""


class Proxy:
    """One proxy on one address."""

    def __init__(self, settings: Settings, wire: Wire) -> None:
        require()
        http1.install()
        http2.install()
        if settings.credential is None and settings.host not in ("127.0.0.1", "::1", "localhost"):
            raise BadInput(f"listening on {settings.host} needs a proxy credential", hint="anyone who reaches it could use it")
        self.settings = settings
        self.wire = wire
        self.port = 0
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._options = _options()
        self._mode = mode_specs.ProxyMode.parse("regular")

    async def start(self) -> int:
        """Listen. Returns the port.

        Raises:
            CannotListen: in use, not permitted, or no such address.
        """
        try:
            self._server = await asyncio.start_server(
                self._connected, self.settings.host, self.settings.port, limit=256 * 1024, backlog=BACKLOG
            )
        except OSError as error:
            where = f"{self.settings.host}:{self.settings.port}"
            if error.errno == errno.EADDRINUSE:
                raise CannotListen(f"port in use: {where}", hint="choose another with --port, or leave it out for a free one") from error
            raise CannotListen(f"cannot listen on {where}: {error.strerror or error}") from error
        self.port = int(self._server.sockets[0].getsockname()[1])
        self.wire.listening(self.port)
        return self.port

    async def stop(self, grace_s: float = GRACE_S) -> Outcome:
        """Accept nothing more, let what is in flight end within `grace_s`, close every connection."""
        if self._server is not None:
            self._server.close()
        await self.wire.drained(grace_s)
        for task in list(self._tasks):
            task.cancel()
        if self._tasks:
            await asyncio.gather(*self._tasks, return_exceptions=True)
        self.wire.outcome.notes.extend(self.wire.upstream.notes)
        return self.wire.outcome

    def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.ensure_future(self._serve(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        raw = writer.get_extra_info("socket")
        if raw is not None:
            raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        handler = WireHandler(reader, writer, self._options, self._mode, self.wire)
        try:
            await handler.handle_client()
        except asyncio.CancelledError:
            writer.close()
        except Exception as error:  # noqa: BLE001 - one connection's fault is told and ends that connection only
            self.wire.crashed(handler, error)
            writer.close()
        finally:
            self.wire.disconnected(handler)  # also where it was cancelled before it could say so
            for io in list(handler.transports.values()):
                if io.handler is not None and io.handler is not asyncio.current_task():
                    io.handler.cancel()
            for pending in list(handler.sockets):
                pending.cancel()


def _options() -> options.Options:
    """What mitmproxy's layers read. Those its addons would add are added here, with the values we need (DESIGN 3)."""
    made = options.Options()
    for name, kind, value in (
        ("connection_strategy", str, "lazy"),
        ("store_streamed_bodies", bool, False),
        ("validate_inbound_headers", bool, True),
        ("normalize_outbound_headers", bool, True),
        ("http2_ping_keepalive", int, 58),
        ("http_connect_send_host_header", bool, True),
        ("websocket", bool, False),
        ("rawtcp", bool, False),
        ("proxy_debug", bool, False),
        ("stream_large_bodies", object, None),
        ("body_size_limit", object, None),
        ("keep_host_header", bool, True),
    ):
        if name not in made:
            made.add_option(name, kind if kind is not object else str | None, value, "")
        else:
            made.update(**{name: value})  # type: ignore[no-untyped-call]
    return made


def quiet() -> None:
    """Leave only our own errors on standard error; for programs that show their own progress."""
    logging.getLogger("secondtake").setLevel(logging.CRITICAL)
    logging.getLogger("mitmproxy").setLevel(logging.CRITICAL)
    if sys.flags.dev_mode:
        logging.getLogger("secondtake").setLevel(logging.ERROR)

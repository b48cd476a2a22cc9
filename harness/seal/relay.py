"""Bytes from a socket inside to the proxy and back, on the caller's event loop.

Ends as the two sides end: the end of one direction is passed on by itself, a reset as a reset.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
from base64 import b64encode

PIECE_BYTES = 256 * 1024
_HEAD_BYTES = 64 * 1024
"""Most that a proxy may answer to a CONNECT."""

_RESET = struct.pack("ii", 1, 0)


class Relay:
    """Two connected sockets, made one. `done` is set when both directions have ended, or one was reset; both are closed then.

    `buffer` holds nothing between two calls, so that all relays of a loop may have the same one.
    """

    def __init__(self, one: socket.socket, other: socket.socket, buffer: memoryview) -> None:
        self.loop = asyncio.get_running_loop()
        self.done: asyncio.Future[None] = self.loop.create_future()
        self.both = (one, other)
        self.buffer = buffer
        self.open_ways = 2
        for each in self.both:
            each.setblocking(False)
            with contextlib.suppress(OSError):
                each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.loop.add_reader(one, self._move, one, other)
        self.loop.add_reader(other, self._move, other, one)

    def _move(self, source: socket.socket, sink: socket.socket) -> None:
        try:
            count = source.recv_into(self.buffer)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            self.end(reset=True)
            return
        if not count:
            self.loop.remove_reader(source)
            self._ended(sink)
            return
        try:
            sent = sink.send(self.buffer[:count])
        except (BlockingIOError, InterruptedError):
            sent = 0
        except OSError:
            self.end(reset=True)
            return
        if sent < count:
            self.loop.remove_reader(source)
            self.loop.add_writer(sink, self._push, source, sink, bytearray(self.buffer[sent:count]))

    def _push(self, source: socket.socket, sink: socket.socket, rest: bytearray) -> None:
        try:
            sent = sink.send(rest)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            self.end(reset=True)
            return
        del rest[:sent]
        if not rest:
            self.loop.remove_writer(sink)
            self.loop.add_reader(source, self._move, source, sink)

    def _ended(self, sink: socket.socket) -> None:
        self.open_ways -= 1
        with contextlib.suppress(OSError):
            sink.shutdown(socket.SHUT_WR)
        if not self.open_ways:
            self.end(reset=False)

    def end(self, *, reset: bool) -> None:
        """Close both."""
        if self.done.done():
            return
        self.done.set_result(None)
        for each in self.both:
            self.loop.remove_reader(each)
            self.loop.remove_writer(each)
            close(each, reset=reset)


def close(given: socket.socket, *, reset: bool) -> None:
    """Close a socket, with a reset for its peer where that is what happened."""
    if reset:
        with contextlib.suppress(OSError):
            given.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
    given.close()


async def tunnel(upstream: socket.socket, name: str, port: int, credential: str | None) -> bytes:
    """Ask a proxy for a tunnel (RFC 9110 section 9.3.6). Returns what came after its answer.

    Raises:
        OSError: it refused, or went away.
    """
    loop = asyncio.get_running_loop()
    where = f"[{name}]:{port}" if ":" in name else f"{name}:{port}"
    lines = [f"CONNECT {where} HTTP/1.1", f"Host: {where}"]
    if credential is not None:
        lines.append(f"Proxy-Authorization: Basic {b64encode(credential.encode()).decode()}")
    await loop.sock_sendall(upstream, "\r\n".join([*lines, "", ""]).encode())
    said = b""
    while b"\r\n\r\n" not in said:
        piece = await loop.sock_recv(upstream, _HEAD_BYTES)
        if not piece or len(said) > _HEAD_BYTES:
            raise ConnectionAbortedError("no answer to CONNECT")
        said += piece
    head, _, rest = said.partition(b"\r\n\r\n")
    words = head.split(None, 2)
    if len(words) < 2 or not words[1].startswith(b"2"):
        raise ConnectionRefusedError("the proxy refused CONNECT")
    return rest

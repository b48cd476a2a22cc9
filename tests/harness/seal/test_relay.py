"""Bytes through a relay: all of them, both ways, to whatever end."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator

import pytest

from secondtake.harness.seal.relay import PIECE_BYTES, Relay, close, tunnel


@contextlib.asynccontextmanager
async def relayed() -> AsyncIterator[tuple[socket.socket, socket.socket, Relay]]:
    """Two ends with a relay between them, over TCP."""
    pairs = []
    for _ in range(2):
        with socket.create_server(("127.0.0.1", 0)) as server:
            one = socket.create_connection(server.getsockname())
            pairs.append((one, server.accept()[0]))
    relay = Relay(pairs[0][1], pairs[1][1], memoryview(bytearray(PIECE_BYTES)))
    for each in (pairs[0][0], pairs[1][0]):
        each.setblocking(False)
    try:
        yield pairs[0][0], pairs[1][0], relay
    finally:
        relay.end(reset=False)
        pairs[0][0].close()
        pairs[1][0].close()


async def everything(source: socket.socket) -> int:
    loop, total = asyncio.get_running_loop(), 0
    while piece := await loop.sock_recv(source, 1 << 18):
        total += len(piece)
    return total


def test_a_slow_reader_gets_every_byte_and_the_end() -> None:
    """What cannot be sent on at once waits, and its source is not read meanwhile."""

    async def go() -> None:
        loop = asyncio.get_running_loop()
        async with relayed() as (one, other, relay):
            size = 30_000_000
            sending = asyncio.ensure_future(loop.sock_sendall(one, bytes(size)))
            await asyncio.wait({sending}, timeout=0.05)
            assert not sending.done()
            reading = asyncio.ensure_future(everything(other))
            await sending
            one.shutdown(socket.SHUT_WR)
            assert await reading == size
            await loop.sock_sendall(other, b"still open")  # the other direction has not ended
            assert await loop.sock_recv(one, 100) == b"still open"
            assert not relay.done.done()
            other.shutdown(socket.SHUT_WR)
            await relay.done
            assert await loop.sock_recv(one, 100) == b""

    asyncio.run(go())


def test_a_reset_arrives_as_a_reset() -> None:
    """A recorded abort is replayed as one, through the seal too."""

    async def go() -> None:
        async with relayed() as (one, other, relay):
            close(other, reset=True)
            await relay.done
            with pytest.raises(ConnectionResetError):
                await asyncio.get_running_loop().sock_recv(one, 1)

    asyncio.run(go())


@pytest.mark.parametrize(
    ("answer", "rest"), [(b"HTTP/1.1 200 OK\r\n\r\nearly", b"early"), (b"HTTP/1.1 403 No\r\n\r\n", None), (b"", None), (b"x\r\n\r\n", None)]
)
def test_a_tunnel_is_asked_for_with_the_credential_and_stands_or_fails(answer: bytes, rest: bytes | None) -> None:
    """RFC 9110 section 9.3.6; an address in brackets (RFC 3986 section 3.2.2)."""

    async def go() -> None:
        ours, theirs = socket.socketpair()
        with ours, theirs:
            ours.setblocking(False)
            theirs.sendall(answer)
            theirs.shutdown(socket.SHUT_WR)
            if rest is None:
                with pytest.raises(OSError, match="CONNECT"):
                    await tunnel(ours, "2001:db8::1", 443, "user:word")
            else:
                assert await tunnel(ours, "2001:db8::1", 443, "user:word") == rest
            lines = theirs.recv(4096).split(b"\r\n")
            assert lines[:2] == [b"CONNECT [2001:db8::1]:443 HTTP/1.1", b"Host: [2001:db8::1]:443"]
            assert lines[2] == b"Proxy-Authorization: Basic dXNlcjp3b3Jk"

    asyncio.run(go())

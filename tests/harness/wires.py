"""A raw HTTP/1.1 client for the provider tests: no SDK, no HTTP library, so that what is seen is what was sent."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(slots=True)
class Got:
    """An answer. `chunks` are the pieces of its chunked body, `whole` is false where the connection ended before the body did."""

    status: int
    fields: dict[str, str]
    chunks: list[bytes] = field(default_factory=list)
    whole: bool = True

    @property
    def body(self) -> bytes:
        return b"".join(self.chunks)

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def events(self) -> list[tuple[str, Any]]:
        """Server-sent events as (name, data); data that is no JSON stays text."""
        found = []
        for block in self.body.decode().replace("\r\n", "\n").split("\n\n"):
            lines = dict(line.split(": ", 1) for line in block.split("\n") if line)
            if "data" in lines:
                data = lines["data"]
                found.append((lines.get("event", ""), json.loads(data) if data.startswith("{") else data))
        return found


def request_bytes(method: str, target: str, body: object = None, fields: Mapping[str, str] | None = None) -> bytes:
    """One request's bytes."""
    content = b"" if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
    head = {"host": "api.provider.example", "content-type": "application/json", "content-length": str(len(content)), **(fields or {})}
    return f"{method} {target} HTTP/1.1\r\n".encode() + b"".join(f"{n}: {v}\r\n".encode() for n, v in head.items()) + b"\r\n" + content


async def answer(reader: asyncio.StreamReader) -> Got:
    """One whole answer, or as much as came."""
    got = await head(reader)
    async for piece in pieces(reader, got):
        got.chunks.append(piece)
    return got


async def head(reader: asyncio.StreamReader) -> Got:
    """The head of an answer."""
    lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    names = (line.split(": ", 1) for line in lines[1:] if line)
    return Got(int(lines[0].split()[1]), {name.lower(): value for name, value in names})


async def pieces(reader: asyncio.StreamReader, got: Got) -> AsyncIterator[bytes]:
    """The body as it comes; sets `whole` to false where it is cut."""
    try:
        if "chunked" not in got.fields.get("transfer-encoding", ""):
            yield await reader.readexactly(int(got.fields["content-length"]))
            return
        while size := int((await reader.readuntil(b"\r\n")).strip(), 16):
            piece = await reader.readexactly(size + 2)
            yield piece[:-2]
        await reader.readexactly(2)
    except asyncio.IncompleteReadError as error:
        got.whole = False
        if error.partial:
            yield error.partial
    except ConnectionError:
        got.whole = False


async def post(port: int, target: str, body: object, fields: Mapping[str, str] | None = None, tls: ssl.SSLContext | None = None) -> Got:
    """POST on a connection of its own, with a key."""
    return await ask(port, request_bytes("POST", target, body, {"x-api-key": "k", **(fields or {})}), tls)


async def ask(port: int, raw: bytes, tls: ssl.SSLContext | None = None) -> Got:
    """Send bytes, read one answer."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=tls, limit=1 << 24)
    writer.write(raw)
    try:
        return await answer(reader)
    finally:
        writer.transport.abort()

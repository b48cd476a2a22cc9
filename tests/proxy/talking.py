"""Both ends of a WebSocket: a real server and a real client on either side of the proxy, and a provider that speaks Responses."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any

import aiohttp
from aiohttp import WSMsgType, web

from secondtake.cassettes import frames
from secondtake.cassettes.frames import Kept
from tests.proxy.world import HOST, MemoryWriter, World

type Speak = Callable[[web.WebSocketResponse], Awaitable[None]]


@contextlib.asynccontextmanager
async def served(w: World, path: str, speak: Speak) -> AsyncIterator[str]:
    """A real WebSocket server at `path`; gives the URL to ask for."""

    async def answer(request: web.Request) -> web.WebSocketResponse:
        w.origin.connections += 1
        socket = web.WebSocketResponse(autoping=False, protocols=("chat.v2",))
        await socket.prepare(request)
        with contextlib.suppress(ConnectionError):
            await speak(socket)
        return socket

    application = web.Application()
    application.router.add_get(path, answer)
    runner = web.AppRunner(application, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=w._context)
    await site.start()
    port = runner.addresses[0][1]
    try:
        yield f"https://{HOST}:{port}{path}"
    finally:
        await runner.cleanup()


@contextlib.asynccontextmanager
async def dialled(w: World, url: str, **given: Any) -> AsyncIterator[aiohttp.ClientWebSocketResponse]:
    """A real client, through the proxy, that trusts our authority."""
    assert w.proxy is not None
    async with (
        aiohttp.ClientSession() as session,
        session.ws_connect(url, proxy=f"http://127.0.0.1:{w.proxy.port}", ssl=w.context(), autoping=False, compress=15, **given) as socket,
    ):
        yield socket


def messages(writer: MemoryWriter, number: int = 0) -> list[Kept]:
    """What was kept of one socket."""
    exchange = writer.exchanges[number]
    assert exchange.answer is not None
    sent, received = (writer.bodies.get(body.digest, b"") for body in (exchange.request.body, exchange.answer.body))
    return list(frames.entries(exchange, sent, received))


def drop(socket: aiohttp.ClientWebSocketResponse) -> None:
    """Leave without a close frame, as Codex does."""
    assert socket._conn is not None
    assert socket._conn.transport is not None
    socket._conn.transport.abort()


def cut(socket: web.WebSocketResponse) -> None:
    """End the server's side without a close frame."""
    assert socket._req is not None
    assert socket._req.transport is not None
    socket._req.transport.abort()


class Provider:
    """Speaks the Responses socket: a turn is created, told in two deltas, completed; state lives on the connection."""

    def __init__(self) -> None:
        self.count = 0
        self.asked: list[dict[str, Any]] = []
        self.raw: list[str] = []
        self.heads: list[Mapping[str, str]] = []
        self.drops_after = 0
        self.gate: asyncio.Event | None = None

    async def speak(self, socket: web.WebSocketResponse) -> None:
        assert socket._req is not None
        self.heads.append(socket._req.headers)
        tasks: list[asyncio.Task[None]] = []
        turns = 0
        async for message in socket:
            told = json.loads(message.data)
            self.asked.append(told)
            self.raw.append(message.data)
            turns += 1
            self.count += 1
            if self.drops_after == self.count:
                await self.turn(socket, told, self.count, half=True)
                cut(socket)
                return
            tasks.append(asyncio.ensure_future(self.turn(socket, told, self.count)))
            if told.get("stream_id") is None:
                await tasks[-1]
        await asyncio.gather(*tasks)

    async def turn(self, socket: web.WebSocketResponse, told: dict[str, Any], number: int, *, half: bool = False) -> None:
        lane = {"stream_id": told["stream_id"]} if "stream_id" in told else {}
        shell = {
            "id": f"resp_{number}",
            "object": "response",
            "model": told["model"],
            "previous_response_id": told.get("previous_response_id"),
        }
        text = f"answer {number} by {told['model']}"
        await socket.send_json({"type": "response.created", "sequence_number": 0, "response": {**shell, "status": "in_progress"}, **lane})
        if told.get("generate") is not False:
            await socket.send_json({"type": "response.output_text.delta", "sequence_number": 1, "delta": text[:4], **lane})
            if half:
                return
            if self.gate is not None and lane == {"stream_id": "left"}:
                await self.gate.wait()
            await socket.send_json({"type": "response.output_text.delta", "sequence_number": 2, "delta": text[4:], **lane})
            if self.gate is not None and lane == {"stream_id": "right"}:
                self.gate.set()
        output = [{"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}]
        done = {**shell, "status": "completed", "output": output, "usage": {"input_tokens": 3, "output_tokens": 2, "total_tokens": 5}}
        await socket.send_json({"type": "response.completed", "sequence_number": 3, "response": done, **lane})


def create(text: str | None, previous: str | None = None, *, lane: str | None = None, **more: object) -> str:
    made: dict[str, object] = {"type": "response.create", "model": "gpt-5.1-codex", "store": False}
    made["input"] = [] if text is None else [{"type": "message", "role": "user", "content": text}]
    made |= {"previous_response_id": previous} if previous else {}
    made |= {"stream_id": lane} if lane else {}
    return json.dumps(made | more)


async def ask(socket: aiohttp.ClientWebSocketResponse, said: str) -> list[dict[str, Any]]:
    """Say something; everything up to its end."""
    await socket.send_str(said)
    return await until_done(socket, 1)


async def until_done(socket: aiohttp.ClientWebSocketResponse, turns: int) -> list[dict[str, Any]]:
    heard: list[dict[str, Any]] = []
    while turns:
        message = await socket.receive()
        if message.type is not WSMsgType.TEXT:
            return [*heard, {"type": message.type.name, "code": socket.close_code or message.data, "reason": message.extra}]
        heard.append(json.loads(message.data))
        turns -= heard[-1]["type"] in ("response.completed", "error")
    return heard

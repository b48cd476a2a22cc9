"""The scripted provider's server: HTTP/1.1, plain or over TLS, all wire formats on one port.

It counts every TCP connection when it is accepted, before any TLS, so that a test can prove that nothing reached it.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import re
import socket
import ssl
import struct
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import assert_never

from aiohttp import web

from secondtake.harness.provider import anthropic, bedrock, chat, gemini
from secondtake.harness.provider.anthropic import Anthropic
from secondtake.harness.provider.chat import Chat
from secondtake.harness.provider.gemini import Gemini
from secondtake.harness.provider.responses import Responses
from secondtake.harness.provider.script import CutOff, ErrorEvent, Failure, HowCut, Reply, Scene, Script
from secondtake.harness.provider.wire import BadCall, Call, Json, Wire, compact

SERVER = "scripted-provider"
"""The `Server` field of every answer: without it there would be the version of the HTTP library."""

Pacer = Callable[[Scene, Call, int], Awaitable[None]]
"""Awaited before each stream event: the scene, the call, and the event's number from 0. The only clock of the provider."""

BODY_BYTES = 128 * 1024 * 1024
"""Longest request body read; a longer one gets 413."""


async def no_pace(_scene: Scene, _call: Call, _event: int) -> None:
    """All events at once."""


async def real_pace(scene: Scene, _call: Call, event: int) -> None:
    """The scene's `delay_ms` before each event but the first."""
    if event and scene.delay_ms:
        await asyncio.sleep(scene.delay_ms / 1000)


@dataclass(slots=True)
class Seen:
    """One request the provider has read, in order of arrival. `status` is 0 until the answer's head is sent, `events` counts what was sent.

    `ended` is "" while answering, then `complete`, `cut` (scripted) or `client-left`.
    """

    method: str
    target: str
    fields: tuple[tuple[bytes, bytes], ...]
    body: bytes
    call: Call | None = None
    status: int = 0
    events: int = 0
    ended: str = ""

    def field(self, name: str) -> str | None:
        """The first value of a header field."""
        wanted = name.lower().encode()
        return next((v.decode("latin-1") for n, v in self.fields if n.lower() == wanted), None)

    @property
    def signer(self) -> str | None:
        """The access key ID of a request that is signed as AWS asks (SigV4). The signature itself is not checked."""
        return _signer(self.field("authorization") or "")


class _CountingSocket(socket.socket):
    """A listening socket that counts what it accepts."""

    accepted = 0

    def accept(self) -> tuple[socket.socket, object]:
        pair = super().accept()
        self.accepted += 1
        return pair


@dataclass(slots=True)
class Provider:
    """A scripted provider. `await start()`, use `base_url`, `await stop()`; or `async with`.

    `accept`: the keys that are accepted; None accepts any, but a call without a credential gets 401, as from a real provider.
    `watch` is called when a request has ended, however it did. A client that leaves is noticed when the next event is written.
    """

    script: Script
    tls: ssl.SSLContext | None = None
    pace: Pacer = no_pace
    accept: frozenset[str] | None = None
    host: str = "127.0.0.1"
    port: int = 0
    watch: Callable[[Seen], None] = lambda _seen: None
    seen: list[Seen] = field(default_factory=list)
    _runner: web.AppRunner | None = None
    _socket: _CountingSocket | None = None
    _attempts: Counter[bytes] = field(default_factory=Counter)

    async def start(self) -> int:
        """Listen, and return the bound port.

        Raises:
            OSError: the port is in use.
        """
        family = socket.AF_INET6 if ":" in self.host else socket.AF_INET
        listening = _CountingSocket(family, socket.SOCK_STREAM)
        try:
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listening.bind((self.host, self.port))
            listening.setblocking(False)
            app = web.Application(client_max_size=BODY_BYTES)
            app.router.add_route("*", "/{anything:.*}", self._answer)
            self._runner = web.AppRunner(app, access_log=None, keepalive_timeout=3600)
            await self._runner.setup()
            await web.SockSite(self._runner, listening, ssl_context=self.tls, backlog=256).start()
        except BaseException:
            listening.close()
            raise
        self._socket = listening
        self.port = int(listening.getsockname()[1])
        return self.port

    async def stop(self) -> None:
        """Close the port and every connection. The counters stay readable."""
        if self._runner is not None:
            await self._runner.shutdown()
            for protocol in list(self._runner.server.connections if self._runner.server else ()):
                if protocol.transport is not None:
                    protocol.transport.abort()
            await self._runner.cleanup()
            self._runner = None

    async def __aenter__(self) -> Provider:
        await self.start()
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self.stop()

    @property
    def base_url(self) -> str:
        """Where it listens, without a path and without a slash at the end."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'https' if self.tls else 'http'}://{host}:{self.port}"

    @property
    def connections_made(self) -> int:
        """TCP connections accepted so far, whatever was said on them."""
        return self._socket.accepted if self._socket else 0

    @property
    def connections_open(self) -> int:
        """Connections that are open now (over TLS: past the handshake)."""
        server = self._runner.server if self._runner else None
        return len(server.connections) if server else 0

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        seen = Seen(request.method, request.raw_path, tuple(request.raw_headers), body)
        self.seen.append(seen)
        response = await self._routed(request, seen)
        if not seen.status:
            seen.status, seen.ended = response.status, "complete"
        self.watch(seen)
        return response

    async def _routed(self, request: web.Request, seen: Seen) -> web.StreamResponse:
        path = request.path
        if request.method in ("GET", "HEAD"):
            if request.headers.get("upgrade", "").lower() == "websocket":
                return _json({"error": {"message": "this provider speaks no WebSocket", "type": "invalid_request_error"}}, 426)
            return self._models(request)
        gemini_path = re.search(r"/models/([^/:]+):(\w+)$", path)
        if gemini_path and gemini_path[2] in ("generateContent", "streamGenerateContent", "countTokens"):
            verb = gemini_path[2]
            wire = Gemini(sse=request.query.get("alt") == "sse")
            return await self._call(request, seen, wire, gemini_path[1], verb.startswith("stream"), count=verb == "countTokens")
        runtime = bedrock.PATH.search(path)
        if runtime:
            verb = runtime[2]
            return await self._call(
                request, seen, bedrock.wire_of(verb), runtime[1], verb.endswith("-stream"), count=verb == "count-tokens"
            )
        if path.endswith("/v1/messages"):
            return await self._call(request, seen, Anthropic())
        if path.endswith("/v1/messages/count_tokens"):
            return await self._call(request, seen, Anthropic(), count=True)
        if path.endswith("/chat/completions"):
            return await self._call(request, seen, Chat())
        if path.endswith("/responses"):
            return await self._call(request, seen, Responses())
        if path.endswith("/responses/input_tokens"):
            return await self._call(request, seen, Responses(), count=True)
        return _json({"error": {"message": f"no such path: {path}", "type": "not_found_error"}}, 404)

    def _models(self, request: web.Request) -> web.StreamResponse:
        models = self.script.models()
        if request.path == "/foundation-models":
            return _json(bedrock.model_list(models))
        listed, _, wanted = request.path.partition("/models")
        if listed.endswith("/v1beta") or "x-goog-api-key" in request.headers or "key" in request.query:
            one, many = gemini.model_entry, gemini.model_list
        elif "anthropic-version" in request.headers:
            one, many = anthropic.model_entry, anthropic.model_list
        else:
            one, many = chat.model_entry, chat.model_list
        if not re.fullmatch(r"(/.*)?/(v1|v1beta)", listed):
            return _json({"error": {"message": f"no such path: {request.path}", "type": "not_found_error"}}, 404)
        if wanted in ("", "/"):
            return _json(many(models))
        name = wanted.removeprefix("/")
        if name not in models:
            return _json(Chat().error(None, Failure(404, f"model: {name}")), 404)
        return _json(one(name))

    async def _call(
        self, request: web.Request, seen: Seen, wire: Wire, model: str = "", stream: bool = False, *, count: bool = False
    ) -> web.StreamResponse:
        try:
            document = json.loads(seen.body)
        except (ValueError, RecursionError):
            document = None
        if not isinstance(document, dict):
            return _failed(wire, None, Failure(400, "the request body is not a JSON object"))
        if (key := _credential(request)) is None or (self.accept is not None and key not in self.accept):
            return _failed(wire, None, Failure(401, "missing or invalid API key"))
        try:
            call = seen.call = wire.read(document, model, stream, len(seen.body))
        except BadCall as complaint:
            return _failed(wire, None, Failure(400, str(complaint)))
        scene = self.script.scene(call.model, call.task)
        if scene is None:
            return _failed(wire, call, Failure(404, f"model: {call.model}"))
        if count:
            return _json(wire.counted(call), fields=wire.fields(call))
        if call.turn >= len(scene.turns):
            return _failed(wire, call, Failure(400, f"the script has {len(scene.turns)} turns, this would be number {call.turn + 1}"))
        turn = scene.turns[call.turn]
        if isinstance(turn, Failure):
            return _failed(wire, call, turn)
        if turn.first:
            digest = hashlib.sha256(seen.target.encode() + b"\0" + seen.body).digest()
            self._attempts[digest] += 1
            if self._attempts[digest] <= len(turn.first):
                return _failed(wire, call, turn.first[self._attempts[digest] - 1])
        served = scene.served or call.model
        if call.stream:
            return await self._streamed(request, seen, scene, wire, call, turn, served)
        match turn.broken:
            case ErrorEvent(failure=failure):
                return _failed(wire, call, failure)
            case CutOff() as broken:
                whole = compact(wire.whole(call, turn, served)).encode()
                response = web.StreamResponse(headers=_heads("application/json", wire.fields(call)))
                response.content_length = len(whole)
                return await _sent_and_cut(request, seen, response, [whole[: len(whole) // 2]], broken.how)
            case None:
                return _json(wire.whole(call, turn, served), fields=wire.fields(call))
            case _:
                assert_never(turn.broken)

    async def _streamed(
        self, request: web.Request, seen: Seen, scene: Scene, wire: Wire, call: Call, reply: Reply, served: str
    ) -> web.StreamResponse:
        events = list(wire.events(call, reply, served))
        how: HowCut | None = None
        match reply.broken:
            case CutOff(after, how):
                del events[after:]
            case ErrorEvent(after, failure):
                events[after:] = [wire.error_event(call, failure, after)]
            case None:
                pass
            case _:
                assert_never(reply.broken)
        response = web.StreamResponse(headers=_heads(wire.stream_type, {"cache-control": "no-cache", **wire.fields(call)}))
        response.enable_chunked_encoding()

        async def paced(number: int) -> None:
            await self.pace(scene, call, number)

        if how is not None:
            return await _sent_and_cut(request, seen, response, events, how, paced)
        return await _sent(request, seen, response, events, paced)


async def _at_once(_number: int) -> None:
    return None


async def _sent(
    request: web.Request,
    seen: Seen,
    response: web.StreamResponse,
    pieces: Sequence[bytes],
    paced: Callable[[int], Awaitable[None]] = _at_once,
    *,
    eof: bool = True,
) -> web.StreamResponse:
    try:
        await response.prepare(request)
        seen.status = response.status
        for number, piece in enumerate(pieces):
            await paced(number)
            await response.write(piece)
            seen.events += 1
        if eof:
            await response.write_eof()
        seen.ended = "complete"
    except ConnectionError:
        seen.ended = "client-left"
    return response


async def _sent_and_cut(
    request: web.Request,
    seen: Seen,
    response: web.StreamResponse,
    pieces: Sequence[bytes],
    how: HowCut,
    paced: Callable[[int], Awaitable[None]] = _at_once,
) -> web.StreamResponse:
    await _sent(request, seen, response, pieces, paced, eof=False)
    transport = request.transport
    if transport is not None and seen.ended == "complete":
        seen.ended = "cut"
        if how is HowCut.RESET:
            with contextlib.suppress(OSError):
                connection = transport.get_extra_info("socket")
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            transport.abort()
        else:
            transport.close()
    return response


def _credential(request: web.Request) -> str | None:
    """What the call authenticates with, wherever this provider's clients put it."""
    bearer = request.headers.get("authorization", "")
    plain = request.headers.get("x-api-key") or request.headers.get("x-goog-api-key") or request.headers.get("api-key")
    return plain or _signer(bearer) or bearer.partition(" ")[2].strip() or request.query.get("key") or None


def _signer(authorization: str) -> str | None:
    match = re.match(r"AWS4-HMAC-SHA256 .*?Credential=([^/,]+)/", authorization)
    return match[1] if match else None


def _failed(wire: Wire, call: Call | None, failure: Failure) -> web.StreamResponse:
    fields = dict(wire.failed_fields(call, failure))
    if failure.retry_after_s is not None:
        fields["retry-after"] = str(failure.retry_after_s)
    return _json(wire.error(call, failure), failure.status, fields)


def _json(value: Json, status: int = 200, fields: Mapping[str, str] | None = None) -> web.StreamResponse:
    return web.Response(body=compact(value).encode(), status=status, headers=_heads("application/json", fields or {}))


def _heads(content_type: str, fields: Mapping[str, str]) -> dict[str, str]:
    return {"content-type": content_type, "server": SERVER, **fields}

"""A model's WebSocket in a retake: every call leaves as the pin, the rest of the sockets are played, the take is whole."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from secondtake.cassettes.casting import Casting
from secondtake.cassettes.exchange import Channel, Ending, Request
from secondtake.cassettes.player import Player
from secondtake.cassettes.stops import Stops
from secondtake.proxy.addon import Wire
from secondtake.proxy.credentials import NoCredential
from secondtake.proxy.policy import Mode, Sockets
from secondtake.proxy.retake import Retake
from secondtake.proxy.settings import Settings
from tests.proxy.talking import Provider, ask, create, dialled, messages, served
from tests.proxy.world import HOST, MemoryWriter, World, world

OLD, NEW = "gpt-5.1-codex", "gpt-4.1-2025-04-14"


async def retake(w: World, take: MemoryWriter, *, websocket: Sockets = Sockets.RECORD, **given: Any) -> Wire:
    await w.stop()
    made = Settings(Mode.RETAKE, trust=w.world_authority.ca_path, loopback=True, websocket=websocket)
    played = Retake(Casting.of((NEW,), allow_unpinned=True), given.pop("stops", Stops()), **given)
    wire = Wire(
        made,
        w.authority,
        redactor=w.redactor,
        now_us=w.now_us,
        now_s=lambda: 1_800_000_000,
        writer=take,  # type: ignore[arg-type]  # as much of a writer as the wire uses
        player=Player(w.writer.cassette(), w.redactor),
        retake=played,
        resolver=w._resolve,
        known_hosts=frozenset({HOST}),
    )
    return await w._start(wire)


async def recorded(w: World, url: str) -> None:
    await w.record(websocket=Sockets.RECORD)
    async with dialled(w, url) as socket:
        await ask(socket, create("one"))


async def test_the_model_is_swapped_in_every_call_of_a_socket_and_nothing_else_is(tmp_path: Path) -> None:
    """A-03, A-10: bytes as the agent wrote them but for the ID; each call judged; the take replays as it was, with nothing leaving."""
    provider = Provider()
    async with world(tmp_path, {}) as w, served(w, "/v1/responses", provider.speak) as url:
        await recorded(w, url)
        take = MemoryWriter()
        wire = await retake(w, take)

        async def run() -> list[dict[str, Any]]:
            async with dialled(w, url) as socket:
                heard = await ask(socket, create("something else", odd="\u00e9 \u2028"))
                assert socket.compress == 0
                return heard + await ask(socket, create("more", "resp_2", lane="a"))

        first = await run()
        assert [one["response"]["model"] for one in first if one["type"] == "response.completed"] == [NEW, NEW]
        assert provider.raw[1:] == [
            create("something else", odd="\u00e9 \u2028").replace(OLD, NEW),
            create("more", "resp_2", lane="a").replace(OLD, NEW),
        ]
        await w.stop()
        assert wire.retake is not None
        assert [(call.requested, call.forwarded, call.verdict.mismatch) for call in wire.retake.calls] == [((OLD,), NEW, False)] * 2
        assert {model for call in wire.retake.calls for model in call.verdict.served} == {NEW}
        (exchange,) = take.exchanges
        assert {"model-swap", "extensions-dropped"} <= set(exchange.forwarded)
        assert [told["forwarded"] for told in exchange.details["model_calls"]] == [NEW, NEW]  # type: ignore[attr-defined]
        assert OLD.encode() in messages(take)[0].data
        assert wire.outcome.clean
        asked = len(provider.asked)
        w.writer = take
        again = await w.replay()
        assert await run() == first
        assert again.outcome.clean
        assert len(provider.asked) == asked


async def test_a_call_that_may_not_be_sent_is_refused_on_the_socket(tmp_path: Path) -> None:
    """DESIGN 5: a stopping rule, a model that is not cast: the provider's own error, in the lane that asked; the socket lives on."""
    provider = Provider()
    async with world(tmp_path, {}) as w, served(w, "/v1/responses", provider.speak) as url:
        await recorded(w, url)
        take = MemoryWriter()
        wire = await retake(w, take, stops=Stops(max_calls=1))
        async with dialled(w, url) as socket:
            (end,) = (await ask(socket, json.dumps({"type": "response.create", "input": "x", "stream_id": "b"})))[-1:]
            assert (end["type"], end["stream_id"], end["status"]) == ("error", "b", 400)
            assert (await ask(socket, create("one")))[-1]["type"] == "response.completed"
            (end,) = await ask(socket, create("two", "resp_2"))
            assert "max-calls" in end["error"]["message"] or "calls" in end["error"]["message"]
        assert len(provider.asked) == 2
        assert wire.retake is not None
        assert wire.retake.tripped is not None


@pytest.mark.parametrize(("websocket", "from_step"), [(Sockets.REFUSE, 0), (Sockets.RECORD, 1)])
async def test_a_models_socket_is_426_in_a_retake_that_cannot_recast_it(tmp_path: Path, websocket: Sockets, from_step: int) -> None:
    """T-H1: not asked for; or the first calls are played, and what they left behind is not on a live connection."""
    provider = Provider()
    async with world(tmp_path, {}) as w, served(w, "/v1/responses", provider.speak) as url:
        await recorded(w, url)
        await retake(w, MemoryWriter(), websocket=websocket, from_step=from_step)
        with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
            async with dialled(w, url):
                pass
        assert refused.value.status == 426
        assert len(provider.asked) == 1


async def test_another_socket_is_played_in_a_retake_and_stands_on_the_take(tmp_path: Path) -> None:
    """DESIGN 3: everything but model calls comes from the cassette, and the take is whole by itself (ADR 6)."""

    async def echo(socket: web.WebSocketResponse) -> None:
        async for message in socket:
            await socket.send_str(f"<{message.data}>")

    async def run() -> str:
        async with dialled(w, url) as socket:
            await socket.send_str("a")
            return await socket.receive_str()

    async with world(tmp_path, {}) as w, served(w, "/echo", echo) as url:
        await w.record(websocket=Sockets.RECORD)
        assert await run() == "<a>"
        asked = w.origin.connections
        take = MemoryWriter()
        await retake(w, take)
        assert await run() == "<a>"
        await w.stop()
        assert w.origin.connections == asked
        (exchange,) = take.exchanges
        assert (exchange.channel, exchange.details["source_seq"]) == (Channel.WEB, 1)
        w.writer = take
        wire = await w.replay()
        assert await run() == "<a>"
        assert wire.outcome.clean


class Held:
    """A credential for one host, or none to be had; what was said of the answers."""

    def __init__(self, why: str | None = None) -> None:
        self.why = why
        self.statuses: list[int] = []

    async def apply(self, adapter: str, request: Request, content: bytes) -> Request:
        if self.why is not None:
            raise NoCredential(self.why)
        assert (adapter, content) == ("openai-responses", b"")
        return replace(request, fields=(*request.fields, (b"Authorization", b"Bearer real")))

    def answered(self, status: int) -> None:
        self.statuses.append(status)


async def test_the_real_credential_goes_on_the_upgrade_and_nowhere_else(tmp_path: Path) -> None:
    """DESIGN 5: to the one host it is for; it is not on the take."""
    provider = Provider()
    async with world(tmp_path, {}) as w, served(w, "/v1/responses", provider.speak) as url:
        await recorded(w, url)
        take, held = MemoryWriter(), Held()
        await retake(w, take, credentials=held)
        async with dialled(w, url) as socket:
            await ask(socket, create("one"))
        await w.stop()
        assert provider.heads[0].get("Authorization") is None
        assert provider.heads[1]["Authorization"] == "Bearer real"
        assert "Bearer real" not in repr(take.exchanges)
        assert held.statuses[0] == 101


async def test_a_socket_without_its_credential_is_not_dialled(tmp_path: Path) -> None:
    """The provider's own refusal, which is not tried again; the take says why."""
    provider = Provider()
    async with world(tmp_path, {}) as w, served(w, "/v1/responses", provider.speak) as url:
        await recorded(w, url)
        take = MemoryWriter()
        wire = await retake(w, take, credentials=Held("the variable KEY is not set"))
        with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
            async with dialled(w, url):
                pass
        await w.stop()
        assert refused.value.status == 400
        assert w.origin.connections == 1
        assert wire.retake is not None
        assert wire.retake.refused == ["the variable KEY is not set"]
        assert take.exchanges[0].ended is Ending.REFUSED

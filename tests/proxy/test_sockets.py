"""WebSockets through the proxy: a real client and a real server, recorded, played again, and recast."""

from __future__ import annotations

import asyncio
import json
import time
from pathlib import Path
from typing import Any

import aiohttp
import openai
import pytest
from aiohttp import WSMsgType, web
from openai.types.websocket_connection_options import WebSocketConnectionOptions

from secondtake.cassettes import frames
from secondtake.cassettes.exchange import Answered, Channel, Ending, Side
from secondtake.cassettes.misses import MissKind
from secondtake.proxy.policy import Pace, Sockets
from tests.proxy.talking import Provider, ask, create, cut, dialled, drop, messages, served, until_done
from tests.proxy.world import World, world

# -- T-H2: any socket --------------------------------------------------------------------------------------------------


async def three_each_way(socket: web.WebSocketResponse) -> None:
    """Text, bytes and a ping, each in answer to something."""
    await socket.send_str("hello")
    for reply in (b"\x00\xff\x81", "two"):
        await socket.receive()
        await (socket.send_bytes(reply) if isinstance(reply, bytes) else socket.send_str(reply))
    await socket.ping(b"there?")
    assert (await socket.receive()).type is WSMsgType.PONG
    assert (await socket.receive()).data == "last"
    await socket.close(code=4001, message=b"enough")


async def talk(socket: aiohttp.ClientWebSocketResponse, words: tuple[str | bytes, ...] = ("one", b"\x01\x02", "last")) -> list[object]:
    """Say `words`, each after what there was to hear; everything heard."""
    heard: list[object] = [(await socket.receive_str())]
    for word in words[:2]:
        await (socket.send_bytes(word) if isinstance(word, bytes) else socket.send_str(word))
        message = await socket.receive()
        heard.append(message.data)
        if message.type is WSMsgType.CLOSE:
            return [*heard, message.extra]
    message = await socket.receive()
    assert message.type is WSMsgType.PING
    await socket.pong(message.data)
    heard.append(message.data)
    await socket.send_str(words[2])  # type: ignore[arg-type]
    message = await socket.receive()
    return [*heard, message.type, message.data, message.extra]


HEARD = ["hello", b"\x00\xff\x81", "two", b"there?", WSMsgType.CLOSE, 4001, "enough"]


@pytest.mark.parametrize("pace", list(Pace))
async def test_three_messages_each_way_with_bytes_and_a_ping_are_played_against_the_clients_own(tmp_path: Path, pace: Pace) -> None:
    """T-H2: in order, the close code included; compression is not agreed on; nothing leaves in replay."""
    async with world(tmp_path, {}) as w, served(w, "/chat", three_each_way) as url:
        await w.record(websocket=Sockets.RECORD)
        async with dialled(w, url, protocols=("chat.v2",)) as socket:
            assert await talk(socket) == HEARD
            assert (socket.protocol, socket.compress) == ("chat.v2", 0)
        await w.stop()
        (exchange,) = w.writer.exchanges
        assert (exchange.ended, exchange.channel) == (Ending.COMPLETE, Channel.WEB)
        assert "extensions-dropped" in exchange.forwarded
        assert [(entry.side, entry.opcode, entry.data) for entry in messages(w.writer) if entry.is_data] == [
            (Side.RESPONSE, 1, b"hello"),
            (Side.REQUEST, 1, b"one"),
            (Side.RESPONSE, 2, b"\x00\xff\x81"),
            (Side.REQUEST, 2, b"\x01\x02"),
            (Side.RESPONSE, 1, b"two"),
            (Side.REQUEST, 1, b"last"),
        ]
        asked = w.origin.connections
        await w.stop()
        wire = await w.replay(pace=pace)
        async with dialled(w, url, protocols=("chat.v2",)) as socket:
            assert await talk(socket) == HEARD
            assert socket.protocol == "chat.v2"
        outcome = await w.stop()
        assert outcome is not None
        assert (outcome.answered, outcome.requests, outcome.clean) == ({Answered.EXACT: 1}, 1, True)
        assert [session.unplayed() for session in wire.sessions()] == [[]]
        assert w.origin.connections == asked


async def test_another_message_of_the_client_closes_the_socket_and_is_a_miss(tmp_path: Path) -> None:
    """T-H2: `ws-diverged`: 1008 with a reason, told, not clean."""
    async with world(tmp_path, {}) as w, served(w, "/chat", three_each_way) as url:
        await w.record(websocket=Sockets.RECORD)
        async with dialled(w, url) as socket:
            await talk(socket)
        await w.stop()
        wire = await w.replay()
        async with dialled(w, url) as socket:
            heard = await talk(socket, ("one", b"\x01\x03", "last"))
        assert heard == ["hello", b"\x00\xff\x81", 1008, "secondtake: ws-diverged"]
        await w.stop()
        (missed,) = wire.outcome.misses
        assert missed.miss.kind is MissKind.WS_DIVERGED
        assert missed.miss.nearest is not None
        assert missed.miss.nearest.seq == 1
        assert (wire.outcome.answered, wire.outcome.requests, wire.outcome.clean) == ({Answered.MISS: 1}, 1, False)


async def test_a_socket_played_more_often_than_recorded_is_a_miss(tmp_path: Path) -> None:
    async with world(tmp_path, {}) as w, served(w, "/chat", three_each_way) as url:
        await w.record(websocket=Sockets.RECORD)
        async with dialled(w, url) as socket:
            await talk(socket)
        await w.stop()
        wire = await w.replay()
        async with dialled(w, url) as socket:
            await talk(socket)
        with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
            async with dialled(w, url):
                pass
        assert refused.value.status == 424
        assert [missed.miss.kind for missed in wire.outcome.misses] == [MissKind.EXHAUSTED]


async def test_two_sockets_of_one_address_are_told_apart_by_the_clients_first_word(tmp_path: Path) -> None:
    async def echo(socket: web.WebSocketResponse) -> None:
        async for message in socket:
            await socket.send_str(f"<{message.data}>")

    async def say(word: str) -> str:
        async with dialled(w, url) as socket:
            await socket.send_str(word)
            return await socket.receive_str()

    async with world(tmp_path, {}) as w, served(w, "/echo", echo) as url:
        await w.record(websocket=Sockets.RECORD)
        assert [await say(word) for word in ("a", "b")] == ["<a>", "<b>"]
        await w.stop()
        wire = await w.replay()
        assert [await say(word) for word in ("b", "a")] == ["<b>", "<a>"]
        assert wire.outcome.clean


@pytest.mark.parametrize("who", ["origin", "client"])
async def test_a_connection_dropped_without_a_close_is_1006_again(tmp_path: Path, who: str) -> None:
    """AGENTS 3: Codex drops its socket. Whoever does, the other side is told 1006, then as now."""

    async def speak(socket: web.WebSocketResponse) -> None:
        await socket.receive()
        await socket.send_str("first")
        if who == "origin":
            cut(socket)
        else:
            await socket.receive()

    async def converse() -> object:
        async with dialled(w, url) as socket:
            await socket.send_str("x")
            assert await socket.receive_str() == "first"
            if who == "client":
                drop(socket)
                return None
            message = await socket.receive()
            return message.type, socket.close_code

    async with world(tmp_path, {}) as w, served(w, "/chat", speak) as url:
        await w.record(websocket=Sockets.RECORD)
        first = await converse()
        await w.stop()
        assert w.writer.exchanges[0].ended is (Ending.RESET if who == "origin" else Ending.CLIENT_LEFT)
        assert frames.ended_by(w.writer.exchanges[0]) == who
        await w.stop()
        wire = await w.replay()
        assert await converse() == first
        await w.stop()
        assert wire.outcome.clean
        if who == "origin":
            assert isinstance(first, tuple)
            assert first[1] == 1006


async def test_without_being_asked_a_models_socket_is_426_in_record_and_replay(tmp_path: Path) -> None:
    """T-H1: the default; the client falls back at once, the same way both times."""

    async def never(socket: web.WebSocketResponse) -> None:
        raise AssertionError("the origin was asked")

    async with world(tmp_path, {}) as w, served(w, "/v1/responses", never) as url:
        for start in (w.record, w.replay):
            await start()
            with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
                async with dialled(w, url):
                    pass
            assert refused.value.status == 426
        assert w.origin.connections == 0


async def test_an_upgrade_the_origin_declined_is_declined_again(tmp_path: Path) -> None:
    async def missing(socket: web.WebSocketResponse) -> None:
        raise AssertionError("never reached")

    async with world(tmp_path, {}) as w, served(w, "/other", missing) as url:
        asked = url.replace("/other", "/v1/responses")
        wire = await w.record(websocket=Sockets.RECORD)
        for again in (False, True):
            if again:
                await w.stop()
                wire = await w.replay()
            with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
                async with dialled(w, asked):
                    pass
            assert refused.value.status == 404
        assert wire.outcome.clean


# -- Responses ---------------------------------------------------------------------------------------------------


async def codex(w: World, url: str, *, hop: int = 3) -> list[dict[str, Any]]:
    """A prewarm and three turns, each on from the last; a new socket after `hop` of the four, then dropped without a close."""
    heard: list[dict[str, Any]] = []
    said = [create(None, generate=False, prompt_cache_key="k"), *(create(f"step {n}", f"resp_{n}") for n in (1, 2, 3))]
    while said:
        async with dialled(w, url) as socket:
            for one in said[:hop]:
                heard += await ask(socket, one)
            said = said[hop:]
            drop(socket)
    return heard


@pytest.mark.parametrize("pace", list(Pace))
@pytest.mark.parametrize("hop", [1, 3, 4])
async def test_a_chain_is_played_across_any_reconnect(tmp_path: Path, pace: Pace, hop: int) -> None:
    """A-10: prewarm, turns by `previous_response_id`, a reconnect elsewhere than the recorded one; 1006 at the end."""
    provider = Provider()
    async with world(tmp_path, {}) as w, served(w, "/v1/responses", provider.speak) as url:
        await w.record(websocket=Sockets.RECORD)
        first = await codex(w, url, hop=3)
        await w.stop()
        assert [exchange.adapter for exchange in w.writer.exchanges] == ["openai-responses"] * 2
        assert [exchange.ended for exchange in w.writer.exchanges] == [Ending.COMPLETE] * 2  # Codex always leaves like this
        assert {exchange.channel for exchange in w.writer.exchanges} == {Channel.MODEL}
        await w.stop()
        wire = await w.replay(pace=pace)
        assert await codex(w, url, hop=hop) == first
        await w.stop()
        assert wire.outcome.clean
        assert wire.outcome.requests == sum(wire.outcome.answered.values())
        assert len(provider.asked) == 4
        assert [session.unplayed() for session in wire.sessions()] == [[]]


async def test_a_turn_cut_by_the_origin_is_cut_again_and_the_next_socket_goes_on(tmp_path: Path) -> None:
    """A-10: a reconnect after 1006 in the middle of a turn: the same half, the same end, then the turn again."""
    provider = Provider()
    provider.drops_after = 2

    async def run() -> list[dict[str, Any]]:
        heard: list[dict[str, Any]] = []
        async with dialled(w, url) as socket:
            heard += await ask(socket, create("one"))
            heard += await ask(socket, create("two", "resp_1"))
        async with dialled(w, url) as socket:
            heard += await ask(socket, create("two", "resp_1"))
        return heard

    async with world(tmp_path, {}) as w, served(w, "/v1/responses", provider.speak) as url:
        await w.record(websocket=Sockets.RECORD)
        first = await run()
        assert [one["code"] for one in first if "code" in one] == [1006]
        await w.stop()
        wire = await w.replay()
        assert await run() == first
        assert wire.outcome.clean


async def lanes(w: World, url: str, names: tuple[str, str] = ("left", "right")) -> dict[str, list[dict[str, Any]]]:
    async with dialled(w, url) as socket:
        for name in names:
            await socket.send_str(create(f"to {'left' if name is names[0] else 'right'}", lane=name))
        heard = await until_done(socket, 2)
    return {name: [{**one, "stream_id": "."} for one in heard if one["stream_id"] == name] for name in names}


@pytest.mark.parametrize("names", [("left", "right"), ("x-1", 'x-"2')])
@pytest.mark.parametrize("pace", list(Pace))
async def test_lanes_are_played_each_in_its_own_order(tmp_path: Path, pace: Pace, names: tuple[str, str]) -> None:
    """A-10: two lanes interleaved; a lane may have another name this time."""
    provider = Provider()
    async with world(tmp_path, {}) as w, served(w, "/v1/responses", provider.speak) as url:
        provider.gate = asyncio.Event()
        await w.record(websocket=Sockets.RECORD)
        first = await lanes(w, url)
        await w.stop()
        wire = await w.replay(pace=pace)
        assert list((await lanes(w, url, names)).values()) == list(first.values())
        assert wire.outcome.clean


async def test_what_identical_runs_do_not_share_does_not_count_and_what_differs_is_named(tmp_path: Path) -> None:
    """A-10: the normalisers of requests; another word of the user is `ws-diverged` and says where."""
    provider = Provider()
    async with world(tmp_path, {}) as w, served(w, "/v1/responses", provider.speak) as url:
        await w.record(websocket=Sockets.RECORD)
        async with dialled(w, url) as socket:
            await ask(socket, create("one", prompt_cache_key="a"))
            await ask(socket, create("two", "resp_1"))
        await w.stop()
        wire = await w.replay()
        async with dialled(w, url) as socket:
            heard = await ask(socket, create("one", prompt_cache_key="b"))
            assert heard[-1]["type"] == "response.completed"
            assert wire.outcome.answered == {Answered.NORMALISED: 1}
            (end,) = await ask(socket, create("other", "resp_1"))
        assert end == {"type": "CLOSE", "code": 1008, "reason": "secondtake: ws-diverged: input[0].content"}
        (missed,) = wire.outcome.misses
        assert (missed.channel, missed.miss.kind) == (Channel.MODEL, MissKind.WS_DIVERGED)
        assert [(one.recorded, one.live) for one in missed.miss.nearest.differences] == [("two", "other")]  # type: ignore[union-attr]


async def test_a_secret_said_on_a_socket_is_not_kept_and_still_matches(tmp_path: Path) -> None:
    """C-01: by place and by value, in text among bytes; lengths stay; the table says where it stood."""
    secret = "sk-proj-" + "A1b2C3d4E5f6G7h8" * 3

    async def echo(socket: web.WebSocketResponse) -> None:
        await socket.send_bytes(b"\x00\x01\x02")
        async for message in socket:
            await socket.send_str(f"you said {message.data}")

    async def run() -> str:
        async with dialled(w, url) as socket:
            await socket.receive()
            await socket.send_bytes(b"\x00\x00")
            await socket.receive()
            await socket.send_str(json.dumps({"env": secret, "again": f"OPENAI_API_KEY={secret}"}))
            return await socket.receive_str()

    async with world(tmp_path, {}) as w, served(w, "/echo", echo) as url:
        await w.record(websocket=Sockets.RECORD)
        heard = await run()
        assert secret in heard
        await w.stop()
        kept = repr(w.writer.exchanges) + repr(w.writer.bodies)
        assert secret not in kept
        (exchange,) = w.writer.exchanges
        said = next(entry.data for entry in messages(w.writer) if entry.side is Side.REQUEST and entry.opcode == 1)
        assert len(said) == len(json.dumps({"env": secret, "again": f"OPENAI_API_KEY={secret}"}))
        assert len([one for one in exchange.redactions if one.side is Side.REQUEST and one.place == "body"]) == 2
        await w.stop()
        wire = await w.replay()
        assert (await run()).startswith("you said ")
        assert wire.outcome.clean


async def test_the_providers_own_sdk_is_given_the_same_events(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Issue 3: a real SDK with its own WebSocket library, proxy and trust from the environment: equal objects in replay."""
    provider = Provider()

    async def run() -> list[object]:
        assert w.proxy is not None
        monkeypatch.setenv("HTTPS_PROXY", f"http://127.0.0.1:{w.proxy.port}")
        monkeypatch.setenv("SSL_CERT_FILE", str(w.authority.ca_path))
        monkeypatch.delenv("NO_PROXY", raising=False)
        monkeypatch.delenv("no_proxy", raising=False)
        heard: list[object] = []
        options: WebSocketConnectionOptions = {"compression": "deflate"}
        async with (
            openai.AsyncOpenAI(api_key="sk-test", base_url=url.removesuffix("/responses")) as client,
            client.responses.connect(websocket_connection_options=options) as connection,
        ):
            for text, previous in (("one", None), ("two", "resp_1")):
                turn: dict[str, Any] = {"type": "response.create", "model": "gpt-5.1-codex", "input": text}
                await connection.send(turn | ({"previous_response_id": previous} if previous else {}))  # type: ignore[arg-type]
                async for event in connection:
                    heard.append(event)
                    if event.type == "response.completed":
                        break
        return heard

    async with world(tmp_path, {}) as w, served(w, "/v1/responses", provider.speak) as url:
        await w.record(websocket=Sockets.RECORD)
        first = await run()
        await w.stop()
        assert len(first) == 8
        assert w.writer.exchanges[0].ended is Ending.COMPLETE
        wire = await w.replay()
        assert await run() == first
        await w.stop()
        assert wire.outcome.clean
        assert wire.outcome.answered == {Answered.EXACT: 1}
        assert len(provider.asked) == 2


async def test_at_the_recorded_pace_messages_wait_for_their_moment_and_the_client_is_heard_meanwhile(tmp_path: Path) -> None:
    """DESIGN 3: pace; a ping is answered while a message waits."""
    wait_s = 0.2

    async def speak(socket: web.WebSocketResponse) -> None:
        await socket.receive()
        await asyncio.sleep(wait_s)
        await socket.send_str("late")
        async for message in socket:
            if message.type is WSMsgType.PING:
                await socket.pong(message.data)

    async def run() -> tuple[list[WSMsgType], float]:
        async with dialled(w, url) as socket:
            await socket.send_str("x")
            begun = time.monotonic()
            if ping:
                await socket.ping(b"1")
            heard = [(await socket.receive()).type for _ in range(1 + ping)]
            return heard, time.monotonic() - begun

    async with world(tmp_path, {}) as w, served(w, "/slow", speak) as url:
        ping = False
        await w.record(websocket=Sockets.RECORD)
        await run()
        ping = True
        await w.stop()
        await w.replay(pace=Pace.REAL)
        heard, took_s = await run()
        assert heard == [WSMsgType.PONG, WSMsgType.TEXT]
        assert took_s >= wait_s * 0.9
        await w.replay(pace=Pace.FAST)
        heard, took_s = await run()
        assert set(heard) == {WSMsgType.PONG, WSMsgType.TEXT}
        assert took_s < wait_s

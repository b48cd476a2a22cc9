"""The scripted provider over real sockets."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from secondtake.harness.provider import (
    Call,
    CutOff,
    ErrorEvent,
    Failure,
    HowCut,
    Provider,
    Reply,
    Scene,
    Script,
    ToolCall,
    make_identity,
)
from tests.harness.wires import Got, answer, ask, head, pieces, post, request_bytes

ROOT = Path(__file__).resolve().parents[3]
REPLY = Reply("I will look.", (ToolCall("run", {"command": "ls"}), ToolCall("run", {"command": "pwd"})))
SCRIPT = Script((Scene((REPLY, Reply("Done.")), "model-1"), Scene((Reply("Other."),), "model-2", served="model-2-dated")))


def user(text: str, model: str = "model-1", **more: Any) -> dict[str, Any]:
    return {"model": model, "max_tokens": 10, "messages": [{"role": "user", "content": text}], **more}


CALLS: dict[str, tuple[str, dict[str, Any]]] = {
    "anthropic": ("/v1/messages?beta=true", user("x")),
    "chat": ("/v1/chat/completions", user("x")),
    "responses": ("/v1/responses", {"model": "model-1", "input": "x"}),
    "gemini": ("/v1beta/models/model-1:generateContent", {"contents": [{"parts": [{"text": "x"}]}]}),
}


def served(test: Callable[[Provider], Awaitable[None]], script: Script = SCRIPT, **options: Any) -> Provider:
    """Run `test` against a provider; returns it stopped, with its counters."""

    async def run() -> Provider:
        async with Provider(script, **options) as provider:
            await test(provider)
        return provider

    return asyncio.run(run())


@pytest.mark.parametrize("wire", CALLS)
def test_each_format_is_answered_streamed_and_not(wire: str) -> None:
    """One port, four formats; the stream is chunked, an event to a chunk, and ends properly."""
    target, body = CALLS[wire]

    async def test(provider: Provider) -> None:
        got = await post(provider.port, target, body)
        assert got.status == 200, got.body
        assert b"I will look." in got.body
        assert got.json
        streamed = target.replace("generateContent", "streamGenerateContent?alt=sse")
        got = await post(provider.port, streamed, body | ({} if wire == "gemini" else {"stream": True}))
        assert (got.status, got.whole) == (200, True)
        assert got.fields["content-type"].startswith("text/event-stream")
        assert len(got.chunks) == len(got.events)
        assert provider.seen[-1].events == len(got.events)

    provider = served(test)
    assert [s.ended for s in provider.seen] == ["complete", "complete"]
    assert provider.connections_made == 2


def test_models_tell_different_stories_and_name_who_served() -> None:
    """Model A and model B have different scripts; `served` is what a provider answers for an alias."""

    async def test(provider: Provider) -> None:
        assert (await post(provider.port, "/v1/messages", user("x", "model-2"))).json["model"] == "model-2-dated"
        unknown = await post(provider.port, "/v1/messages", user("x", "model-9"))
        assert (unknown.status, unknown.json["error"]["type"]) == (404, "not_found_error")

    served(test)


def test_the_turn_follows_from_the_conversation_alone() -> None:
    """Stateless: a fresh provider answers the second turn, and refuses a third that the script does not have."""
    talk = user("x")
    talk["messages"] += [{"role": "assistant", "content": "I will look."}, {"role": "user", "content": "go on"}]

    async def test(provider: Provider) -> None:
        got = await post(provider.port, "/v1/messages", talk)
        assert got.json["content"][0]["text"] == "Done."
        longer = talk["messages"] + [{"role": "assistant", "content": "Done."}, {"role": "user", "content": "more"}]
        assert (await post(provider.port, "/v1/messages", talk | {"messages": longer})).status == 400

    served(test)


def test_side_calls_of_model_hosts_are_answered() -> None:
    """T-P4: model lists in three shapes, one model, `count_tokens`, a WebSocket upgrade, an unknown path."""

    async def test(provider: Provider) -> None:
        async def get(target: str, **fields: str) -> Got:
            return await ask(provider.port, request_bytes("GET", target, None, {n.replace("_", "-"): v for n, v in fields.items()}))

        ours = await get("/v1/models", anthropic_version="2023-06-01")
        assert [m["id"] for m in ours.json["data"]] == ["model-1", "model-2"]
        assert (await get("/v1/models")).json["object"] == "list"
        assert (await get("/v1beta/models")).json["models"][0]["name"] == "models/model-1"
        assert "models" in (await get("/v1/models", x_goog_api_key="k")).json
        assert (await get("/v1/models")).fields["server"] == "scripted-provider"
        assert (await get("/v1/models/model-2")).json["id"] == "model-2"
        assert (await get("/v1/models/none")).status == 404
        assert (await get("/v1/responses", upgrade="websocket", connection="Upgrade")).status == 426
        assert (await get("/favicon.ico")).status == 404
        assert (await post(provider.port, "/v1/embeddings", {})).status == 404
        counted = await post(provider.port, "/v1/messages/count_tokens", user("x"))
        assert counted.json == {"input_tokens": len(json.dumps(user("x"))) // 4}
        counted = await post(provider.port, "/v1beta/models/model-1:countTokens", CALLS["gemini"][1])
        assert counted.json["totalTokens"] > 0

    served(test)


def test_a_call_without_a_credential_gets_401() -> None:
    """A proxy that loses the key is found out; each client's way of sending it is understood."""

    async def test(provider: Provider) -> None:
        for fields, status in (
            ({}, 401),
            ({"x-api-key": "bad"}, 401),
            ({"x-api-key": "good"}, 200),
            ({"authorization": "Bearer good"}, 200),
            ({"x-goog-api-key": "good"}, 200),
        ):
            got = await ask(provider.port, request_bytes("POST", "/v1/messages", user("x"), fields))
            assert got.status == status, fields
        assert (await ask(provider.port, request_bytes("POST", "/v1/messages?key=good", user("x")))).status == 200

    served(test, accept=frozenset({"good"}))


def test_bodies_that_are_no_call_get_400_in_the_providers_shape() -> None:
    """No JSON, no object, too deep, no messages: an answer, never a 500."""

    async def test(provider: Provider) -> None:
        for body in (b"", b"{", b"[]", b"\xff\xfe", b"[" * 100_000, b'{"model": "model-1"}'):
            got = await post(provider.port, "/v1/messages", body)
            assert (got.status, got.json["error"]["type"]) == (400, "invalid_request_error")

    served(test)


def test_a_compressed_request_is_read() -> None:
    """T-E4's kind: agents compress their requests."""

    async def test(provider: Provider) -> None:
        packed = gzip.compress(json.dumps(user("x")).encode())
        got = await post(provider.port, "/v1/messages", packed, {"content-encoding": "gzip"})
        assert got.status == 200

    served(test)


def test_failures_come_with_their_shape_and_retry_after() -> None:
    """T-F4: 429 with `retry-after` and `request-id`; then, for the same request again, the answer."""
    script = Script(
        (
            Scene(
                (Reply("At last.", first=(Failure(429, "slow down", retry_after_s=7), Failure(529))),),
            ),
        )
    )

    async def test(provider: Provider) -> None:
        got = await post(provider.port, "/v1/messages", user("x"))
        assert (got.status, got.fields["retry-after"], got.json["error"]["message"]) == (429, "7", "slow down")
        assert got.fields["request-id"] == got.json["request_id"]
        other = await post(provider.port, "/v1/messages", user("another"))
        assert other.status == 429
        statuses = [(await post(provider.port, "/v1/messages", user("x"))).status for _ in range(3)]
        assert statuses == [529, 200, 200]

    served(test, script)


@pytest.mark.parametrize("how", HowCut)
def test_a_stream_is_cut_where_the_script_says(how: HowCut) -> None:
    """A-09's kind: a 200 that ends without its terminal event and without its last chunk."""
    script = Script((Scene((Reply("a" * 64, broken=CutOff(5, how)),)),))
    read = asyncio.Event()

    async def pace(_scene: Scene, _call: Call, event: int) -> None:
        if event == 4:  # a reset may destroy what is unread: the last event but one has been read before the cut
            await read.wait()

    async def test(provider: Provider) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", provider.port)
        writer.write(request_bytes("POST", "/v1/messages", user("x", stream=True), {"x-api-key": "k"}))
        got = await head(reader)
        async for piece in pieces(reader, got):
            got.chunks.append(piece)
            if len(got.chunks) == 4:
                read.set()
        assert got.whole is False
        assert len(got.chunks) == 5 if how is HowCut.CLOSE else len(got.chunks) in (4, 5)
        writer.transport.abort()

    assert served(test, script, pace=pace).seen[0].ended == "cut"


def test_an_answer_that_is_not_streamed_is_cut_in_its_middle() -> None:
    """The length promises more than comes."""
    script = Script((Scene((Reply("a" * 64, broken=CutOff(5)),)),))

    async def test(provider: Provider) -> None:
        got = await post(provider.port, "/v1/messages", user("x"))
        assert got.whole is False
        assert len(got.body) == int(got.fields["content-length"]) // 2

    served(test, script)


@pytest.mark.parametrize(("wire", "name"), [("anthropic", "error"), ("chat", ""), ("responses", "error"), ("gemini", "")])
def test_an_error_event_comes_after_a_200(wire: str, name: str) -> None:
    """PROVIDERS A2: `event: error` in mid-stream; not streamed it is the failure's status."""
    script = Script((Scene((Reply("a" * 64, broken=ErrorEvent(3, Failure(529, "busy"))),)),))
    target, body = CALLS[wire]

    async def test(provider: Provider) -> None:
        assert (await post(provider.port, target, body)).status == 529
        streamed = target.replace("generateContent", "streamGenerateContent?alt=sse")
        got = await post(provider.port, streamed, body | ({} if wire == "gemini" else {"stream": True}))
        assert (got.status, got.whole, len(got.events)) == (200, True, 4)
        assert got.events[-1][0] == name
        assert "busy" in json.dumps(got.events[-1][1])

    served(test, script)


def test_the_pacer_is_the_only_clock() -> None:
    """Each event waits for the pacer, and is on the wire before the pacer is asked for the next one."""
    gates = [asyncio.Event() for _ in range(64)]

    async def pace(_scene: Scene, _call: Call, event: int) -> None:
        await gates[event].wait()

    async def test(provider: Provider) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", provider.port)
        writer.write(request_bytes("POST", "/v1/messages", user("x", stream=True), {"x-api-key": "k"}))
        got = await head(reader)  # the head does not wait for the first event
        number = 0
        body = pieces(reader, got)
        gates[0].set()
        async for piece in body:
            number += 1
            assert provider.seen[0].events <= number
            gates[number].set()
            assert piece.startswith(b"event: ")
        assert got.whole
        writer.transport.abort()

    served(test, pace=pace)


def test_a_client_that_leaves_is_noticed() -> None:
    """Its request ends as `client-left`, and the provider goes on."""
    gone, ended = asyncio.Event(), asyncio.Event()
    script = Script((Scene((Reply("a" * 200, pieces=200),)),))

    async def pace(_scene: Scene, _call: Call, event: int) -> None:
        if event == 1:
            await gone.wait()
        await asyncio.sleep(0)

    async def test(provider: Provider) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", provider.port)
        writer.write(request_bytes("POST", "/v1/messages", user("x", stream=True), {"x-api-key": "k"}))
        await head(reader)
        writer.transport.abort()
        await asyncio.sleep(0)
        gone.set()
        await ended.wait()
        assert provider.seen[0].ended == "client-left"
        assert (await post(provider.port, "/v1/messages", user("x"))).status == 200

    served(test, script, pace=pace, watch=lambda _seen: ended.set())


def test_every_connection_is_counted_before_anything_is_said() -> None:
    """The counter that proves that nothing reached it also counts a client that says nothing, or no TLS."""
    identity = make_identity(["127.0.0.1"])

    async def test(provider: Provider) -> None:
        assert (provider.connections_made, provider.connections_open) == (0, 0)
        _, silent = await asyncio.open_connection("127.0.0.1", provider.port)
        reader, rude = await asyncio.open_connection("127.0.0.1", provider.port)
        rude.write(b"GET / HTTP/1.1\r\n\r\n")
        await reader.read()
        assert provider.connections_made == 2
        silent.close()
        rude.close()

    provider = served(test, tls=identity.context)
    assert (provider.connections_made, provider.connections_open, provider.seen) == (2, 0, [])


def test_stopping_frees_the_port_and_drops_every_connection() -> None:
    """The demo's "provider stopped": nobody answers there any more, and who was connected is told."""

    async def test() -> None:
        provider = Provider(SCRIPT)
        port = await provider.start()
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(request_bytes("POST", "/v1/messages", user("x"), {"x-api-key": "k"}))
        assert (await answer(reader)).status == 200
        await provider.stop()
        with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
            await reader.readexactly(1)
        writer.close()
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection("127.0.0.1", port)
        again = Provider(SCRIPT, port=port)
        assert await again.start() == port
        await again.stop()

    asyncio.run(test())

"""Each wire format against its documented shape, without a server: what a client would assemble is what the script says."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from secondtake.harness.provider.anthropic import Anthropic
from secondtake.harness.provider.chat import Chat
from secondtake.harness.provider.gemini import Gemini
from secondtake.harness.provider.responses import Responses
from secondtake.harness.provider.script import Failure, Reply, Stop, ToolCall
from secondtake.harness.provider.wire import BadCall, Call, Wire

CALL = Call("model-1", "fix it", 0, stream=True, size_bytes=400, stream_usage=True)
TOOLS = (ToolCall("run", {"command": "ls 'é'"}), ToolCall("read_file", {"path": "a", "n": [1, {"x": None}]}))
REPLY = Reply("I will look at it, naïvely.", TOOLS)

WIRES: dict[str, Wire] = {"anthropic": Anthropic(), "chat": Chat(), "responses": Responses(), "gemini": Gemini()}


def events(wire: Wire, reply: Reply, call: Call = CALL) -> list[tuple[str, Any]]:
    """(name, data) of each event; each element the wire gives is exactly one event."""
    found = []
    for raw in wire.events(call, reply, "model-1"):
        text = raw.decode().replace("\r\n", "\n")
        assert text.endswith("\n\n")
        assert text.count("\n\n") == 1
        lines = dict(line.split(": ", 1) for line in text[:-2].split("\n"))
        found.append((lines.get("event", ""), lines["data"] if lines["data"] == "[DONE]" else json.loads(lines["data"])))
    return found


def assembled_anthropic(reply: Reply, call: Call = CALL) -> dict[str, Any]:
    message: dict[str, Any] = {}
    partial: dict[int, str] = {}
    for name, data in events(WIRES["anthropic"], reply, call):
        assert name == data["type"]
        match name:
            case "message_start":
                message = data["message"]
            case "content_block_start":
                assert data["index"] == len(message["content"])
                message["content"].append(data["content_block"])
            case "content_block_delta":
                block, delta = message["content"][data["index"]], data["delta"]
                if delta["type"] == "text_delta":
                    block["text"] += delta["text"]
                else:
                    assert delta["type"] == "input_json_delta"
                    partial[data["index"]] = partial.get(data["index"], "") + delta["partial_json"]
            case "content_block_stop":
                if data["index"] in partial:
                    message["content"][data["index"]]["input"] = json.loads(partial[data["index"]])
            case "message_delta":
                message |= data["delta"]
                message["usage"] |= data["usage"]
            case _:
                assert name in ("ping", "message_stop")
    return message


def assembled_chat(reply: Reply, call: Call = CALL) -> dict[str, Any]:
    message: dict[str, Any] = {"content": None, "tool_calls": []}
    finish = usage = None
    for _, data in events(WIRES["chat"], reply, call):
        if data == "[DONE]":
            break
        assert data["object"] == "chat.completion.chunk"
        usage = data.get("usage") or usage
        for choice in data["choices"]:
            delta = choice["delta"]
            message["content"] = (message["content"] or "") + delta["content"] if delta.get("content") else message["content"]
            for call_ in delta.get("tool_calls", []):
                if call_["index"] == len(message["tool_calls"]):
                    message["tool_calls"].append({k: v for k, v in call_.items() if k != "index"})
                else:
                    message["tool_calls"][call_["index"]]["function"]["arguments"] += call_["function"]["arguments"]
            finish = choice["finish_reason"] or finish
    return {"message": message, "finish": finish, "usage": usage}


def test_anthropics_stream_assembles_to_its_whole_answer() -> None:
    """Text, two parallel tool calls, stop reason and usage."""
    whole = json.loads(json.dumps(WIRES["anthropic"].whole(CALL, REPLY, "model-1")))
    assert assembled_anthropic(REPLY) == whole
    assert [b["type"] for b in whole["content"]] == ["text", "tool_use", "tool_use"]
    assert whole["content"][1]["input"] == {"command": "ls 'é'"}
    assert whole["stop_reason"] == "tool_use"
    names = [n for n, _ in events(WIRES["anthropic"], REPLY)]
    assert names[:3] == ["message_start", "content_block_start", "ping"]
    assert names[-2:] == ["message_delta", "message_stop"]


def test_chats_stream_assembles_to_its_whole_answer() -> None:
    """Fragments by index, the finish reason, the usage chunk without choices, and `[DONE]`."""
    whole: Any = WIRES["chat"].whole(CALL, REPLY, "model-1")
    got = assembled_chat(REPLY)
    message = whole["choices"][0]["message"]
    assert got["message"] == {"content": message["content"], "tool_calls": message["tool_calls"]}
    assert got["finish"] == whole["choices"][0]["finish_reason"] == "tool_calls"
    assert got["usage"] == whole["usage"]
    assert events(WIRES["chat"], REPLY)[-1] == ("", "[DONE]")
    assert json.loads(message["tool_calls"][1]["function"]["arguments"]) == {"path": "a", "n": [1, {"x": None}]}


def test_chat_says_its_usage_only_when_asked() -> None:
    """`stream_options.include_usage`; otherwise no chunk has a `usage` at all."""
    quiet = Call("model-1", "fix it", 0, stream=True, size_bytes=400)
    chunks = [d for _, d in events(WIRES["chat"], REPLY, quiet) if d != "[DONE]"]
    assert all("usage" not in c and c["choices"] for c in chunks)


def test_responses_stream_is_numbered_and_ends_with_the_whole_answer() -> None:
    """Item by item, deltas between added and done, the whole response in the terminal event."""
    seen = events(WIRES["responses"], REPLY)
    assert [d["sequence_number"] for _, d in seen] == list(range(len(seen)))
    assert all(n == d["type"] for n, d in seen)
    assert [n for n, _ in seen[:2]] == ["response.created", "response.in_progress"]
    assert seen[0][1]["response"]["model"] == "model-1"
    name, last = seen[-1]
    assert name == "response.completed"
    assert last["response"] == json.loads(json.dumps(WIRES["responses"].whole(CALL, REPLY, "model-1")))
    done = [d["item"] for n, d in seen if n == "response.output_item.done"]
    assert done == last["response"]["output"]
    assert "".join(d["delta"] for n, d in seen if n == "response.output_text.delta") == REPLY.text
    for index in (1, 2):
        deltas = "".join(d["delta"] for n, d in seen if n == "response.function_call_arguments.delta" and d["output_index"] == index)
        assert deltas == last["response"]["output"][index]["arguments"]


def test_geminis_stream_ends_with_calls_reason_and_usage() -> None:
    """No terminal event: the last answer holds the finish reason."""
    seen = [d for _, d in events(WIRES["gemini"], REPLY)]
    parts = [p for d in seen for p in d["candidates"][0]["content"]["parts"]]
    assert "".join(p.get("text", "") for p in parts) == REPLY.text
    assert [p["functionCall"]["args"] for p in parts if "functionCall" in p] == [dict(t.arguments) for t in TOOLS]
    assert ["finishReason" in d["candidates"][0] for d in seen] == [False] * (len(seen) - 1) + [True]
    assert {d["modelVersion"] for d in seen} == {"model-1"}
    assert seen[-1]["usageMetadata"]["totalTokenCount"] > seen[-1]["usageMetadata"]["promptTokenCount"]


def test_gemini_without_sse_is_one_json_array_in_pieces() -> None:
    """`streamGenerateContent` without `alt=sse`."""
    wire = Gemini(sse=False)
    pieces = wire.events(CALL, REPLY, "model-1")
    assert len(pieces) > 2
    assert [json.dumps(a) for a in json.loads(b"".join(pieces))] == [json.dumps(d) for _, d in events(WIRES["gemini"], REPLY)]
    broken = [*pieces[:2], wire.error_event(CALL, Failure(503, "busy"), 2)]
    assert json.loads(b"".join(broken))[-1]["error"]["status"] == "UNAVAILABLE"
    assert json.loads(wire.error_event(CALL, Failure(500), 0))[0]["error"]["code"] == 500


@pytest.mark.parametrize("wire", WIRES.values(), ids=WIRES)
@pytest.mark.parametrize("reply", [Reply("x"), Reply(tools=TOOLS), REPLY, Reply("cut", stop=Stop.LENGTH), Reply(), Reply("abc", pieces=50)])
def test_the_same_call_gets_the_same_bytes(wire: Wire, reply: Reply) -> None:
    """A restart changes nothing: no clock, no chance."""
    assert list(wire.events(CALL, reply, "m")) == list(wire.events(CALL, reply, "m"))
    assert wire.whole(CALL, reply, "m") == wire.whole(CALL, reply, "m")


@pytest.mark.parametrize("wire", WIRES.values(), ids=WIRES)
def test_another_turn_has_other_ids(wire: Wire) -> None:
    """Tool call IDs and message IDs are unique within a conversation and between conversations."""
    calls = [CALL, Call("model-1", "fix it", 1, stream=True, size_bytes=400), Call("model-1", "fix that", 0, stream=True, size_bytes=400)]
    texts = [json.dumps(wire.whole(c, Reply(tools=(TOOLS[0], TOOLS[0])), "m")) for c in calls]
    assert len(set(texts)) == 3
    ids = [v for text in texts for v in _ids(json.loads(text))]
    assert len(ids) == len(set(ids))


def _ids(value: Any) -> list[str]:
    if isinstance(value, dict):
        return [v for k, v in value.items() if k in ("id", "call_id", "responseId")] + [i for v in value.values() for i in _ids(v)]
    return [i for v in value for i in _ids(v)] if isinstance(value, list) else []


@given(st.text(max_size=80), st.integers(0, 60), st.dictionaries(st.text(max_size=5), st.text(max_size=40), max_size=3))
def test_any_text_and_any_arguments_come_through_every_stream(text: str, pieces: int, arguments: dict[str, str]) -> None:
    """Property: what the client assembles is what the script says, however it is cut."""
    reply = Reply(text, (ToolCall("t", arguments),), pieces=pieces)
    content = assembled_anthropic(reply)["content"]
    assert "".join(b.get("text", "") for b in content) == text
    assert content[-1]["input"] == arguments
    message = assembled_chat(reply)["message"]
    assert (message["content"] or "") == text
    assert json.loads(message["tool_calls"][0]["function"]["arguments"]) == arguments
    deltas = "".join(d["delta"] for n, d in events(WIRES["responses"], reply) if n == "response.output_text.delta")
    assert deltas == text


def test_fifty_pieces_are_fifty_deltas() -> None:
    """Issue 2 asks for a stream of fifty events: the script says how many deltas there are."""
    reply = Reply("a" * 120, pieces=50)
    assert sum(n == "content_block_delta" for n, _ in events(WIRES["anthropic"], reply)) == 50
    assert len(Reply("ab", pieces=50).text_pieces()) == 50


ASSISTANT_TURNS = [
    ("anthropic", {"model": "m", "messages": [{"role": "user", "content": "fix it"}]}, 0),
    (
        "anthropic",
        {
            "model": "m",
            "messages": [
                {"role": "user", "content": [{"type": "text", "text": "fix it"}]},
                {"role": "assistant", "content": [{"type": "tool_use", "id": "1", "name": "run", "input": {}}]},
                {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "1", "content": "x"}]},
            ],
        },
        1,
    ),
    (
        "chat",
        {
            "model": "m",
            "messages": [
                {"role": "system", "content": "s"},
                {"role": "user", "content": "fix it"},
                {"role": "assistant", "tool_calls": []},
                {"role": "tool", "tool_call_id": "1", "content": "x"},
                {"role": "assistant", "content": "y"},
                {"role": "user", "content": "go on"},
            ],
        },
        2,
    ),
    ("responses", {"model": "m", "input": "fix it"}, 0),
    (
        "responses",
        {
            "model": "m",
            "input": [
                {"role": "user", "content": [{"type": "input_text", "text": "fix it"}]},
                {"type": "reasoning", "summary": []},
                {"type": "message", "role": "assistant", "content": []},
                {"type": "function_call", "call_id": "1"},
                {"type": "function_call", "call_id": "2"},
                {"type": "function_call_output", "call_id": "1"},
                {"type": "function_call_output", "call_id": "2"},
                {"type": "custom_tool_call", "call_id": "3"},
                {"type": "custom_tool_call_output", "call_id": "3"},
            ],
        },
        2,
    ),
    (
        "gemini",
        {
            "contents": [
                {"role": "user", "parts": [{"text": "fix it"}]},
                {"role": "model", "parts": [{"functionCall": {}}]},
                {"role": "user", "parts": [{"functionResponse": {}}]},
            ]
        },
        1,
    ),
    ("gemini", {"generateContentRequest": {"contents": [{"parts": [{"text": "fix it"}]}]}}, 0),
]


@pytest.mark.parametrize(("wire", "body", "turn"), ASSISTANT_TURNS)
def test_a_call_is_read_into_task_and_turn(wire: str, body: dict[str, Any], turn: int) -> None:
    """The first user text, and how many answers the conversation holds, in each format."""
    call = WIRES[wire].read(body, "m", False, 10)
    assert (call.model, call.task, call.turn) == ("m", "fix it", turn)


@pytest.mark.parametrize(
    ("wire", "body"),
    [
        ("anthropic", {"model": "m"}),
        ("anthropic", {"messages": [{"role": "user", "content": "x"}]}),
        ("anthropic", {"model": 7, "messages": [{"role": "user"}]}),
        ("anthropic", {"model": "half \ud800", "messages": [{"role": "user"}]}),
        ("chat", {"model": "m", "messages": "x"}),
        ("responses", {"model": "m", "input": 5}),
        ("responses", {"model": "m", "input": "x", "previous_response_id": "resp_1"}),
        ("gemini", {"contents": []}),
    ],
)
def test_a_body_of_another_shape_is_a_bad_call(wire: str, body: dict[str, Any]) -> None:
    """Answered with 400, as the provider would."""
    with pytest.raises(BadCall):
        WIRES[wire].read(body, "m", False, 10)


@pytest.mark.parametrize(
    ("wire", "status", "kind"),
    [
        ("anthropic", 529, "overloaded_error"),
        ("anthropic", 429, "rate_limit_error"),
        ("chat", 429, "rate_limit_error"),
        ("responses", 500, "server_error"),
    ],
)
def test_errors_have_the_providers_shape(wire: str, status: int, kind: str) -> None:
    """PROVIDERS A2: the error bodies."""
    body: Any = WIRES[wire].error(CALL, Failure(status, "no"))
    assert (body["error"]["type"], body["error"]["message"]) == (kind, "no")
    assert ("request_id" in body) == (wire == "anthropic")


def test_geminis_error_says_how_long_to_wait() -> None:
    """PROVIDERS A2: `details[].retryDelay`."""
    body: Any = WIRES["gemini"].error(CALL, Failure(429, "quota", retry_after_s=7))
    assert body["error"]["status"] == "RESOURCE_EXHAUSTED"
    assert body["error"]["details"][0]["retryDelay"] == "7s"


@pytest.mark.parametrize(
    ("stop", "words"),
    [(Stop.LENGTH, ("max_tokens", "length", "incomplete", "MAX_TOKENS")), (Stop.TURN, ("end_turn", "stop", "completed", "STOP"))],
)
def test_why_it_stopped_is_said_in_each_providers_words(stop: Stop, words: tuple[str, str, str, str]) -> None:
    """PROVIDERS A2: stop reasons."""
    reply = Reply("x", stop=stop)
    whole: list[Any] = [w.whole(CALL, reply, "m") for w in WIRES.values()]
    said = (whole[0]["stop_reason"], whole[1]["choices"][0]["finish_reason"], whole[2]["status"], whole[3]["candidates"][0]["finishReason"])
    assert said == words

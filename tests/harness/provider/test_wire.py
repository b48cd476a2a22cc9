"""What holds for every wire format."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from secondtake.harness.provider.script import Failure, Reply, Stop, ToolCall
from secondtake.harness.provider.wire import BadCall, Call, Wire
from tests.harness.provider.streams import CALL, REPLY, TOOLS, WIRES, assembled_anthropic, assembled_chat, events


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
        "responses",
        {
            "model": "m",
            "input": [
                {"role": "user", "content": "where it runs"},
                {"type": "agent_message", "content": [{"type": "encrypted_content", "encrypted_content": "fix it"}]},
                {"type": "function_call", "call_id": "1"},
                {"type": "agent_message", "content": [{"type": "input_text", "text": "done"}]},
            ],
        },
        1,
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
    """The first user text, or what another agent asks of it, and how many answers the conversation holds, in each format."""
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

"""Four conversations, told once, and written in every wire format. What all adapters must read alike."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Any

from secondtake.cassettes.adapters import Role, Stop, Text, ToolCall, ToolResult, Turn
from secondtake.cassettes.exchange import Fields

MODEL = "actor-1-20260101"
SYSTEM = "Be brief. Paths hold / and \u00e9."
SCHEMA = {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]}
WEATHER = "the set is on fire"


@dataclass(frozen=True)
class Scene:
    """`turns` were said before; `said` is the answer; `failed`: the stream breaks off with an error after it."""

    name: str
    turns: tuple[Turn, ...]
    said: tuple[Text | ToolCall, ...]
    stop: Stop | None
    failed: bool = False


def call(number: int, command: str) -> ToolCall:
    return ToolCall(f"call_{number}", "shell", json.dumps({"command": command}, separators=(",", ":")))


_ASK = Turn(Role.USER, (Text("What is in hello.txt?"),))
_PAIR = Turn(Role.ASSISTANT, (Text("Two looks."), call(1, "cat hello.txt"), call(2, 'echo "model": "x"')))
_RESULTS = Turn(Role.TOOL, (ToolResult("call_1", "shell", "hello\n"), ToolResult("call_2", "shell", '{"model": "decoy"}')))

SCENES = (
    Scene("text only", (_ASK,), (Text("It says h\u00e9llo \u4f60\u597d \U0001f600."),), Stop.END),
    Scene("tool call", (_ASK,), (Text("I look."), call(1, "cat hello.txt\n")), Stop.TOOL_CALLS),
    Scene(
        "parallel calls and results",
        (_ASK, _PAIR, _RESULTS, Turn(Role.USER, (Text("And now?"),))),
        (call(3, "ls"), call(4, "pwd")),
        Stop.TOOL_CALLS,
    ),
    Scene("error in mid-stream", (_ASK, _PAIR, _RESULTS), (Text("It sa"),), None, failed=True),
)

JSON_FIELDS: Fields = ((b"content-type", b"application/json"),)
SSE_FIELDS: Fields = ((b"Content-Type", b"text/event-stream; charset=utf-8"),)
AMZ_FIELDS: Fields = ((b"content-type", b"application/vnd.amazon.eventstream"),)


def dumps(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode()


def sse(*events: tuple[str, Any]) -> bytes:
    """Named events, as Anthropic and OpenAI Responses send them; an unnamed one has only data."""
    out = b""
    for name, data in events:
        out += (f"event: {name}\n".encode() if name else b"") + b"data: " + (data if isinstance(data, bytes) else dumps(data)) + b"\n\n"
    return out


def halves(text: str) -> list[str]:
    return [text[: len(text) // 2], text[len(text) // 2 :]]


# ---- Anthropic Messages ----


def messages_body(scene: Scene) -> dict[str, Any]:
    messages: list[dict[str, Any]] = []
    for turn in scene.turns:
        blocks = [_messages_block(part) for part in turn.parts]
        role = "assistant" if turn.role is Role.ASSISTANT else "user"
        if role == "user" and messages and messages[-1]["role"] == "user":
            messages[-1]["content"] += blocks
        else:
            messages.append({"role": role, "content": blocks})
    return {
        "max_tokens": 99,
        "temperature": 0.5,
        "stop_sequences": ["END"],
        "system": [{"type": "text", "text": SYSTEM, "cache_control": {"type": "ephemeral"}}],
        "messages": messages,
        "tools": [{"name": "shell", "description": "Runs it.", "input_schema": SCHEMA}],
        "tool_choice": {"type": "any"},
        "stream": True,
    }


def _messages_block(part: object) -> dict[str, Any]:
    match part:
        case Text(text):
            return {"type": "text", "text": text}
        case ToolCall(identity, name, arguments):
            return {"type": "tool_use", "id": identity, "name": name, "input": json.loads(arguments)}
        case ToolResult(call_id, _, text):
            return {"type": "tool_result", "tool_use_id": call_id, "content": [{"type": "text", "text": text}]}
    raise AssertionError(part)


MESSAGES_STOP = {Stop.END: "end_turn", Stop.TOOL_CALLS: "tool_use"}


def messages_whole(scene: Scene) -> bytes:
    stop = MESSAGES_STOP.get(scene.stop) if scene.stop else None
    usage = {"input_tokens": 5, "cache_read_input_tokens": 4, "cache_creation_input_tokens": 3, "output_tokens": 7}
    content = [_messages_block(part) for part in scene.said]
    return dumps(
        {"type": "message", "id": "a-1", "model": MODEL, "role": "assistant", "content": content, "stop_reason": stop, "usage": usage}
    )


def messages_events(scene: Scene) -> list[tuple[str, Any]]:
    usage = {"input_tokens": 5, "cache_read_input_tokens": 4, "cache_creation_input_tokens": 3, "output_tokens": 1}
    head: dict[str, Any] = {
        "type": "message",
        "id": "a-1",
        "model": MODEL,
        "role": "assistant",
        "content": [],
        "stop_reason": None,
        "usage": usage,
    }
    events: list[dict[str, Any]] = [{"type": "message_start", "message": head}, {"type": "ping"}]
    for index, part in enumerate(scene.said):
        block = _messages_block(part)
        if isinstance(part, Text):
            deltas = [{"type": "text_delta", "text": piece} for piece in halves(part.text)]
            block = {**block, "text": ""}
        else:
            deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in ["", *halves(part.arguments)]]
            block = {**block, "input": {}}
        events.append({"type": "content_block_start", "index": index, "content_block": block})
        events += [{"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas]
        if not scene.failed:
            events.append({"type": "content_block_stop", "index": index})
    if scene.failed:
        events.append({"type": "error", "error": {"type": "overloaded_error", "message": WEATHER}})
    else:
        assert scene.stop is not None
        delta = {"stop_reason": MESSAGES_STOP[scene.stop], "stop_sequence": None}
        events += [{"type": "message_delta", "delta": delta, "usage": {"output_tokens": 7}}, {"type": "message_stop"}]
    return [(event["type"], event) for event in events]


# ---- OpenAI Chat Completions ----


def chat_message(turn: Turn) -> list[dict[str, Any]]:
    if turn.role is Role.TOOL:
        return [{"role": "tool", "tool_call_id": p.call_id, "content": p.text} for p in turn.parts if isinstance(p, ToolResult)]
    message: dict[str, Any] = {"role": turn.role.value, "content": "".join(p.text for p in turn.parts if isinstance(p, Text)) or None}
    calls = [p for p in turn.parts if isinstance(p, ToolCall)]
    if calls:
        message["tool_calls"] = [_chat_call(p) for p in calls]
    return [message]


def _chat_call(part: ToolCall) -> dict[str, Any]:
    return {"id": part.id, "type": "function", "function": {"name": part.name, "arguments": part.arguments}}


def chat_body(scene: Scene) -> dict[str, Any]:
    return {
        "messages": [{"role": "system", "content": SYSTEM}, *(message for turn in scene.turns for message in chat_message(turn))],
        "max_tokens": 99,
        "temperature": 0.5,
        "stop": "END",
        "tools": [{"type": "function", "function": {"name": "shell", "description": "Runs it.", "parameters": SCHEMA}}],
        "tool_choice": "required",
        "stream": True,
    }


_CHAT_STOP = {Stop.END: "stop", Stop.TOOL_CALLS: "tool_calls"}
_CHAT_USAGE = {"prompt_tokens": 12, "completion_tokens": 7, "prompt_tokens_details": {"cached_tokens": 4}}


def chat_whole(scene: Scene) -> bytes:
    (message,) = chat_message(Turn(Role.ASSISTANT, scene.said))
    choice = {"index": 0, "message": message, "finish_reason": _CHAT_STOP.get(scene.stop) if scene.stop else None}
    return dumps({"id": "a-1", "object": "chat.completion", "model": MODEL, "choices": [choice], "usage": _CHAT_USAGE})


def chat_events(scene: Scene) -> list[tuple[str, Any]]:
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
    number = 0
    for part in scene.said:
        if isinstance(part, Text):
            deltas += [{"content": piece} for piece in halves(part.text)]
            continue
        start = _chat_call(replace(part, arguments=""))
        deltas.append({"tool_calls": [{"index": number, **start}]})
        deltas += [{"tool_calls": [{"index": number, "function": {"arguments": piece}}]} for piece in halves(part.arguments)]
        number += 1
    chunk = {"id": "a-1", "object": "chat.completion.chunk", "model": MODEL}
    events: list[tuple[str, Any]] = [("", {**chunk, "choices": [{"index": 0, "delta": d, "finish_reason": None}]}) for d in deltas]
    if scene.failed:
        return [*events, ("", {"error": {"message": WEATHER, "type": "server_error", "code": None}})]
    assert scene.stop is not None
    last = {**chunk, "choices": [{"index": 0, "delta": {}, "finish_reason": _CHAT_STOP[scene.stop]}]}
    return [*events, ("", last), ("", {**chunk, "choices": [], "usage": _CHAT_USAGE}), ("", b"[DONE]")]


# ---- OpenAI Responses ----


def _items(turn: Turn) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = []
    for part in turn.parts:
        match part:
            case Text(text):
                kind = "output_text" if turn.role is Role.ASSISTANT else "input_text"
                items.append({"type": "message", "role": turn.role.value, "content": [{"type": kind, "text": text}]})
            case ToolCall(identity, name, arguments):
                items.append({"type": "function_call", "call_id": identity, "name": name, "arguments": arguments})
            case ToolResult(call_id, _, text):
                items.append({"type": "function_call_output", "call_id": call_id, "output": text})
    return items


def responses_body(scene: Scene) -> dict[str, Any]:
    return {
        "instructions": SYSTEM,
        "input": [item for turn in scene.turns for item in _items(turn)],
        "max_output_tokens": 99,
        "temperature": 0.5,
        "stop": ["END"],
        "tools": [{"type": "function", "name": "shell", "description": "Runs it.", "parameters": SCHEMA}],
        "tool_choice": "required",
        "stream": True,
    }


_RESPONSES_USAGE = {"input_tokens": 12, "output_tokens": 7, "input_tokens_details": {"cached_tokens": 4}}


def _response(scene: Scene, status: str) -> dict[str, Any]:
    output = _items(Turn(Role.ASSISTANT, scene.said)) if status == "completed" else []
    usage = _RESPONSES_USAGE if status == "completed" else None
    return {"id": "a-1", "object": "response", "model": MODEL, "status": status, "output": output, "usage": usage}


def responses_whole(scene: Scene) -> bytes:
    return dumps(_response(scene, "completed"))


def responses_events(scene: Scene) -> list[tuple[str, Any]]:
    events: list[dict[str, Any]] = [{"type": "response.created", "response": _response(scene, "in_progress")}]
    for index, item in enumerate(_items(Turn(Role.ASSISTANT, scene.said))):
        at = {"output_index": index, "item_id": f"i-{index}"}
        if item["type"] == "message":
            text = item["content"][0]["text"]
            events.append({"type": "response.output_item.added", **at, "item": {**item, "content": []}})
            events += [{"type": "response.output_text.delta", **at, "content_index": 0, "delta": piece} for piece in halves(text)]
        else:
            events.append({"type": "response.output_item.added", **at, "item": {**item, "arguments": ""}})
            events += [{"type": "response.function_call_arguments.delta", **at, "delta": p} for p in halves(item["arguments"])]
        if not scene.failed:
            events.append({"type": "response.output_item.done", **at, "item": item})
    if scene.failed:
        events.append({"type": "error", "code": "server_error", "message": WEATHER, "param": None})
    else:
        events.append({"type": "response.completed", "response": _response(scene, "completed")})
    return [(event["type"], {**event, "sequence_number": i}) for i, event in enumerate(events)]

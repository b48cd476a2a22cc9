"""One call and one reply, and what clients make of the streams that answer it."""

from __future__ import annotations

import json
from typing import Any

from secondtake.harness.provider.anthropic import Anthropic
from secondtake.harness.provider.chat import Chat
from secondtake.harness.provider.gemini import Gemini
from secondtake.harness.provider.responses import Responses
from secondtake.harness.provider.script import Reply, ToolCall
from secondtake.harness.provider.wire import Call, Wire

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

"""A made-up session of a coding agent: 100 turns against a streaming model, each request carrying all that went before.

Tool results are pieces of the Python standard library's source, so that they compress as what agents read does. Everything is drawn from
one seed. The marker of the provider's prompt cache moves with each turn, as real agents move it.
"""

from __future__ import annotations

import json
import os
import random
from dataclasses import dataclass
from pathlib import Path
from typing import Any

TOOLS = 16


@dataclass(frozen=True, slots=True)
class Turn:
    """One model call: the bodies of its request and of its answer."""

    request: bytes
    response: bytes


def session(turns: int, *, seed: int = 7) -> list[Turn]:
    """Return the model traffic of one session."""
    chance = random.Random(seed)
    library = "".join(path.read_text("utf-8", "replace") for path in sorted(Path(os.__file__).parent.glob("[a-m]*.py")))

    def source(low: int, high: int) -> str:
        start = chance.randrange(len(library) - high)
        return library[start : start + chance.randrange(low, high)]

    system = [{"type": "text", "text": source(9_000, 14_000), "cache_control": {"type": "ephemeral"}}]
    tools = [_tool(index, source(600, 1_400)) for index in range(TOOLS)]
    messages: list[dict[str, Any]] = [{"role": "user", "content": [{"type": "text", "text": source(300, 900)}]}]
    made: list[Turn] = []
    for turn in range(turns):
        last = messages[-1]["content"][-1]
        last["cache_control"] = {"type": "ephemeral"}
        call = {"model": "claude-test-1", "max_tokens": 8192, "stream": True, "system": system, "tools": tools, "messages": messages}
        request = json.dumps(call, separators=(",", ":"), ensure_ascii=False).encode()
        del last["cache_control"]
        said, tool_input, name = source(80, 400), {"path": f"src/part_{turn}.py", "text": source(40, 900)}, f"tool_{turn % TOOLS}"
        call_id = f"toolu_{chance.randbytes(12).hex()}"
        made.append(Turn(request, _stream(chance, said, name, call_id, json.dumps(tool_input))))
        use = {"type": "tool_use", "id": call_id, "name": name, "input": tool_input}
        messages.append({"role": "assistant", "content": [{"type": "text", "text": said}, use]})
        messages.append({"role": "user", "content": [{"type": "tool_result", "tool_use_id": call_id, "content": source(800, 8_000)}]})
    return made


def _tool(index: int, description: str) -> dict[str, Any]:
    schema = {"type": "object", "properties": {"path": {"type": "string"}, "text": {"type": "string"}}, "required": ["path"]}
    return {"name": f"tool_{index}", "description": description, "input_schema": schema}


def _stream(chance: random.Random, said: str, tool: str, call_id: str, arguments: str) -> bytes:
    """The answer as server-sent events: text and arguments in small deltas."""
    events: list[dict[str, Any]] = [
        {"type": "message_start", "message": {"id": f"msg_{chance.randbytes(12).hex()}", "role": "assistant", "model": "claude-test-1"}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        *({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": part}} for part in _cut(chance, said)),
        {"type": "content_block_stop", "index": 0},
        {"type": "content_block_start", "index": 1, "content_block": {"type": "tool_use", "id": call_id, "name": tool, "input": {}}},
        *(
            {"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": p}}
            for p in _cut(chance, arguments)
        ),
        {"type": "content_block_stop", "index": 1},
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": len(said + arguments) // 4}},
        {"type": "message_stop"},
    ]
    return "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events).encode()


def _cut(chance: random.Random, text: str) -> list[str]:
    parts: list[str] = []
    while text:
        size = chance.randrange(4, 40)
        parts.append(text[:size])
        text = text[size:]
    return parts

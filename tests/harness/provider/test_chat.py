"""Chat Completions against its documented shape."""

from __future__ import annotations

import json
from typing import Any

from secondtake.harness.provider.wire import Call
from tests.harness.provider.streams import CALL, REPLY, WIRES, assembled_chat, events


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

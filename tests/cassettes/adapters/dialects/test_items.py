"""The items of OpenAI Responses."""

from __future__ import annotations

from typing import Any

import pytest

from secondtake.cassettes.adapters import Media, Opaque, Role, Text, ToolCall, ToolResult, Turn
from secondtake.cassettes.adapters.dialects.items import item_turns


@pytest.mark.parametrize(
    ("item", "turns"),
    [
        ({"role": "user", "content": "x"}, [Turn(Role.USER, (Text("x"),))]),
        (
            {
                "type": "message",
                "role": "assistant",
                "content": [{"type": "refusal", "refusal": "no"}, {"type": "output_text", "text": "a"}],
            },
            [Turn(Role.ASSISTANT, (Text("no"), Text("a")))],
        ),
        (
            {"type": "message", "role": "user", "content": [{"type": "input_image", "file_id": "f"}, {"type": "new"}]},
            [Turn(Role.USER, (Media("image"), Opaque("new")))],
        ),
        (
            {"type": "apply_patch_call", "call_id": "c", "operation": {"type": "x"}},
            [Turn(Role.ASSISTANT, (ToolCall("c", "apply_patch", '{"type":"x"}'),))],
        ),
        (
            {"type": "shell_call_output", "call_id": "c", "output": [{"stdout": "o", "stderr": "e", "outcome": {}}]},
            [Turn(Role.TOOL, (ToolResult("c", "shell", "oe"),))],
        ),
        ({"type": "function_call_output", "call_id": "c", "output": {"a": 1}}, [Turn(Role.TOOL, (ToolResult("c", "", '{"a":1}'),))]),
        (
            {"type": "mcp_call", "id": "i", "name": "q", "arguments": '{"a":1}'},
            [Turn(Role.ASSISTANT, (ToolCall("i", "q", '{"a":1}', server_side=True),))],
        ),
        ({"type": "compaction", "encrypted_content": "x"}, [Turn(Role.ASSISTANT, (Opaque("compaction"),))]),
        ({"type": "additional_tools", "tools": []}, []),
        ({"type": "item_reference", "id": "x"}, []),
    ],
)
def test_an_item_becomes_the_turn_it_stands_for(item: dict[str, Any], turns: list[Turn]) -> None:
    """PROVIDERS A2: calls of the agent's own tools, of the provider's, their outputs, messages."""
    assert list(item_turns(item)) == turns

"""What is particular to the dialect `responses`: read as its provider means it."""

from __future__ import annotations

from typing import Any

from secondtake.cassettes.adapters import Held, HeldKind, Reasoning, Role, Text, ToolCall, ToolResult, Turn
from tests.cassettes.adapters.talk import ask

LITE: dict[str, Any] = {
    "model": "m",
    "input": [
        {
            "type": "additional_tools",
            "tools": [
                {"type": "namespace", "name": "functions", "tools": [{"type": "custom", "name": "exec"}]},
                {"type": "web_search"},
            ],
        },
        {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "rules"}]},
        {"role": "user", "content": "hi"},
        {"type": "reasoning", "summary": [{"text": "hm"}], "encrypted_content": "x"},
        {"type": "custom_tool_call", "call_id": "c", "name": "exec", "namespace": "functions", "input": "tools.exec()"},
        {
            "type": "custom_tool_call_output",
            "call_id": "c",
            "output": [{"type": "input_text", "text": "a"}, {"type": "input_text", "text": "b"}],
        },
        {"type": "local_shell_call", "call_id": "d", "action": {"command": ["ls"]}},
        {"type": "local_shell_call_output", "id": "d", "output": "o"},
        {"type": "item_reference", "id": "msg_1"},
    ],
}


def test_codex_lite_is_read() -> None:
    """AGENTS 3: tools come as the first input item, the shell is a custom tool that takes text."""
    asked = ask("openai-responses", LITE)
    assert [(tool.name, tool.server_side) for tool in asked.tools] == [("exec", False), ("web_search", True)]
    assert asked.turns == (
        Turn(Role.SYSTEM, (Text("rules"),)),
        Turn(Role.USER, (Text("hi"),)),
        Turn(Role.ASSISTANT, (Reasoning("hm", bound=True), ToolCall("c", "exec", "tools.exec()", "text"))),
        Turn(Role.TOOL, (ToolResult("c", "exec", "ab"),)),
        Turn(Role.ASSISTANT, (ToolCall("d", "local_shell", '{"command":["ls"]}'),)),
        Turn(Role.TOOL, (ToolResult("d", "local_shell", "o"),)),
    )
    assert asked.held == (Held(HeldKind.ENCRYPTED, "input[3].encrypted_content"), Held(HeldKind.STATE, "input[8].id", "msg_1"))

"""What is particular to the dialect `converse`: read as its provider means it."""

from __future__ import annotations

import base64

from secondtake.cassettes.adapters import Held, HeldKind, Reasoning, Role, Stop, Text, ToolResult, Turn
from tests.cassettes.adapters.talk import ask, hear


def test_converse_particulars_are_read() -> None:
    """PROVIDERS A2: signatures, status of results, guardrails, the router's choice."""
    content = [
        {"reasoningContent": {"reasoningText": {"text": "hm", "signature": "s"}}},
        {"toolUse": {"toolUseId": "t", "name": "f", "input": {}}},
    ]
    result = {"toolResult": {"toolUseId": "t", "status": "error", "content": [{"json": {"b": 1}}, {"text": "x"}]}}
    asked = ask("bedrock", {"messages": [{"role": "assistant", "content": content}, {"role": "user", "content": [result]}]})
    assert asked.turns[0].parts[0] == Reasoning("hm", bound=True)
    assert asked.turns[1].parts == (ToolResult("t", "f", '{"b":1}x', is_error=True),)
    assert asked.held == (Held(HeldKind.SIGNATURE, "messages[0].content[0]"),)
    answer = hear(
        "bedrock",
        {
            "output": {"message": {"content": content}},
            "stopReason": "guardrail_intervened",
            "trace": {"promptRouter": {"invokedModelId": "x"}},
        },
    )
    assert (answer.stop, answer.served[0].role) == (Stop.FILTERED, "router")


def test_a_count_is_read_and_a_prompt_in_base64_says_that_it_is_not() -> None:
    """T-P4."""
    path = "/model/a.b/count-tokens"
    inner = {"messages": [{"role": "user", "content": [{"text": "x"}]}]}
    assert ask("bedrock", {"input": {"converse": inner}}, path).turns == (Turn(Role.USER, (Text("x"),)),)
    body = base64.b64encode(b"{}").decode()
    assert [fault.kind for fault in ask("bedrock", {"input": {"invokeModel": {"body": body}}}, path).faults] == ["unknown-dialect"]

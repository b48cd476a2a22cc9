"""What is particular to the dialect `messages`: read as its provider means it."""

from __future__ import annotations

from typing import Any

import pytest

from secondtake.cassettes.adapters import HeldKind, Media, Opaque, Reasoning, Role, Signal, Stop, Text, ToolCall, ToolResult, Turn, Usage
from tests.cassettes.adapters.scenes import sse
from tests.cassettes.adapters.talk import ask, hear


def test_blocks_of_every_kind_are_read() -> None:
    """PROVIDERS A2: thinking, server tools, files; `role: system` within the conversation; results beside text."""
    assistant = [
        {"type": "thinking", "thinking": "hm", "signature": "s"},
        {"type": "redacted_thinking", "data": "x"},
        {"type": "server_tool_use", "id": "st", "name": "web_search", "input": {"q": 1}},
        {"type": "web_search_tool_result", "tool_use_id": "st", "content": []},
        {"type": "tool_use", "id": "t", "name": "f", "input": {"b": 1, "a": [1.0]}},
    ]
    user = [
        {"type": "tool_result", "tool_use_id": "t", "content": "no", "is_error": True},
        {"type": "image", "source": {"type": "file", "file_id": "file_1"}},
    ]
    messages = [
        {"role": "assistant", "content": assistant},
        {"role": "user", "content": user},
        {"role": "system", "content": "new tools"},
    ]
    asked = ask("anthropic", {"model": "m", "max_tokens": 1, "messages": messages, "container": "c_1"})
    assert asked.turns == (
        Turn(
            Role.ASSISTANT,
            (
                Reasoning("hm", bound=True),
                Reasoning("", bound=True),
                ToolCall("st", "web_search", '{"q":1}', server_side=True),
                ToolResult("st", "web_search", "[]"),
                ToolCall("t", "f", '{"a":[1.0],"b":1}'),
            ),
        ),
        Turn(Role.TOOL, (ToolResult("t", "f", "no", is_error=True),)),
        Turn(Role.USER, (Media("image"),)),
        Turn(Role.SYSTEM, (Text("new tools"),)),
    )
    assert [held.kind for held in asked.held] == [HeldKind.FILE, HeldKind.SIGNATURE, HeldKind.ENCRYPTED, HeldKind.FILE]


def test_tools_that_the_provider_runs_are_told_apart() -> None:
    """A-14."""
    tools = [{"type": "bash_20250124", "name": "bash"}, {"type": "web_search_20250305", "name": "web_search"}]
    asked = ask("anthropic", {"model": "m", "max_tokens": 1, "messages": [], "tools": tools, "mcp_servers": [{"name": "db"}]})
    assert [(tool.name, tool.server_side) for tool in asked.tools] == [("bash", False), ("web_search", True), ("db", True)]


def test_a_stream_with_thinking_a_fallback_and_iterations() -> None:
    """A-04, A5: who really served; the first usage does not hide the last."""
    head = {
        "type": "message",
        "id": "i",
        "model": "m",
        "content": [],
        "usage": {"input_tokens": 3, "cache_read_input_tokens": 2, "output_tokens": 1},
    }
    usage = {
        "output_tokens": 9,
        "output_tokens_details": {"thinking_tokens": 4},
        "iterations": [{"type": "fallback_message", "model": "n"}],
    }
    events: list[dict[str, Any]] = [
        {"type": "message_start", "message": head},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "hm"}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "signature_delta", "signature": "s"}},
        {
            "type": "content_block_start",
            "index": 1,
            "content_block": {"type": "fallback", "from": {"model": "m"}, "to": {"model": "n"}},
        },
        {"type": "content_block_start", "index": 2, "content_block": {"type": "text", "text": "a"}},
        {"type": "content_block_delta", "index": 2, "delta": {"type": "text_delta", "text": "b"}},
        {"type": "message_delta", "delta": {"stop_reason": "refusal"}, "usage": usage},
        {"type": "message_stop"},
    ]
    answer = hear("anthropic", sse(*((str(event["type"]), event) for event in events)))
    assert answer.turn.parts == (Reasoning("hm", bound=True), Opaque("fallback"), Text("ab"))
    assert answer.usage == Usage(5, 9, cache_read=2, reasoning=4)
    assert [(one.model, one.role) for one in answer.served] == [("m", "answer"), ("n", "fallback"), ("n", "fallback")]
    assert (answer.stop, answer.stop_wire) == (Stop.REFUSED, "refusal")
    assert Signal("fallback", "m -> n") in answer.signals


@pytest.mark.parametrize(
    ("body", "usage", "text"),
    [
        ({"input_tokens": 7}, Usage(7), ""),
        ({"type": "completion", "completion": "x", "stop_reason": "stop_sequence"}, Usage(partial=True), "x"),
    ],
)
def test_counts_and_the_legacy_form_are_read(body: dict[str, Any], usage: Usage, text: str) -> None:
    """T-P4: `count_tokens`; `/v1/complete`."""
    answer = hear("anthropic", body)
    assert answer.complete
    assert (answer.usage, answer.text) == (usage, text)


def test_what_the_provider_did_to_the_prefix_is_a_signal() -> None:
    """A-11: `input_transformations`, `cache_miss_reason`."""
    body = {"type": "message", "content": [], "input_transformations": [{"reason": "model_mismatch"}]}
    answer = hear("anthropic", {**body, "diagnostics": {"cache_miss_reason": {"type": "model_changed"}}})
    assert answer.signals == (Signal("input_transformation", "model_mismatch"), Signal("cache_miss", "model_changed"))

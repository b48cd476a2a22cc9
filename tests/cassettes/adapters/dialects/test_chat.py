"""What is particular to the dialect `chat`: read as its provider means it."""

from __future__ import annotations

from typing import Any

import pytest

from secondtake.cassettes.adapters import Reasoning, Signal, Stop, Text, Tool, ToolCall, ToolResult
from tests.cassettes.adapters.talk import ask, data, hear


@pytest.mark.parametrize(
    "deltas",
    [
        [
            {"index": 0, "id": "a", "function": {"name": "f", "arguments": "{}"}},
            {"index": 0, "id": "b", "function": {"name": "g", "arguments": "{}"}},
        ],
        [{"id": "a", "function": {"name": "f", "arguments": "{}"}}, {"id": "b", "function": {"name": "g", "arguments": "{}"}}],
        [{"index": 0, "id": "a", "function": {"name": "f", "arguments": {}}}, {"index": 1, "id": "b", "function": {"name": "g"}}],
    ],
    ids=["the same index for all", "no index", "arguments as an object"],
)
def test_calls_of_servers_that_bend_the_format_are_kept_apart(deltas: list[dict[str, Any]]) -> None:
    """DESIGN 5: any OpenAI-compatible gateway."""
    answer = hear("openai-chat", data(*({"choices": [{"delta": {"tool_calls": [one]}}]} for one in deltas), b"[DONE]"))
    assert [(call.id, call.name, call.arguments) for call in answer.calls] == [("a", "f", "{}"), ("b", "g", "{}")]


def test_comments_empty_choices_and_reasoning_are_read_past() -> None:
    """OpenRouter's keep-alives, Azure's first chunk, DeepSeek's reasoning, LiteLLM's fields."""
    stream = b": OPENROUTER PROCESSING\n\n" + data(
        {"choices": [], "prompt_filter_results": []},
        {"choices": [{"delta": {"reasoning_content": "hm"}}], "provider": "P", "model": "x/y"},
        {
            "choices": [{"delta": {"content": "a", "tool_calls": None}, "finish_reason": "stop", "native_finish_reason": "STOP"}],
            "usage": None,
        },
        b"[DONE]",
    )
    answer = hear("gateway", stream, fields=((b"X-LiteLLM-Model-Id", b"id"),))
    assert answer.turn.parts == (Reasoning("hm"), Text("a"))
    assert (answer.stop, answer.stop_wire, answer.complete, answer.usage.partial) == (Stop.END, "STOP", True, True)
    assert answer.signals == (Signal("gateway", "x-litellm-model-id: id"), Signal("gateway", "P"))


def test_a_stream_without_done_is_incomplete() -> None:
    """A-09."""
    answer = hear("openai-chat", data({"choices": [{"delta": {"content": "a"}, "finish_reason": "stop"}]}))
    assert (answer.complete, answer.stop) == (False, Stop.END)


def test_custom_tools_old_functions_and_media_are_read() -> None:
    """PROVIDERS A2; `n` > 1: the first choice is read, and the answer says so."""
    calls = [{"id": "c", "type": "custom", "custom": {"name": "sh", "input": "ls {"}}]
    messages = [
        {"role": "developer", "content": "a"},
        {"role": "user", "content": [{"type": "text", "text": "b"}, {"type": "image_url", "image_url": {"url": "data:x"}}]},
        {"role": "assistant", "content": None, "tool_calls": calls, "function_call": {"name": "f", "arguments": "{"}},
        {"role": "function", "name": "f", "content": "r"},
    ]
    asked = ask("openai-chat", {"model": "m", "messages": messages, "functions": [{"name": "f"}], "web_search_options": {}})
    assert asked.system == ("a",)
    assert asked.turns[1].parts == (ToolCall("c", "sh", "ls {", "text"), ToolCall("", "f", "{", well_formed=False))
    assert asked.turns[2].parts == (ToolResult("", "f", "r"),)
    assert asked.tools == (Tool("f"), Tool("web_search", server_side=True))
    choices = [{"index": 1, "message": {"content": "no"}}, {"index": 0, "message": {"content": "yes"}, "finish_reason": "length"}]
    answer = hear("openai-chat", {"choices": choices})
    assert (answer.text, answer.stop, [fault.kind for fault in answer.faults]) == ("yes", Stop.LENGTH, ["shape"])

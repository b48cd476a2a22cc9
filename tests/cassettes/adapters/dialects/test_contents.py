"""What is particular to the dialect `contents`: read as its provider means it."""

from __future__ import annotations

from typing import Any

import pytest

from secondtake.cassettes.adapters import HeldKind, Media, Reasoning, Signal, Stop, Tool, ToolCall, ToolResult, Usage
from tests.cassettes.adapters.talk import ask, hear


def test_parts_of_every_kind_are_read() -> None:
    """PROVIDERS A2: signatures, files, code run by the provider, results that are errors or objects."""
    model = [
        {"text": "hm", "thought": True, "thoughtSignature": "s"},
        {"functionCall": {"name": "f", "args": {"b": 1}}, "thoughtSignature": "s"},
        {"executableCode": {"code": "1"}},
    ]
    user = [
        {"functionResponse": {"name": "f", "response": {"error": "no"}}},
        {"functionResponse": {"name": "f", "response": {"a": 1, "b": 2}}},
        {"fileData": {"mimeType": "image/png", "fileUri": "u"}},
        {"inlineData": {"mimeType": "application/pdf", "data": "x"}},
    ]
    asked = ask(
        "gemini",
        {"contents": [{"role": "model", "parts": model}, {"parts": user}], "cachedContent": "c", "tools": [{"googleSearch": {}}]},
    )
    assert asked.turns[0].parts[:2] == (Reasoning("hm", bound=True), ToolCall("", "f", '{"b":1}'))
    assert asked.turns[1].parts == (ToolResult("", "f", "no", is_error=True), ToolResult("", "f", '{"a":1,"b":2}'))
    assert [part.kind for part in asked.turns[2].parts if isinstance(part, Media)] == ["image", "document"]
    assert [(held.kind, held.path) for held in asked.held] == [
        (HeldKind.FILE, "cachedContent"),
        (HeldKind.SIGNATURE, "contents[0].parts[0]"),
        (HeldKind.SIGNATURE, "contents[0].parts[1]"),
        (HeldKind.FILE, "contents[1].parts[2]"),
    ]
    assert asked.tools == (Tool("googleSearch", server_side=True),)


@pytest.mark.parametrize(
    ("body", "stop", "complete"),
    [
        ({"promptFeedback": {"blockReason": "SAFETY"}}, Stop.FILTERED, True),
        ({"candidates": [{"finishReason": "MALFORMED_FUNCTION_CALL"}]}, Stop.MALFORMED, True),
        ({"candidates": [{"content": {"parts": [{"text": "x"}]}}]}, None, False),
        ({"totalTokens": 5}, None, True),
    ],
)
def test_how_an_answer_ended(body: dict[str, Any], stop: Stop | None, complete: bool) -> None:
    """A-09: the format has no end of its own; a finish reason is it."""
    answer = hear("gemini", body)
    assert (answer.stop, answer.complete) == (stop, complete)


def test_reasoning_counts_as_output() -> None:
    """PROVIDERS A2: `thoughtsTokenCount` is not in `candidatesTokenCount`."""
    usage = {"promptTokenCount": 5, "candidatesTokenCount": 2, "thoughtsTokenCount": 3, "toolUsePromptTokenCount": 1}
    answer = hear("gemini", {"candidates": [{"finishReason": "STOP"}], "usageMetadata": usage, "modelStatus": {"retirementTime": "2027"}})
    assert answer.usage == Usage(6, 5, reasoning=3)
    assert answer.signals == (Signal("retires", "2027"),)


def test_an_interaction_says_that_it_is_not_read() -> None:
    """docs/adapters.md: its model is still found."""
    asked = ask("gemini", {"model": "m", "input": "x", "previous_interaction_id": "i"}, "/v1beta/interactions")
    assert (asked.model, asked.continues, [fault.kind for fault in asked.faults]) == ("m", "i", ["unknown-dialect"])

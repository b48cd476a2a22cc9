"""What is particular to the answers of the dialect `responses`: read as its provider means it."""

from __future__ import annotations

from typing import Any

import pytest

from secondtake.cassettes.adapters import Reasoning, Signal, Stop, ToolCall
from tests.cassettes.adapters.scenes import sse
from tests.cassettes.adapters.talk import hear


def test_a_custom_call_and_a_server_call_are_assembled_from_a_stream() -> None:
    """A-14: only the agent's own calls count as calls to answer."""
    events: list[dict[str, Any]] = [
        {"type": "response.created", "response": {"id": "r", "model": "m", "status": "in_progress"}},
        {"type": "response.output_item.added", "output_index": 0, "item": {"type": "web_search_call", "id": "w"}},
        {
            "type": "response.output_item.added",
            "output_index": 1,
            "item": {"type": "custom_tool_call", "call_id": "c", "name": "exec", "input": ""},
        },
        {"type": "response.custom_tool_call_input.delta", "output_index": 1, "delta": "a("},
        {"type": "response.custom_tool_call_input.delta", "output_index": 1, "delta": ")"},
        {"type": "response.custom_tool_call_input.done", "output_index": 1, "input": "a()"},
        {"type": "response.reasoning_summary_text.delta", "output_index": 2, "delta": "hm"},
        {"type": "response.completed", "response": {"id": "r", "model": "m-2026-01-01", "status": "completed", "output": []}},
    ]
    answer = hear("openai-responses", sse(*((str(event["type"]), event) for event in events)))
    assert answer.turn.parts == (
        ToolCall("w", "web_search", "{}", server_side=True),
        ToolCall("c", "exec", "a()", "text"),
        Reasoning("hm"),
    )
    assert (answer.stop, answer.complete, answer.usage.partial) == (Stop.TOOL_CALLS, True, True)
    assert [one.model for one in answer.served] == ["m", "m-2026-01-01"]
    assert Signal("provider_side_effect", "web_search") in answer.signals


@pytest.mark.parametrize(
    ("response", "stop", "infrastructure"),
    [
        ({"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}, Stop.LENGTH, None),
        ({"status": "incomplete", "incomplete_details": {"reason": "content_filter"}}, Stop.FILTERED, None),
        ({"status": "failed", "error": {"code": "server_error", "message": "x"}}, None, True),
        ({"status": "failed", "error": {"code": "invalid_prompt", "message": "x"}}, None, False),
        ({"status": "cancelled"}, Stop.CANCELLED, None),
    ],
)
def test_how_a_response_ended(response: dict[str, Any], stop: Stop | None, infrastructure: bool | None) -> None:
    """PROVIDERS A2: status, `incomplete_details`; whole and as the last event."""
    whole = {"object": "response", "model": "m", "output": [], **response}
    for answer in (
        hear("openai-responses", whole),
        hear("openai-responses", sse((f"response.{response['status']}", {"type": f"response.{response['status']}", "response": whole}))),
    ):
        assert answer.stop is stop
        assert (None if answer.error is None else answer.error.infrastructure) is infrastructure


def test_a_background_response_is_pending() -> None:
    """`background`: the answer is fetched later."""
    answer = hear("openai-responses", {"object": "response", "status": "queued", "output": [], "error": None})
    assert (answer.stop, answer.complete) == (Stop.PENDING, False)

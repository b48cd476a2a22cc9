"""Shapes that two formats share are told apart by what only one of them has."""

from __future__ import annotations

from typing import Any

import pytest

from secondtake.cassettes.adapters import shapes

BASE: dict[str, Any] = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "x"}]}


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({}, True),
        ({"system": "s"}, True),
        ({"tools": [{"name": "f", "input_schema": {}}]}, True),
        ({"tools": [{"type": "function", "function": {"name": "f"}}]}, False),
        ({"messages": [{"role": "system", "content": "x"}]}, False),
        ({"messages": [{"role": "assistant", "tool_calls": []}]}, False),
        ({"response_format": {}}, False),
        ({"prompt": "x"}, False),
        ({"messages": "x"}, False),
    ],
)
def test_messages_is_told_from_chat(more: dict[str, Any], expected: bool) -> None:
    """A-02: `max_tokens` may stand in both."""
    assert shapes.messages({**BASE, **more}) is expected


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({"model": "m", "input": "x"}, True),
        ({"model": "m", "input": [{"type": "message"}]}, True),
        ({"model": "m", "input": ["x", "y"]}, False),
        ({"model": "m", "input": [[1, 2]]}, False),
        ({"model": "m", "input": {"prompt": "x"}}, False),
        ({"model": "m", "input": "x", "encoding_format": "float"}, False),
        ({"model": "m", "input": "x", "voice": "v"}, False),
        ({"model": "m", "conversation": "c"}, True),
        ({"prompt": {"id": "p"}}, True),
        ({"model": "m", "prompt": "x"}, False),
        ({"type": "response.create"}, True),
    ],
)
def test_responses_is_told_from_embeddings_speech_and_others(body: dict[str, Any], expected: bool) -> None:
    """A-02: `model` and `input` stand in many."""
    assert shapes.responses(body) is expected

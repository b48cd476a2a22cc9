"""Errors of any provider: read, and made."""

from __future__ import annotations

import json

import pytest

from secondtake.cassettes.adapters import errors
from secondtake.cassettes.adapters.base import Json


@pytest.mark.parametrize(
    ("body", "status", "kind", "infrastructure"),
    [
        ({"type": "error", "error": {"type": "overloaded_error", "message": "m"}}, 529, "overloaded_error", True),
        ({"error": {"type": "insufficient_quota", "message": "m", "code": "insufficient_quota"}}, 429, "insufficient_quota", True),
        ({"error": {"message": "m", "type": None, "code": "context_length_exceeded"}}, 400, "context_length_exceeded", False),
        ({"error": {"code": 503, "status": "UNAVAILABLE", "message": "m"}}, 200, "UNAVAILABLE", True),
        ([{"error": {"code": 400, "status": "INVALID_ARGUMENT", "message": "m"}}], 400, "INVALID_ARGUMENT", False),
        ({"message": "m", "__type": "ThrottlingException"}, 400, "ThrottlingException", True),
        ({"error": "m"}, 404, "status_404", False),
        ({"detail": "x"}, 422, "status_422", False),
        (None, 502, "status_502", True),
        ("gateway", 408, "status_408", True),
    ],
)
def test_weather_is_told_from_refusals(body: Json, status: int, kind: str, infrastructure: bool) -> None:
    """A-12, T-P5: Anthropic, OpenAI, Google (object and array), AWS, Ollama, a proxy's page."""
    error = errors.provider_error(body, status)
    assert (error.type, error.infrastructure) == (kind, infrastructure)


def test_a_stream_that_breaks_off_without_a_name_is_weather() -> None:
    """The request had been accepted."""
    assert errors.provider_error({"error": "x"}, 200, in_stream=True).infrastructure
    assert not errors.provider_error({"error": {"type": "invalid_request_error"}}, 200, in_stream=True).infrastructure


def test_made_errors_are_ascii_json() -> None:
    """A message may quote recorded text."""
    for refusal in (errors.anthropic("é"), errors.openai("k", "é"), errors.google("é"), errors.bedrock("é"), errors.ollama("é")):
        assert refusal.body.isascii()
        assert "é" in str(json.loads(refusal.body))
        assert dict(refusal.fields)[b"content-type"] == b"application/json"

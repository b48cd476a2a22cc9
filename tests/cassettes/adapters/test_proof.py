"""Which model answered: never more certain than the answer's own word allows."""

from __future__ import annotations

import json
from typing import Any

import pytest

from secondtake.cassettes import adapters
from secondtake.cassettes.adapters import ModelAnswer, Outcome
from secondtake.cassettes.exchange import Answer, Request

PIN = "claude-x-5-20260101"


def read(adapter: str, path: str, body: dict[str, Any], status: int = 200) -> ModelAnswer:
    request = Request("POST", "https", "h.example", 443, path.encode())
    return adapters.read_answer(adapter, request, Answer(status), json.dumps(body).encode())


def message(model: str, *iterations: tuple[str, str], content: list[Any] | None = None) -> ModelAnswer:
    usage: dict[str, Any] = {"input_tokens": 1, "output_tokens": 1}
    if iterations:
        usage["iterations"] = [{"type": kind, "model": by} for kind, by in iterations]
    return read(
        "anthropic",
        "/v1/messages",
        {"type": "message", "model": model, "content": content or [], "stop_reason": "end_turn", "usage": usage},
    )


FALLBACK = [{"type": "fallback", "from": {"model": PIN}, "to": {"model": "other"}, "trigger": {"type": "refusal"}}]


@pytest.mark.parametrize(
    ("answer", "verdict", "strength"),
    [
        (message(PIN, ("message", PIN)), "verified", "strong"),
        (message(PIN), "verified", "medium"),
        (message("claude-other-5"), "mismatch", "strong"),
        (message(PIN, ("message", PIN), ("fallback_message", "claude-other-5")), "mismatch", "strong"),
        (message(PIN, ("message", PIN), ("advisor_message", "claude-other-5")), "mismatch", "strong"),
        (message(PIN, content=FALLBACK), "mismatch", "strong"),
        (message("claude-x-5"), "unverified", "weak"),
    ],
)
def test_a_message_proves_its_model_by_who_sampled(answer: ModelAnswer, verdict: str, strength: str) -> None:
    """A-04, A-06, T-P2: a fallback or an advisor that is not the pin is a mismatch though `model` echoes the pin."""
    proof = adapters.prove("anthropic", "api.anthropic.com", [PIN], answer)
    assert (proof.verdict, proof.strength) == (verdict, strength)
    assert proof.reasons


@pytest.mark.parametrize(
    ("adapter", "host", "path", "body", "asked", "verdict", "strength"),
    [
        (
            "openai-chat",
            "api.openai.com",
            "/v1/chat/completions",
            {"model": "gpt-4o-2024-08-06", "choices": []},
            "gpt-4o",
            "verified",
            "strong",
        ),
        (
            "openai-chat",
            "api.openai.com",
            "/v1/chat/completions",
            {"model": "gpt-5", "system_fingerprint": "fp_1", "choices": []},
            "gpt-5",
            "verified",
            "medium",
        ),
        ("openai-chat", "api.openai.com", "/v1/chat/completions", {"model": "gpt-5", "choices": []}, "gpt-5", "unverified", "weak"),
        ("openai-chat", "api.openai.com", "/v1/chat/completions", {"model": "gpt-5-mini", "choices": []}, "gpt-5", "mismatch", "strong"),
        ("openai-chat", "vllm.internal.example", "/v1/chat/completions", {"model": "any", "choices": []}, "any", "unverified", "weak"),
        (
            "gateway",
            "openrouter.ai",
            "/api/v1/chat/completions",
            {"model": "openai/gpt-4o", "choices": []},
            "openai/gpt-4o",
            "unverified",
            "weak",
        ),
        (
            "azure-openai",
            "r.openai.azure.com",
            "/openai/deployments/d/chat/completions",
            {"model": "gpt-4o-2024-08-06", "choices": []},
            "d",
            "unverified",
            "weak",
        ),
        (
            "gemini",
            "generativelanguage.googleapis.com",
            "/v1beta/models/g:generateContent",
            {"modelVersion": "models/gemini-2.0-flash-001", "candidates": []},
            "gemini-2.0-flash-001",
            "verified",
            "strong",
        ),
        (
            "bedrock",
            "bedrock-runtime.us-east-1.amazonaws.com",
            "/model/a.b/converse",
            {"output": {"message": {"content": []}}},
            "a.b",
            "unverified",
            "none",
        ),
        (
            "bedrock",
            "bedrock-runtime.us-east-1.amazonaws.com",
            "/model/a.b/converse",
            {"output": {"message": {"content": []}}, "trace": {"promptRouter": {"invokedModelId": "arn:x/other"}}},
            "a.b",
            "mismatch",
            "strong",
        ),
        (
            "bedrock",
            "bedrock-runtime.us-east-1.amazonaws.com",
            "/model/a.b/invoke",
            {"type": "message", "model": "claude-x-5-20260101", "content": []},
            "us.anthropic.claude-x-5-20260101-v1:0",
            "verified",
            "medium",
        ),
        ("ollama", "localhost", "/api/chat", {"model": "a:b", "done": True}, "a:b", "unverified", "weak"),
        ("ollama", "localhost", "/api/chat", {"model": "a:b", "remote_model": "c", "done": True}, "a:b", "mismatch", "strong"),
    ],
)
def test_an_echo_is_never_counted_as_verified(
    adapter: str, host: str, path: str, body: dict[str, Any], asked: str, verdict: str, strength: str
) -> None:
    """A-06, A5: strong, medium, weak, none."""
    proof = adapters.prove(adapter, host, [asked], read(adapter, path, body))
    assert (proof.verdict, proof.strength) == (verdict, strength)


@pytest.mark.parametrize(
    ("status", "body", "expected"),
    [
        (200, {"type": "message", "model": PIN, "content": [], "stop_reason": "end_turn"}, Outcome.ANSWERED),
        (429, {"type": "error", "error": {"type": "rate_limit_error", "message": "slow"}}, Outcome.INFRASTRUCTURE),
        (529, {"type": "error", "error": {"type": "overloaded_error", "message": "x"}}, Outcome.INFRASTRUCTURE),
        (500, {}, Outcome.INFRASTRUCTURE),
        (400, {"type": "error", "error": {"type": "invalid_request_error", "message": "unsupported beta"}}, Outcome.INCOMPATIBLE),
        (404, {"type": "error", "error": {"type": "not_found_error", "message": "model: claude-old"}}, Outcome.RETIRED),
        (404, {"type": "error", "error": {"type": "not_found_error", "message": "no such path"}}, Outcome.INCOMPATIBLE),
        (200, {}, Outcome.INFRASTRUCTURE),
    ],
)
def test_weather_is_told_from_refusals(status: int, body: dict[str, Any], expected: Outcome) -> None:
    """A-12, T-P5: 429, 529 and cut answers are infrastructure; an unknown model is retired, not failed."""
    answer = read("anthropic", "/v1/messages", body, status)
    assert adapters.outcome(status, answer) is expected

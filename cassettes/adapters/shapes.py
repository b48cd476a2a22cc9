"""The shapes of bodies that tell one wire format from another (PROVIDERS A1, second table)."""

from __future__ import annotations

from collections.abc import Mapping

from secondtake.cassettes.adapters.base import Json

_NOT_RESPONSES = ("encoding_format", "voice", "dimensions", "documents", "query", "texts", "input_type")
"""Keys of embeddings, speech and ranking, which also have `model` and `input`."""


def contents(body: Mapping[str, Json]) -> bool:
    """Gemini: `contents[]` with `parts[]`."""
    value = body.get("contents")
    entries = value if isinstance(value, list) else [value]
    return any(isinstance(entry, dict) and isinstance(entry.get("parts"), (list, dict)) for entry in entries)


def messages(body: Mapping[str, Json]) -> bool:
    """Anthropic Messages: `messages[]`, `max_tokens`, and `model` or `anthropic_version`; no `prompt`."""
    return (
        isinstance(body.get("messages"), list)
        and "max_tokens" in body
        and ("anthropic_version" in body or (isinstance(body.get("model"), str) and _speaks_messages(body)))
        and "prompt" not in body
    )


def _speaks_messages(body: Mapping[str, Json]) -> bool:
    """Whether a body with `model`, `messages` and `max_tokens`, which Chat Completions may have too, is a Messages body.

    Chat has no top-level `system`, its roles include `system`, `developer` and `tool`, and its tools are `{"function": …}`.
    Where nothing tells them apart the table's precedence holds: Messages.
    """
    if "system" in body or "anthropic_version" in body:
        return True
    if any(key in body for key in _CHAT_ONLY):
        return False
    tools = body.get("tools")
    if isinstance(tools, list) and tools:
        return not any(isinstance(tool, dict) and isinstance(tool.get("function"), dict) for tool in tools)
    turns = body["messages"]
    if isinstance(turns, list) and turns:
        return not any(
            isinstance(turn, dict)
            and (turn.get("role") in ("system", "developer", "tool", "function") or "tool_calls" in turn or "tool_call_id" in turn)
            for turn in turns
        )
    return True


_CHAT_ONLY = (
    "max_completion_tokens", "n", "logprobs", "frequency_penalty", "presence_penalty", "response_format", "stop", "seed", "user",
    "stream_options", "functions", "parallel_tool_calls", "reasoning_effort", "logit_bias", "store", "modalities",
)  # fmt: skip


def responses(body: Mapping[str, Json]) -> bool:
    """OpenAI Responses: `model` and `input`, `previous_response_id`, `prompt.id` or `conversation`; or a `response.create` frame."""
    if body.get("type") == "response.create":
        return True
    if not isinstance(body.get("model"), str) and not _stored_prompt(body):
        return False
    if "messages" in body or any(key in body for key in _NOT_RESPONSES):
        return False
    given = body.get("input")
    if isinstance(given, str):
        return True
    if isinstance(given, list):
        return all(isinstance(item, dict) and ("type" in item or "role" in item) for item in given)
    return isinstance(body.get("previous_response_id"), str) or bool(body.get("conversation")) or _stored_prompt(body)


def _stored_prompt(body: Mapping[str, Json]) -> bool:
    prompt = body.get("prompt")
    return isinstance(prompt, dict) and isinstance(prompt.get("id"), str)


def chat(body: Mapping[str, Json]) -> bool:
    """OpenAI Chat Completions: `model` and `messages[].role`."""
    turns = body.get("messages")
    return (
        isinstance(body.get("model"), str)
        and isinstance(turns, list)
        and bool(turns)
        and all(isinstance(turn, dict) and isinstance(turn.get("role"), str) for turn in turns)
    )


def routed(body: Mapping[str, Json]) -> bool:
    """Whether a gateway is told to choose among models or hosts."""
    return isinstance(body.get("models"), list) or any(key in body for key in ("route", "fallbacks", "context_window_fallbacks"))

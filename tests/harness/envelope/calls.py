"""Cassettes of a few model calls, for tests of what their traffic says."""

from __future__ import annotations

import json
from collections.abc import Sequence

from secondtake.cassettes.exchange import Answer, Channel, Fields, Request
from secondtake.cassettes.memory import MemoryCassette

FIELDS: Fields = (
    (b"content-type", b"application/json"),
    (b"user-agent", b"claude-cli/2.1.197 (external, cli)"),
    (b"x-stainless-retry-count", b"0"),
)
TOOL = {"name": "run", "description": "Runs a command", "input_schema": {"type": "object", "properties": {"command": {"type": "string"}}}}
SEARCH = {"name": "mcp__tickets__search", "description": "", "input_schema": {"type": "object"}}


def ask(*turns: str, system: str = "You fix code.\nToday's date is 2026-11-30", tools: Sequence[object] = (TOOL,), **rest: object) -> bytes:
    """A Messages request: user and assistant take turns."""
    messages = [{"role": ("user", "assistant")[number % 2], "content": text} for number, text in enumerate(turns or ("fix it",))]
    return json.dumps(
        {"model": "hasty-20260101", "max_tokens": 64, "system": system, "messages": messages, "tools": tools, **rest}
    ).encode()


def recorded(*asked: bytes, fields: Fields = FIELDS, statuses: Sequence[int] = ()) -> MemoryCassette:
    """A cassette of one model call for each body; `statuses` are those of the first ones, 200 the others'."""
    made = MemoryCassette()
    for number, sent in enumerate(asked):
        status = statuses[number] if number < len(statuses) else 200
        request = Request("POST", "https", "api.provider.example", 443, b"/v1/messages", fields=fields)
        made.record(request, Answer(status), sent=sent, received=b"{}", channel=Channel.MODEL, adapter="anthropic")
    return made

"""Asking and hearing in one line, for tests of what is particular to a dialect."""

from __future__ import annotations

import json
from typing import Any

from secondtake.cassettes import adapters
from secondtake.cassettes.adapters import ModelAnswer, ModelRequest
from secondtake.cassettes.exchange import Answer, Fields, Request
from tests.cassettes.adapters.scenes import sse

PATHS = {
    "anthropic": "/v1/messages",
    "openai-chat": "/v1/chat/completions",
    "openai-responses": "/v1/responses",
    "gateway": "/api/v1/chat/completions",
    "gemini": "/v1beta/models/g:generateContent",
    "bedrock": "/model/a.b/converse",
    "ollama": "/api/chat",
}


def ask(adapter: str, body: dict[str, Any], path: str = "") -> ModelRequest:
    request = Request("POST", "https", "h.example", 443, (path or PATHS[adapter]).encode())
    return adapters.read_request(adapter, request, json.dumps(body).encode())


def hear(adapter: str, body: dict[str, Any] | bytes, path: str = "", *, status: int = 200, fields: Fields = ()) -> ModelAnswer:
    request = Request("POST", "https", "h.example", 443, (path or PATHS[adapter]).encode())
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    return adapters.read_answer(adapter, request, Answer(status, fields=fields), content)


def data(*chunks: dict[str, Any] | bytes) -> bytes:
    return sse(*(("", chunk) for chunk in chunks))

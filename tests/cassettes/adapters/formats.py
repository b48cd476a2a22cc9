"""Every wire format an adapter reads, each able to write any scene."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from secondtake.cassettes.adapters import Role, Text, ToolCall, ToolResult, Turn
from secondtake.cassettes.eventstream import encode
from secondtake.cassettes.exchange import Fields, Request
from tests.cassettes.adapters.scenes import (
    AMZ_FIELDS,
    JSON_FIELDS,
    MESSAGES_STOP,
    MODEL,
    SCHEMA,
    SSE_FIELDS,
    SYSTEM,
    WEATHER,
    Scene,
    chat_body,
    chat_events,
    chat_message,
    chat_whole,
    dumps,
    halves,
    messages_body,
    messages_events,
    messages_whole,
    responses_body,
    responses_events,
    responses_whole,
    sse,
)


@dataclass(frozen=True)
class Format:
    """One wire format: how a scene's request and answers are written. `ask` gives path and body; `model_in_path`: where the ID is."""

    name: str
    adapter: str
    host: str
    ask: Callable[[Scene, str], tuple[str, Any]]
    whole: Callable[[Scene], bytes]
    stream: Callable[[Scene], bytes]
    fields: Fields = SSE_FIELDS
    model_in_path: bool = False

    def request(self, scene: Scene, model: str = MODEL) -> tuple[Request, bytes]:
        path, body = self.ask(scene, model)
        return Request("POST", "https", self.host, 443, path.encode()), json.dumps(body).encode()


# ---- Gemini ----


def _gemini_part(part: object) -> dict[str, Any]:
    match part:
        case Text(text):
            return {"text": text}
        case ToolCall(identity, name, arguments):
            return {"functionCall": {"id": identity, "name": name, "args": json.loads(arguments)}}
        case ToolResult(call_id, name, text):
            return {"functionResponse": {"id": call_id, "name": name, "response": {"output": text}}}
    raise AssertionError(part)


def _gemini_body(scene: Scene) -> dict[str, Any]:
    contents: list[dict[str, Any]] = []
    for turn in scene.turns:
        role = "model" if turn.role is Role.ASSISTANT else "user"
        contents.append({"role": role, "parts": [_gemini_part(part) for part in turn.parts]})
    return {
        "systemInstruction": {"parts": [{"text": SYSTEM}]},
        "contents": contents,
        "generationConfig": {"maxOutputTokens": 99, "temperature": 0.5, "stopSequences": ["END"]},
        "tools": [{"functionDeclarations": [{"name": "shell", "description": "Runs it.", "parameters": SCHEMA}]}],
        "toolConfig": {"functionCallingConfig": {"mode": "ANY"}},
    }


def gemini_chunks(scene: Scene) -> list[dict[str, Any]]:
    parts: list[dict[str, Any]] = []
    for part in scene.said:
        parts += [{"text": piece} for piece in halves(part.text)] if isinstance(part, Text) else [_gemini_part(part)]
    chunks: list[dict[str, Any]] = []
    for i, written in enumerate(parts):
        chunk: dict[str, Any] = {"candidates": [{"content": {"role": "model", "parts": [written]}, "index": 0}], "modelVersion": MODEL}
        if i == len(parts) - 1 and not scene.failed:
            chunk["candidates"][0]["finishReason"] = "STOP"
            chunk["usageMetadata"] = {"promptTokenCount": 12, "candidatesTokenCount": 7, "cachedContentTokenCount": 4}
        chunks.append({**chunk, "responseId": "a-1"})
    if scene.failed:
        chunks.append({"error": {"code": 503, "message": WEATHER, "status": "UNAVAILABLE"}})
    return chunks


def gemini_whole(scene: Scene) -> bytes:
    parts = [_gemini_part(part) for part in scene.said]
    usage = {"promptTokenCount": 12, "candidatesTokenCount": 7, "cachedContentTokenCount": 4}
    candidate = {"content": {"role": "model", "parts": parts}, "finishReason": "STOP", "index": 0}
    return dumps({"candidates": [candidate], "usageMetadata": usage, "modelVersion": MODEL, "responseId": "a-1"})


def gemini_sse(scene: Scene) -> bytes:
    return b"".join(b"data: " + dumps(chunk) + b"\r\n\r\n" for chunk in gemini_chunks(scene))


def gemini_array(scene: Scene) -> bytes:
    return b"[" + b",\r\n".join(json.dumps(chunk, indent=2).encode() for chunk in gemini_chunks(scene)) + (b"" if scene.failed else b"]")


# ---- Bedrock ----


def _converse_block(part: object) -> dict[str, Any]:
    match part:
        case Text(text):
            return {"text": text}
        case ToolCall(identity, name, arguments):
            return {"toolUse": {"toolUseId": identity, "name": name, "input": json.loads(arguments)}}
        case ToolResult(call_id, _, text):
            return {"toolResult": {"toolUseId": call_id, "content": [{"text": text}]}}
    raise AssertionError(part)


def _converse_body(scene: Scene) -> dict[str, Any]:
    messages = [
        {"role": "assistant" if turn.role is Role.ASSISTANT else "user", "content": [_converse_block(part) for part in turn.parts]}
        for turn in scene.turns
    ]
    return {
        "system": [{"text": SYSTEM}, {"cachePoint": {"type": "default"}}],
        "messages": messages,
        "inferenceConfig": {"maxTokens": 99, "temperature": 0.5, "stopSequences": ["END"]},
        "toolConfig": {
            "tools": [{"toolSpec": {"name": "shell", "description": "Runs it.", "inputSchema": {"json": SCHEMA}}}],
            "toolChoice": {"any": {}},
        },
    }


_CONVERSE_USAGE = {"inputTokens": 8, "outputTokens": 7, "cacheReadInputTokens": 4}


def converse_whole(scene: Scene) -> bytes:
    content = [_converse_block(part) for part in scene.said]
    stop = MESSAGES_STOP.get(scene.stop) if scene.stop else None
    return dumps({"output": {"message": {"role": "assistant", "content": content}}, "stopReason": stop, "usage": _CONVERSE_USAGE})


def _amz(name: str, payload: Any) -> bytes:
    return encode({":event-type": name, ":content-type": "application/json", ":message-type": "event"}, dumps(payload))


_AMZ_ERROR = encode({":message-type": "exception", ":exception-type": "throttlingException"}, dumps({"message": WEATHER}))


def converse_stream(scene: Scene) -> bytes:
    out = _amz("messageStart", {"role": "assistant", "p": "abc"})
    for index, part in enumerate(scene.said):
        at = {"contentBlockIndex": index}
        if isinstance(part, Text):
            deltas: list[dict[str, Any]] = [{"text": piece} for piece in halves(part.text)]
        else:
            out += _amz("contentBlockStart", {**at, "start": {"toolUse": {"toolUseId": part.id, "name": part.name}}})
            deltas = [{"toolUse": {"input": piece}} for piece in halves(part.arguments)]
        out += b"".join(_amz("contentBlockDelta", {**at, "delta": delta}) for delta in deltas)
        if not scene.failed:
            out += _amz("contentBlockStop", at)
    if scene.failed:
        return out + _AMZ_ERROR
    assert scene.stop is not None
    return out + _amz("messageStop", {"stopReason": MESSAGES_STOP[scene.stop]}) + _amz("metadata", {"usage": _CONVERSE_USAGE})


def invoke_stream(scene: Scene) -> bytes:
    events = [event for name, event in messages_events(scene) if name != "error"]
    out = b"".join(_amz("chunk", {"bytes": base64.b64encode(dumps(event)).decode(), "p": "xy"}) for event in events)
    return out + (_AMZ_ERROR if scene.failed else b"")


# ---- Ollama ----


def _ollama_message(turn: Turn) -> list[dict[str, Any]]:
    if turn.role is Role.TOOL:
        results = [part for part in turn.parts if isinstance(part, ToolResult)]
        return [{"role": "tool", "tool_name": p.name, "tool_call_id": p.call_id, "content": p.text} for p in results]
    (message,) = chat_message(turn)
    for made in message.get("tool_calls", []):
        made["function"]["arguments"] = json.loads(made["function"]["arguments"])
    return [{**message, "content": message["content"] or ""}]


def _ollama_body(scene: Scene) -> dict[str, Any]:
    body = chat_body(scene)
    return {
        "messages": [{"role": "system", "content": SYSTEM}, *(m for turn in scene.turns for m in _ollama_message(turn))],
        "tools": body["tools"],
        "tool_choice": "any",
        "options": {"num_predict": 99, "temperature": 0.5, "stop": ["END"]},
    }


def ollama_lines(scene: Scene) -> bytes:
    chunks: list[dict[str, Any]] = []
    for part in scene.said:
        if isinstance(part, Text):
            chunks += [{"model": MODEL, "message": {"role": "assistant", "content": piece}, "done": False} for piece in halves(part.text)]
        else:
            (message,) = _ollama_message(Turn(Role.ASSISTANT, (part,)))
            chunks.append({"model": MODEL, "message": message, "done": False})
    last = {"model": MODEL, "done": True, "done_reason": "stop", "prompt_eval_count": 12, "eval_count": 7}
    chunks.append({"error": WEATHER + ": internal"} if scene.failed else last)
    return b"".join(dumps(chunk) + b"\n" for chunk in chunks)


def ollama_whole(scene: Scene) -> bytes:
    (message,) = _ollama_message(Turn(Role.ASSISTANT, scene.said))
    last = {"done": True, "done_reason": "stop", "prompt_eval_count": 12, "eval_count": 7}
    return dumps({"model": MODEL, "message": message, **last})


# ---- all of them ----


def _sse_of(events: Callable[[Scene], list[tuple[str, Any]]]) -> Callable[[Scene], bytes]:
    return lambda scene: sse(*events(scene))


_VERTEX = "/v1/projects/p/locations/us-east5/publishers"
_MESSAGES = (messages_whole, _sse_of(messages_events))
_CHAT = (chat_whole, _sse_of(chat_events))
_RESPONSES = (responses_whole, _sse_of(responses_events))

FORMATS = (
    Format(
        "anthropic", "anthropic", "api.provider.example",
        lambda s, m: ("/v1/messages?beta=true", {"model": m, **messages_body(s)}), *_MESSAGES,
    ),
    Format("chat", "openai-chat", "api.provider.example", lambda s, m: ("/v1/chat/completions", {**chat_body(s), "model": m}), *_CHAT),
    Format(
        "responses", "openai-responses", "api.provider.example",
        lambda s, m: ("/v1/responses", {"model": m, **responses_body(s)}), *_RESPONSES,
    ),
    Format(
        "gateway", "gateway", "gate.example",
        lambda s, m: ("/api/v1/chat/completions", {"model": m, "models": [m], **chat_body(s)}), *_CHAT,
    ),
    Format(
        "gemini, SSE", "gemini", "api.provider.example",
        lambda s, m: (f"/v1beta/models/{m}:streamGenerateContent?alt=sse", _gemini_body(s)), gemini_whole, gemini_sse, model_in_path=True,
    ),
    Format(
        "gemini, array", "gemini", "api.provider.example",
        lambda s, m: (f"/v1beta/models/{m}:streamGenerateContent", _gemini_body(s)), gemini_whole, gemini_array, JSON_FIELDS, True,
    ),
    Format(
        "code assist", "gemini", "api.provider.example",
        lambda s, m: ("/v1internal:streamGenerateContent?alt=sse", {"model": m, "project": "p", "request": _gemini_body(s)}),
        lambda s: dumps({"response": json.loads(gemini_whole(s)), "traceId": "t"}),
        lambda s: sse(*(("", c if "error" in c else {"response": c, "traceId": "t"}) for c in gemini_chunks(s))),
    ),
    Format(
        "azure, chat", "azure-openai", "res.openai.azure.com",
        lambda s, m: (f"/openai/deployments/{m}/chat/completions?api-version=2024-10-21", chat_body(s)), *_CHAT, model_in_path=True,
    ),
    Format(
        "azure, responses", "azure-openai", "res.openai.azure.com",
        lambda s, m: ("/openai/v1/responses", {"model": m, **responses_body(s)}), *_RESPONSES,
    ),
    Format(
        "vertex, gemini", "vertex", "us-east5-aiplatform.googleapis.com",
        lambda s, m: (f"{_VERTEX}/google/models/{m}:streamGenerateContent?alt=sse", _gemini_body(s)),
        gemini_whole, gemini_sse, model_in_path=True,
    ),
    Format(
        "vertex, claude", "vertex", "us-east5-aiplatform.googleapis.com",
        lambda s, m: (f"{_VERTEX}/anthropic/models/{m}:streamRawPredict", {"anthropic_version": "vertex-2023-10-16", **messages_body(s)}),
        *_MESSAGES, model_in_path=True,
    ),
    Format(
        "bedrock, converse", "bedrock", "bedrock-runtime.us-east-1.amazonaws.com",
        lambda s, m: (f"/model/{m}/converse-stream", _converse_body(s)), converse_whole, converse_stream, AMZ_FIELDS, True,
    ),
    Format(
        "bedrock, invoke", "bedrock", "bedrock-runtime.us-east-1.amazonaws.com",
        lambda s, m: (
            f"/model/{m}/invoke-with-response-stream",
            {"anthropic_version": "bedrock-2023-05-31", **{k: v for k, v in messages_body(s).items() if k != "stream"}},
        ),
        messages_whole, invoke_stream, AMZ_FIELDS, True,
    ),
    Format(
        "ollama", "ollama", "models.example", lambda s, m: ("/api/chat", {"model": m, **_ollama_body(s)}), ollama_whole, ollama_lines,
        ((b"content-type", b"application/x-ndjson"),),
    ),
)  # fmt: skip


def forms_of(adapter: str) -> tuple[Format, ...]:
    """The formats one adapter reads."""
    return tuple(form for form in FORMATS if form.adapter == adapter)

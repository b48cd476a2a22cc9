"""OpenAI Chat Completions: `POST …/chat/completions`, streamed and not, as the official SDK's types describe it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import override

from secondtake.harness.provider.script import Failure, Reply, Stop, cut
from secondtake.harness.provider.wire import (
    CREATED_S,
    BadCall,
    Call,
    Json,
    Wire,
    arguments_text,
    compact,
    items,
    output_tokens,
    required_text,
    text_of,
)

STOPS = {Stop.TURN: "stop", Stop.TOOLS: "tool_calls", Stop.LENGTH: "length", Stop.REFUSAL: "content_filter"}

KINDS = {
    401: "invalid_request_error",
    403: "insufficient_permissions",
    404: "invalid_request_error",
    429: "rate_limit_error",
    500: "server_error",
    503: "server_error",
}

CODES = {401: "invalid_api_key", 404: "model_not_found", 429: "rate_limit_exceeded"}


class Chat(Wire):
    """The Chat Completions format."""

    stream_type = "text/event-stream; charset=utf-8"

    @override
    def read(self, body: Json, model: str, stream: bool, size_bytes: int) -> Call:
        messages = items(body.get("messages"))
        if not messages:
            raise BadCall("Missing required parameter: 'messages'.")
        options = body.get("stream_options")
        return Call(
            model=required_text(body, "model"),
            task=next((text_of(m.get("content")) for m in messages if m.get("role") == "user"), ""),
            turn=sum(1 for m in messages if m.get("role") == "assistant"),
            stream=body.get("stream") is True,
            size_bytes=size_bytes,
            stream_usage=isinstance(options, dict) and options.get("include_usage") is True,
        )

    @override
    def whole(self, call: Call, reply: Reply, model: str) -> Json:
        message: dict[str, object] = {"role": "assistant", "content": reply.text or None, "refusal": None, "annotations": []}
        if reply.tools:
            message["tool_calls"] = [
                {
                    "id": _tool_id(call, n),
                    "type": "function",
                    "function": {"name": t.name, "arguments": arguments_text(t.arguments)},
                }
                for n, t in enumerate(reply.tools)
            ]
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": STOPS[reply.stopped]}
        return {**_head(call, "chat.completion", model), "choices": [choice], "usage": _usage(call, reply)}

    @override
    def events(self, call: Call, reply: Reply, model: str) -> Sequence[bytes]:
        head = _head(call, "chat.completion.chunk", model)
        tail: Json = {"usage": None} if call.stream_usage else {}

        def chunk(delta: Json, finish: str | None = None) -> bytes:
            choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
            return _event({**head, "choices": [choice], **tail})

        first: dict[str, object] = {"role": "assistant", "content": "" if reply.text or not reply.tools else None, "refusal": None}
        events = [chunk(first)]
        events += [chunk({"content": piece}) for piece in reply.text_pieces()]
        for n, tool in enumerate(reply.tools):
            start = {"index": n, "id": _tool_id(call, n), "type": "function", "function": {"name": tool.name, "arguments": ""}}
            events.append(chunk({"tool_calls": [start]}))
            for piece in cut(arguments_text(tool.arguments), 24):
                events.append(chunk({"tool_calls": [{"index": n, "function": {"arguments": piece}}]}))
        events.append(chunk({}, STOPS[reply.stopped]))
        if call.stream_usage:
            events.append(_event({**head, "choices": [], "usage": _usage(call, reply)}))
        events.append(b"data: [DONE]\n\n")
        return events

    @override
    def error(self, call: Call | None, failure: Failure) -> Json:
        kind = failure.kind or KINDS.get(failure.status, "server_error" if failure.status >= 500 else "invalid_request_error")
        return {"error": {"message": failure.message, "type": kind, "param": None, "code": CODES.get(failure.status)}}

    @override
    def error_event(self, call: Call, failure: Failure, after: int) -> bytes:
        return _event(self.error(call, failure))

    @override
    def counted(self, call: Call) -> Json:
        return {"object": "response.input_tokens", "input_tokens": call.input_tokens}

    @override
    def fields(self, call: Call | None) -> Mapping[str, str]:
        return {
            "x-request-id": f"req_{call.identity('request', length=32) if call else '0' * 32}",
            "openai-organization": "scripted",
            "openai-processing-ms": "1",
            "openai-version": "2020-10-01",
        }


def model_entry(model: str) -> Json:
    """One entry of `GET /v1/models`."""
    return {"id": model, "object": "model", "created": CREATED_S, "owned_by": "scripted"}


def model_list(models: Sequence[str]) -> Json:
    """`GET /v1/models`."""
    return {"object": "list", "data": [model_entry(m) for m in models]}


def _head(call: Call, kind: str, model: str) -> Json:
    return {
        "id": f"chatcmpl-{call.identity('message', length=29)}",
        "object": kind,
        "created": CREATED_S,
        "model": model,
        "service_tier": "default",
        "system_fingerprint": "fp_5c21971ed1",
    }


def _usage(call: Call, reply: Reply) -> Json:
    said = output_tokens(reply)
    return {
        "prompt_tokens": call.input_tokens,
        "completion_tokens": said,
        "total_tokens": call.input_tokens + said,
        "prompt_tokens_details": {"cached_tokens": 0, "audio_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": 0, "audio_tokens": 0},
    }


def _tool_id(call: Call, number: int) -> str:
    return f"call_{call.identity('tool', number)}"


def _event(value: Json) -> bytes:
    return f"data: {compact(value)}\n\n".encode()

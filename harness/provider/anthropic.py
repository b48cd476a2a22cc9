"""Anthropic Messages: `POST /v1/messages`, streamed and not, as the official SDK's types describe it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import override

from secondtake.harness.provider.script import Failure, Reply, Stop, cut
from secondtake.harness.provider.wire import (
    CREATED_TEXT,
    BadCall,
    Call,
    Json,
    Wire,
    arguments_text,
    compact,
    groups,
    items,
    output_tokens,
    required_text,
    text_of,
)

STOPS = {Stop.TURN: "end_turn", Stop.TOOLS: "tool_use", Stop.LENGTH: "max_tokens", Stop.REFUSAL: "refusal"}

KINDS = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    504: "timeout_error",
    529: "overloaded_error",
}


class Anthropic(Wire):
    """The Messages format."""

    stream_type = "text/event-stream; charset=utf-8"

    @override
    def read(self, body: Json, model: str, stream: bool, size_bytes: int) -> Call:
        messages = items(body.get("messages"))
        if not messages:
            raise BadCall("messages: at least one message is required")
        roles = [m.get("role") for m in messages]
        first = next((text_of(m.get("content")) for m in messages if m.get("role") == "user"), "")
        return Call(
            model=required_text(body, "model"),
            task=first,
            turn=groups([r == "assistant" for r in roles]),
            stream=body.get("stream") is True,
            size_bytes=size_bytes,
        )

    @override
    def whole(self, call: Call, reply: Reply, model: str) -> Json:
        content: list[Json] = [{"type": "text", "text": reply.text}] if reply.text else []
        for n, tool in enumerate(reply.tools):
            content.append({"type": "tool_use", "id": _tool_id(call, n), "name": tool.name, "input": dict(tool.arguments)})
        return {
            "id": f"msg_01{call.identity('message', length=22)}",
            "type": "message",
            "role": "assistant",
            "model": model,
            "content": content,
            "stop_reason": STOPS[reply.stopped],
            "stop_sequence": None,
            "usage": _usage(call, output_tokens(reply)),
        }

    @override
    def events(self, call: Call, reply: Reply, model: str) -> Sequence[bytes]:
        message = dict(self.whole(call, reply, model))
        message |= {"content": [], "stop_reason": None, "usage": _usage(call, 1)}
        events = [_event("message_start", message=message)]
        index = 0
        if reply.text:
            events.append(_event("content_block_start", index=index, content_block={"type": "text", "text": ""}))
            events.append(_event("ping"))
            deltas = ({"type": "text_delta", "text": piece} for piece in reply.text_pieces())
            events += [_event("content_block_delta", index=index, delta=delta) for delta in deltas]
            events.append(_event("content_block_stop", index=index))
            index += 1
        for n, tool in enumerate(reply.tools):
            block = {"type": "tool_use", "id": _tool_id(call, n), "name": tool.name, "input": {}}
            events.append(_event("content_block_start", index=index, content_block=block))
            if index == 0:
                events.append(_event("ping"))
            parts = ({"type": "input_json_delta", "partial_json": p} for p in ["", *cut(arguments_text(tool.arguments), 24)])
            events += [_event("content_block_delta", index=index, delta=part) for part in parts]
            events.append(_event("content_block_stop", index=index))
            index += 1
        stop = {"stop_reason": STOPS[reply.stopped], "stop_sequence": None}
        events.append(_event("message_delta", delta=stop, usage={"output_tokens": output_tokens(reply)}))
        events.append(_event("message_stop"))
        return events

    @override
    def error(self, call: Call | None, failure: Failure) -> Json:
        kind = failure.kind or KINDS.get(failure.status, "api_error" if failure.status >= 500 else "invalid_request_error")
        return {"type": "error", "error": {"type": kind, "message": failure.message}, "request_id": _request_id(call)}

    @override
    def error_event(self, call: Call, failure: Failure, after: int) -> bytes:
        body = {k: v for k, v in self.error(call, failure).items() if k != "type"}
        return _event("error", **body)

    @override
    def fields(self, call: Call | None) -> Mapping[str, str]:
        return {"request-id": _request_id(call), "anthropic-organization-id": "00000000-0000-4000-8000-000000000000"}

    @override
    def counted(self, call: Call) -> Json:
        return {"input_tokens": call.input_tokens}


def model_entry(model: str) -> Json:
    """One entry of `GET /v1/models`."""
    return {"type": "model", "id": model, "display_name": model, "created_at": CREATED_TEXT}


def model_list(models: Sequence[str]) -> Json:
    """`GET /v1/models`, on one page."""
    ends = {"first_id": models[0] if models else None, "last_id": models[-1] if models else None}
    return {"data": [model_entry(m) for m in models], "has_more": False, **ends}


def _request_id(call: Call | None) -> str:
    return f"req_01{call.identity('request', length=22) if call else '0' * 22}"


def _tool_id(call: Call, number: int) -> str:
    return f"toolu_01{call.identity('tool', number, 22)}"


def _usage(call: Call, output: int) -> Json:
    return {
        "input_tokens": call.input_tokens,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": 0,
        "output_tokens": output,
        "service_tier": "standard",
    }


def _event(kind: str, **body: object) -> bytes:
    return f"event: {kind}\ndata: {compact({'type': kind, **body})}\n\n".encode()

"""Gemini: `POST …/models/M:generateContent` and `:streamGenerateContent`, as server-sent events or as one JSON array sent in pieces."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import override

from secondtake.harness.provider.script import Failure, Reply, Stop
from secondtake.harness.provider.wire import BadCall, Call, Json, Wire, compact, groups, items, output_tokens, text_of

STOPS = {Stop.TURN: "STOP", Stop.TOOLS: "STOP", Stop.LENGTH: "MAX_TOKENS", Stop.REFUSAL: "SAFETY"}

STATUSES = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    429: "RESOURCE_EXHAUSTED",
    500: "INTERNAL",
    503: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
}


class Gemini(Wire):
    """The generateContent format. `sse`: the query says `alt=sse`."""

    def __init__(self, *, sse: bool = True) -> None:
        self.sse = sse
        self.stream_type = "text/event-stream" if sse else "application/json; charset=UTF-8"

    @override
    def read(self, body: Json, model: str, stream: bool, size_bytes: int) -> Call:
        contents = items(body.get("contents"))
        if not contents and isinstance(body.get("generateContentRequest"), dict):
            return self.read(body["generateContentRequest"], model, stream, size_bytes)  # type: ignore[arg-type]  # isinstance above
        if not contents:
            raise BadCall("* GenerateContentRequest.contents: contents is not specified")
        return Call(
            model=model,
            task=next((text_of(c.get("parts")) for c in contents if c.get("role", "user") == "user"), ""),
            turn=groups([c.get("role") == "model" for c in contents]),
            stream=stream,
            size_bytes=size_bytes,
        )

    @override
    def whole(self, call: Call, reply: Reply, model: str) -> Json:
        parts: list[Json] = [{"text": reply.text}] if reply.text else []
        return _answer(call, model, parts + _calls(call, reply), reply, last=True)

    @override
    def events(self, call: Call, reply: Reply, model: str) -> Sequence[bytes]:
        answers: list[Json] = [_answer(call, model, [{"text": t}], reply, last=False) for t in reply.text_pieces()]
        calls = _calls(call, reply)
        answers.append(_answer(call, model, calls or [{"text": ""}], reply, last=True))
        if self.sse:
            return [_event(a) for a in answers]
        pieces = [("[" if n == 0 else ",\r\n") + compact(a) for n, a in enumerate(answers)]
        pieces[-1] += "\n]\n"
        return [p.encode() for p in pieces]

    @override
    def error(self, call: Call | None, failure: Failure) -> Json:
        status = failure.kind or STATUSES.get(failure.status, "UNKNOWN")
        details: list[Json] = []
        if failure.retry_after_s is not None:
            details.append({"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": f"{failure.retry_after_s}s"})
        error: dict[str, object] = {"code": failure.status, "message": failure.message, "status": status}
        return {"error": error | ({"details": details} if details else {})}

    @override
    def error_event(self, call: Call, failure: Failure, after: int) -> bytes:
        if self.sse:
            return _event(self.error(call, failure))
        return (("," if after else "[") + compact(self.error(call, failure)) + "\n]\n").encode()

    @override
    def counted(self, call: Call) -> Json:
        return {"totalTokens": call.input_tokens}

    @override
    def fields(self, call: Call | None) -> Mapping[str, str]:
        return {"server-timing": "gfet4t7; dur=1", "x-content-type-options": "nosniff", "vary": "Origin, X-Origin, Referer"}


def model_entry(model: str) -> Json:
    """`GET /v1beta/models/M`."""
    return {
        "name": f"models/{model}",
        "version": "001",
        "displayName": model,
        "inputTokenLimit": 1_048_576,
        "outputTokenLimit": 65_536,
        "supportedGenerationMethods": ["generateContent", "countTokens"],
    }


def model_list(models: Sequence[str]) -> Json:
    """`GET /v1beta/models`."""
    return {"models": [model_entry(m) for m in models]}


def _calls(call: Call, reply: Reply) -> list[Json]:
    return [
        {"functionCall": {"id": call.identity("tool", n, 8), "name": t.name, "args": dict(t.arguments)}} for n, t in enumerate(reply.tools)
    ]


def _answer(call: Call, model: str, parts: Sequence[Json], reply: Reply, *, last: bool) -> Json:
    candidate: dict[str, object] = {"content": {"parts": list(parts), "role": "model"}, "index": 0}
    usage: dict[str, object] = {"promptTokenCount": call.input_tokens, "totalTokenCount": call.input_tokens}
    if last:
        candidate["finishReason"] = STOPS[reply.stopped]
        usage |= {"candidatesTokenCount": output_tokens(reply), "totalTokenCount": call.input_tokens + output_tokens(reply)}
    return {"candidates": [candidate], "usageMetadata": usage, "modelVersion": model, "responseId": call.identity("response", length=22)}


def _event(value: Json) -> bytes:
    return f"data: {compact(value)}\r\n\r\n".encode()

"""Bedrock runtime: `POST /model/M/…`: `invoke` (Claude's body) and `converse`, whole and as AWS event streams, and `count-tokens`.

As botocore's service description has them. Signatures are not checked: whoever wants to see one finds it in `Seen.fields`.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import override

from secondtake.cassettes.eventstream import encode
from secondtake.harness.provider.anthropic import Anthropic
from secondtake.harness.provider.script import Failure, Reply, Stop, cut
from secondtake.harness.provider.wire import BadCall, Call, Json, Wire, arguments_text, compact, groups, items, output_tokens, text_of

PATH = re.compile(r"/model/([^/]+)/(invoke|invoke-with-response-stream|converse|converse-stream|count-tokens)$")
"""Model and operation of a decoded path."""

STOPS = {Stop.TURN: "end_turn", Stop.TOOLS: "tool_use", Stop.LENGTH: "max_tokens", Stop.REFUSAL: "content_filtered"}

EXCEPTIONS = {
    400: "ValidationException",
    401: "AccessDeniedException",
    403: "AccessDeniedException",
    404: "ResourceNotFoundException",
    408: "ModelTimeoutException",
    424: "ModelErrorException",
    429: "ThrottlingException",
    500: "InternalServerException",
    503: "ServiceUnavailableException",
}

IN_STREAM = {
    400: "validationException",
    429: "throttlingException",
    500: "internalServerException",
    503: "serviceUnavailableException",
}
"""Exceptions inside a 200; any other status is a `modelStreamErrorException` that carries it."""

PADDING = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"


class _Runtime(Wire):
    """What both formats share: streams of messages with checksums, and exceptions by name."""

    stream_type = "application/vnd.amazon.eventstream"

    @override
    def error(self, call: Call | None, failure: Failure) -> Json:
        return {"message": failure.message}

    @override
    def error_event(self, call: Call, failure: Failure, after: int) -> bytes:
        """An exception of the service, or, where `kind` is no exception's name, the `error` message that any event stream may hold."""
        if failure.kind and not failure.kind.endswith("Exception"):
            return encode({":message-type": "error", ":error-code": failure.kind, ":error-message": failure.message}, b"")
        kind = failure.kind[:1].lower() + failure.kind[1:] if failure.kind else IN_STREAM.get(failure.status, "modelStreamErrorException")
        body: dict[str, object] = {"message": failure.message}
        if kind == "modelStreamErrorException":
            body |= {"originalStatusCode": failure.status, "originalMessage": failure.message}
        headers = {":exception-type": kind, ":content-type": "application/json", ":message-type": "exception"}
        return encode(headers, compact(body).encode())

    @override
    def counted(self, call: Call) -> Json:
        return {"inputTokens": call.input_tokens}

    @override
    def fields(self, call: Call | None) -> Mapping[str, str]:
        seed = call.identity("request", length=32) if call else "0" * 32
        return {"x-amzn-requestid": f"{seed[:8]}-{seed[8:12]}-4{seed[13:16]}-8{seed[17:20]}-{seed[20:32]}"}

    @override
    def failed_fields(self, call: Call | None, failure: Failure) -> Mapping[str, str]:
        return {**self.fields(call), "x-amzn-errortype": failure.kind or EXCEPTIONS.get(failure.status, "InternalServerException")}


class Converse(_Runtime):
    """The format that is the same for every vendor's model."""

    @override
    def read(self, body: Json, model: str, stream: bool, size_bytes: int) -> Call:
        messages = items(body.get("messages"))
        if not messages:
            raise BadCall("The value at messages is empty")
        return Call(
            model=model,
            task=next((text_of(m.get("content")) for m in messages if m.get("role") == "user"), ""),
            turn=groups([m.get("role") == "assistant" for m in messages]),
            stream=stream,
            size_bytes=size_bytes,
        )

    @override
    def whole(self, call: Call, reply: Reply, model: str) -> Json:
        content: list[Json] = [{"text": reply.text}] if reply.text else []
        for n, tool in enumerate(reply.tools):
            content.append({"toolUse": {"toolUseId": _tool_id(call, n), "name": tool.name, "input": dict(tool.arguments)}})
        return {
            "metrics": {"latencyMs": 1},
            "output": {"message": {"content": content, "role": "assistant"}},
            "stopReason": STOPS[reply.stopped],
            "usage": _usage(call, reply),
        }

    @override
    def events(self, call: Call, reply: Reply, model: str) -> Sequence[bytes]:
        said: list[tuple[str, Json]] = [("messageStart", {"role": "assistant"}), *self._blocks(call, reply)]
        said.append(("messageStop", {"stopReason": STOPS[reply.stopped]}))
        said.append(("metadata", {"usage": _usage(call, reply), "metrics": {"latencyMs": 1}}))
        return [_event(kind, _padded(n, body)) for n, (kind, body) in enumerate(said)]

    def _blocks(self, call: Call, reply: Reply) -> Iterator[tuple[str, Json]]:
        index = 0
        if reply.text:
            for piece in reply.text_pieces():
                yield "contentBlockDelta", {"contentBlockIndex": index, "delta": {"text": piece}}
            yield "contentBlockStop", {"contentBlockIndex": index}
            index += 1
        for n, tool in enumerate(reply.tools):
            start = {"toolUse": {"toolUseId": _tool_id(call, n), "name": tool.name}}
            yield "contentBlockStart", {"contentBlockIndex": index, "start": start}
            for piece in cut(arguments_text(tool.arguments), 24):
                yield "contentBlockDelta", {"contentBlockIndex": index, "delta": {"toolUse": {"input": piece}}}
            yield "contentBlockStop", {"contentBlockIndex": index}
            index += 1


class Invoke(_Runtime):
    """Claude's own format: a Messages body that names neither a model nor whether it streams."""

    @override
    def read(self, body: Json, model: str, stream: bool, size_bytes: int) -> Call:
        if not isinstance(body.get("anthropic_version"), str):
            raise BadCall("anthropic_version: Field required")
        if "model" in body or "stream" in body:
            raise BadCall("model, stream: Extra inputs are not permitted")
        return Anthropic().read({**body, "model": model, "stream": stream}, model, stream, size_bytes)

    @override
    def whole(self, call: Call, reply: Reply, model: str) -> Json:
        answer = dict(Anthropic().whole(call, reply, _named(model)))
        return answer | {"id": _message_id(answer), "content": _renamed(answer["content"])}

    @override
    def events(self, call: Call, reply: Reply, model: str) -> Sequence[bytes]:
        made: list[bytes] = []
        for raw in Anthropic().events(call, reply, _named(model)):
            data: dict[str, object] = json.loads(raw.decode().partition("\ndata: ")[2])
            match data:
                case {"type": "ping"}:
                    continue
                case {"message": dict(message)}:
                    data["message"] = message | {"id": _message_id(message)}
                case {"content_block": dict(block)}:
                    data["content_block"] = _renamed([block])[0]
                case {"type": "message_stop"}:
                    data["amazon-bedrock-invocationMetrics"] = {
                        "inputTokenCount": call.input_tokens,
                        "outputTokenCount": output_tokens(reply),
                        "invocationLatency": 1,
                        "firstByteLatency": 1,
                    }
            part = {"bytes": base64.b64encode(compact(data).encode()).decode()}
            made.append(_event("chunk", _padded(len(made), part)))
        return made

    @override
    def fields(self, call: Call | None) -> Mapping[str, str]:
        streams = call is not None and call.stream
        return {**super().fields(call), **({"x-amzn-bedrock-content-type": "application/json"} if streams else {})}


class Count(_Runtime):
    """`count-tokens`, which wraps a call of either format."""

    @override
    def read(self, body: Json, model: str, stream: bool, size_bytes: int) -> Call:
        match body.get("input"):
            case {"converse": dict(inner)}:
                return Converse().read(inner, model, stream, size_bytes)
            case {"invokeModel": {"body": str(packed)}}:
                return Invoke().read(_unpacked(packed), model, stream, size_bytes)
            case _:
                raise BadCall("input: one of converse, invokeModel is required")

    @override
    def whole(self, call: Call, reply: Reply, model: str) -> Json:
        return self.counted(call)

    @override
    def events(self, call: Call, reply: Reply, model: str) -> Sequence[bytes]:
        return []


def wire_of(operation: str) -> Wire:
    """The format of an operation that `PATH` names."""
    if operation == "count-tokens":
        return Count()
    return Converse() if operation.startswith("converse") else Invoke()


def model_list(models: Sequence[str]) -> Json:
    """`GET /foundation-models`, of the control plane."""
    return {"modelSummaries": [_summary(m) for m in models]}


def _summary(model: str) -> Json:
    return {
        "modelArn": f"arn:aws:bedrock:us-east-1::foundation-model/{model}",
        "modelId": model,
        "modelName": model,
        "providerName": model.partition(".")[0],
        "inputModalities": ["TEXT"],
        "outputModalities": ["TEXT"],
        "responseStreamingSupported": True,
        "inferenceTypesSupported": ["ON_DEMAND"],
        "modelLifecycle": {"status": "ACTIVE"},
    }


def _unpacked(packed: str) -> Json:
    try:
        body = json.loads(base64.b64decode(packed, validate=True))
    except (binascii.Error, ValueError, RecursionError):
        body = None
    if not isinstance(body, dict):
        raise BadCall("input.invokeModel.body: no JSON object")
    return body


def _named(model: str) -> str:
    """How the answer names a model: Claude's own name, without region, vendor and version."""
    return re.sub(r"-v\d+(:\d+)?$", "", model.rpartition("anthropic.")[2])


def _message_id(message: Mapping[str, object]) -> str:
    return str(message["id"]).replace("msg_", "msg_bdrk_")


def _renamed(content: object) -> list[Json]:
    """Blocks with the IDs of tool calls as Bedrock's have them."""
    return [
        block | {"id": str(block["id"]).replace("toolu_", "toolu_bdrk_")} if "id" in block else block for block in map(dict, items(content))
    ]


def _tool_id(call: Call, number: int) -> str:
    return f"tooluse_{call.identity('tool', number, 22)}"


def _usage(call: Call, reply: Reply) -> Json:
    said = output_tokens(reply)
    return {"inputTokens": call.input_tokens, "outputTokens": said, "totalTokens": call.input_tokens + said}


def _padded(number: int, body: Mapping[str, object]) -> Json:
    """Padding hides the length of what is said; here it differs from event to event and not from time to time."""
    return {**body, "p": PADDING[: 4 + number * 7 % 40]}


def _event(kind: str, body: Json) -> bytes:
    return encode({":event-type": kind, ":content-type": "application/json", ":message-type": "event"}, compact(body).encode())

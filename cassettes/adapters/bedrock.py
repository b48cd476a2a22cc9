"""Bedrock runtime: `invoke` and `converse` with their event streams; the model is in the path (PROVIDERS A2)."""

from __future__ import annotations

import re
from collections.abc import Mapping

from secondtake.cassettes.adapters import errors, paths
from secondtake.cassettes.adapters.base import AnswerReader, CallKind, Fault, Json, ModelRequest, Refusal, Target
from secondtake.cassettes.adapters.dialects import chat, converse, invoked, messages
from secondtake.cassettes.adapters.framing import BodyReader, framing
from secondtake.cassettes.adapters.reading import field_value, loads, mapping
from secondtake.cassettes.exchange import Fields, Request

_PATH = re.compile(
    rb"/model/([^/]+)/(invoke|invoke-with-response-stream|converse|converse-stream|count-tokens|invoke-with-bidirectional-stream)$"
)


class Bedrock:
    name = "bedrock"

    def claims(self, target: Target, body: Mapping[str, Json] | None) -> CallKind | None:
        if target.path.endswith(b"/async-invoke"):
            return CallKind.BATCH if body is None or "modelId" in body else None
        match = _PATH.search(target.path)
        if match is None:
            return None
        if match[2] == b"count-tokens":
            return CallKind.COUNT if body is None or "input" in body else None
        if match[2].startswith(b"converse"):
            return CallKind.COMPLETION if body is None or _converses(body) else None
        if body is not None and ("inputText" in body or "texts" in body or "taskType" in body):
            return CallKind.EMBEDDING if "messages" not in body and "textGenerationConfig" not in body else CallKind.COMPLETION
        return CallKind.COMPLETION

    def read_request(self, request: Request, content: bytes) -> ModelRequest:
        match = _PATH.search(request.path.partition(b"?")[0].rstrip(b"/"))
        if match is None:
            return ModelRequest(self.name, CallKind.BATCH, None, faults=(Fault("unknown-dialect", "asynchronous invoke"),))
        if match[2].startswith(b"converse"):
            asked = converse.read_request(self.name, content, CallKind.COMPLETION)
        elif match[2] == b"count-tokens":
            asked = converse.read_count(self.name, content)
        else:
            asked = _invoke(self.name, content)
        return paths.with_path_model(asked, "path", match, 1, stream=match[2].endswith(b"-stream"))

    def reader(self, request: Request, status: int, fields: Fields) -> AnswerReader:
        match = _PATH.search(request.path.partition(b"?")[0].rstrip(b"/"))
        if match is not None and match[2].startswith((b"converse", b"count")):
            return BodyReader(self.name, converse.Assembly(), framing(fields), status, error_name=_error_name(fields))
        assembly = invoked.Invoked(messages.Assembly(), chat.Assembly())
        return BodyReader(self.name, assembly, framing(fields), status, error_name=_error_name(fields))

    def refuse(self, kind: str, message: str) -> Refusal:
        return errors.bedrock(message)


def _error_name(fields: Fields) -> str:
    """The exception's name, which stands in the head only; a colon and an address may follow it."""
    return (field_value(fields, b"x-amzn-errortype") or b"").partition(b":")[0].decode("latin-1")


def _converses(body: Mapping[str, Json]) -> bool:
    """`messages[].content[]` blocks, no `model`; or a stored prompt, which needs no messages."""
    turns = body.get("messages")
    if turns is None:
        return "promptVariables" in body
    return isinstance(turns, list) and "model" not in body and all(isinstance(mapping(t).get("content"), list) for t in turns)


def _invoke(name: str, content: bytes) -> ModelRequest:
    """Read the vendor's own body: Claude's, else Chat's where it has messages with roles."""
    body = mapping(loads(content))
    if "anthropic_version" in body or ("max_tokens" in body and isinstance(body.get("system"), (str, list))):
        return messages.read_request(name, content, CallKind.COMPLETION)
    if isinstance(body.get("messages"), list):
        return chat.read_request(name, content, CallKind.COMPLETION)
    return ModelRequest(name, CallKind.COMPLETION, None, faults=(Fault("unknown-dialect", "a body only this model's vendor reads"),))

"""Anthropic Messages, on Anthropic's own hosts and wherever else the format is spoken (PROVIDERS A2)."""

from __future__ import annotations

from collections.abc import Mapping

from secondtake.cassettes.adapters import errors, shapes
from secondtake.cassettes.adapters.base import AnswerReader, CallKind, Json, ModelRequest, Refusal, Target
from secondtake.cassettes.adapters.dialects import messages
from secondtake.cassettes.adapters.framing import BodyReader, framing
from secondtake.cassettes.exchange import Fields, Request


class Anthropic:
    name = "anthropic"

    def claims(self, target: Target, body: Mapping[str, Json] | None) -> CallKind | None:
        path = target.path
        if path.endswith(b"/messages/count_tokens"):
            return CallKind.COUNT if body is None or isinstance(body.get("messages"), list) else None
        if path.endswith(b"/messages/batches"):
            return CallKind.BATCH if body is None or isinstance(body.get("requests"), list) else None
        if path.endswith(b"/v1/complete"):
            return CallKind.COMPLETION if body is None or {"model", "prompt", "max_tokens_to_sample"} <= body.keys() else None
        if body is None:
            return CallKind.COMPLETION if path.endswith(b"/v1/messages") else None
        if path.endswith((b"/completions", b"/responses", b"/embeddings")):
            return None
        if path.endswith(b"/v1/messages") and target.family and isinstance(body.get("messages"), list):
            return CallKind.COMPLETION
        return CallKind.COMPLETION if shapes.messages(body) and not path.endswith((b"/api/chat", b"/api/generate")) else None

    def read_request(self, request: Request, content: bytes) -> ModelRequest:
        target = Target(request.path.partition(b"?")[0].rstrip(b"/"))
        return messages.read_request(self.name, content, self.claims(target, None) or CallKind.COMPLETION)

    def reader(self, request: Request, status: int, fields: Fields) -> AnswerReader:
        return BodyReader(self.name, messages.Assembly(), framing(fields), status)

    def refuse(self, kind: str, message: str) -> Refusal:
        return errors.anthropic(message)

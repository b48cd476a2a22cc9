"""OpenAI Responses over HTTP and SSE, Codex' lite form included (PROVIDERS A2)."""

from __future__ import annotations

from collections.abc import Mapping

from secondtake.cassettes.adapters import errors, shapes
from secondtake.cassettes.adapters.base import AnswerReader, CallKind, Json, ModelRequest, Refusal, Target
from secondtake.cassettes.adapters.dialects import responses, responses_answer
from secondtake.cassettes.adapters.framing import BodyReader, framing
from secondtake.cassettes.exchange import Fields, Request

_OTHER_ENDS = (
    b"/embeddings", b"/moderations", b"/rerank", b"/embed", b"/tokenize", b"/chat/completions", b"/api/chat", b"/api/generate",
    b"/v1/completions", b"/v1/messages", b"/batches", b"/predictions",
)  # fmt: skip
_OTHER_PARTS = (b"/audio/", b"/images/", b"/videos", b"/realtime", b"/interactions")


class OpenAIResponses:
    name = "openai-responses"

    def claims(self, target: Target, body: Mapping[str, Json] | None) -> CallKind | None:
        path = target.path
        if path.endswith(_OTHER_ENDS) or any(part in path for part in _OTHER_PARTS):
            return None
        if path.endswith(b"/responses/input_tokens"):
            return CallKind.COUNT if body is None or "input" in body or "model" in body else None
        if body is None:
            return CallKind.COMPLETION if path.endswith((b"/v1/responses", b"/codex/responses", b"/responses/compact")) else None
        if path.endswith((b"/responses", b"/responses/compact", b"/decisions")) and target.family and "model" in body:
            return CallKind.COMPLETION
        return CallKind.COMPLETION if shapes.responses(body) else None

    def read_request(self, request: Request, content: bytes) -> ModelRequest:
        counts = request.path.partition(b"?")[0].rstrip(b"/").endswith(b"/input_tokens")
        return responses.read_request(self.name, content, CallKind.COUNT if counts else CallKind.COMPLETION)

    def reader(self, request: Request, status: int, fields: Fields) -> AnswerReader:
        return BodyReader(self.name, responses_answer.Assembly(), framing(fields), status)

    def refuse(self, kind: str, message: str) -> Refusal:
        return errors.openai(kind, message)

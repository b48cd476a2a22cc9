"""OpenAI Chat Completions, wherever it is spoken without a gateway's routing (PROVIDERS A2)."""

from __future__ import annotations

from collections.abc import Mapping

from secondtake.cassettes.adapters import errors, shapes
from secondtake.cassettes.adapters.base import AnswerReader, CallKind, Json, ModelRequest, Refusal, Target
from secondtake.cassettes.adapters.dialects import chat
from secondtake.cassettes.adapters.framing import BodyReader, framing
from secondtake.cassettes.exchange import Fields, Request

_AUXILIARY = (
    b"/v1/embeddings", b"/embeddings", b"/v1/moderations", b"/images/generations", b"/images/edits", b"/audio/speech",
    b"/audio/transcriptions", b"/audio/translations",
)  # fmt: skip


class OpenAIChat:
    name = "openai-chat"

    def claims(self, target: Target, body: Mapping[str, Json] | None) -> CallKind | None:
        path = target.path
        if path.endswith(_AUXILIARY):
            known = path.endswith((b"/v1/embeddings", b"/v1/moderations")) or target.family != ""
            return CallKind.EMBEDDING if (known if body is None else "model" in body or "input" in body) else None
        if path.endswith((b"/tokenize", b"/utils/token_counter")):
            return CallKind.COUNT if body is not None and shapes.chat(body) else None
        if body is None:
            return CallKind.COMPLETION if path.endswith((b"/chat/completions", b"/v1/completions")) else None
        if path.endswith(b"/v1/messages"):  # a Messages call without `max_tokens` is refused by its server, not answered as chat
            return None
        if path.endswith(b"/completions") and not path.endswith(b"/chat/completions"):
            return CallKind.COMPLETION if "prompt" in body and "model" in body else None
        return CallKind.COMPLETION if shapes.chat(body) else None

    def read_request(self, request: Request, content: bytes) -> ModelRequest:
        counts = request.path.partition(b"?")[0].rstrip(b"/").endswith((b"/tokenize", b"/token_counter"))
        return chat.read_request(self.name, content, CallKind.COUNT if counts else CallKind.COMPLETION)

    def reader(self, request: Request, status: int, fields: Fields) -> AnswerReader:
        return BodyReader(self.name, chat.Assembly(), framing(fields), status)

    def refuse(self, kind: str, message: str) -> Refusal:
        return errors.openai(kind, message)

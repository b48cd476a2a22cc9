"""Ollama's own `/api/chat` and `/api/generate`, answered in JSON lines (PROVIDERS A2)."""

from __future__ import annotations

from collections.abc import Mapping

from secondtake.cassettes.adapters import errors
from secondtake.cassettes.adapters.base import AnswerReader, CallKind, Json, ModelRequest, Refusal, Target
from secondtake.cassettes.adapters.dialects import lines
from secondtake.cassettes.adapters.framing import BodyReader, Framing
from secondtake.cassettes.exchange import Fields, Request


class Ollama:
    name = "ollama"

    def claims(self, target: Target, body: Mapping[str, Json] | None) -> CallKind | None:
        path = target.path
        if path.endswith((b"/api/embed", b"/api/embeddings")):
            return CallKind.EMBEDDING if body is not None and "model" in body else None
        if not path.endswith((b"/api/chat", b"/api/generate")) or body is None or not isinstance(body.get("model"), str):
            return None
        asked = isinstance(body.get("messages"), list) if path.endswith(b"/chat") else isinstance(body.get("prompt"), str)
        return CallKind.COMPLETION if asked else None

    def read_request(self, request: Request, content: bytes) -> ModelRequest:
        return lines.read_request(self.name, content, CallKind.COMPLETION)

    def reader(self, request: Request, status: int, fields: Fields) -> AnswerReader:
        return BodyReader(self.name, lines.Assembly(), Framing.LINES, status)

    def refuse(self, kind: str, message: str) -> Refusal:
        return errors.ollama(message)

"""Gemini `generateContent` and `streamGenerateContent`, and Code Assist, which wraps them (PROVIDERS A2)."""

from __future__ import annotations

import re
from collections.abc import Mapping

from secondtake.cassettes.adapters import errors, paths, shapes
from secondtake.cassettes.adapters.base import AnswerReader, CallKind, Json, ModelRequest, Refusal, Target
from secondtake.cassettes.adapters.dialects import contents
from secondtake.cassettes.adapters.framing import BodyReader, framing
from secondtake.cassettes.exchange import Fields, Request

_PATH = re.compile(rb"/(?:models|tunedModels)/([^/:]+):([A-Za-z]+)$")
_ASSIST = re.compile(rb"/v1internal:([A-Za-z]+)$")
_ELSEWHERE = re.compile(rb"/publishers/|/projects/|/endpoints/")
_KINDS = {
    b"generateContent": CallKind.COMPLETION,
    b"streamGenerateContent": CallKind.COMPLETION,
    b"countTokens": CallKind.COUNT,
    b"embedContent": CallKind.EMBEDDING,
    b"batchEmbedContents": CallKind.EMBEDDING,
    b"predict": CallKind.EMBEDDING,
    b"predictLongRunning": CallKind.EMBEDDING,
    b"batchGenerateContent": CallKind.BATCH,
}


class Gemini:
    name = "gemini"

    def claims(self, target: Target, body: Mapping[str, Json] | None) -> CallKind | None:
        path = target.path
        if path.endswith(b"/interactions"):
            known = body is not None and ("model" in body or "agent" in body) and "input" in body
            return CallKind.COMPLETION if known else None
        if b"/publishers/" in path or b"/endpoints/" in path:
            return None
        assist, match = _ASSIST.search(path), _PATH.search(path)
        verb = assist[1] if assist else match[2] if match else b""
        kind = _KINDS.get(verb)
        if body is None or kind in (CallKind.EMBEDDING, CallKind.BATCH):
            return kind
        inner = body.get("request", body) if assist else body.get("generateContentRequest", body)
        if kind is not None:
            wanted = isinstance(inner, dict) and (shapes.contents(inner) or (target.family != "" and "contents" in inner))
            return kind if wanted else None
        if verb or path.endswith((b"/embeddings", b":embedContent")):
            return None
        if isinstance(body.get("request"), dict) and isinstance(body.get("model"), str) and shapes.contents(_dict(body["request"])):
            return CallKind.COMPLETION
        return CallKind.COMPLETION if shapes.contents(body) else None

    def read_request(self, request: Request, content: bytes) -> ModelRequest:
        path = request.path.partition(b"?")[0].rstrip(b"/")
        assist, match = _ASSIST.search(path), _PATH.search(path)
        verb = assist[1] if assist else match[2] if match else b""
        kind = CallKind.COUNT if verb == b"countTokens" else CallKind.COMPLETION
        asked = contents.read_request(self.name, content, kind, stream=verb == b"streamGenerateContent")
        return asked if match is None else paths.with_path_model(asked, "path", match, 1)

    def reader(self, request: Request, status: int, fields: Fields) -> AnswerReader:
        return BodyReader(self.name, contents.Assembly(), framing(fields), status)

    def refuse(self, kind: str, message: str) -> Refusal:
        return errors.google(message)


def _dict(value: Json) -> Mapping[str, Json]:
    return value if isinstance(value, dict) else {}

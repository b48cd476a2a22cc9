"""Azure OpenAI: OpenAI's formats, with the deployment's name in the path or as `model` (PROVIDERS A2)."""

from __future__ import annotations

import re
from collections.abc import Mapping

from secondtake.cassettes.adapters import errors, paths, shapes
from secondtake.cassettes.adapters.base import AnswerReader, CallKind, Json, ModelRequest, Refusal, Target
from secondtake.cassettes.adapters.dialects import chat, responses, responses_answer
from secondtake.cassettes.adapters.framing import BodyReader, framing
from secondtake.cassettes.exchange import Fields, Request

_DEPLOYMENT = re.compile(rb"/openai/deployments/([^/]+)/(.+)$")
_KINDS = {
    b"chat/completions": CallKind.COMPLETION,
    b"completions": CallKind.COMPLETION,
    b"responses": CallKind.COMPLETION,
    b"embeddings": CallKind.EMBEDDING,
}


class Azure:
    name = "azure-openai"

    def claims(self, target: Target, body: Mapping[str, Json] | None) -> CallKind | None:
        match = _DEPLOYMENT.search(target.path)
        if match is not None:
            kind = _KINDS.get(match[2], CallKind.EMBEDDING if match[2].startswith((b"images/", b"audio/")) else None)
            if body is None or kind is not CallKind.COMPLETION:
                return kind
            return kind if any(key in body for key in ("messages", "prompt", "input")) else None
        if not target.path.endswith((b"/responses", b"/chat/completions")):
            return None
        if target.family != "azure-openai" and not (target.path.endswith(b"/openai/responses") and b"api-version=" in target.query):
            return None
        return CallKind.COMPLETION if body is None or shapes.responses(body) or shapes.chat(body) else None

    def read_request(self, request: Request, content: bytes) -> ModelRequest:
        path = request.path.partition(b"?")[0].rstrip(b"/")
        read = responses.read_request if path.endswith(b"/responses") else chat.read_request
        asked = read(self.name, content, CallKind.COMPLETION)
        match = _DEPLOYMENT.search(path)
        return asked if match is None else paths.with_path_model(asked, "deployment", match, 1)

    def reader(self, request: Request, status: int, fields: Fields) -> AnswerReader:
        path = request.path.partition(b"?")[0].rstrip(b"/")
        assembly = responses_answer.Assembly() if path.endswith(b"/responses") else chat.Assembly(fields)
        return BodyReader(self.name, assembly, framing(fields), status)

    def refuse(self, kind: str, message: str) -> Refusal:
        return errors.openai(kind, message)

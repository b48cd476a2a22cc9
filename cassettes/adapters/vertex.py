"""Vertex AI: Gemini's format, Claude's by `rawPredict`, and Chat Completions by its `openapi` endpoint (PROVIDERS A1, A2)."""

from __future__ import annotations

import re
from collections.abc import Mapping

from secondtake.cassettes.adapters import errors, paths, shapes
from secondtake.cassettes.adapters.base import AnswerReader, CallKind, Json, ModelRequest, Refusal, Target
from secondtake.cassettes.adapters.dialects import chat, contents, messages
from secondtake.cassettes.adapters.framing import BodyReader, framing
from secondtake.cassettes.exchange import Fields, Request

_PATH = re.compile(rb"/(?:publishers/([^/]+)/models|(endpoints))/([^/:]+):([A-Za-z]+)$")
_OPENAPI = b"/endpoints/openapi/chat/completions"
_COUNTER = b"count-tokens"
"""Where the model should stand, when tokens of a Claude prompt are counted; the ID is in the body then."""


class Vertex:
    name = "vertex"

    def claims(self, target: Target, body: Mapping[str, Json] | None) -> CallKind | None:
        if target.path.endswith(_OPENAPI):
            return CallKind.COMPLETION if body is None or shapes.chat(body) else None
        match = _PATH.search(target.path)
        if match is None:
            return None
        verb = match[4]
        if verb in (b"rawPredict", b"streamRawPredict"):
            kind = CallKind.COUNT if match[3] == _COUNTER else CallKind.COMPLETION
            return kind if body is None or isinstance(body.get("messages"), list) or "prompt" in body else None
        if verb in (b"generateContent", b"streamGenerateContent", b"countTokens"):
            kind = CallKind.COUNT if verb == b"countTokens" else CallKind.COMPLETION
            return kind if body is None or shapes.contents(body) or "instances" in body else None
        return CallKind.EMBEDDING if verb in (b"predict", b"predictLongRunning", b"embedContent") else None

    def read_request(self, request: Request, content: bytes) -> ModelRequest:
        path = request.path.partition(b"?")[0].rstrip(b"/")
        match = _PATH.search(path)
        if match is None:
            return chat.read_request(self.name, content, CallKind.COMPLETION)
        kind = CallKind.COUNT if match[3] == _COUNTER or match[4] == b"countTokens" else CallKind.COMPLETION
        streams = match[4] in (b"streamGenerateContent", b"streamRawPredict")
        if not match[4].endswith(b"awPredict"):
            asked = contents.read_request(self.name, content, kind, stream=streams)
        elif _claude(match):
            asked = messages.read_request(self.name, content, kind)
        else:
            asked = chat.read_request(self.name, content, kind)
        return asked if match[3] == _COUNTER else paths.with_path_model(asked, "path", match, 3)

    def reader(self, request: Request, status: int, fields: Fields) -> AnswerReader:
        match = _PATH.search(request.path.partition(b"?")[0].rstrip(b"/"))
        if match is None or (match[4].endswith(b"awPredict") and not _claude(match)):
            return BodyReader(self.name, chat.Assembly(), framing(fields), status)
        if match[4].endswith(b"awPredict"):
            return BodyReader(self.name, messages.Assembly(), framing(fields), status)
        return BodyReader(self.name, contents.Assembly(), framing(fields), status)

    def refuse(self, kind: str, message: str) -> Refusal:
        return errors.google(message)


def _claude(match: re.Match[bytes]) -> bool:
    return match[1] in (b"anthropic", None)

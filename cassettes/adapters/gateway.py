"""OpenAI-compatible gateways: Chat Completions plus routing (OpenRouter, LiteLLM, Vercel, Copilot, Mistral's agents; PROVIDERS A2).

What differs from Chat Completions: more places that name a model, some of which only point elsewhere, and who really
served may stand in a field of the gateway's own.
"""

from __future__ import annotations

from collections.abc import Mapping

from secondtake.cassettes.adapters import errors, shapes
from secondtake.cassettes.adapters.base import AnswerReader, CallKind, Json, ModelRequest, Refusal, Target
from secondtake.cassettes.adapters.dialects import chat
from secondtake.cassettes.adapters.framing import BodyReader, framing
from secondtake.cassettes.exchange import Fields, Request

_AGENT_ENDS = (b"/agents/completions", b"/v1/conversations")


class Gateway:
    name = "gateway"

    def claims(self, target: Target, body: Mapping[str, Json] | None) -> CallKind | None:
        path = target.path
        if path.endswith(_AGENT_ENDS):
            return CallKind.COMPLETION if body is not None and ("agent_id" in body or ("model" in body and "inputs" in body)) else None
        if path.endswith(b"/fim/completions"):
            return CallKind.COMPLETION if body is None or {"model", "prompt"} <= body.keys() else None
        if body is None:
            return CallKind.COMPLETION if target.family == "gateway" and path.endswith(b"/chat/completions") else None
        if path.endswith((b"/tokenize", b"/token_counter", b"/responses", b"/messages", b"/api/chat")):
            return None
        return CallKind.COMPLETION if shapes.chat(body) and (target.family == "gateway" or shapes.routed(body)) else None

    def read_request(self, request: Request, content: bytes) -> ModelRequest:
        return chat.read_request(self.name, content, CallKind.COMPLETION)

    def reader(self, request: Request, status: int, fields: Fields) -> AnswerReader:
        return BodyReader(self.name, chat.Assembly(fields), framing(fields), status)

    def refuse(self, kind: str, message: str) -> Refusal:
        return errors.openai(kind, message)

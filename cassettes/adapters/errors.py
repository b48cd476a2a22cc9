"""Error bodies in the shape of each family of providers, for requests that are refused here.

Status 400 and `x-should-retry: false`: the one answer that makes every measured agent stop at once (docs/adapters.md).
"""

from __future__ import annotations

import json

from secondtake.cassettes.adapters.base import Json, Refusal
from secondtake.cassettes.exchange import Fields


def refusal(kind: str, body: dict[str, Json], *more: tuple[bytes, bytes]) -> Refusal:
    """A 400 with `body` as JSON and the kind of refusal in `x-secondtake-miss`."""
    fields: Fields = (
        (b"content-type", b"application/json"),
        (b"x-should-retry", b"false"),
        (b"x-secondtake-miss", kind.encode("ascii", "replace")),
        *more,
    )
    return Refusal(400, fields, json.dumps(body, ensure_ascii=True).encode("ascii"))


def anthropic(kind: str, message: str) -> Refusal:
    error: Json = {"type": "invalid_request_error", "message": message}
    return refusal(kind, {"type": "error", "error": error, "request_id": None})


def openai(kind: str, message: str) -> Refusal:
    error: Json = {"message": message, "type": "invalid_request_error", "param": None, "code": kind}
    return refusal(kind, {"error": error})


def google(kind: str, message: str) -> Refusal:
    error: Json = {"code": 400, "message": message, "status": "INVALID_ARGUMENT", "details": []}
    return refusal(kind, {"error": error})


def bedrock(kind: str, message: str) -> Refusal:
    return refusal(kind, {"message": message}, (b"x-amzn-errortype", b"ValidationException"))


def ollama(kind: str, message: str) -> Refusal:
    return refusal(kind, {"error": message})

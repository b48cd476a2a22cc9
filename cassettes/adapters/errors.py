"""Error bodies in the shape of each family of providers, for requests that are refused here.

Status 400 and `x-should-retry: false`: the one answer that makes every measured agent stop at once (docs/adapters.md).
"""

from __future__ import annotations

import json

from secondtake.cassettes.adapters.base import Json, ProviderError, Refusal
from secondtake.cassettes.adapters.reading import mapping, string
from secondtake.cassettes.exchange import Fields


def refusal(body: dict[str, Json], *more: tuple[bytes, bytes]) -> Refusal:
    """A 400 with `body` as JSON. The class of a miss goes into a field of the wire's own."""
    fields: Fields = (
        (b"content-type", b"application/json"),
        (b"x-should-retry", b"false"),
        *more,
    )
    return Refusal(400, fields, json.dumps(body, ensure_ascii=True).encode("ascii"))


def anthropic(message: str) -> Refusal:
    error: Json = {"type": "invalid_request_error", "message": message}
    return refusal({"type": "error", "error": error, "request_id": None})


def openai(kind: str, message: str) -> Refusal:
    error: Json = {"message": message, "type": "invalid_request_error", "param": None, "code": kind}
    return refusal({"error": error})


def google(message: str) -> Refusal:
    error: Json = {"code": 400, "message": message, "status": "INVALID_ARGUMENT", "details": []}
    return refusal({"error": error})


def bedrock(message: str) -> Refusal:
    return refusal({"message": message}, (b"x-amzn-errortype", b"ValidationException"))


def ollama(message: str) -> Refusal:
    return refusal({"error": message})


def provider_error(body: Json, status: int, *, in_stream: bool = False, type_name: str = "") -> ProviderError:
    """Read an error body of any provider. Overload, rates and time-outs are infrastructure; a refused request is not.

    A stream that broke off with an error without a name is infrastructure too: the request had been accepted.
    """
    outer = mapping(body[0]) if isinstance(body, list) and body else mapping(body)
    inner = outer.get("error")
    error = mapping(inner)
    words = [type_name, *(string(error.get(key)) for key in ("type", "status", "code"))]
    words += [string(outer.get("code")), string(outer.get("__type"))]
    if not error and not isinstance(inner, str):
        words.append(string(outer.get("type")))
    message = string(inner) or string(error.get("message")) or string(outer.get("message")) or string(outer.get("Message"))
    name = next((word for word in words if word), f"status_{status}" if status >= 400 else "error")
    code = error.get("code")
    status = code if isinstance(code, int) and not isinstance(code, bool) and 400 <= code < 600 else status
    unnamed = in_stream and not any(words)
    weather = unnamed or status in (408, 429) or status >= 500 or any(part in word.lower() for word in words for part in _WEATHER)
    return ProviderError(name[:200], message[:2000], weather, in_stream)


_WEATHER = (
    "overloaded", "rate_limit", "ratelimit", "resource_exhausted", "throttl", "unavailable", "timeout", "deadline", "internal",
    "server_error", "api_error", "too_many_requests", "insufficient_quota", "quotaexceeded", "modelerror", "modelnotready",
    "modelstreamerror",
)  # fmt: skip
"""Parts of error names that speak of the provider's state, not of the request."""

"""What one exchange with an MCP server says, for the ordered log: requests of the client, and the server's replies. Pure.

Over standard input and output an answer is lines, over HTTP one message or server-sent events; a batch is a list. Notifications, and what
the server asks its client, are no events.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from secondtake.cassettes.adapters.base import Json
from secondtake.cassettes.adapters.reading import canonical
from secondtake.cassettes.canonical import parse_json
from secondtake.cassettes.event import INLINE_CHARACTERS, payload
from secondtake.cassettes.exchange import Exchange

TOOL = "tools/call"


@dataclass(frozen=True, slots=True)
class Said:
    """A request (`ends` false), or a reply. A key of `data` that ends in `_sha256` names one of `payloads`."""

    ends: bool
    data: Mapping[str, Json]
    payloads: Mapping[str, bytes] = field(default_factory=dict)


def messages(exchange: Exchange, sent: bytes | None, received: bytes | None) -> Iterator[Said]:
    """Yield the requests in `sent`, then the replies in `received`; both without content codings."""
    asked: dict[str, tuple[str, str | None]] = {}
    for one in _each(sent or b""):
        method, name, parameters = one.get("method"), one.get("id"), one.get("params")
        if not isinstance(method, str) or name is None:
            continue
        told = parameters if isinstance(parameters, dict) else {}
        tool = told.get("name") if method == TOOL else None
        asked[_name(name)] = method, tool if isinstance(tool, str) else None
        yield _request(exchange, method, asked[_name(name)][1], name, told.get("arguments", {}) if method == TOOL else told)
    for one in _each(received or b""):
        if "method" not in one and ("result" in one or "error" in one):
            method, tool = asked.get(_name(one.get("id")), (None, None))
            yield _reply(exchange, method, tool, one)


def _request(exchange: Exchange, method: str, tool: str | None, name: Json, parameters: Json) -> Said:
    payloads: dict[str, bytes] = {}
    arguments = _text(parameters)
    return Said(False, {
        "server": exchange.request.host,
        "method": method,
        "tool": tool,
        "call_id": _shown(name),
        "arguments_sha256": payload(payloads, arguments),
        "arguments": arguments if len(arguments) <= INLINE_CHARACTERS else None,
        "answered": exchange.answered.value,
    }, payloads)  # fmt: skip


def _reply(exchange: Exchange, method: str | None, tool: str | None, one: Mapping[str, Json]) -> Said:
    payloads: dict[str, bytes] = {}
    error, result = one.get("error"), one.get("result")
    failed = "error" in one or (isinstance(result, dict) and result.get("isError") is True)
    content = result.get("content") if isinstance(result, dict) else None
    texts = [part.get("text") for part in content if isinstance(part, dict)] if isinstance(content, list) else []
    text = "\n".join(text for text in texts if isinstance(text, str)) or _text(error if "error" in one else result)
    message = error.get("message") if isinstance(error, dict) else None
    return Said(True, {
        "server": exchange.request.host,
        "method": method,
        "tool": tool,
        "call_id": _shown(one.get("id")),
        "is_error": failed,
        "error": message if isinstance(message, str) else None,
        "stdout_sha256": payload(payloads, text),
        "answered": exchange.answered.value,
        "duration_us": exchange.ended_us - exchange.started_us,
    }, payloads)  # fmt: skip


def _each(content: bytes) -> Iterator[dict[str, Json]]:
    """Every JSON-RPC message in a body, whatever carries it."""
    whole = parse_json(content)
    lines = (line.removeprefix(b"data:").strip() for line in content.splitlines())
    for document in [whole] if whole is not None else map(parse_json, filter(None, lines)):
        for message in document if isinstance(document, list) else [document]:
            if isinstance(message, dict) and message.get("jsonrpc") == "2.0":
                yield message


def _name(value: Json) -> str:
    return _text(value)


def _shown(value: Json) -> Json:
    return value if isinstance(value, str | int) else None


def _text(value: Json) -> str:
    made = canonical(value)
    return made if isinstance(made, str) else ""

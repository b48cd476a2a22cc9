"""JSON-RPC messages as MCP uses them, and what of them is the client's own count: ids and progress tokens. Pure.

Ids are made by whoever asks, and count up; a run that asks in another order has others. So they do not count when requests are compared
(the rule `rpc-ids` of volatile.py), and an answer is given with the ids of the request it is given to. Source: JSON-RPC 2.0; MCP, base
protocol, progress and cancellation.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

import orjson

from secondtake.cassettes.canonical import Json, parse_json

PROGRESS = "notifications/progress"
CANCELLED = "notifications/cancelled"

LARGEST_ID = 2**53
"""A whole number beyond it is no id that two programs read the same (RFC 8259 6)."""

type Name = tuple[str, Json]
"""An id or a token with its type: 1 is not "1"."""


class Kind(StrEnum):
    """What a message is."""

    REQUEST = "request"
    NOTIFICATION = "notification"
    REPLY = "reply"
    """Result or error."""
    OTHER = "other"
    """A batch, or no JSON-RPC at all."""


@dataclass(frozen=True, slots=True)
class Said:
    """One message. `name` is the id of a request or a reply; `token` the progress token a request gives, or a progress names."""

    kind: Kind
    data: bytes
    method: str = ""
    name: Name | None = None
    token: Name | None = None


def read(data: bytes) -> Said:
    """Understand one message; whatever it is, it is kept as it came."""
    document = parse_json(data)
    if not isinstance(document, dict) or document.get("jsonrpc") != "2.0":
        return Said(Kind.OTHER, data)
    method, name = document.get("method"), document.get("id")
    if isinstance(method, str):
        parameters = document.get("params")
        told = parameters if isinstance(parameters, dict) else {}
        if name is None:
            return Said(Kind.NOTIFICATION, data, method, token=_name(told.get("progressToken")) if method == PROGRESS else None)
        meta = told.get("_meta")
        token = meta.get("progressToken") if isinstance(meta, dict) else None
        return Said(Kind.REQUEST, data, method, _name(name), _name(token))
    if "result" in document or "error" in document:
        return Said(Kind.REPLY, data, name=_name(name))
    return Said(Kind.OTHER, data)


def _name(value: Json) -> Name | None:
    if isinstance(value, int) and abs(value) > LARGEST_ID:
        return None
    return (type(value).__name__, value) if isinstance(value, str | int | float) else None


def without_ids(document: Json) -> Json:
    """Take out, in place, what is the sender's own count."""
    for message in _messages(document):
        message.pop("id", None)
        parameters = message.get("params")
        if not isinstance(parameters, dict):
            continue
        if message.get("method") == PROGRESS:
            parameters.pop("progressToken", None)
        if message.get("method") == CANCELLED:
            parameters.pop("requestId", None)
        meta = parameters.get("_meta")
        if isinstance(meta, dict) and meta.pop("progressToken", None) is not None and not meta:
            del parameters["_meta"]
    return document


def _messages(document: Json) -> Iterator[dict[str, Json]]:
    for message in document if isinstance(document, list) else [document]:
        if isinstance(message, dict) and message.get("jsonrpc") == "2.0":
            yield message


def renames(recorded: bytes, live: bytes) -> dict[Name, Json]:
    """By what recorded ids and tokens are to be replaced for this client; empty where they are its own."""
    before, now = parse_json(recorded), parse_json(live)
    found: dict[Name, Json] = {}
    for was, has in zip(_messages(before), _messages(now), strict=False):
        for one, other in zip(_names(was), _names(has), strict=True):
            if one is not None and other is not None and one != other:
                found[one] = other[1]
    return found


def _names(message: Mapping[str, Json]) -> tuple[Name | None, Name | None]:
    said = read(orjson.dumps(message))
    return said.name, said.token


def renamed(data: bytes, by: Mapping[Name, Json]) -> bytes:
    """A message of the server with the client's ids and tokens; the same bytes where none of them stands in it."""
    if not by:
        return data
    document = parse_json(data)
    changed = False
    for message in _messages(document):
        said = read(orjson.dumps(message))
        if said.kind is Kind.REPLY and said.name is not None and said.name in by:
            message["id"] = by[said.name]
            changed = True
        parameters = message.get("params")
        if said.method == PROGRESS and said.token is not None and said.token in by and isinstance(parameters, dict):
            parameters["progressToken"] = by[said.token]
            changed = True
    if not changed:
        return data
    end = data[len(data.rstrip(b"\r\n")) :]
    return orjson.dumps(document) + end


def events_renamed(content: bytes, by: Mapping[Name, Json]) -> bytes:
    """The same for server-sent events: every line of data is a message (MCP, streamable HTTP)."""
    out = []
    for line in content.splitlines(keepends=True):
        data = line.removeprefix(b"data:")
        if data is line or data == line:
            out.append(line)
            continue
        end = data[len(data.rstrip(b"\r\n")) :]
        message = data.strip()
        out.append(b"data: " + renamed(message, by) + end if renamed(message, by) != message else line)
    return b"".join(out)


def error(name: Name | None, message: str, *, kind: str = "") -> bytes:
    """An error of ours as a line; -32000 is the first of the codes JSON-RPC leaves to servers."""
    told: dict[str, Json] = {"code": -32000, "message": message}
    if kind:
        told["data"] = {"secondtake": kind}
    return orjson.dumps({"jsonrpc": "2.0", "id": name[1] if name is not None else None, "error": told}) + b"\n"

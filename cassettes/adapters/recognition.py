"""Which wire format a request speaks: by path and body; the host is a hint (PROVIDERS A1).

Order: path and body of the formats whose paths cannot be mistaken first; then the shape of a JSON body on any path. A
request that is no POST costs one comparison: package indexes and web pages are most of the traffic.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import cast

import orjson

from secondtake.cassettes.adapters.base import Call, CallKind, Json, Target
from secondtake.cassettes.adapters.reading import loads
from secondtake.cassettes.adapters.registry import ADAPTERS
from secondtake.cassettes.exchange import Request

_HINTS = (b'"messages"', b'"contents"', b'"input', b'"prompt"', b'"previous_response_id"', b'"conversation"', b"\\u00", b'"request"')
"""A body without any of these is no model call on an unknown path; looked for before anything is parsed."""

_PATHS = re.compile(
    rb"messages|count_tokens|completions|responses|ontent|redict|okens|token_counter|batches|/complete|/model/|/api/(?:chat|generate|embed)"
    rb"|async-invoke|/compact|decisions|embeddings|moderations|/images/|/audio/|conversations|interactions|tokenize"
)
"""Parts of the paths adapters know; where none occurs only the shape of the body can say."""

_SOCKETS = (b"/responses", b"/v1/realtime", b"/v1/live", b"BidiGenerateContent", b"/interactions/live")


def classify(request: Request, content: bytes | None) -> Call | None:
    """Return which adapter reads `request` and what it asks for, or None when it is no call to a model.

    `content` is the body without content codings; None when it is not there (yet), then the path alone decides.
    """
    if request.method != "POST":
        return None
    path, _, query = request.path.partition(b"?")
    known_path = _PATHS.search(path) is not None
    if content is None and not known_path:
        return None
    family = family_of(request.host)
    body: Mapping[str, Json] | None = None
    if content is not None:
        if known_path or any(hint in content for hint in _HINTS):
            body = _mapping(content)
        if body is None and not (known_path and family):
            return None
    target = Target(path.rstrip(b"/"), query, family)
    for adapter in ADAPTERS.values():
        kind = adapter.claims(target, body)
        if kind is not None:
            return Call(adapter.name, kind)
    return None


def recognise(request: Request, content: bytes | None) -> str | None:
    """Return the adapter's name when `request` asks a model for an answer or to count a prompt's tokens; else None.

    Embeddings, moderation, images and batches are None here (`classify` names them): they are never forwarded or swapped.
    """
    call = classify(request, content)
    return call.adapter if call is not None and call.kind in (CallKind.COMPLETION, CallKind.COUNT) else None


def upgrades_to_model(request: Request) -> bool:
    """Whether a WebSocket upgrade asks for a model's socket (it gets 426, so that the client falls back to SSE)."""
    if request.method not in ("GET", "CONNECT"):
        return False
    path = request.path.partition(b"?")[0].rstrip(b"/")
    if not any(part in path for part in _SOCKETS):
        return False
    if request.method == "CONNECT":  # RFC 8441
        return any(name.lower() == b":protocol" and value.lower() == b"websocket" for name, value in request.fields)
    return any(name.lower() == b"upgrade" and b"websocket" in value.lower() for name, value in request.fields)


def hosts_version() -> str:
    """The version of the table of hosts, for the envelope (A-13)."""
    return str(_table()["version"])


def _mapping(content: bytes) -> Mapping[str, Json] | None:
    start = content[:64].removeprefix(b"\xef\xbb\xbf").lstrip()
    if not start.startswith(b"{"):
        return None
    try:
        value = orjson.loads(content)
    except orjson.JSONDecodeError:
        return _mapping_slow(content)
    return value if isinstance(value, dict) else None


def _mapping_slow(content: bytes) -> Mapping[str, Json] | None:
    """What orjson refuses and agents send: lone surrogates, a byte order mark, numbers out of range."""
    value = loads(content)
    return value if isinstance(value, dict) else None


@cache
def _table() -> Mapping[str, object]:
    return tomllib.loads((files("secondtake.cassettes.adapters") / "hosts.toml").read_text("utf-8"))


@cache
def _names() -> tuple[Mapping[str, str], tuple[tuple[str, str], ...]]:
    families = cast("dict[str, list[str]]", _table()["families"])
    endings = cast("dict[str, list[str]]", _table()["endings"])
    exact = {host: family for family, hosts in families.items() for host in hosts}
    return exact, tuple((ending, family) for family, ends in endings.items() for ending in ends)


def family_of(host: str) -> str:
    """Whose host this is by the table of hosts, or "". A hint only."""
    exact, endings = _names()
    if host in exact:
        return exact[host]
    rest = host
    while rest:
        _, dot, rest = rest.partition(".")
        if dot and f".{rest}" in exact:
            return exact[f".{rest}"]
    return next((family for ending, family in endings if host.endswith(ending)), "")

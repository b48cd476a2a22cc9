"""The named, versioned list of what does not count when two requests are compared. Acts on the key only: no kept or sent byte changes.

A rule has a name, a version, the calls it applies to, and a change to the decoded JSON or to the bytes of another body. Raise a rule's
version when what it does changes; `rules_version` then differs, and a player makes the keys of older cassettes anew. The rules of the wire
formats are in `volatile.py`; the sources of each are named there. Table for people: docs/matching.md.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from urllib.parse import quote

from secondtake.cassettes.canonical import Document, Json, canonical
from secondtake.cassettes.placeholder import collapse


@dataclass(frozen=True, slots=True)
class Subject:
    """What a rule may look at to decide whether it applies. `format` is the wire format of a model call by its shape, else empty."""

    method: str
    host: str
    path: bytes
    """Without its query."""
    format: str = ""


@dataclass(frozen=True, slots=True)
class Rule:
    """One thing that does not count. `on_json` may change its document in place; `on_bytes` acts on what is not JSON."""

    name: str
    version: int
    why: str
    applies: Callable[[Subject], bool]
    on_json: Callable[[Json], Json] | None = None
    on_bytes: Callable[[bytes], bytes] | None = None
    on_target: Callable[[bytes], bytes] | None = None
    """Acts on path and query; `Subject.format` is not told then."""


@lru_cache(maxsize=64)
def rules_version(rules: tuple[Rule, ...]) -> str:
    """A short name for a list of rules; another list or another version of one rule has another name."""
    text = "\n".join(f"{rule.name}/{rule.version}" for rule in rules)
    return "r1-" + hashlib.blake2b(text.encode(), digest_size=6).hexdigest()


# --- what a person declares


_STEP = re.compile(r'\[(\*|\d+)\]|\["((?:[^"\\]|\\.)*)"\]|([^.\[\]]+)|\.')

type Steps = tuple[str | int | None, ...]
"""A place, from the root: a member's name, an element's index, or None for each of them."""


def steps(place: str) -> Steps:
    """Read a place such as `messages[*].content[0].text`; `**` as a step is not supported."""
    found: list[str | int | None] = []
    for step in _STEP.finditer(place):
        index, quoted, name = step.groups()
        if index is not None:
            found.append(None if index == "*" else int(index))
        elif quoted is not None:
            found.append(quoted)
        elif name is not None:
            found.append(None if name == "*" else name)
    return tuple(found)


IGNORED = "(ignored)"


def ignore(place: str, *, method: str = "", host: str = "", path: bytes = b"", text: str = "") -> Rule:
    """A rule that forgives the value at a place such as `messages[*].content[0].text`; its presence still counts.

    Empty `method`, `host` and `path` (without query) match any. With `text`, a regular expression, only what it matches in a string at
    that place is forgiven.
    """
    way, pattern = steps(place), re.compile(text) if text else None

    def on_json(document: Json) -> Json:
        _forgive(document, way, pattern)
        return document

    name = f"ignore {method} {host} {path.decode('latin-1')} {place}" + (f" {text}" if text else "")
    return Rule(name, 1, "declared by the user", _to(method, host, path), on_json)


def ignore_query(key: str, *, method: str = "", host: str = "", path: bytes = b"") -> Rule:
    """A rule that forgives the values of a key of the query; how often it is there still counts."""
    named = re.compile(rb"(?<=[?&])(" + re.escape(key.encode()) + rb")=[^&]*")

    def on_target(target: bytes) -> bytes:
        return named.sub(rb"\1=(ignored)", target)

    where = f"{method} {host} {path.decode('latin-1')}"
    return Rule(f"ignore {where} ?{key}", 1, "declared by the user", _to(method, host, path), on_target=on_target)


def _to(method: str, host: str, path: bytes) -> Callable[[Subject], bool]:
    def applies(subject: Subject) -> bool:
        return method in ("", subject.method) and host in ("", subject.host) and path in (b"", subject.path)

    return applies


def _forgive(document: Json, way: Steps, pattern: re.Pattern[str] | None) -> None:
    if not way:
        return
    step, rest = way[0], way[1:]
    places: list[tuple[dict[str, Json] | list[Json], str | int]] = []
    if isinstance(document, dict):
        places = [(document, key) for key in document if step is None or key == step]
    elif isinstance(document, list):
        places = [(document, index) for index in range(len(document)) if step is None or index == step]
    for holder, key in places:
        value = holder[key]  # type: ignore[index]  # key fits its own holder
        if rest:
            _forgive(value, rest, pattern)
        elif pattern is None:
            holder[key] = IGNORED  # type: ignore[index]  # key fits its own holder
        elif isinstance(value, str):
            holder[key] = pattern.sub(lambda _: IGNORED, value)  # type: ignore[index]  # key fits its own holder


# --- what we put into the child's environment


class Aliases:
    """Values that differ from run to run because we chose them (port, CA path, dummy keys), each with the name that stands for it.

    Replaced in plain, URL-escaped and JSON-escaped (also twice) form. A value of digits only is replaced only as a whole number, a short
    one (`/app`, `/root`) only as a whole path or the beginning of one.
    """

    def __init__(self, values: Mapping[bytes, bytes] | None = None) -> None:
        self._names: dict[bytes, bytes] = {}
        for value, name in (values or {}).items():
            if value:
                for form in _forms(value):
                    self._names.setdefault(form, b"{" + name + b"}")
        ordered = sorted(self._names, key=len, reverse=True)
        alternatives = [_standing_alone(form) for form in ordered]
        self._pattern = re.compile(b"|".join(alternatives)) if ordered else None

    def __bool__(self) -> bool:
        return self._pattern is not None

    def replace(self, content: bytes) -> bytes:
        """Put the names where the values stand."""
        if self._pattern is None:
            return content
        return self._pattern.sub(lambda found: self._names[found.group()], content)


SHORT_BYTES = 8
"""A value shorter than this is found inside other words."""


def _standing_alone(form: bytes) -> bytes:
    if form.isdigit():
        return rb"(?<!\d)" + form + rb"(?!\d)"
    if len(form) < SHORT_BYTES:
        # A letter before it may be the rest of an escape: line ends stand as `\n` in JSON.
        before = rb"[\w./-]" if form.startswith(b"/") else rb"[\w.-]"
        return rb"(?:(?<!" + before + rb")|(?<=\\[bfnrt]))" + re.escape(form) + rb"(?![\w.-])"
    return re.escape(form)


def _forms(value: bytes) -> set[bytes]:
    forms = {value}
    for safe in ("", "/", "/:"):
        escaped = quote(value, safe=safe).encode()
        forms |= {escaped, re.sub(rb"%[0-9A-F]{2}", lambda found: found.group().lower(), escaped)}
    text = value.decode("utf-8", "surrogateescape")
    for ascii_only in (True, False):
        once = json.dumps(text, ensure_ascii=ascii_only)[1:-1]
        twice = json.dumps(once, ensure_ascii=ascii_only)[1:-1]
        for form in (once, twice, once.replace("/", "\\/"), twice.replace("/", "\\\\/")):
            forms.add(form.encode("utf-8", "surrogateescape"))
    return forms


NO_ALIASES = Aliases()


# --- the shape of a model call


def format_of(path: bytes, document: Json) -> str:
    """The wire format by shape: of a model request `anthropic`, `responses`, `gemini` or `chat`, of JSON-RPC `rpc`, or empty.

    A path decides ties.
    """
    if isinstance(document, list):
        return "rpc" if document and all(isinstance(one, dict) and one.get("jsonrpc") == "2.0" for one in document) else ""
    if not isinstance(document, dict):
        return ""
    if document.get("jsonrpc") == "2.0":
        return "rpc"
    contents, messages = document.get("contents"), document.get("messages")
    if isinstance(contents, list) and contents and all(isinstance(turn, dict) and "parts" in turn for turn in contents):
        return "gemini"
    model = isinstance(document.get("model"), str)
    if isinstance(messages, list) and messages and all(isinstance(turn, dict) and "role" in turn for turn in messages):
        if path.endswith(b"/chat/completions"):
            return "chat"
        named = model or "anthropic_version" in document
        counted = "max_tokens" in document or path.endswith(b"/messages/count_tokens")
        if named and counted and "prompt" not in document:
            return "anthropic" if _messages_path(path) or not _chat_turns(messages) else "chat"
        return "chat" if model else ""
    asks = isinstance(document.get("input"), list | str) or isinstance(document.get("previous_response_id"), str)
    if (model or document.get("type") == "response.create") and asks and "encoding_format" not in document and messages is None:
        return "" if path.endswith((b"/embeddings", b"/moderations")) else "responses"
    return ""


def _messages_path(path: bytes) -> bool:
    return path.endswith((b"/messages", b"/messages/count_tokens", b"/invoke", b"/invoke-with-response-stream", b"awPredict"))


def _chat_turns(messages: list[Json]) -> bool:
    turns = [turn for turn in messages if isinstance(turn, dict)]
    return any("tool_calls" in turn or "tool_call_id" in turn or turn.get("role") == "tool" for turn in turns)


def turns(document: Json) -> int | None:
    """How many turns the history of a model request has, or None when it has none we can count."""
    if isinstance(document, dict):
        for name in ("messages", "input", "contents"):
            found = document.get(name)
            if isinstance(found, list):
                return len(found)
    return None


# --- applying them


def normalised(found: Document, subject: Subject, rules: Sequence[Rule]) -> Document:
    """Apply the rules that concern this body. The document's JSON is changed in place; give one you own."""
    for rule in rules:
        if not rule.applies(subject):
            continue
        if found.json is not None:
            if rule.on_json is not None:
                found = Document(found.content, json=rule.on_json(found.json))
        elif found.form is None and found.multipart is None and rule.on_bytes is not None:
            found = Document(rule.on_bytes(found.content))
    return found


def body_form(found: Document, aliases: Aliases) -> bytes:
    """The bytes a normal key is made of: canonical, placeholders of one kind equal, our own values by name."""
    return aliases.replace(collapse(canonical(found)))

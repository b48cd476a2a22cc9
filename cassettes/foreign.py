"""Where a request holds thinking, signatures and cipher text of the model that spoke before (PROVIDERS A3, A-11)."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from secondtake.cassettes.adapters import Json
from secondtake.cassettes.adapters.reading import loads, mapping, string
from secondtake.cassettes.json_places import Item, Pattern, Step, items

SKIP_SIGNATURE = "skip_thought_signature_validator"
"""What Google documents for a call whose thought signature is not at hand (ai.google.dev, "Thought signatures"). No model's own."""

RULES: dict[str, str] = {
    "strip-thinking": "`thinking`, `redacted_thinking` and `reasoningContent` blocks, and parts that are thoughts",
    "strip-reasoning-items": "`reasoning` items of Responses, with or without cipher text",
    "strip-reasoning-text": "reasoning beside a Chat message: `reasoning_content`, `reasoning`, `reasoning_details`, `thinking`",
    "strip-compaction": "compactions only the provider can read; what they stand for is lost to the model",
    "strip-seal": "signature and cipher text of a compaction or another item; its readable text stays",
    "strip-thought-signature": "thought signatures of parts that are no calls",
    "skip-thought-signature": f"thought signatures of calls, replaced by `{SKIP_SIGNATURE}`",
}


@dataclass(frozen=True, slots=True)
class Bound:
    """A place that holds something of the model that spoke there.

    `tokens`: the signatures, cipher texts or, where there are none, the texts it is known by. `plain`: readable text only,
    which any model may read, so that it alone refuses nothing.
    """

    rule: str
    item: Item
    tokens: tuple[str, ...]
    plain: bool = False


def known(token: str) -> str:
    """What stands for a token where tokens are remembered: its digest, since a signature is long and a text may be private."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


def is_own(token: str, own: Collection[str]) -> bool:
    """Whether the live model gave it: `own` holds what `known` makes of tokens, or short ones (IDs) as they are."""
    return known(token) in own or token in own


def foreign(content: bytes, own: Collection[str]) -> list[Bound]:
    """The places whose tokens are not all the live model's. What has no token is foreign: nothing says whose it is."""
    return [one for one in bound(content) if not one.tokens or not all(is_own(token, own) for token in one.tokens)]


def keys(*paths: str) -> tuple[Pattern, ...]:
    """Patterns from dotted paths; `[]` stands for each element. Each also inside Code Assist's `request`."""
    plain: list[Pattern] = [tuple(Step.EACH if step == "[]" else step for step in path.split(".")) for path in paths]
    return (*plain, *(("request", *pattern) for pattern in plain))


_SIGNED = ("thoughtSignature", "thought_signature")
_SEALS = ("signature", "encrypted_content")
_TEXT_MEMBERS = ("reasoning_details", "reasoning_content", "reasoning", "thinking", "thinking_blocks")
PLACES = keys(
    "messages.[].content.[]",
    *(f"messages.[].content.[].{name}" for name in _SEALS),
    *(f"messages.[].{name}" for name in _TEXT_MEMBERS),
    *(f"messages.[].tool_calls.[].extra_content.google.{name}" for name in _SIGNED),
    "input.[]",
    "input.[].encrypted_content",
    "contents.[].parts.[]",
    *(f"contents.[].parts.[].{name}" for name in _SIGNED),
)
"""Every path that is looked at."""

_WORDS = (b"hink", b"hought", b"easoning", b"compaction", b"encrypted", b"\\u00")
_SEALED = frozenset({"signature", "encrypted_content", "redactedContent", *_SIGNED})
_READABLE = frozenset({"thinking", "text", "reasoning", "summary"})


def bound(content: bytes) -> list[Bound]:
    """Every place in a decoded body that holds reasoning, a signature or cipher text, in the order of the text.

    Raises:
        NotJson, TooLarge: the body cannot be walked.
    """
    found: list[Bound] = []
    inside: Mapping[str, Json] = {}
    done = -1
    for item in items(content, PLACES):
        if item.start < done:  # within one that is bound as a whole
            continue
        value = content[item.value_start : item.stop]
        if isinstance(item.path[-1], int):
            inside = mapping(loads(value)) if any(word in value for word in _WORDS) else {}
            one = _element(item, inside)
        else:
            one = _member(item, item.path[-1], inside, loads(value))
        if one is not None:
            found.append(one)
            done = item.stop
    return found


def _element(item: Item, part: Mapping[str, Json]) -> Bound | None:
    """A block, item or part that is reasoning as a whole."""
    kind = string(part.get("type"))
    if item.path[-2] == "input":
        if kind == "reasoning":
            return _whole("strip-reasoning-items", item, part)
        sealed = isinstance(part.get("encrypted_content"), str) and "compaction" in kind
        return _whole("strip-compaction", item, part) if sealed else None
    if item.path[-2] == "parts":
        return _whole("strip-thinking", item, part) if part.get("thought") is True else None
    if kind in ("thinking", "redacted_thinking", "reasoning") or "reasoningContent" in part:
        return _whole("strip-thinking", item, part)
    if kind == "compaction" and not string(part.get("content")):
        return _whole("strip-compaction", item, part)
    return None


_MAY_BE_PLAIN = ("strip-thinking", "strip-reasoning-text")


def _whole(rule: str, item: Item, part: Json | Mapping[str, Json]) -> Bound:
    sealed = tokens(part)
    if sealed:
        return Bound(rule, item, sealed)
    named = string(mapping(part).get("id"))
    return Bound(rule, item, texts(part) or ((named,) if named else ()), plain=rule in _MAY_BE_PLAIN)


def _member(item: Item, name: str, inside: Mapping[str, Json], value: object) -> Bound | None:
    if name in _SIGNED:
        if not isinstance(value, str) or value in ("", SKIP_SIGNATURE):
            return None
        call = "google" in item.path or "functionCall" in inside or "function_call" in inside
        return Bound("skip-thought-signature" if call else "strip-thought-signature", item, (value,))
    if name in _SEALS:
        blocks = "messages" in item.path and inside.get("type") != "compaction"  # a document or search result has its own
        return Bound("strip-seal", item, (value,)) if isinstance(value, str) and value and not blocks else None
    if value is None or value in ("", [], {}) or not isinstance(value, (str, list, dict)):
        return None
    if isinstance(value, str):
        return Bound("strip-reasoning-text", item, (value,), plain=True)
    return _whole("strip-reasoning-text", item, value)


def tokens(value: object) -> tuple[str, ...]:
    """The signatures and cipher texts anywhere in a value."""
    return tuple(text for key, text, kind in strings(value) if text and _sealed(key, kind))


def _sealed(key: str, kind: str) -> bool:
    return key in _SEALED or (key == "data" and (kind == "redacted_thinking" or "encrypted" in kind))


def texts(value: object) -> tuple[str, ...]:
    """The readable reasoning anywhere in a value."""
    return tuple(text for key, text, _ in strings(value) if text and key in _READABLE)


def strings(value: object) -> Iterator[tuple[str, str, str]]:
    """Each string of a value: the key it stands under, itself, and the `type` beside it. Iterative."""
    stack: list[object] = [value]
    while stack:
        one = stack.pop()
        if isinstance(one, dict):
            kind = string(one.get("type"))
            for key, inner in one.items():
                if isinstance(inner, str):
                    yield key, inner, kind
                elif isinstance(inner, (dict, list)):
                    stack.append(inner)
        elif isinstance(one, list):
            stack.extend(inner for inner in reversed(one) if isinstance(inner, (dict, list)))

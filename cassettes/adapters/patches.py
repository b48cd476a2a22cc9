"""Named rules for what another model refuses, or cannot go on from (PROVIDERS A3). Off unless asked for; each use is told.

Nothing is re-serialised: members and elements are cut out of the text and every other byte stays. The forwarded prefix is
never edited but by these rules, and only in a take that says so.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from enum import StrEnum

from secondtake.cassettes.adapters.base import Fault
from secondtake.cassettes.adapters.reading import loads, mapping, string
from secondtake.cassettes.exchange import Fields
from secondtake.cassettes.json_cuts import cut
from secondtake.cassettes.json_places import Item, Pattern, Step, items


class Patch(StrEnum):
    """A rule by its name, as it stands in the take."""

    DROP_SAMPLING = "drop-sampling"
    """`temperature`, `top_p`, `top_k`: several reasoning models refuse them."""
    DROP_THINKING = "drop-thinking"
    """The request for thinking: its form differs between models."""
    DROP_TOOL_CHOICE = "drop-tool-choice"
    """Forced tools: refused by models that always think."""
    DROP_FALLBACKS = "drop-fallbacks"
    """Other models to ask when the first declines."""
    DROP_ADVISOR = "drop-advisor"
    """Tools that consult a second model."""
    STRIP_REASONING = "strip-reasoning"
    """Thinking, signatures and cipher text of another model in the history (A-11)."""


@dataclass(frozen=True, slots=True)
class Applied:
    """One cut: by which rule, from where, and how many bytes of value went."""

    patch: Patch
    path: str
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Patched:
    """`emptied`: paths of messages of which nothing is left; a provider may refuse them, so the caller should."""

    content: bytes
    applied: tuple[Applied, ...] = ()
    emptied: tuple[str, ...] = ()


def _keys(*paths: str) -> tuple[Pattern, ...]:
    """Patterns from dotted paths; `[]` stands for each element. Each also inside Code Assist's `request`."""
    plain: list[Pattern] = [tuple(Step.EACH if step == "[]" else step for step in path.split(".")) for path in paths]
    return (*plain, *(("request", *pattern) for pattern in plain))


_PATTERNS: dict[Patch, tuple[Pattern, ...]] = {
    Patch.DROP_SAMPLING: _keys(
        *("temperature", "top_p", "top_k", "generationConfig.temperature", "generationConfig.topP", "generationConfig.topK"),
        *("inferenceConfig.temperature", "inferenceConfig.topP", "additionalModelRequestFields.top_k"),
        *("options.temperature", "options.top_p", "options.top_k"),
    ),
    Patch.DROP_THINKING: _keys(
        *("thinking", "reasoning", "reasoning_effort", "think", "generationConfig.thinkingConfig"),
        *("additionalModelRequestFields.thinking", "output_config.effort"),
    ),
    Patch.DROP_TOOL_CHOICE: _keys("tool_choice", "toolConfig.functionCallingConfig", "toolConfig.toolChoice"),
    Patch.DROP_FALLBACKS: _keys("fallbacks", "models", "route", "context_window_fallbacks", "additionalModelRequestFields.fallbacks"),
    Patch.DROP_ADVISOR: _keys("tools.[]"),
    Patch.STRIP_REASONING: _keys(
        *("messages.[].content.[]", "messages.[].reasoning_details", "messages.[].reasoning_content", "messages.[].reasoning"),
        *("messages.[].thinking", "input.[]", "contents.[].parts.[]", "contents.[].parts.[].thoughtSignature"),
    ),
}

_THINKING_BLOCKS = ("thinking", "redacted_thinking", "compaction", "reasoning")


def _anything(_item: Item, _value: bytes) -> bool:
    return True


def _advises(_item: Item, value: bytes) -> bool:
    return string(_object(value).get("type")).startswith("advisor")


def _reasons(item: Item, value: bytes) -> bool:
    """Whether an element is thinking; a member asked for by its own key always is."""
    if isinstance(item.path[-1], str):
        return True
    part = _object(value)
    return part.get("type") in _THINKING_BLOCKS or "reasoningContent" in part or part.get("thought") is True


_DOOMED: dict[Patch, Callable[[Item, bytes], bool]] = {Patch.DROP_ADVISOR: _advises, Patch.STRIP_REASONING: _reasons}


def patch(content: bytes, patches: Sequence[Patch]) -> Patched:
    """Apply rules to a decoded request body, in their order. A rule that finds nothing changes nothing and is not told.

    Raises:
        NotJson: the body is none.
        TooLarge: over JSON_ITEMS.
    """
    applied: list[Applied] = []
    for rule in patches:
        content, cuts = cut(content, _PATTERNS[rule], _DOOMED.get(rule, _anything))
        applied += (Applied(rule, one.path, len(one.value)) for one in cuts)
    emptied = _emptied(content) if Patch.STRIP_REASONING in patches and applied else ()
    return Patched(content, tuple(applied), emptied)


def without_betas(fields: Fields, refused: Collection[str]) -> tuple[Fields, tuple[str, ...]]:
    """Return the fields without the refused names in `anthropic-beta`, and which were there. Other fields, their order and their
    spelling stay; a field left with nothing goes."""
    kept: list[tuple[bytes, bytes]] = []
    dropped: list[str] = []
    for name, value in fields:
        if name.lower() != b"anthropic-beta":
            kept.append((name, value))
            continue
        betas = [part.strip() for part in value.decode("latin-1").split(",")]
        gone = [beta for beta in betas if beta in refused]
        dropped += gone
        left = [beta for beta in betas if beta not in refused]
        if left:
            kept.append((name, ",".join(left).encode("latin-1") if gone else value))
    return tuple(kept), tuple(dropped)


def _emptied(content: bytes) -> tuple[str, ...]:
    lists = items(content, _keys("messages.[].content", "contents.[].parts"))
    return tuple(one.dotted for one in lists if content[one.value_start : one.stop].translate(None, b" \t\r\n") == b"[]")


def _object(value: bytes) -> dict[str, object]:
    read = loads(value)
    return {} if isinstance(read, Fault) else dict(mapping(read))

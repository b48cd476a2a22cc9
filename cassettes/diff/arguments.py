"""Where the arguments of two calls of one tool differ: field by field, and line by line in a text of several lines. Bounded."""

from __future__ import annotations

from dataclasses import dataclass
from difflib import unified_diff

from secondtake.cassettes.adapters.base import Json
from secondtake.cassettes.diff.sameness import parsed
from secondtake.cassettes.differences import Difference, Found, json_differences

TEXT_LINES = 40

COMPARED_LINES = 4000
"""Of both texts together; longer ones are compared as they stand, by where they begin to differ."""


@dataclass(frozen=True, slots=True)
class Changed:
    """One call of both sides whose arguments differ. `Difference.recorded` is A's, `live` is B's."""

    tool: str
    fields: tuple[Difference, ...]
    more: int = 0
    """Fields that differ beyond those listed."""
    texts: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """Fields of several lines, each as a unified diff without its head: at most `TEXT_LINES` lines, the last saying what is left out."""


def differ(tool: str, a: str, b: str) -> Changed:
    """Compare the arguments of two calls, as `Sameness.arguments` gives them."""
    found = Found()
    one, other = _members(a), _members(b)
    texts: dict[str, tuple[str, ...]] = {}
    for key, value in one.items():
        lines = _lines(value, other.get(key))
        if lines:
            texts[key] = lines
    left, right = ({key: value for key, value in side.items() if key not in texts} for side in (one, other))
    json_differences(left, right, found)
    items = tuple(Difference(item.where, item.path.removeprefix("."), item.recorded, item.live) for item in found.items)
    return Changed(tool, items, found.count - len(items), tuple(texts.items()))


def _members(arguments: str) -> dict[str, Json]:
    value = parsed(arguments)
    return value if isinstance(value, dict) else {"text": value}


def _lines(a: Json, b: Json) -> tuple[str, ...]:
    """What differs between two texts of several lines; empty for what is none, or is too long to be worth it."""
    if not isinstance(a, str) or not isinstance(b, str) or a == b or "\n" not in a + b:
        return ()
    one, other = a.split("\n"), b.split("\n")
    if len(one) + len(other) > COMPARED_LINES:
        return ()
    made = list(unified_diff(one, other, n=1, lineterm=""))[2:]
    if len(made) <= TEXT_LINES:
        return tuple(made)
    return (*made[: TEXT_LINES - 1], f"… {len(made) - TEXT_LINES + 1} more lines")

"""Parameters and tools of a model request, changed on purpose: the one thing an arm of an experiment differs in. By byte, as a swap is.

Written as rules: `set:PATH=JSON` gives a member of the body this value (`set:temperature=0.2`, `set:generationConfig.topK=4`), and makes it
where it is not there; `only-tools:NAME,NAME` takes the definitions of all other tools out of the body.
"""

from __future__ import annotations

import json
from collections.abc import Collection

from secondtake.cassettes.errors import BadInput
from secondtake.cassettes.json_cuts import cut
from secondtake.cassettes.json_places import Item, NotJson, Pattern, Step, items, splice

SET = "set:"
ONLY_TOOLS = "only-tools:"

RULE_CHARACTERS = 2000

_TOOLS: tuple[Pattern, ...] = (
    ("tools", Step.EACH),
    ("tools", Step.EACH, "functionDeclarations", Step.EACH),
    ("tools", Step.EACH, "function_declarations", Step.EACH),
    ("toolConfig", "tools", Step.EACH),
)
"""Where formats define tools: Anthropic and OpenAI, Gemini in both spellings, Bedrock's Converse."""


def is_setting(rule: str) -> bool:
    """Whether a rule is one of these."""
    return rule.startswith((SET, ONLY_TOOLS))


def check(rule: str) -> None:
    """Say before anything is sent that a rule cannot be applied.

    Raises:
        BadInput: it is not written as the module's head says.
    """
    if len(rule) > RULE_CHARACTERS:
        raise BadInput(f"a rule of more than {RULE_CHARACTERS} characters: {rule[:60]}…")
    if rule.startswith(SET):
        _setting(rule)
    elif not all(_names(rule)):
        raise BadInput(f"`{rule}` names no tool", hint=f"{ONLY_TOOLS}read_file,run")


def applied(content: bytes, rules: Collection[str]) -> tuple[bytes, list[str]]:
    """Return the body as the rules want it, and one line for each thing that was changed.

    Raises:
        NotJson, TooLarge: the body cannot be walked; BadInput: a rule cannot be applied to it.
    """
    notes: list[str] = []
    for rule in sorted(filter(is_setting, rules)):
        if rule.startswith(SET):
            path, value = _setting(rule)
            changed = _set(content, path, value)
            if changed != content:
                notes.append(f"request_patched: {rule}")
            content = changed
        else:
            content, gone = _without_tools(content, frozenset(_names(rule)))
            notes += [f"request_patched: {ONLY_TOOLS} `{name}` is gone" for name in gone]
    return content, notes


def _setting(rule: str) -> tuple[tuple[str, ...], bytes]:
    name, equals, text = rule.removeprefix(SET).partition("=")
    path = tuple(name.split("."))
    try:
        value = json.loads(text)
        made = json.dumps(value, ensure_ascii=True, separators=(",", ":"), allow_nan=False).encode("ascii")
    except (ValueError, RecursionError):
        made = None
    if not equals or not all(path) or made is None:
        raise BadInput(f"`{rule}` is not {SET}PATH=JSON", hint=f"{SET}temperature=0.2, or {SET}generationConfig.topK=4")
    if path == ("model",):
        raise BadInput("the model is not a parameter", hint="--model")
    return path, made


def _names(rule: str) -> list[str]:
    return [name.strip() for name in rule.removeprefix(ONLY_TOOLS).split(",")]


def _set(content: bytes, path: tuple[str, ...], value: bytes) -> bytes:
    found = items(content, [path])
    if found:
        return splice(content, [(item.value_start, item.stop, value) for item in found])
    for depth in range(len(path) - 1, 0, -1):
        parents = items(content, [path[:depth]])
        if parents:
            return splice(content, [_member(content, parent.value_start, path[depth:], value) for parent in parents])
    return splice(content, [_member(content, len(content) - len(content.lstrip(b"\xef\xbb\xbf \t\r\n")), path, value)])


def _member(content: bytes, at: int, path: tuple[str, ...], value: bytes) -> tuple[int, int, bytes]:
    """The splice that makes a new first member of the object at `at`."""
    if content[at : at + 1] != b"{":
        raise NotJson(f"`{'.'.join(path)}` cannot be set: what it would stand in is no object")
    for name in reversed(path[1:]):
        value = b"{" + _key(name) + b":" + value + b"}"
    empty = content[at + 1 :].lstrip(b" \t\r\n").startswith(b"}")
    return at + 1, at + 1, _key(path[0]) + b":" + value + (b"" if empty else b",")


def _key(name: str) -> bytes:
    return json.dumps(name, ensure_ascii=True).encode("ascii")


def _without_tools(content: bytes, kept: Collection[str]) -> tuple[bytes, list[str]]:
    gone: list[str] = []

    def doomed(_: Item, value: bytes) -> bool:
        name = _tool(value)
        if name is None or name in kept:
            return False
        gone.append(name)
        return True

    content, _cuts = cut(content, _TOOLS, doomed)
    return content, gone


def _tool(value: bytes) -> str | None:
    """The name of a tool's definition; None for what is none, a list of declarations or a provider's own list, say."""
    try:
        made = json.loads(value)
    except (ValueError, RecursionError):
        return None
    if not isinstance(made, dict):
        return None
    for inner in (made, made.get("function"), made.get("toolSpec")):
        if isinstance(inner, dict) and isinstance(inner.get("name"), str):
            return str(inner["name"])
    return None

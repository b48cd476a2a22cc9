"""Lines that agents write into their prompts by themselves, told by their label: the date, and where a file of HOME lies.

Only what a program wrote is touched: instructions and user turns, and in them a line that begins with one of these labels. Never what the
model said, never the result of a tool, never a date elsewhere in a text. Measured (AGENTS.md 2); the agents of each label stand beside it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from secondtake.cassettes.canonical import Json

_DAY = r"(?:Mon|Tues?|Wed(?:nes)?|Thu(?:rs)?|Fri|Sat(?:ur)?|Sun)(?:day)?"
_MONTH = (
    r"(?:Jan(?:uary)?|Feb(?:ruary)?|Mar(?:ch)?|Apr(?:il)?|May|June?|July?"
    r"|Aug(?:ust)?|Sep(?:tember)?|Oct(?:ober)?|Nov(?:ember)?|Dec(?:ember)?)"
)
_DATE = rf"(?:\d{{4}}-\d\d-\d\d|{_DAY},? {_MONTH} \d{{1,2}},? \d{{4}}|{_MONTH} \d{{1,2}},? \d{{4}})"

_DATED = re.compile(
    r"^([ \t]*(?:"
    r"Today's date is "  # Claude Code, Gemini CLI, Qwen Code
    r"|(?:[-*] )?Today's date: "  # opencode
    r"|(?:[-*] )?Current date: "  # pi, aider
    r"|<current_date>"  # Codex
    rf")){_DATE}(?!\w)",
    re.MULTILINE,
)

ROLES = ("system", "developer", "user")


def without_dates(text: str) -> str:
    """The text with each date behind one of the labels replaced by `(date)`."""
    return _DATED.sub(r"\1(date)", text)


_OF_HOME = re.compile(r"(?<![\w./-])(?:\.\./)+(?:[\w.@+-]+/)*(?=\.qwen/)")
"""A way from the workspace to HOME, as Qwen Code writes it."""


def without_way_home(text: str) -> str:
    """The text with each relative way from the workspace to a file of `~/.qwen` replaced by `~/`."""
    return _OF_HOME.sub("~/", text)


_OF_PROJECT = re.compile(r"(?<=/\.gemini/tmp/)[\w.@+-]+")
"""What Gemini CLI makes of the workspace's name, for a folder of its own."""


def without_project(text: str) -> str:
    """The text with the name in each path of a project's folder in `~/.gemini/tmp` replaced by `(project)`."""
    return _OF_PROJECT.sub("(project)", text)


def change_prompts(document: Json, change: Callable[[str], str]) -> Json:
    """Change the texts of instructions and user turns in place, in whichever of the wire formats this is."""
    if isinstance(document, dict):
        for key in ("system", "instructions"):
            _change(document, key, change)
        for holder, key in (("messages", "content"), ("input", "content"), ("contents", "parts")):
            for turn in _objects(document.get(holder)):
                if turn.get("role", "user") in ROLES:
                    _change(turn, key, change)
        for key in ("systemInstruction", "system_instruction"):
            instruction = document.get(key)
            if isinstance(instruction, dict):
                _change(instruction, "parts", change)
    return document


def _change(holder: dict[str, Json], key: str, change: Callable[[str], str]) -> None:
    value = holder.get(key)
    if isinstance(value, str):
        holder[key] = change(value)
    for part in _objects(value):
        text = part.get("text")
        # A tool's result that stands in a user turn has a type, or a member, of its own.
        if isinstance(text, str) and part.get("type", "text") in ("text", "input_text"):
            part["text"] = change(text)


def _objects(values: Json) -> Iterator[dict[str, Json]]:
    if isinstance(values, list):
        yield from (value for value in values if isinstance(value, dict))

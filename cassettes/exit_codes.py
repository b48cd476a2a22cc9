"""The exit code of a command, read from the tool result an agent sent back.

Each agent writes it in a form of its own (measured; docs/adapters.md), some only when it is not zero, one never. So no
number means "not said", never "zero". A command's own output may hold any of these words: each form is looked for only
where its agent writes it.
"""

from __future__ import annotations

import json
import re

_HEAD_LINES = 6
_CODE = r"(-?\d{1,10})"

_AT_START = re.compile(rf"Exit code {_CODE}(?:\n|$)")
"""Claude Code: the first line, when not zero."""
_IN_HEAD = re.compile(rf"^Process exited with code {_CODE}$", re.MULTILINE)
"""Codex: a line of the head before `Output:`."""
_LAST_LINE = re.compile(rf"^Exit Code: {_CODE}$", re.MULTILINE)
"""Gemini CLI and Qwen Code: a line of the tail, after the output."""
_AT_END = re.compile(rf"\n\nCommand exited with code {_CODE}\s*$")
"""pi: the last line, when not zero."""
_JSON_KEYS = ("exit_code", "returncode", "exitCode")
"""Codex' lite form, mini-swe-agent, and tools that answer in JSON."""


def exit_code(text: str) -> int | None:
    """Return the exit code that `text`, a tool's result, states; None where it states none."""
    start = _AT_START.match(text)
    if start is not None:
        return int(start[1])
    end = _AT_END.search(text[-80:])
    if end is not None:
        return int(end[1])
    head = "\n".join(text.split("\n", _HEAD_LINES)[:_HEAD_LINES]).partition("\nOutput:")[0]
    found = _IN_HEAD.search(head)
    if found is not None:
        return int(found[1])
    tail = list(_LAST_LINE.finditer(text[-400:]))
    if tail:
        return int(tail[-1][1])
    return _in_json(text)


def _in_json(text: str) -> int | None:
    """The whole text is a JSON object, or one follows the head of Codex' script runner."""
    body = text.partition("\nOutput:\n")[2] if text.startswith("Script ") else text
    body = body.strip()
    if not (body.startswith("{") and body.endswith("}")):
        return None
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        return None
    codes = (value.get(key) for key in _JSON_KEYS) if isinstance(value, dict) else ()
    return next((code for code in codes if isinstance(code, int) and not isinstance(code, bool)), None)

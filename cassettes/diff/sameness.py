"""What does not count when two runs are compared: where they stood, names made by chance, and the words around a decision.

A run in a scratch copy, or on another machine, writes the same thing with other paths; a tool call may carry a sentence for the
reader beside what it does. Each rule is listed for people in docs/diff.md.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from secondtake.cassettes.adapters.base import Json
from secondtake.cassettes.adapters.reading import canonical, loads

WORDS = frozenset(("description", "explanation", "justification", "rationale", "reason", "thought", "thinking", "intent", "is_background"))
"""Arguments that say in words what the call is for. Left out where another argument stands beside them."""

PLANS = frozenset(("todowrite", "todo_write", "write_todos", "update_plan", "taskcreate", "taskupdate", "update_topic", "think"))
"""Tools (in lower case) that only keep a list of intentions: called or not, their text is prose."""

PATHS = frozenset(
    (
        "path",
        "file",
        "file_path",
        "filepath",
        "filename",
        "absolute_path",
        "abs_path",
        "dir_path",
        "directory",
        "dir",
        "folder",
        "notebook_path",
        "target_file",
        "workdir",
        "cwd",
    )
)
"""Arguments (in lower case) whose whole value is a path: relative or not, of the same workspace, is the same."""

_HOME = re.compile(r"(?<![\w./-])/(?:(?:home|Users)/[\w.@+-]+|root)(?![\w.@+-])")
_CHANCE = r"tmp[a-z0-9_]{8}|tmp\.\w{6,12}|[\w-]*[-.](?=[A-Za-z_]*[0-9A-Z])\w{6,12}"
_TEMP = re.compile(rf"(?<![\w./-])(?:/private)?(?:/var)?(?:/tmp|/folders/\w+/\w+/T)(?=/|(?![\w.-]))(?:/(?:{_CHANCE})(?![\w.-]))?")
_UUID = re.compile(r"(?<![0-9A-Za-z])[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}(?![0-9A-Za-z])")
_MADE = re.compile(
    r"\b(?:toolu|call|chatcmpl|msg|resp|fc|item|exec|sess|session|req|task|thread|gen|tool)[_-](?=[A-Za-z]*\d)[A-Za-z0-9]{10,}\b"
)
_TOOK = re.compile(r"\b\d+(?:\.\d+)?(?= ?(?:s|ms|sec|secs|seconds|min)\b)")


@dataclass(frozen=True, slots=True)
class Sameness:
    """The rules for one run. `workspace`: the absolute path the agent worked in. `others`: further texts that stand for a name."""

    workspace: str = ""
    others: Mapping[str, str] = field(default_factory=dict)

    def text(self, text: str) -> str:
        """`text` with names where paths of this run and identifiers stand."""
        if self.workspace and self.workspace in text:
            text = re.sub(rf"(?<![\w.]){re.escape(self.workspace)}(?![\w@+-]|\.\w)", "{workspace}", text)
        for value, name in self.others.items():
            if value and value in text:
                text = re.sub(rf"(?<!\w){re.escape(value)}(?!\w)", f"{{{name}}}", text)
        if "/" in text:
            text = _HOME.sub("{home}", text)
            text = _TEMP.sub(lambda found: "{temp}/*" if found[0].rpartition("/")[2] not in ("tmp", "T") else "{temp}", text)
        return _MADE.sub("{id}", _UUID.sub("{id}", text))

    def output(self, text: str) -> str:
        """What a tool printed, without how long it took."""
        return _TOOK.sub("0", self.text(text)).strip()

    def arguments(self, tool: str, arguments: str) -> str:
        """Arguments as they are compared: canonical JSON, or text where they are none."""
        value = loads(arguments) if arguments[:1] in ("{", "[") else None
        if not isinstance(value, dict):
            return self.text(arguments).strip()
        if tool.lower() in PLANS:
            return "{}"
        kept = {key: inner for key, inner in value.items() if key.lower() not in WORDS} or value
        made = canonical(self._value(kept, ""))
        return made if isinstance(made, str) else self.text(arguments)

    def _value(self, value: Json, key: str) -> Json:
        """Every text in it by the rules. Not deeper than `loads` lets through."""
        if isinstance(value, str):
            text = self.text(value)
            if key.lower() in PATHS:
                text = text.rstrip("/") or text
                return "." if text in ("{workspace}", ".") else text.removeprefix("{workspace}/").removeprefix("./")
            return text.strip()
        if isinstance(value, dict):
            return {name: self._value(inner, name) for name, inner in value.items()}
        if isinstance(value, list):
            return [self._value(inner, key) for inner in value]
        return value


def parsed(arguments: str) -> Json:
    """Compared arguments as a value again; text that is no JSON stays text."""
    try:
        return json.loads(arguments) if arguments[:1] in ("{", "[") else arguments
    except (ValueError, RecursionError):
        return arguments

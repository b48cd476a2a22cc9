"""What the programs share: the scenes they play, the tools they have, and how an SDK's objects become canonical JSON.

A program is an agent in small. It is given the scenes to play, plays them in order with a real SDK, and prints one JSON object that has,
for each scene, every object the SDK handed out and every exception it raised.
"""

from __future__ import annotations

import json
import sys
import urllib.error
import urllib.request
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

SCHEMAS = {
    "run": {
        "type": "object",
        "properties": {"command": {"type": "string"}},
        "required": ["command"],
        "additionalProperties": False,
    },
    "read_file": {
        "type": "object",
        "properties": {"path": {"type": "string"}},
        "required": ["path"],
        "additionalProperties": False,
    },
}
"""The tools: name and schema."""

PARALLEL = 4
"""How many conversations the scene `parallel` has at once."""


def used(name, arguments):
    """Run a tool: the text of its result, and whether it failed."""
    if name == "read_file":
        return f"contents of {arguments['path']}", False
    if arguments["command"] == "false":
        return "Exit code 1\nnothing to see", True
    return f"output of {arguments['command']}", False


def plain(value):
    """An SDK's object as JSON has it."""
    if hasattr(value, "model_dump"):
        made = value.model_dump(mode="json", exclude_none=True, warnings=False)
        request = getattr(value, "_request_id", None)
        return {"type of object": type(value).__name__, **made, **({"request of object": request} if request else {})}
    if isinstance(value, dict):
        return {key: plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [plain(inner) for inner in value]
    if isinstance(value, bytes):
        return value.decode("latin-1")
    return value if value is None or isinstance(value, str | int | float | bool) else str(value)


def failure(error):
    """An exception as JSON has it: all that a program can see of it."""
    shown = ("status_code", "code", "body", "request_id", "details", "response")
    seen = {name: plain(getattr(error, name)) for name in shown if _has(error, name)}
    return {"raised": type(error).__name__, "message": str(error), **seen}


def _has(error, name):
    value = getattr(error, name, None)
    return isinstance(value, str | int | dict | list)


def fetched():
    """A request that asks no model: the answer's status and text."""
    try:
        with urllib.request.urlopen("https://web.example/notes.txt") as answer:
            return [answer.status, answer.read().decode()]
    except urllib.error.HTTPError as error:
        return [error.code, error.read().decode()]


def play(
    converse: Callable[[str, bool], list],
    leave: Callable[[str, bool], list],
    counted: Callable[[], object],
    listed: Callable[[], object],
) -> None:
    """Play the scenes that the command line names, and print what came of them.

    `converse(task, streamed)` talks until the model calls no more tools. `leave(task, at_the_end)` reads a stream no further than its third
    event, or no further than its last one, and closes it.
    """

    def scene(name):
        match name:
            case "fetched":
                return fetched()
            case "counted":
                return plain(counted())
            case "listed":
                return plain(listed())
            case "left" | "ended":
                return leave(name, name == "ended")
            case "parallel":
                with ThreadPoolExecutor(PARALLEL) as pool:
                    return list(pool.map(lambda n: converse(f"parallel-{n}", True), range(PARALLEL)))
            case _:
                return converse(name, name.endswith("-streamed"))

    said = {}
    for name in sys.argv[1:]:
        try:
            said[name] = scene(name)
        except Exception as error:
            said[name] = failure(error)
    print(json.dumps(said, sort_keys=True))

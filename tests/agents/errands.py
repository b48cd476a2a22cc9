"""The second task: two calls at once of which the first ends last, an edit, a command that fails, a package from an index, and a
sub-agent where the agent has one. aider, which has no tools, changes one file and writes another.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from secondtake.harness.provider import Reply, Scene, ToolCall
from tests.agents.casts import CASTS, Cast, changed
from tests.agents.index import HOST

_ONE = "one\n"
BEFORE, AFTER = "# A project\n", "# Our project\n"
SLOW = "sleep 0.3; echo one > one.txt; cat one.txt"
QUICK = "echo two > two.txt; cat two.txt"
FAILS = "cat README.md; ls not-here"
"""Ends with 2."""
ASKED = "Count the words of the readme into the file count.txt."
"""What a sub-agent is asked."""
COUNTS = "wc -w < README.md > count.txt && cat count.txt"
PATCH = f"*** Begin Patch\n*** Update File: README.md\n@@\n-{BEFORE}+{AFTER}*** End Patch\n"


@dataclass(frozen=True, slots=True)
class Installer:
    """One way to install the package from the agent's shell. None of them says how long it took."""

    program: str
    command: str
    leaves: str


UV = Installer(
    "uv",
    f"{Path(sys.executable).with_name('uv')} pip install --quiet --no-config --no-cache --no-deps --python {sys.executable} "
    f"--target lib --default-index https://{HOST}/simple/ pebble && ls lib",
    "lib/pebble/__init__.py",
)
PIP = Installer(
    "pip",
    f"pip install --quiet --disable-pip-version-check --no-cache-dir --no-deps --no-compile --root-user-action ignore "
    f"--target lib --index-url https://{HOST}/simple/ pebble && ls lib",
    UV.leaves,
)
NPM = Installer(
    "npm",
    # Named, or the folder's name is what the lock file says.
    """echo '{"name": "it"}' > package.json; npm install --silent --no-update-notifier """
    f"--registry https://{HOST}/ pebble && ls node_modules",
    "node_modules/pebble/index.js",
)


@dataclass(frozen=True, slots=True)
class Errand:
    """One agent's second task."""

    cast: Cast
    installer: Installer | None
    """None: the agent has no shell."""
    calls: tuple[str, ...]
    """Every tool that is called, by the agent or its sub-agent."""


def _turns(call: Callable[[str], ToolCall], edit: Sequence[ToolCall], installer: Installer, *last: Reply) -> tuple[Reply, ...]:
    return (
        Reply("Two at once.", (call(SLOW), call(QUICK))),
        *(Reply("", (one,)) for one in edit),
        Reply("", (call(FAILS),)),
        Reply("", (call(installer.command),)),
        *last,
    )


def _script(command: str) -> ToolCall:
    """One call of the lite models' only tool, which runs JavaScript."""
    return ToolCall("exec", text=f"text(await tools.exec_command({{cmd: {json.dumps(command)}}}))", namespace="functions")


def _shell(command: str) -> ToolCall:
    return ToolCall("run_shell_command", {"command": command, "description": "a step"})


def _ready_shell(command: str) -> ToolCall:
    return ToolCall("run_shell_command", {"command": command, "is_background": False})


def _bash(command: str) -> ToolCall:
    return ToolCall("bash", {"command": command})


def _described(command: str) -> ToolCall:
    return ToolCall("bash", {"command": command, "description": "a step"})


def _claude(command: str) -> ToolCall:
    return ToolCall("Bash", {"command": command, "description": "a step"})


_DONE = Reply("All is done.")
_READ = {"file_path": "README.md"}
_PASSAGE = {"old_string": BEFORE, "new_string": AFTER}


_COUNTED = Reply("There are three words.")


def _below(call: ToolCall, *, last: Reply = _COUNTED, first: int = 0, task: str = ASKED) -> Scene:
    """The sub-agent's conversation. `first` as in a cast, `task` what tells its first user text from the first of the task."""
    return Scene((*[Reply("(not asked)")] * first, Reply("I count.", (call,)), last), task=task)


_TURNS: dict[str, tuple[Installer | None, tuple[Reply, ...], Scene | None]] = {
    "pi": (
        NPM,
        _turns(_bash, [ToolCall("edit", {"path": "README.md", "edits": [{"oldText": BEFORE, "newText": AFTER}]})], NPM, _DONE),
        None,
    ),
    "opencode": (
        NPM,
        _turns(
            _described,
            [
                ToolCall("read", {"filePath": "README.md"}),
                ToolCall("edit", {"filePath": "README.md", "oldString": BEFORE, "newString": AFTER}),
                ToolCall("task", {"description": "count words", "prompt": ASKED, "subagent_type": "general"}),
            ],
            NPM,
            _DONE,
        ),
        _below(_described(COUNTS)),
    ),
    "claude": (
        UV,
        _turns(
            _claude,
            [
                ToolCall("Read", _READ),
                ToolCall("Edit", {**_READ, **_PASSAGE}),
                ToolCall("Agent", {"description": "count words", "prompt": ASKED, "subagent_type": "general-purpose"}),
            ],
            UV,
            _DONE,
        ),
        _below(_claude(COUNTS)),
    ),
    "qwen": (
        UV,
        _turns(
            _ready_shell,
            [
                _ready_shell(f"printf '{AFTER.strip()}\\n' > README.md"),  # its edit tool takes no relative path
                ToolCall("agent", {"description": "count words", "prompt": ASKED, "subagent_type": "general-purpose"}),
            ],
            UV,
            _DONE,
        ),
        # Both conversations begin with a list of the workspace; the sub-agent's shows what is there by then.
        _below(_ready_shell(COUNTS), first=1, task="one.txt"),
    ),
    "codex": (
        UV,
        _turns(
            _script,
            [
                _script(f"apply_patch <<'END'\n{PATCH}END\n"),
                ToolCall("spawn_agent", {"task_name": "count", "message": ASKED, "fork_turns": "none"}, namespace="collaboration"),
                ToolCall("wait_agent", {}, namespace="collaboration"),
            ],
            UV,
            _DONE,
        ),
        _below(_script(COUNTS)),
    ),
    "gemini": (
        UV,
        _turns(
            _shell,
            [
                ToolCall("replace", {**_READ, "instruction": "Say whose.", **_PASSAGE}),
                ToolCall("invoke_agent", {"agent_name": "generalist", "prompt": ASKED}),
            ],
            UV,
            _DONE,
        ),
        _below(_shell(COUNTS), last=Reply("", (ToolCall("complete_task", {"result": {"response": "There are three words."}}),))),
    ),
    "aider": (
        None,
        (
            Reply("Let me see README.md first."),
            Reply(f"I change one and write the other.\n\n{changed('README.md', BEFORE, AFTER)}\n{changed('one.txt', '', _ONE)}"),
        ),
        None,
    ),
    "mini-swe-agent": (
        PIP,
        _turns(
            _bash,
            [_bash(f"printf '{AFTER.strip()}\\n' > README.md")],
            PIP,
            Reply("All is done.", (_bash("echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"),)),
        ),
        None,
    ),
}

_ELSEWHERE = {"opencode": {"npm_config_registry": f"https://{HOST}/"}}
"""opencode fetches packages for itself from where npm would: here from the index that its shell asks too."""


def _errand(cast: Cast) -> Errand:
    installer, turns, below = _TURNS[cast.name]
    files = {"README.md": AFTER, "one.txt": _ONE}
    if any(turn.tools for turn in turns):
        files |= {"two.txt": "two\n"}
    if below:
        files |= {"count.txt": "3\n"}
    made = replace(
        cast,
        turns=turns,
        aside=(*cast.aside, below) if below else cast.aside,
        files=files,
        others=(),
        environment={**cast.environment, "PIP_CONFIG_FILE": os.devnull, **_ELSEWHERE.get(cast.name, {})},
    )
    calls = [tool.name for turn in (*turns, *(below.turns if below else ())) if isinstance(turn, Reply) for tool in turn.tools]
    return Errand(made, installer, tuple(calls))


ERRANDS: tuple[Errand, ...] = tuple(_errand(cast) for cast in CASTS)
"""Codex with the model it takes by itself; in the first task it has one with the classic tools."""

"""The second task: two calls at once of which the first ends last, an edit, a command that fails, a package from an index."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from secondtake.harness.provider import Reply, ToolCall
from tests.agents.casts import CASTS, Cast
from tests.agents.index import HOST

BEFORE, AFTER = "# A project\n", "# Our project\n"
SLOW = "sleep 0.3; echo one > one.txt; cat one.txt"
QUICK = "echo two > two.txt; cat two.txt"
FAILS = "cat README.md; ls not-here"
"""Ends with 2."""
INSTALLS = (
    f"{Path(sys.executable).with_name('uv')} pip install --quiet --no-config --no-cache --no-deps --python {sys.executable} "
    f"--target lib --default-index https://{HOST}/simple/ pebble && ls lib"
)
"""By uv, which is where this Python is; pip need not be."""
PATCH = f"*** Begin Patch\n*** Update File: README.md\n@@\n-{BEFORE}+{AFTER}*** End Patch\n"
INSTALLED = "lib/pebble/__init__.py"


def _turns(call: Callable[[str], ToolCall], edit: ToolCall, last: Reply) -> tuple[Reply, ...]:
    return (
        Reply("Two at once.", (call(SLOW), call(QUICK))),
        Reply("An edit.", (edit,)),
        Reply("", (call(FAILS),)),
        Reply("", (call(INSTALLS),)),
        last,
    )


def _script(command: str) -> ToolCall:
    """One call of the lite models' only tool, which runs JavaScript."""
    return ToolCall("exec", text=f"text(await tools.exec_command({{cmd: {json.dumps(command)}}}))", namespace="functions")


def _shell(command: str) -> ToolCall:
    return ToolCall("run_shell_command", {"command": command, "description": "a step"})


def _bash(command: str) -> ToolCall:
    return ToolCall("bash", {"command": command})


_DONE = Reply("All is done.")

_ERRANDS = {
    "codex": _turns(_script, _script(f"apply_patch <<'END'\n{PATCH}END\n"), _DONE),
    "gemini": _turns(
        _shell,
        ToolCall("replace", {"file_path": "README.md", "instruction": "Say whose.", "old_string": BEFORE, "new_string": AFTER}),
        _DONE,
    ),
    "mini-swe-agent": _turns(
        _bash,
        _bash(f"printf '{AFTER.strip()}\\n' > README.md"),
        Reply("All is done.", (_bash("echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"),)),
    ),
}

ERRANDS: tuple[Cast, ...] = tuple(
    replace(
        cast,
        turns=_ERRANDS[cast.name],
        files={"README.md": AFTER, "one.txt": "one\n", "two.txt": "two\n"},
        others=(),
        environment={**cast.environment, "PIP_CONFIG_FILE": os.devnull},
    )
    for cast in CASTS
    if cast.name in _ERRANDS
)
"""Codex with the model it takes by itself; in the first task it has one with the classic tools."""

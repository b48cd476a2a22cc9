"""What the demo's two scripted models say: one makes a wrong fix and calls it done, the other fixes the bill splitter."""

from __future__ import annotations

from secondtake.harness.demo.repository import SPLIT_FIXED, SPLIT_ROUNDED_UP
from secondtake.harness.provider import Reply, Scene, Script, ToolCall

HASTY = "hasty-20260101"
CAREFUL = "careful-20260101"

TASK = "The tests of this repository fail. Find the bug and fix it. `python3 check.py` runs the tests."

DELAY_MS = 15.0


def _run(command: str) -> ToolCall:
    return ToolCall("run", {"command": command})


def _read(path: str) -> ToolCall:
    return ToolCall("read_file", {"path": path})


def _write(path: str, content: str) -> ToolCall:
    return ToolCall("write_file", {"path": path, "content": content})


def script() -> Script:
    """Both models. Anything else they are asked than the demo's task gets a polite refusal to work."""
    hasty = (
        Reply("I will run the tests first.", (_run("python3 check.py"),)),
        Reply("Two sums are too small, so cents are lost. Let me look at the code.", (_read("bill/split.py"),)),
        Reply("The division rounds down. I will round up instead.", (_write("bill/split.py", SPLIT_ROUNDED_UP),)),
        Reply("Fixed: shares are rounded up now, so no cent is lost. The tests should pass."),
    )
    careful = (
        Reply("I will run the tests first.", (_run("python3 check.py"),)),
        Reply("Two sums are too small. Let me read the code and its tests.", (_read("bill/split.py"), _read("tests/test_split.py"))),
        Reply(
            "The remainder of the division is dropped. I will give one cent more to as many people as there are cents left.",
            (_write("bill/split.py", SPLIT_FIXED),),
        ),
        Reply("Now the tests again.", (_run("python3 check.py"),)),
        Reply("Fixed: the first people pay the cents that are left over. All three tests pass."),
    )
    other = (Reply("I can only help with the demo's bill splitter."),)
    return Script(
        (
            Scene(hasty, HASTY, TASK, delay_ms=DELAY_MS),
            Scene(careful, CAREFUL, TASK, delay_ms=DELAY_MS),
            Scene(other, HASTY),
            Scene(other, CAREFUL),
        )
    )

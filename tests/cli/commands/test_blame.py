"""`blame`: which turn changed a file."""

from __future__ import annotations

import json
from pathlib import Path

from secondtake.cassettes.store import Store
from secondtake.harness.demo import Running
from tests.cli.models import AGENT
from tests.cli.scenes import Command


def test_an_agent_s_change_is_traced_to_the_turn_that_made_it(command: Command, incident: Running, here: Path) -> None:
    """Issue 5, DESIGN 6: `blame NAME PATH` answers which turn changed a file, with the tool call and the patch."""
    ran = command("blame", "incident", "bill/split.py")
    assert ran.code == 0
    first, call = ran.out.splitlines()
    assert first == "turn 3, exchange 3\tchanged bill/split.py"
    assert call.startswith('  write_file {"content":')
    assert command("blame", "incident", str(here / "bill/split.py")).out == ran.out
    shown = command("blame", "incident", "bill", "--diff").out
    assert "--- a/bill/split.py\n+++ b/bill/split.py\n@@" in shown
    (line,) = [json.loads(one) for one in command("blame", "incident", "bill/split.py", "--json").out.splitlines()]
    assert (line["version"], line["kind"], line["turn"], line["seq"], line["tool_calls"][0]["name"]) == (1, "changed", 3, 3, "write_file")
    assert line["patch"].startswith("diff --git a/bill/split.py b/bill/split.py\n")
    nothing = command("blame", "incident", "check.py")
    assert (nothing.out, nothing.err) == ("", "check.py: not changed while it was recorded\n")


def test_a_path_that_never_was_says_what_comes_closest(command: Command, incident: Running) -> None:
    """STYLE: errors say what happened, to which thing, what came closest."""
    ran = command("blame", "incident", "bill/splid.py")
    assert ran.code == 104
    assert ran.out == ""
    assert ran.err == "error: no file bill/splid.py was in the workspace of `incident`\n\nhint: closest: bill/split.py, bill/__init__.py\n"


def test_record_says_what_was_captured_and_no_stage_leaves_it_out(command: Command, models: Running, here: Path, tmp_path: Path) -> None:
    """Issue 5: the cost is shown, what was not captured is listed; `--no-stage` turns it off."""
    (here / "large.bin").write_bytes(bytes(2 * 1024 * 1024))
    ran = command("record", "one", "--stage-limit", "1", "--route", models.route, *AGENT)
    assert ran.code == 0
    assert "  stage " in ran.err
    assert ", changed after " in ran.err
    assert "not captured: large.bin: too large" in ran.err
    assert Store(tmp_path / "store").verify("one").faults == ()
    ran = command("record", "two", "--no-stage", "--json", "--route", models.route, *AGENT)
    assert json.loads(ran.out)["stage"] is None
    assert command("blame", "two", "check.py").code == 104

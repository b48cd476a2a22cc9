"""A comparison as an object: everything that the lines say, nothing cut."""

from __future__ import annotations

import json

from secondtake.cassettes.diff.arms import compare
from secondtake.cassettes.diff.layers import Layer
from secondtake.cassettes.takes import Outcome
from secondtake.cli.render.diff_fields import fields, parted_fields
from secondtake.cli.render.objects import as_line
from tests.cassettes.diff.plays import Turn, edit, played, run, say
from tests.cassettes.diff.test_arms import arm
from tests.cassettes.diff.test_outcome import take
from tests.cassettes.diff.test_tree import START
from tests.cli.render.test_diff import diff


def test_the_object_holds_every_step_and_every_layer() -> None:
    """DESIGN 7: --json says what a person is told, whole."""
    a = (Turn(status=529), run("ls"), *(run(f"echo {n}") for n in range(30)), edit("a", new="1"))
    b = (run("ls"), *(run(f"echo {n}") for n in range(30)), edit("a", new="2"), say("x"))
    made = diff(a, b, {**START, "new.py": b"x\n"}, (take(Outcome.SAME), take()))
    told = json.loads(as_line(fields(made, tuple(Layer))))
    assert len(told["decisions"]["steps"]) == 33
    assert told["decisions"]["steps"][31]["changed"] == [
        {"tool": "edit", "fields": [{"path": "new", "a": "1", "b": "2"}], "texts": [], "more": 0}
    ]
    assert told["decisions"]["parting"]["decision"] == 32
    assert [fault["kind"] for fault in told["decisions"]["faults"]["a"]] == ["failed call", "retry"]
    assert told["commands"]["by"] == "model traffic"
    assert told["tree"]["between"]["changes"] == [{"path": "new.py", "kind": "added", "source": None}]
    assert told["outcome"]["checks"] == [{"section": "acceptance", "name": "tests", "a": True, "b": True}]
    assert told["differs"] == {"decisions": True, "commands": False, "tree": True, "outcome": True}


def test_arms_name_their_runs() -> None:
    """So that a script can open them."""
    told = parted_fields(compare(arm("A", played(run("ls"))), arm("B", played(run("make")))))
    assert told["a"] == {"arm": "A", "runs": ["A0"]}
    greatest = told["greatest"]
    assert isinstance(greatest, dict)
    assert greatest["ways"] == [{"what": "ran ls", "a": ["A0"], "b": []}, {"what": "ran make", "a": [], "b": ["B0"]}]
    assert parted_fields(compare(arm("A", played(run("ls"))), arm("B", played(run("ls")))))["greatest"] is None

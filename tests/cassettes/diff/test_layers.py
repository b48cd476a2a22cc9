"""Paths and patches in one line."""

from __future__ import annotations

import pytest

from secondtake.cassettes.diff import commands, decisions, outcome, tree
from secondtake.cassettes.diff.decisions import Course
from secondtake.cassettes.diff.layers import Diff, Layer, Side
from secondtake.cassettes.takes import Outcome
from tests.cassettes.diff.plays import edit, played, run, say
from tests.cassettes.diff.test_outcome import PLAIN, take
from tests.cassettes.diff.test_tree import fixed, stood

SHORT, LONG = played(edit("foo.py"), say("x")), played(run("ls"), edit("foo.py"), say("x"))


def diff(a: Course, b: Course, one: tree.Stood, other: tree.Stood, *, judged: bool = False) -> Diff:
    logs = commands.by_traffic(a), commands.by_traffic(b)
    ends = (take(Outcome.SAME), take()) if judged else (PLAIN, PLAIN)
    side = Side("x", "recording", "closed", None)
    return Diff(side, side, decisions.compare(a, b), commands.compare(*logs), tree.compare(one, other), outcome.compare(*ends))


TWO, SPACED, THREE = (stood(fixed(text)) for text in ("    return 2\n", "\treturn 2\n", "return 3\n"))
NONE = tree.Stood(None, None, lambda _: None)


@pytest.mark.parametrize(
    ("a", "b", "one", "other", "said"),
    [
        (SHORT, SHORT, TWO, TWO, "same path, equivalent patch (equal final trees)"),
        (SHORT, LONG, TWO, TWO, "different paths, equivalent patch (equal final trees)"),
        (SHORT, LONG, TWO, SPACED, "different paths, equivalent patch but for white space"),
        (SHORT, LONG, TWO, THREE, "different paths, different patches"),
        (SHORT, SHORT, TWO, THREE, "same path, different patches"),
        (SHORT, LONG, TWO, NONE, "different paths, no trees to compare"),
    ],
)
def test_paths_and_patches_are_said_together(a: Course, b: Course, one: tree.Stood, other: tree.Stood, said: str) -> None:
    """Issue 6: two different paths to an equivalent patch say so."""
    assert diff(a, b, one, other).summary == said


def test_each_layer_is_judged_by_itself() -> None:
    """Issue 6.4: four layers, separately. A layer that cannot be compared is neither."""
    made = diff(SHORT, LONG, TWO, TWO)
    assert {layer.value: made.differs(layer) for layer in Layer} == {"decisions": True, "commands": True, "tree": False, "outcome": False}
    assert diff(SHORT, SHORT, TWO, NONE).differs(Layer.TREE) is None


def test_outcomes_of_judged_takes_are_in_the_line() -> None:
    """What a person wants to know first."""
    assert diff(SHORT, LONG, TWO, THREE, judged=True).summary == "different paths, different patches, same failure → pass"

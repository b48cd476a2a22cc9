"""The design of a matrix is sealed before the first call."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from typing import Any

import pytest

from secondtake.cassettes.errors import BadInput, Corrupt, TooNew
from secondtake.harness.matrix.design import Arm, Axis, Change, Limits, Pacing, arms_of, decode, differences
from tests.harness.matrix.scenes import design

PROMPT = Change(Axis.INSTRUCTIONS, "old prompt", {"path": "OLD.md", "sha256": "0" * 64})
HOT = Change(Axis.PARAMETERS, "temperature=0.5", {"temperature": 0.5})


def test_a_design_is_read_as_it_was_sealed() -> None:
    """Issue 6: sealed; what is read is what was written, and `sha256sum` of the file is the seal."""
    made = design(
        arms=arms_of([Arm("a", "a-1"), Arm("b", "b-1")], [PROMPT, HOT], recorded=None),
        limits=Limits(calls=50, seconds=60),
        max_cost=3,
        jobs=2,
    )
    read = decode(made.content)
    assert encode_equal(read.content, made.content)
    assert read.digest == hashlib.sha256(made.content).hexdigest() == made.digest
    assert read.arms[-1].change == HOT


def encode_equal(one: bytes, other: bytes) -> bool:
    return json.loads(one) == json.loads(other) and one == other


def test_a_design_that_was_touched_is_not_read() -> None:
    """A seal that does not hold is damage, whatever was changed."""
    made = design()
    spaced = made.content.replace(b'"looks":[4]', b'"looks": [4]')
    for content in (spaced, made.content.rstrip(), b"[]", b"{", made.content.replace(b'"looks":[4]', b'"looks":[0]')):
        with pytest.raises(Corrupt):
            decode(content)
    with pytest.raises(TooNew):
        decode(made.content.replace(b'"format":1', b'"format":2'))


def test_the_id_is_that_of_the_setting() -> None:
    """What changes a result changes the ID; topping up, and how gently it is run, does not."""
    made = design()
    same: list[dict[str, Any]] = [{"looks": (4, 20)}, {"jobs": 9}, {"pacing": Pacing(5)}, {"max_cost": 1.0}, {"created": "2026-11-30"}]
    assert {design(**changes).id for changes in same} == {made.id}
    other: list[dict[str, Any]] = [
        {"fixture_digest": "0" * 64},
        {"arms": made.arms[:2]},
        {"seed": 8},
        {"limits": Limits(calls=3)},
        {"warm_up": False},
        {"seal": "off"},
    ]
    assert len({made.id, *(design(**changes).id for changes in other)}) == len(other) + 1
    assert differences(made, design(seed=8, jobs=9)) == ("seed",)


def test_the_rows_are_the_models_the_control_and_one_change_each() -> None:
    """DESIGN 6: one changed thing per arm, named; the row `candidate with old prompt`; a same-model control cell."""
    old, new = Arm("old", "old-1"), Arm("new", "new-1")
    rows = arms_of([old, new], [PROMPT, HOT], recorded=Arm("recorded", "old-1"))
    assert [row.name for row in rows] == ["old", "new", "new with old prompt", "new with temperature=0.5"]
    assert [row.control for row in rows] == [True, False, False, False]
    assert [row.change for row in rows] == [None, None, PROMPT, HOT]


def test_the_control_is_added_where_no_model_is_the_recorded_one() -> None:
    """DESIGN 6: it is always there, unless it is left out on purpose."""
    new = Arm("new", "new-1")
    assert [(row.name, row.control) for row in arms_of([new], [], recorded=Arm("old", "old-1"))] == [("new", False), ("old", True)]
    assert [(row.name, row.control) for row in arms_of([new], [], recorded=None)] == [("new", False)]


@pytest.mark.parametrize(
    "changes",
    [
        {"arms": ()},
        {"arms": (Arm("a", "1"), Arm("A", "2"))},
        {"looks": ()},
        {"looks": (5, 4)},
        {"looks": (0,)},
        {"looks": (1001,)},
        {"jobs": 0},
        {"attempts": 0},
        {"max_cost": float("nan")},
        {"limits": Limits(seconds=float("inf"))},
        {"pacing": Pacing(-1.0)},
    ],
    ids=str,
)
def test_a_design_that_cannot_be_run_is_refused(changes: dict[str, Any]) -> None:
    """Before anything is spent."""
    with pytest.raises(BadInput):
        design(**changes)


def test_a_model_given_twice_is_refused() -> None:
    """Repeats are asked for by --repeats."""
    arm = Arm("a", "a-1")
    with pytest.raises(BadInput, match="twice"):
        arms_of([arm, replace(arm, name="b")], [], recorded=None)

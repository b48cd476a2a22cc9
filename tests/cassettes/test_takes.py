"""What a take says about itself: kept, read back, counted."""

from __future__ import annotations

import json
from dataclasses import fields, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from secondtake.cassettes.errors import BadInput, Corrupt, TooNew
from secondtake.cassettes.takes import Checked, Control, Outcome, Resources, Signature, Take, decode, encode

TAKE = Take(
    fixture="red-test",
    fixture_digest="ab" * 32,
    model="m-2026-01-01",
    pin_class="snapshot",
    arm="m-2026-01-01",
    repeat=1,
    outcome=Outcome.SAME,
    signature=Signature.of((("exit", "1"), ("first", "tests/test_a.py::test_b"), ("tool", "run"), ("stop", "end"))),
    checks=(Checked("the test is green", "tests", "acceptance", False, "failed", 1200, "1", "tests/test_a.py::test_b"),),
    control=Control.CONTROLLED,
    live=(),
    tier="sealed",
    refused_attempts=0,
    holes=(),
    clock="real",
    commands_from="kernel",
    resources=Resources(3, 2, 900, None, 1.5),
    agent="mini",
    agent_version=None,
    agent_status=0,
    stopped=None,
    envelope="cd" * 32,
    envelope_differs=(),
    start_tree="ef" * 32,
    final_tree="01" * 32,
    reason="`the test is green` does not hold",
)

TEXT = st.text(st.characters(codec="utf-8"), max_size=30)
NUMBER = st.integers(-(2**62), 2**62)
REAL = st.floats(-1e15, 1e15, allow_nan=False)
CHECKED = st.builds(Checked, TEXT, TEXT, st.sampled_from(["failure", "acceptance"]), st.none() | st.booleans(), TEXT, NUMBER, TEXT, TEXT)
TAKES = st.builds(
    Take,
    fixture=TEXT,
    fixture_digest=TEXT,
    model=TEXT,
    pin_class=TEXT,
    arm=TEXT,
    repeat=NUMBER,
    outcome=st.sampled_from(Outcome),
    signature=st.none() | st.lists(st.tuples(TEXT, TEXT), max_size=4).map(Signature.of),
    checks=st.lists(CHECKED, max_size=3).map(tuple),
    control=st.sampled_from(Control),
    live=st.lists(TEXT, max_size=3).map(tuple),
    tier=TEXT,
    refused_attempts=NUMBER,
    holes=st.lists(TEXT, max_size=3).map(tuple),
    clock=TEXT,
    commands_from=TEXT,
    resources=st.builds(Resources, NUMBER, NUMBER, st.none() | NUMBER, st.none() | REAL, REAL),
    agent=TEXT,
    agent_version=st.none() | TEXT,
    agent_status=st.none() | NUMBER,
    stopped=st.none() | TEXT,
    envelope=TEXT,
    envelope_differs=st.lists(TEXT, max_size=3).map(tuple),
    start_tree=TEXT,
    final_tree=TEXT,
    reason=TEXT,
    matrix=TEXT,
    warm_up=st.booleans(),
    unpinned=st.booleans(),
    mismatches=NUMBER,
    attempts=NUMBER,
    invalid=TEXT,
)


@given(TAKES)
def test_a_take_is_read_back_as_it_was_kept(take: Take) -> None:
    """Issue 6: what a report counts is what the take said; also through JSON."""
    assert decode(json.loads(json.dumps(encode(take)))) == take


def test_each_field_is_kept() -> None:
    """A field that is added and forgotten in `encode` would come back as its default."""
    assert set(encode(TAKE)) == {field.name for field in fields(Take)} | {"format"}


@given(st.sampled_from(sorted(encode(TAKE))), st.sampled_from([None, 1.5, "x" * 3000, [1], {"a": 1}, True, 2**80, "\ud800"]))
def test_a_member_of_another_type_is_damage_that_is_named(name: str, value: object) -> None:
    """Takes come from strangers: nothing is converted silently."""
    kept: dict[str, object] = dict(encode(TAKE))
    kept[name] = value
    try:
        read = decode(kept)
    except Corrupt as error:
        assert f"take.{name}" in str(error)  # noqa: PT017  # either it is refused by name, or it is a value of that field
    else:
        assert encode(read)[name] == value


def test_members_of_a_later_format_are_told_apart_from_damage() -> None:
    """An unknown member may be ignored; a higher format may not."""
    assert decode(encode(TAKE) | {"later": 1}) == TAKE
    with pytest.raises(TooNew):
        decode(encode(TAKE) | {"format": 2})
    with pytest.raises(Corrupt, match="no table"):
        decode([1])


def test_a_signature_that_is_not_of_its_parts_is_damage() -> None:
    """The ID is what takes are compared by: it may not be claimed."""
    kept = encode(TAKE)
    kept["signature"] = {"id": "0" * 12, "text": "exit 1", "parts": [["exit", "1"]]}
    with pytest.raises(Corrupt, match="signature"):
        decode(kept)


def test_what_could_not_be_read_back_is_not_kept() -> None:
    """A price of infinity, or a page of evidence, is a fault of ours, found when it is written."""
    with pytest.raises(BadInput, match="cost"):
        encode(replace(TAKE, resources=replace(TAKE.resources, cost=float("inf"))))
    with pytest.raises(BadInput, match="reason"):
        encode(replace(TAKE, reason="x" * 3000))


@pytest.mark.parametrize(
    ("changed", "counts", "column"),
    [
        ({"outcome": Outcome.PASS}, True, "pass"),
        ({"outcome": Outcome.OTHER}, True, "other failure"),
        ({"outcome": Outcome.CONTAMINATED}, False, "contaminated"),
        ({"outcome": Outcome.INFRASTRUCTURE}, False, "infrastructure"),
        ({"outcome": Outcome.PASS, "invalid": "mismatch"}, False, "invalid"),
        ({"outcome": Outcome.PASS, "unpinned": True}, True, "pass"),
        ({"outcome": Outcome.SAME, "warm_up": True}, False, "same failure"),
    ],
)
def test_a_take_counts_unless_its_result_says_nothing_of_the_model(changed: dict[str, object], counts: bool, column: str) -> None:
    """DESIGN 6: contaminated and infrastructure leave the pass rate; a mismatch makes it invalid; unpinned is only a label."""
    take = replace(TAKE, **changed)  # type: ignore[arg-type]  # the fields are named above
    assert (take.counts, take.column) == (counts, column)

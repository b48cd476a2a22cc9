"""A take, rendered."""

from __future__ import annotations

from dataclasses import replace

from secondtake.cassettes.takes import Checked, Control, Outcome, Resources, Signature, Take
from secondtake.cli.render.take import check_line, taken_fields, taken_lines
from secondtake.harness.results import Retaken, Used
from secondtake.harness.seal import Attempt
from secondtake.harness.taking import Taken

RED = Checked("the tests\x1b[2J are green", "command", "acceptance", False, "exit 1: FAIL test_a", 1000)
TAKE = Take(
    fixture="bill",
    fixture_digest="0" * 64,
    model="careful-20260101",
    pin_class="snapshot",
    arm="careful-20260101",
    repeat=1,
    outcome=Outcome.SAME,
    signature=Signature.of((("exit", "1"), ("first", "FAIL test_a"))),
    checks=(RED,),
    control=Control.PARTIALLY,
    live=("web (2 requests) answered live",),
    tier="sealed",
    refused_attempts=1,
    holes=(),
    clock="real",
    commands_from="kernel",
    resources=Resources(5, 4, 1200, None, 2.0),
    agent="agent",
    agent_version=None,
    agent_status=0,
    stopped=None,
    envelope="0" * 64,
    envelope_differs=(),
    start_tree="0" * 64,
    final_tree="1" * 64,
    reason="as in the incident, `the tests are green` does not hold",
)
RETAKEN = Retaken("bill-take-1", "cassette", "2" * 64, 0, 7, {}, (), (), None, (), (), (), 2_000_000, used=Used(1200), seal="sealed")
TAKEN = Taken(RETAKEN, TAKE, (Attempt(5, "tcp", "192.0.2.7", 22, None),), 3, "", None, "bill/cassette.take")


def test_a_person_reads_outcome_evidence_label_and_what_it_is_not() -> None:
    """Issue 6.2: in the exit summary too."""
    told = "\n".join(taken_lines(TAKEN, again=""))
    assert "same failure: careful-20260101 in bill, take bill-take-1" in told
    assert "does not hold acceptance the tests\\x1b[2J are green: exit 1: FAIL test_a" in told
    assert "partially controlled: web (2 requests) answered live" in told
    assert "Comparison study, not proof of a model regression. Not held: web (2 requests) answered live." in told
    assert "commands: 3 seen by the kernel" in told
    assert "next: secondtake diff bill/cassette.take bill-take-1" in told
    assert "\x1b" not in told


def test_where_all_was_held_and_commands_are_not_known_that_is_said() -> None:
    """D-12: never silently."""
    taken = replace(TAKEN, take=replace(TAKE, control=Control.CONTROLLED, live=()), why_untraced="strace is not installed")
    told = "\n".join(taken_lines(taken, again=""))
    assert "Comparison study" not in told
    assert "commands: from kernel only (strace is not installed)" in told


def test_an_invalid_take_is_not_shown_by_its_outcome() -> None:
    """DESIGN 5: another model answered: invalid, not failed."""
    taken = replace(TAKEN, take=replace(TAKE, invalid="mismatch: another model answered"))
    lines = [line for line in taken_lines(taken, again="") if line]
    assert lines[0].startswith("invalid: ")
    assert lines[1] == "  mismatch: another model answered"


def test_a_program_reads_the_take_as_it_is_kept() -> None:
    """DESIGN 7: `--json`."""
    fields = taken_fields(TAKEN)
    assert (fields["outcome"], fields["column"], fields["counts"], fields["name"]) == ("same failure", "same failure", True, "bill-take-1")
    assert fields["escapes"] == ["tcp 192.0.2.7:22"]
    assert fields["label"] == "partially controlled: web (2 requests) answered live"


def test_a_check_that_holds_needs_no_evidence() -> None:
    """One line each."""
    assert check_line(replace(RED, name="green", held=True)) == "holds         acceptance green"
    assert check_line(replace(RED, name="green", held=None, evidence="timed out")) == "not judged    acceptance green: timed out"

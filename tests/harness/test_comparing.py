"""Two runs of a store compared: everything that was kept of them, and what is not there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from secondtake.cassettes import execs, stages, takes, trees
from secondtake.cassettes.diff.commands import Whence
from secondtake.cassettes.diff.layers import Layer
from secondtake.cassettes.diff.tree import Equivalence
from secondtake.cassettes.digest import digest_of
from secondtake.cassettes.errors import BadInput, Corrupt, NotFound
from secondtake.cassettes.execs import Command
from secondtake.cassettes.records import End, Head
from secondtake.cassettes.store import Store
from secondtake.cassettes.takes import Outcome
from secondtake.harness.comparing import compared, matrix_parted, parted
from tests.cassettes.diff.plays import Turn, edit, exchanges, run, say
from tests.cassettes.diff.test_outcome import take
from tests.cassettes.scenes import commit

START = {"foo.py": b"return 1\n"}


def keep(
    store: Store,
    name: str,
    turns: Sequence[Turn],
    final: Mapping[str, bytes] | None = None,
    *,
    commands: Sequence[Command] = (),
    said: takes.Take | None = None,
    **meta: object,
) -> None:
    """A closed run, with its trees, its command log and what it says of itself as a take."""
    writer = store.create(name, meta={"created": "2026-11-30T12:00:00+00:00", "cwd": f"/ws/{name}"})
    for one, bodies in exchanges(turns):
        writer.write([Head(one.seq, one.started_us, one.channel, one.request)])
        writer.commit(End(one, {digest_of(data): data for data in bodies}), lambda _error: None)
    closing: dict[str, object] = {"agent_status": 0, "elapsed_us": 2_500_000, **meta}
    if final is not None:
        made = []
        for files in (START, final):
            entries = [
                trees.Entry(path.encode(), trees.Node.FILE, 0o644, writer.keep("blob", data), len(data)) for path, data in files.items()
            ]
            made.append(writer.keep("tree", trees.encode(trees.tree_of(entries))))
        closing["stage"] = stages.Staged(workspace=made[0], final=made[1], root=f"/ws/{name}").packed()
    if said is not None and said.final_tree == "kept":
        kept = writer.keep("tree", trees.encode(trees.tree_of([trees.Entry(b"x", trees.Node.FOLDER, 0o755)])))
        said = replace(said, start_tree="0" * 64, final_tree=kept)
    if commands:
        writer.keep("exec", execs.encode(commands))
    if said is not None:
        closing["take"] = takes.encode(said)
    writer.close(meta=closing)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


def kernel(*ended: int) -> tuple[Command, ...]:
    return tuple(Command(9, 0, ("sh", "-c", "pytest"), "/", 1_600_000 + n, 1_700_000, code, None) for n, code in enumerate(ended))


def test_every_layer_is_read_from_what_was_kept(store: Store) -> None:
    """Issue 6.4: decisions, commands, tree, outcome; two different paths to an equivalent patch."""
    fixed = {"foo.py": b"return 2\n"}
    keep(store, "one", (run("pytest"), edit("/ws/one/foo.py"), say("x")), fixed, commands=kernel(1), said=take(Outcome.SAME).take)
    keep(store, "two", (run("pytest"), run("ls"), edit("foo.py"), say("y")), fixed, commands=kernel(0), said=take().take)
    made = compared(store, "one", "two")
    assert made.summary == "different paths, equivalent patch (equal final trees), same failure → pass"
    assert {layer.value: made.differs(layer) for layer in Layer} == {"decisions": True, "commands": True, "tree": False, "outcome": True}
    assert (made.a.name, made.a.kind, made.a.state, made.b.name) == ("one", "take", "closed", "two")
    assert made.commands.a.whence is Whence.KERNEL
    assert [(one.a and one.a.ended, one.b and one.b.ended) for one in made.commands.together] == [("1", "0")]
    assert made.tree.a is not None
    assert "-return 1\n+return 2\n" in made.tree.a.text


def test_without_a_command_log_on_both_sides_commands_come_from_the_traffic(store: Store) -> None:
    """Issue 6.4: else from tool calls and results. A log of one side alone would make every command a difference."""
    turns = (run("pytest", "Exit code 1\nx"), say("x"))
    keep(store, "one", turns, commands=kernel(1))
    keep(store, "two", turns)
    made = compared(store, "one", "two").commands
    assert made.a.whence is made.b.whence is Whence.TRAFFIC
    assert not made.differs


def test_plain_recordings_are_compared_in_what_there_is(store: Store) -> None:
    """Issue 6.4: for plain cassettes, what there is."""
    keep(store, "one", (run("ls"), say("x")))
    made = compared(store, "one", "one")
    assert made.differs(Layer.TREE) is None
    assert not any(made.differs(layer) for layer in Layer)
    assert made.a.kind == "recording"
    told = {fact.name: fact.a for fact in made.outcome.facts}
    assert told == {
        "agent status": "0",
        "answered by": "hasty-20260101",
        "last answer": "end",
        "model calls": "2",
        "tool calls": "1",
        "tokens": "24",
        "seconds": "2.5",
    }


def test_a_take_without_a_stage_of_its_own_stands_on_the_trees_it_names(store: Store) -> None:
    """Those that its cassette holds."""
    keep(store, "one", (say("x"),), said=replace(take().take, final_tree="kept"))  # type: ignore[type-var]  # it is one
    made = compared(store, "one", "one").tree
    assert made.equivalence is Equivalence.TREES
    assert made.same_start is None


def test_what_is_damaged_is_an_error_and_not_a_difference(store: Store) -> None:
    """B: unreadable is never absent."""
    keep(store, "one", (say("x"),), take={"format": 1})
    with pytest.raises(Corrupt):
        compared(store, "one", "one")
    with pytest.raises(NotFound):
        compared(store, "one", "nobody")


def test_a_died_recording_is_compared_as_far_as_it_came(store: Store) -> None:
    """Its stage and its end are not known; its decisions are."""
    keep(store, "whole", (run("ls"), say("x")))
    writer = store.create("died", meta={})
    for one, bodies in exchanges((run("ls"),)):
        assert commit(writer, one, {digest_of(data): data for data in bodies}) is None
    writer.abandon()
    made = compared(store, "whole", "died")
    assert made.b.state == "died"
    assert made.decisions.common == 1


def test_arms_are_compared_by_their_runs(store: Store) -> None:
    """Issue 6.4: several takes per side."""
    for number in range(2):
        keep(store, f"a{number}", (run("ls"), run("pytest"), say("x")))
        keep(store, f"b{number}", (run("ls"), edit(f"/ws/b{number}/foo.py"), say("x")))
    made = parted(store, ("a0", "a1"), ("b0", "b1"))
    assert made.greatest is not None
    assert [(way.what, way.a, way.b) for way in made.greatest.ways] == [("edit foo.py", (), ("b0", "b1")), ("ran pytest", ("a0", "a1"), ())]
    with pytest.raises(BadInput, match="twice"):
        parted(store, ("a0", "a0"), ("b0",))
    with pytest.raises(BadInput, match="without a run"):
        parted(store, ("a0",), ())


def test_equal_but_for_white_space_needs_the_content_of_both(store: Store) -> None:
    """Read from the artifacts of each side's own cassette."""
    keep(store, "one", (say("x"),), {"foo.py": b"return  2\n"})
    keep(store, "two", (say("x"),), {"foo.py": b"return 2\n"})
    assert compared(store, "one", "two").tree.equivalence is Equivalence.SPACE


def test_an_unknown_matrix_is_said_to_be(store: Store) -> None:
    """Bad input is an error, not an empty comparison."""
    with pytest.raises(NotFound, match="no matrix"):
        matrix_parted(store, "nothing")


def test_the_arms_of_a_matrix_are_those_of_its_takes_that_count(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Contaminated takes and warm-ups say nothing of a model."""
    from secondtake.harness.matrix.state import Matrices

    monkeypatch.setattr(Matrices, "resolve", lambda _self, text: text)
    of = take().take
    assert of is not None
    for number, (arm, turns) in enumerate(
        [("hasty", (run("ls"), say("x"))), ("careful", (run("make"), say("x"))), ("careful", (edit("z"), say("x")))]
    ):
        outcome = Outcome.CONTAMINATED if number == 2 else Outcome.PASS
        keep(store, f"m1-{number}", turns, said=replace(of, arm=arm, repeat=number + 1, outcome=outcome, matrix="m1"))
    made = matrix_parted(store, "m1")
    assert (made.a.label, made.a.names, made.b.label, made.b.names) == ("hasty", ("m1-0",), "careful", ("m1-1",))
    with pytest.raises(NotFound, match="bold"):
        matrix_parted(store, "m1", ("hasty", "bold"))
    with pytest.raises(BadInput, match="two arms"):
        matrix_parted(store, "m1", ("hasty",))

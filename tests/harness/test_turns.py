"""The workspace turn by turn, while its agent is recorded."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

from secondtake.cassettes import trees
from secondtake.cassettes.cassette import Cassette
from secondtake.cassettes.stages import Staged, staged
from secondtake.harness.drivers.base import Driver
from secondtake.harness.turns import Watch, Watching, watched, watching
from secondtake.harness.walking import Limits
from tests.harness.stages import stage_in
from tests.harness.workspaces import SECRET, redactor, repository, write


def looked(watch: Watch, seq: int) -> None:
    """A model request arrives, and the workspace is looked at."""
    watch.model_request(seq)
    with watch.condition:
        assert watch.condition.wait_for(lambda: watch.looked >= seq, 20)


def content(cassette: Cassette, staged_: Staged, path: bytes, turn: int) -> bytes:
    entry = trees.decode(cassette.artifact(staged_.turns[turn].tree)).by_path()[path]
    assert entry.digest is not None
    return cassette.artifact(entry.digest)


def test_a_recording_knows_its_workspace_before_at_each_turn_and_after(tmp_path: Path) -> None:
    """DESIGN 6, contract: trees in the meta; a turn that changed nothing costs no tree; `step` counts the model calls before."""
    work = repository(tmp_path / "work", {"a": "1"})
    write(tmp_path / "home", {".agent.json": "{}", "other": "x"})
    stage = stage_in(tmp_path)
    writer = stage.store.create("one", meta={})

    async def run() -> Staged:
        plan = Watching(work, tmp_path / "home", (".agent.json",))
        async with watched(plan, writer, redactor(), stage) as watch:
            looked(watch, 3)
            write(work, {"a": "2"})
            looked(watch, 5)
            looked(watch, 6)
            write(work, {"a": b"3 " + SECRET})
            looked(watch, 9)
            (work / "b").write_text("last")
            return await watch.end()

    told = asyncio.run(run())
    writer.close(meta={"stage": told.packed()})
    assert stage.store.verify("one").faults == ()
    with stage.store.open("one") as cassette:
        assert staged(cassette) == told
        assert [(turn.step, turn.seq) for turn in told.turns] == [(1, 5), (3, 9)]
        assert content(cassette, told, b"a", 0) == b"2"
        assert content(cassette, told, b"a", 1).startswith(b"3 _2T.")
        assert told.final is not None
        assert b"b" in trees.decode(cassette.artifact(told.final)).by_path()
        assert told.home is not None
        assert [entry.path for entry in trees.decode(cassette.artifact(told.home)).entries] == [b".agent.json"]
        assert told.repository is not None
        assert told.not_captured == ("a: holds what looks like a credential; it comes back with placeholders",)
        assert (told.files, told.root) == (2, str(work))


def test_a_killed_recording_keeps_the_turns_it_saw(tmp_path: Path) -> None:
    """Issue 5: what was captured is found without a closing record."""
    write(tmp_path / "work", {"a": "1"})
    stage = stage_in(tmp_path)
    writer = stage.store.create("one", meta={})

    async def run() -> None:
        async with watched(Watching(tmp_path / "work", tmp_path / "home"), writer, redactor(), stage) as watch:
            write(tmp_path / "work", {"a": "2"})
            looked(watch, 1)

    asyncio.run(run())
    writer.close(meta={})  # no word of the stage in it
    with stage.store.open("one") as cassette:
        told = staged(cassette)
        assert told is not None
        assert told.workspace is not None
        assert [turn.seq for turn in told.turns] == [1]


def test_what_is_no_workspace_is_said_and_the_recording_goes_on(tmp_path: Path) -> None:
    """Issue 5: refused by name."""
    stage = stage_in(tmp_path)
    write(tmp_path / "many", {str(n): "" for n in range(9)})
    for plan, why in (
        (Watching(tmp_path, tmp_path), "the workspace: it is HOME itself"),
        (Watching(tmp_path / "none", tmp_path / "home"), "No such file"),
        (Watching(tmp_path / "many", tmp_path / "home", limits=Limits(files=5)), "the workspace: it holds more than 5 files"),
    ):
        writer = stage.store.create("x", meta={}, replace=True)

        async def run(plan: Watching = plan) -> Staged:
            async with watched(plan, writer, redactor(), stage) as watch:  # noqa: B023  # run at once
                watch.model_request(1)
                return await watch.end()

        told = asyncio.run(run())
        writer.close(meta={})
        assert (told.workspace, told.final) == (None, None)
        assert why in told.not_captured[0]


def test_nothing_is_captured_without_a_plan_and_no_thread_is_left(tmp_path: Path) -> None:
    """`--no-stage`: nothing is read; however a run ends, its thread does."""
    stage = stage_in(tmp_path)
    write(tmp_path / "work", {"a": "1"})
    writer = stage.store.create("x", meta={})

    async def run(plan: Watching | None) -> Staged:
        async with watched(plan, writer, redactor(), stage) as watch:
            watch.model_request(1)
            if plan is None:
                return await watch.end()
            raise ZeroDivisionError

    assert asyncio.run(run(None)) == Staged()
    try:
        asyncio.run(run(Watching(tmp_path / "work", tmp_path / "home")))
    except ZeroDivisionError:
        pass
    for thread in threading.enumerate():
        if thread.name == "stage":
            thread.join(20)
            assert not thread.is_alive()
    writer.close(meta={})
    assert writer.failed is None


def test_a_secret_found_in_the_workspace_is_looked_for_on_the_wire(tmp_path: Path) -> None:
    """SECURITY C: what a file showed to be a credential is hidden in what the agent sends of it."""
    value = "Zq8Lw3Rt6Yp1Xc5Vb9Nm2Kj7Hg4Fd0Sa"
    write(tmp_path / "work", {"settings.json": '{"api_key": "' + value + '"}'})
    stage = stage_in(tmp_path)
    writer = stage.store.create("x", meta={})
    wire = redactor()
    assert value in wire.text(f"said {value}")

    async def run() -> None:
        async with watched(Watching(tmp_path / "work", tmp_path / "home"), writer, wire, stage):
            pass

    asyncio.run(run())
    writer.close(meta={})
    assert value not in wire.text(f"said {value}")


def test_what_is_watched_is_what_the_driver_names(tmp_path: Path) -> None:
    """DESIGN 6: the HOME files its driver names: its seed, and its rules in HOME."""
    driver = Driver("x", ("x",), "npm:x", "1", lambda task: ("x", task), rules=("AGENTS.md", "~/.x/AGENTS.md"), seed=(".x/settings.json",))
    plan = watching(stage_in(tmp_path), driver, limit_bytes=1_000_000)
    assert plan.seeds == (".x/settings.json", ".x/AGENTS.md")
    assert (plan.limits.total_bytes, plan.limits.file_bytes) == (1_000_000, 1_000_000)
    assert watching(stage_in(tmp_path), None).seeds == ()

"""What a take left behind."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from secondtake.cassettes import trees
from secondtake.cassettes.envelope import FIELDS, Envelope, Layer, of
from secondtake.cassettes.stages import staged as stage_in
from secondtake.cassettes.takes import Control, Outcome
from secondtake.cassettes.writer import Writer
from secondtake.harness.collecting import content_in, incomplete, surroundings
from secondtake.harness.demo import CAREFUL
from secondtake.harness.fixture import load
from secondtake.harness.fixture.making import create
from secondtake.harness.walking import Limits
from tests.harness.retakes import NAME, scene
from tests.harness.takes import CHECKS, Staged, staged, with_checks


def envelope(**fields: dict[str, object]) -> Envelope:
    return of({Layer(layer): values for layer, values in fields.items()})  # type: ignore[misc]


def test_what_another_model_changes_is_no_difference_of_the_surroundings() -> None:
    """DESIGN 6: `controlled` asks for an equal environment."""
    kernel = next(field.name for field in FIELDS[Layer.ENVIRONMENT])
    recorded, now = envelope(environment={kernel: "a"}), envelope(environment={kernel: "b"})
    assert [(one.layer, one.field) for one in surroundings(recorded, now)] == [(Layer.ENVIRONMENT, kernel)]
    assert surroundings(recorded, now, meant=frozenset({f"environment.{kernel}"})) == ()


def test_what_one_side_does_not_know_is_no_difference_and_not_equal_either() -> None:
    """DESIGN 6: an equal environment is claimed only where it is known; one program too slow to say its version changes nothing."""
    (os,) = surroundings(envelope(environment={"os": "Linux"}), envelope())
    assert (os.name, os.comparable) == ("environment.os", False)
    recorded, now = {"git": "2.39", "go": "unknown"}, {"git": "unknown", "go": "1.19"}
    (slow,) = surroundings(envelope(environment={"programs": recorded}), envelope(environment={"programs": now}))
    assert not slow.comparable
    (other,) = surroundings(envelope(environment={"programs": recorded}), envelope(environment={"programs": {**now, "git": "2.40"}}))
    assert other.comparable


def test_a_workspace_that_cannot_be_put_back_whole_is_not_controlled(tmp_path: Path) -> None:
    """DESIGN 6: a file whose credential is a placeholder is not the file that the recorded agent found."""
    assert incomplete(trees.Tree(()), ["data/: ignored by git, and too many files", "x: too large"]) == ("data/",)

    async def whole() -> None:
        async with scene(tmp_path) as made:
            (made.workspace() / ".env").write_text("PASSWORD=correct-horse\n")
            await made.record()
            fixture = create(made.stage, "bill", recording=NAME, workspace=made.workspace()).fixture
            with_checks(fixture)
            taken = await Staged(made, load("bill", made.stage.store)).take(CAREFUL)
            assert (taken.take.outcome, taken.take.control) == (Outcome.PASS, Control.PARTIALLY)
            assert taken.take.live == ("workspace not whole: .env",)

    asyncio.run(whole())


def test_a_take_keeps_both_sides_of_what_it_changed_and_nothing_else(tmp_path: Path) -> None:
    """DESIGN 6: the patch of a take is there with the fixture gone; what did not change is not kept again."""

    async def whole() -> None:
        async with staged(tmp_path) as made:
            taken = await made.take(CAREFUL)
            with made.scene.stage.store.open(taken.name) as kept:
                stage = stage_in(kept)
                assert stage is not None
                assert stage.workspace is not None
                assert stage.final is not None
                before, after = (trees.decode(kept.artifact(one)) for one in (stage.workspace, stage.final))
                found = trees.changes(before, after)
                assert [change.path for change in found] == [b"bill/split.py"]
                patch = trees.patch(found, lambda one: content_in(kept, one), lambda one: content_in(kept, one))
                assert "-    share = total_cents // people" in patch
                assert "+    share, left = divmod(total_cents, people)" in patch
                assert sum(one.kind == "blob" for one in kept.artifacts) == 2

    asyncio.run(whole())


NO_SECRETS = """
[[acceptance.check]]
name = "no secrets in the diff"
kind = "no-secrets"
"""


def test_what_changed_is_judged_before_the_store_has_written_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Issue 6.1: an artifact is written when there is time, at the latest as the take is closed; a slow disk fails no model."""
    written = Writer._write_later

    def at_the_end(writer: Writer, batch: object, limit_bytes: int | None) -> None:
        if limit_bytes is None:
            written(writer, batch, None)  # type: ignore[arg-type]

    async def whole() -> None:
        async with staged(tmp_path, checks=CHECKS + NO_SECRETS) as made:
            monkeypatch.setattr(Writer, "_write_later", at_the_end)
            taken = await made.take(CAREFUL)
            assert taken.take.outcome is Outcome.PASS, taken.take.reason

    asyncio.run(whole())


def test_a_workspace_that_is_too_large_in_the_end_is_judged_all_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Issue 6: an agent that leaves more files than are captured costs its take a verdict on trees, not the take, nor the matrix."""
    monkeypatch.setattr("secondtake.harness.collecting.LIMITS", Limits(files=40))
    floods = "from pathlib import Path\nfor n in range(50): Path(f'new-{n}').touch()"

    async def whole() -> None:
        async with staged(tmp_path) as made:
            taken = await made.take(CAREFUL, command=["python3", "-c", floods])
            assert [check.held for check in taken.take.checks] == [True, False, None]
            assert "it holds more than 40 files" in taken.take.checks[2].evidence
            assert taken.take.final_tree == ""
            with made.scene.stage.store.open(taken.name) as kept:
                assert (stage := stage_in(kept)) is not None
                assert stage.final is None

    asyncio.run(whole())


def test_what_git_ignores_may_grow_without_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Issue 6: an agent that installs packages is judged by everything else, and what was ignored before is not taken for removed."""
    monkeypatch.setattr("secondtake.harness.collecting.LIMITS", Limits(files=40))
    installs = "from pathlib import Path; Path('packages').mkdir(exist_ok=True)\nfor n in range(50): Path(f'packages/{n}').touch()"

    async def whole() -> None:
        async with scene(tmp_path) as made:
            work = made.workspace()
            (work / ".gitignore").write_text("packages/\n")
            (work / "packages").mkdir()
            (work / "packages/old").touch()
            await made.record()
            with_checks(create(made.stage, "bill", recording=NAME, workspace=work).fixture)
            taken = await Staged(made, load("bill", made.stage.store)).take(CAREFUL, command=["python3", "-c", installs])
            assert [(check.held, check.evidence) for check in taken.take.checks][2] == (True, "nothing changed")

    asyncio.run(whole())

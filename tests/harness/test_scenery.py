"""The scene of a take, put back."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from secondtake.harness.performing import Acting, Standing
from secondtake.harness.results import WouldAct
from secondtake.harness.scenery import KEPT, PREFIX, Scenery, scenery, sweep
from secondtake.harness.seal import Seal, Tier
from tests.harness.takes import staged


def acting(scene: Scenery, *, bound: bool) -> Acting:
    seal = Seal(Tier.SEALED if bound else Tier.COOPERATIVE, refused=("sealed: refused",), binds_done=bound)
    return Acting(None, 0, scene.standing, seal)  # type: ignore[arg-type]


def made(tmp_path: Path, **other: object) -> Scenery:
    for name in ("work", "home", "original", "person"):
        (tmp_path / name).mkdir()
    scene = Scenery(tmp_path, tmp_path / "work", tmp_path / "home", tmp_path / "original", tmp_path / "person", ())
    return replace(scene, **other)  # type: ignore[arg-type]


def test_the_copies_stand_at_the_recorded_places(tmp_path: Path) -> None:
    """DESIGN 6: at the recorded paths, HOME with what was recorded of it; programs of the person's are shown read-only."""
    program = tmp_path / "person" / "bin" / "agent"
    scene = made(tmp_path, shown=(program, Path("/usr/bin/env")))
    binds = scene.standing.binds
    assert [(bind.source, bind.target, bind.writable) for bind in binds] == [
        (scene.work, scene.recorded_work, True),
        (scene.home, scene.recorded_home, True),
        (program, program, False),
    ]
    assert scene.standing.inside == scene.recorded_work
    there = acting(scene, bound=True)
    assert (scene.cwd_on(there), scene.home_on(there)) == (scene.recorded_work, scene.recorded_home)
    scene.refuse_in_reach(there)


def test_where_nothing_can_be_put_in_its_place_the_original_is_out_of_reach_or_nothing_runs(tmp_path: Path) -> None:
    """DESIGN 6: exit 105, naming the directory and why; where the directory is not there at all, the copy does."""
    scene = made(tmp_path)
    bare = acting(scene, bound=False)
    assert (scene.cwd_on(bare), scene.home_on(bare)) == (scene.work, scene.home)
    with pytest.raises(WouldAct, match=rf"{scene.recorded_work}.*sealed: refused"):
        scene.refuse_in_reach(bare)
    elsewhere = replace(scene, recorded_work=tmp_path / "not-here")
    assert elsewhere.standing == Standing(scene.work, scene.work)
    elsewhere.refuse_in_reach(acting(elsewhere, bound=False))


def changed(work: Path) -> str:
    return subprocess.run(["git", "-C", work, "status", "--porcelain"], capture_output=True, text=True, check=True).stdout


def test_a_scene_is_restored_and_taken_away(tmp_path: Path) -> None:
    """Issue 5.3: the workspace and its repository, in a scratch folder that goes with the take, or stays when asked to."""

    async def whole() -> None:
        async with staged(tmp_path) as incident:
            with incident.fixture.open_cassette() as cassette:
                with scenery(incident.fixture, cassette) as scene:
                    split = Path("bill", "split.py")
                    assert (scene.work / split).read_bytes() == (incident.scene.workspace() / split).read_bytes()
                    assert await asyncio.to_thread(changed, scene.work) == ""
                    assert scene.folder.name.startswith(PREFIX)
                assert not scene.folder.exists()
                with scenery(incident.fixture, cassette, keep=True) as kept:
                    assert kept.folder.name.startswith(KEPT)
                assert (kept.work / "check.py").exists()

    asyncio.run(whole())


def test_what_a_killed_take_left_is_removed_by_the_next(tmp_path: Path) -> None:
    """Issue 5: a scratch folder of a process that is gone; not one of a living process, nor what only looks like one."""
    said = subprocess.run([sys.executable, "-c", "import os; print(os.getpid(), os.getppid())"], capture_output=True, text=True, check=True)
    gone, mine = said.stdout.split()
    dead, alive, other = (tmp_path / name for name in (f"{PREFIX}{gone}-a", f"{PREFIX}{mine}-b", f"{PREFIX}notes-c"))
    for folder in (dead, alive, other):
        (folder / "work").mkdir(parents=True)
    (dead / "work").chmod(0o500)
    sweep(tmp_path)
    assert (dead.exists(), alive.exists(), other.exists()) == (False, True, True)

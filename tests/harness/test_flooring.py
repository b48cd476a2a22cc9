"""The noise floor, made once."""

from __future__ import annotations

import asyncio
from pathlib import Path

from secondtake.harness.flooring import FLOORS, floor_of
from tests.harness.takes import CHECKS, staged


def test_the_untouched_tree_is_judged_once_and_the_verdict_kept(tmp_path: Path) -> None:
    """DESIGN 6: checks that cannot tell a failure from a success are named before a model is asked; kept by the fixture's digest."""

    async def whole() -> None:
        async with staged(tmp_path) as made:
            stage = made.scene.stage
            first = await floor_of(stage, made.fixture)
            assert first is not None
            assert {one.name: one.held for one in first.untouched} == {
                "the tests are red": True,
                "the tests are green": False,
                "only the splitter changed": True,
            }
            assert first.problems == ()
            (kept,) = (stage.store.root / FLOORS).iterdir()
            assert kept.name == f"{made.fixture.digest}.json"
            assert await floor_of(stage, made.fixture) == first
            kept.write_text("{")
            again = await floor_of(stage, made.fixture)
            assert again is not None
            assert [(one.name, one.held) for one in again.untouched] == [(one.name, one.held) for one in first.untouched]

    asyncio.run(whole())


def test_checks_that_hold_already_cannot_tell_success(tmp_path: Path) -> None:
    """DESIGN 6: the noise floor says so."""
    asked = '"the tests are green"\nkind = "command"\nrun = ["python3", "check.py"]'
    checks = CHECKS.replace(asked, '"always"\nkind = "command"\nrun = ["true"]')

    async def whole() -> None:
        async with staged(tmp_path, checks=checks) as made:
            found = await floor_of(made.scene.stage, made.fixture)
            assert found is not None
            assert found.problems

    asyncio.run(whole())

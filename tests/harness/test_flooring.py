"""The noise floor, made once."""

from __future__ import annotations

import asyncio
import difflib
from pathlib import Path

import pytest

from secondtake.cassettes.errors import BadInput
from secondtake.harness.demo.repository import SPLIT, SPLIT_FIXED, SPLIT_ROUNDED_UP
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


@pytest.mark.parametrize(("fixed", "told"), [(SPLIT_FIXED, ()), (SPLIT_ROUNDED_UP, ("the tests are green",))])
def test_the_known_good_tree_must_pass(tmp_path: Path, fixed: str, told: tuple[str, ...]) -> None:
    """DESIGN 6: where given, the checks are run on the known-good tree too; a patch that does not make it good is named."""
    patch = "".join(difflib.unified_diff(SPLIT.splitlines(True), fixed.splitlines(True), "a/bill/split.py", "b/bill/split.py"))
    checks = CHECKS.replace("[acceptance]\n", '[acceptance]\nknown_good = "good.patch"\n')

    async def whole() -> None:
        async with staged(tmp_path, beside={"good.patch": patch}, checks=checks) as made:
            found = await floor_of(made.scene.stage, made.fixture)
            assert found is not None
            assert found.known_good is not None
            assert [one.name for one in found.known_good if one.section == "acceptance" and one.held is not True] == list(told)
            assert [name for name in told if any(name in problem for problem in found.problems)] == list(told)
            assert bool(found.problems) is bool(told)

    asyncio.run(whole())


OUTSIDE = "--- a/../outside\n+++ b/../outside\n@@ -0,0 +1 @@\n+x\n"
ABSENT = "--- a/none.py\n+++ b/none.py\n@@ -1 +1 @@\n-a\n+b\n"


@pytest.mark.parametrize("patch", [OUTSIDE, ABSENT])
def test_a_patch_that_does_not_fit_is_refused(tmp_path: Path, patch: str) -> None:
    """Bad input: outside of the workspace, or of a file that is not there; nothing is written."""
    checks = CHECKS.replace("[acceptance]\n", '[acceptance]\nknown_good = "good.patch"\n')

    async def whole() -> None:
        async with staged(tmp_path, beside={"good.patch": patch}, checks=checks) as made:
            with pytest.raises(BadInput):
                await floor_of(made.scene.stage, made.fixture)

    asyncio.run(whole())

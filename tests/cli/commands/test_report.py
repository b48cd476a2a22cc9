"""`report`: a matrix's report again, from the store."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from secondtake.cassettes.store import Store
from secondtake.harness.matrix.schedule import run_cells
from secondtake.harness.matrix.state import Matrices
from tests.cli.scenes import Command
from tests.harness.matrix.scenes import FakeClock, FakeRunner, design

MADE = design(looks=(2,))


@pytest.fixture
def kept(here: Path, tmp_path: Path) -> Store:
    """A store with a matrix that has ended."""
    store = Store(tmp_path / "store")
    Matrices(store.root).seal(MADE)
    asyncio.run(run_cells(MADE, (), FakeRunner(store), FakeClock(), taken=lambda _: False))
    return store


def test_the_report_is_made_again_from_the_store(command: Command, kept: Store, tmp_path: Path) -> None:
    """Issue 6: terminal, JSON, Markdown, one page; by the beginning of its ID, and the same each time."""
    ran = command(
        "report", "round", "--html", str(tmp_path / "r.html"), "--markdown", str(tmp_path / "r.md"), "--junit", str(tmp_path / "r.xml")
    )
    assert ran.code == 0, ran.err
    assert "old (baseline, control)" in ran.out
    assert MADE.digest in ran.out
    assert all((tmp_path / name).stat().st_size > 500 for name in ("r.html", "r.md", "r.xml"))
    said = json.loads(command("report", MADE.id, "--json").out)
    assert (said["matrix"], said["complete"], len(said["rows"]), said["exit_code"]) == (MADE.id, True, 3, 0)
    assert command("report", MADE.id).out == ran.out


def test_an_unknown_matrix_is_told_with_the_closest(command: Command, kept: Store) -> None:
    """Errors say what came closest."""
    ran = command("report", "roundign")
    assert ran.code == 104
    assert f"closest: {MADE.id}" in ran.err


def test_a_design_that_was_touched_is_no_report(command: Command, kept: Store) -> None:
    """A seal that does not hold is damage."""
    path = kept.root / "matrices" / MADE.id / "design.json"
    path.write_bytes(path.read_bytes().replace(b'"seed":7', b'"seed":8'))
    assert command("report", MADE.id).code == 104

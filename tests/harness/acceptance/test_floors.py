"""The noise floor: what checks say before anything was done, and of a good tree."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from secondtake.cassettes.errors import Corrupt
from secondtake.harness.acceptance.floors import floor
from secondtake.harness.acceptance.scene import Floor, decode_floor, encode_floor
from secondtake.harness.acceptance.schema import Bundle, read
from tests.harness.acceptance.scenes import PYTHON, Files, scene

SUITE = """\
import pathlib
good = "42" in pathlib.Path("total.py").read_text()
print("=== short test summary info ===")
print("PASSED t.py::test_other")
print(("PASSED" if good else "FAILED") + " t.py::test_total")
print("2 passed in 0.01s" if good else "1 failed, 1 passed in 0.01s")
raise SystemExit(not good)
"""
BAD: Files = {"t.py": SUITE, "total.py": "41\n"}
GOOD: Files = {"t.py": SUITE, "total.py": "42\n"}
RUN = [PYTHON, "-I", "-S", "t.py"]


def sections(*acceptance: dict[str, object]) -> Bundle:
    red = {"name": "red", "kind": "tests", "run": RUN, "failing": ["test_total"]}
    return read({"failure": {"check": [red]}, "acceptance": {"check": list(acceptance)}})


GREEN: dict[str, object] = {"name": "green", "kind": "tests", "run": RUN, "passing": ["test_total"], "others": "unbroken"}
LINT: dict[str, object] = {"name": "lint", "kind": "lint", "run": ["/bin/sh", "-c", "echo a:1: x; echo b:2: y"], "finding": r"^\S+:\d: "}


def made(tmp_path: Path, bundle: Bundle, *, untouched: Files = BAD, good: Files | None = GOOD) -> Floor:
    known_good = None if good is None else scene(tmp_path / "good", untouched, good)
    return asyncio.run(floor(bundle.acceptance, bundle.failure, scene(tmp_path / "untouched", untouched), known_good))


def test_a_failure_that_is_there_and_an_acceptance_that_can_pass_have_no_problem(tmp_path: Path) -> None:
    """Issue 6.1: on the untouched tree the failure holds; on the known-good one the acceptance does."""
    found = made(tmp_path, sections(GREEN, LINT))
    assert (found.problems, found.notes) == ((), ())
    assert {one.name: one.held for one in found.untouched} == {"red": True, "green": False, "lint": True}
    assert found.known_good is not None
    assert {one.name: one.held for one in found.known_good} == {"red": False, "green": True, "lint": True}
    assert found.findings == {"lint": 2}
    assert found.passing["green"] == {"t.py::test_other"}


def test_it_is_kept_and_read_back(tmp_path: Path) -> None:
    """Stored with the fixture or the matrix, as JSON."""
    found = made(tmp_path, sections(GREEN, LINT), good=None)
    assert decode_floor(json.loads(json.dumps(encode_floor(found)))) == found
    with pytest.raises(Corrupt, match="floor"):
        decode_floor({"untouched": []})


def test_an_acceptance_that_passes_before_anything_was_done_is_a_problem(tmp_path: Path) -> None:
    """Doing nothing would pass."""
    found = made(tmp_path, sections(LINT))
    assert found.problems == ("the acceptance holds on the untouched tree: doing nothing would pass",)
    assert made(tmp_path / "b", sections()).problems == ("there is no acceptance check: nothing can pass",)


def test_an_acceptance_that_cannot_pass_is_a_problem(tmp_path: Path) -> None:
    """A missing tool, or a good tree that fails, would be counted against every model."""
    found = made(tmp_path, sections({"name": "tool", "kind": "command", "run": "no-such-tool-of-anybodys"}))
    assert [problem.split(":")[0] for problem in found.problems] == [
        "`tool` cannot be judged on the untouched tree",
        "`tool` cannot be judged on the tree that is known to be good",
    ]
    found = made(tmp_path / "b", sections(GREEN), good=BAD)
    assert found.problems[0].startswith("`green` does not hold on the tree that is known to be good: t.py::test_total failed")


def test_where_the_failure_comes_from_is_told(tmp_path: Path) -> None:
    """A failure that is not there before is the agent's doing; one that a good tree shows too tells nothing."""
    found = made(tmp_path, sections(GREEN), untouched=GOOD, good=None)
    assert [note.split(":")[0] for note in found.notes] == [
        "the failure's `red` is not there before the agent runs, so it is what the agent does",
        "there is no tree that is known to be good",
    ]
    assert "they do not tell it from the incident" in made(tmp_path / "b", sections(GREEN), good=BAD).notes[0]

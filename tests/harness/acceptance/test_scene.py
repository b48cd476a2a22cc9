"""What a take left to be judged."""

from __future__ import annotations

from pathlib import Path

from secondtake.harness.acceptance.scene import Floor, decode_floor, encode_floor
from tests.cassettes.test_takes import TAKE
from tests.harness.acceptance.scenes import ENVIRON, scene


def test_the_directories_of_a_run_are_no_part_of_a_failure(tmp_path: Path) -> None:
    """The workspace as it stands and as the agent saw it, HOME, and where temporary files go; never the root."""
    at = scene(tmp_path, {}, inside="/home/u/shop", environ=ENVIRON | {"TMPDIR": "/var/t", "HOME": "/"})
    assert at.roots == ("/home/u/shop", str(tmp_path / "workspace"), "/var/t")


def test_a_floor_of_many_tests_is_read_back() -> None:
    """A suite has more tests than a take has checks."""
    floor = Floor(TAKE.checks, None, {"lint": 3}, {"tests": frozenset(f"t.py::test_{n}" for n in range(12_000))}, ("p",), ("n",))
    assert decode_floor(encode_floor(floor)) == floor

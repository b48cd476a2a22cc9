"""A scratch copy at the place of the original, for one command alone."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from secondtake.harness import standin

SCRIPT = (sys.executable, "-I", "-S", standin.__file__)


@pytest.fixture
def both(tmp_path: Path) -> tuple[Path, Path]:
    """A copy and its original, each with a file that says which it is."""
    folders = tmp_path / "copy", tmp_path / "original"
    for folder in folders:
        folder.mkdir()
        (folder / "which").write_text(folder.name)
    return folders


@pytest.fixture
def allowed(both: tuple[Path, Path]) -> None:
    """A kernel that allows it."""
    if subprocess.run([*SCRIPT, *map(str, both)], cwd=both[1], capture_output=True).returncode != 0:
        pytest.skip("no mount namespaces here")


def ran(both: tuple[Path, Path], *command: str) -> subprocess.CompletedProcess[str]:
    """Run a command that sees the copy."""
    return subprocess.run([*SCRIPT, *map(str, both), *command], cwd=both[1], capture_output=True, text=True)


def test_what_is_done_at_the_original_is_done_to_the_copy(both: tuple[Path, Path], allowed: None) -> None:
    """DESIGN 6: a scratch copy at the recorded path where namespaces allow; by its full path and from where the command stands."""
    copy, original = both
    done = ran(both, "/bin/sh", "-c", f"cat which; echo; pwd; echo changed > {original}/which; echo new > made")
    assert done.stdout == f"copy\n{original}\n"
    assert (original / "which").read_text() == "original"
    assert (copy / "which").read_text() == "changed\n"
    assert sorted(path.name for path in original.iterdir()) == ["which"]


def test_the_commands_own_status_and_user_stay(both: tuple[Path, Path], allowed: None) -> None:
    """Only the mount is another."""
    done = ran(both, "/bin/sh", "-c", "id -u; exit 7")
    assert (done.returncode, done.stdout) == (7, subprocess.run(["id", "-u"], capture_output=True, text=True).stdout)


@pytest.mark.parametrize(("command", "status"), [("./which", 126), ("no-such-command", 127)])
def test_what_cannot_be_executed_ends_as_in_a_shell(both: tuple[Path, Path], allowed: None, command: str, status: int) -> None:
    """126 and 127."""
    assert ran(both, command).returncode == status


def test_a_place_that_is_not_there_runs_nothing(both: tuple[Path, Path]) -> None:
    """Refused, in words, with a status of its own."""
    done = subprocess.run([*SCRIPT, str(both[0]), "/nonexistent", "/bin/echo", "ran"], cwd=both[1], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (standin.NO_NAMESPACE, "")
    assert done.stderr.startswith("secondtake: no scratch copy at /nonexistent")

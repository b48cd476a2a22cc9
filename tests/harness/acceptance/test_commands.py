"""Running a check's command, and the files it writes."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from secondtake.harness.acceptance import commands
from secondtake.harness.acceptance.commands import Ended, found, read, removed, run, unjudged, within
from secondtake.harness.acceptance.scene import Scene
from secondtake.harness.acceptance.schema import CommandCheck
from tests.harness.acceptance.scenes import PYTHON, scene


def ended(at: Scene, *command: str, timeout_s: float = 20, stdout_only: bool = False) -> Ended:
    check = CommandCheck(kind="command", name="it", run=command, timeout_s=timeout_s)
    return asyncio.run(run(at, check, stdout_only=stdout_only))


def test_both_streams_come_as_they_were_written(tmp_path: Path) -> None:
    """A runner's heads go to one stream and its results to the other."""
    at = scene(tmp_path, {})
    assert ended(at, "/bin/sh", "-c", "echo a; echo b >&2; echo c").output == b"a\nb\nc\n"
    assert ended(at, "/bin/sh", "-c", "echo a; echo b >&2", stdout_only=True).output == b"a\n"


def test_more_output_than_is_kept_does_not_stop_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is read to its end, and the rest is dropped."""
    monkeypatch.setattr(commands, "OUTPUT_BYTES", 1000)
    made = ended(scene(tmp_path, {}), PYTHON, "-I", "-S", "-c", "import sys; sys.stdout.write('x' * 300_000); sys.exit(3)")
    assert (len(made.output), made.cut, made.status) == (1000, True, 3)


def test_nothing_it_started_is_left(tmp_path: Path) -> None:
    """Not even what left its group and holds its output open."""
    at = scene(tmp_path, {})
    made = ended(at, "/bin/sh", "-c", "setsid sh -c 'echo $$ >pid; exec sleep 100' & while ! test -s pid; do :; done; exit 4")
    assert (made.status, made.timed_out) == (4, False)
    assert not Path("/proc", (at.workspace / "pid").read_text().strip()).exists()


def test_standard_input_is_closed(tmp_path: Path) -> None:
    """A test program that asks a question gets no answer, and does not wait for one."""
    assert ended(scene(tmp_path, {}), "/bin/sh", "-c", "read line || echo none").output == b"none\n"


@pytest.mark.parametrize(
    ("made", "named", "why"),
    [
        (Ended(0, b""), (), None),
        (Ended(1, b"x"), (), None),
        (Ended(139, b""), (), None),
        (Ended(125, b"x\ny\n"), (), "it says that it cannot judge (exit 125): y"),
        (Ended(125, b""), (125,), None),
        (Ended(127, b"sh: pytest: not found\n"), (), "its command could not be started (exit 127): sh: pytest: not found"),
        (Ended(143, b"", timed_out=True), (143,), "it did not end in time"),
        (Ended(127, b"", not_started="no such command"), (127,), "no such command"),
    ],
)
def test_an_end_that_says_nothing_is_told_from_one_that_does(made: Ended, named: tuple[int, ...], why: str | None) -> None:
    """A segmentation fault is a failure; a missing program is not."""
    assert unjudged(made, named) == why


def test_no_path_leads_out_of_the_workspace(tmp_path: Path) -> None:
    """The workspace is what an agent left: links may lead anywhere."""
    at = scene(tmp_path, {"a/f": "x", "out": "-> /etc", "l": "-> a/f", "a/up": "-> ../.."})
    assert within(at.workspace, "a/new") == at.workspace.resolve() / "a/new"
    assert within(at.workspace, "out/passwd") is None
    assert within(at.workspace, "a/up/x") is None
    assert found(at.workspace, "out/passwd") == []
    assert found(at.workspace, "l") == []
    assert [path.name for path in found(at.workspace, "**/f")] == ["f"]
    assert removed(at.workspace, "out/passwd") == "out/passwd leads out of the workspace"
    assert removed(at.workspace, "*/f") is None
    assert not (at.workspace / "a/f").exists()


def test_only_regular_files_are_read(tmp_path: Path) -> None:
    """A pipe would wait for ever."""
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "file").write_text("abc")
    (tmp_path / "link").symlink_to("file")
    assert [read(tmp_path / name, 3) for name in ("pipe", "file", "link", "none", ".")] == [None, b"abc", None, None, None]
    assert read(tmp_path / "file", 2) is None

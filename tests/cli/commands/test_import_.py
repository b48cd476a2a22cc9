"""`import`: an exported file into the store."""

from __future__ import annotations

import json
from pathlib import Path

from secondtake.cassettes.store import Store
from tests.cli.scenes import Command


def test_what_was_exported_comes_back(command: Command, store: Store, tmp_path: Path) -> None:
    """Issue 2, item 2: one-file export and import, into another store and under another name."""
    command("export", "incident", "a.take")
    other = ("--store", str(tmp_path / "other"))
    assert json.loads(command("import", "a.take", "--as", "again", "--json", *other).out)["name"] == "again"
    assert command("show", "again", "--json", *other).out == command("show", "incident", "--json").out
    assert command("verify", "again", *other).code == 0


def test_a_taken_name_is_refused_with_a_line_that_can_be_run(command: Command, store: Store) -> None:
    """Nothing lost."""
    command("export", "incident", "incident.take")
    ran = command("import", "incident.take")
    assert ran.code == 104
    assert "hint: secondtake import incident.take --as NAME" in ran.err


def test_a_damaged_file_leaves_nothing_behind(command: Command, store: Store, tmp_path: Path) -> None:
    """Every byte is checked first."""
    command("export", "incident", "a.take")
    data = bytearray(Path("a.take").read_bytes())
    data[len(data) // 2] ^= 1
    Path("a.take").write_bytes(data)
    other = ("--store", str(tmp_path / "other"))
    assert command("import", "a.take", *other).code == 104
    assert command("ls", *other).out == ""


def test_a_folder_is_not_a_file(command: Command) -> None:
    """Usage, one line."""
    ran = command("import", ".")
    assert (ran.code, ran.err.splitlines()[0]) == (64, "error: . is not a file")

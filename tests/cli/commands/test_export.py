"""`export`: a cassette as one file."""

from __future__ import annotations

from pathlib import Path

from secondtake.cassettes.store import Store
from tests.cli.scenes import Command


def test_the_same_cassette_gives_the_same_bytes(command: Command, store: Store) -> None:
    """DESIGN 4: same content, same bytes."""
    assert command("export", "incident", "a.take").code == command("export", "@last", "b.take").code == 0
    assert Path("a.take").read_bytes() == Path("b.take").read_bytes()


def test_a_file_that_is_there_is_not_overwritten_unless_forced(command: Command, store: Store) -> None:
    """Nothing lost."""
    Path("a.take").write_text("mine")
    ran = command("export", "incident", "a.take")
    assert (ran.code, Path("a.take").read_text()) == (64, "mine")
    assert "hint: secondtake export incident a.take --force" in ran.err
    assert command("export", "incident", "a.take", "--force").code == 0

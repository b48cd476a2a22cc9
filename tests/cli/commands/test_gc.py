"""`gc`: bytes that no cassette needs any more."""

from __future__ import annotations

import json
from pathlib import Path

from secondtake.cassettes.store import Store
from tests.cli.scenes import Command


def test_only_what_nobody_needs_goes_and_a_dry_run_removes_nothing(command: Command, store: Store, tmp_path: Path) -> None:
    """Issue 2, item 5."""
    stray = tmp_path / "store" / "objects" / "ab" / ("ab" + "0" * 62)
    stray.parent.mkdir(parents=True)
    stray.write_bytes(b"left behind")
    dry = json.loads(command("gc", "--dry-run", "--json").out)
    assert dry["dry_run"] is True
    assert dry["files"] == [f"objects/ab/{stray.name}"]
    assert stray.exists()
    assert json.loads(command("gc", "--json").out)["files"] == dry["files"]
    assert not stray.exists()
    assert command("verify", "incident").code == 0

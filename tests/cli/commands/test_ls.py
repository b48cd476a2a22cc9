"""`ls`: what is in the store."""

from __future__ import annotations

import json
from pathlib import Path

from secondtake.cassettes.store import Store
from tests.cli.scenes import Command, keep, sample


def test_an_empty_store_says_how_to_begin(command: Command) -> None:
    """Nothing on standard output, a hint on standard error, and the store is not made by looking."""
    ran = command("ls")
    assert (ran.code, ran.out) == (0, "")
    assert "hint: secondtake record NAME -- AGENT..." in ran.err


def test_the_newest_stands_last_and_a_damaged_one_is_listed(command: Command, store: Store, tmp_path: Path) -> None:
    """DESIGN 4: damage is an error, never "absent"; the others are listed all the same."""
    keep(store, "later", sample()[:1], created="2026-12-01T00:00:00+00:00")
    keep(store, "broken", [], created="2026-12-02T00:00:00+00:00")
    journal = tmp_path / "store" / "cassettes" / "broken" / "journal"
    journal.chmod(0o600)
    journal.write_bytes(b"not a journal at all")
    listed = [json.loads(line) for line in command("ls", "--json").out.splitlines()]
    assert {(each["name"], each["state"]) for each in listed} == {("incident", "closed"), ("later", "closed"), ("broken", "damaged")}
    assert [each["name"] for each in listed if each["state"] == "closed"] == ["incident", "later"]
    assert "damaged" in command("ls").out

"""The rules a person declared, from their files."""

from __future__ import annotations

from pathlib import Path

import pytest

from secondtake.cassettes.declared import Declared
from secondtake.cassettes.errors import BadInput
from secondtake.cassettes.store import Store
from secondtake.harness import ruling
from secondtake.harness.ruling import declared_rules, recorded_aliases


def test_the_stores_rules_come_first_and_each_counts_once(tmp_path: Path) -> None:
    """Issue 4, item 3: a rules file in the store, and those of the command line."""
    one, two = Declared(body="a.id"), Declared(body="b.id")
    (tmp_path / "rules").write_text(one.line)
    (tmp_path / "more").write_text(f"{two.line}\n{one.line}\n")
    assert declared_rules(tmp_path, [tmp_path / "more"]) == (one, two)
    assert declared_rules(tmp_path / "nowhere", []) == ()


def test_a_file_that_cannot_be_used_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Errors say what happened to which thing; B-11: bounded."""
    (tmp_path / "bad").write_bytes(b"\xff")
    for path, why in ((tmp_path / "missing", "No such file"), (tmp_path / "bad", "not UTF-8")):
        with pytest.raises(BadInput, match=f"{path}.*{why}"):
            declared_rules(tmp_path, [path])
    monkeypatch.setattr(ruling, "RULES_BYTES", 3)
    (tmp_path / "long").write_text("# long")
    with pytest.raises(BadInput, match="longer than 3 bytes"):
        declared_rules(tmp_path, [tmp_path / "long"])


def test_a_recording_says_which_values_were_its_own(tmp_path: Path) -> None:
    """DESIGN 3: keys that are made anew see the recorded values by the same names; what a stranger's cassette says does no harm."""
    store = Store(tmp_path / "store")
    meta = {"cwd": "/home/me/work", "home": "/home/me", "proxy": "127.0.0.1:4242", "bundle": "/run/b.pem", "tmpdir": 7}
    store.create("one", meta=meta).close(meta={})
    cassette = store.open("one")
    found = recorded_aliases(cassette)
    cassette.close()
    assert found.replace(b"in /home/me/work/x of /home/me by 127.0.0.1:4242") == b"in {WORKSPACE}/x of {HOME} by {SECONDTAKE_ADDRESS}"

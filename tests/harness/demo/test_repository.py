"""The failing repository."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from secondtake.harness import demo
from secondtake.harness.demo.repository import FILES
from tests.harness.demo.runs import check


def test_the_repository_is_red_and_always_the_same(tmp_path: Path) -> None:
    """Its files, its one commit, its failing tests, also under plain unittest."""
    first, second = demo.prepare(tmp_path / "a"), demo.prepare(tmp_path / "b")
    done = check(first)
    assert done.returncode == 1
    assert done.stdout == (
        "ok   test_an_even_bill\nFAIL test_nobody_pays_a_cent_too_much: 1000 != 1001\nFAIL test_nothing_is_lost: 999 != 1000\n"
    )
    plain = subprocess.run([sys.executable, "-B", "-m", "unittest", "-q"], cwd=first, capture_output=True, text=True)
    assert plain.returncode == 1
    assert "FAILED (failures=2)" in plain.stderr
    assert {str(p.relative_to(second)) for p in second.rglob("*") if p.is_file() and ".git" not in p.parts} == set(FILES)
    with pytest.raises(FileExistsError):
        demo.prepare(first)


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
def test_the_commit_is_the_same_whatever_the_user_configured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fixed author and date, no hooks, no signing: one commit ID everywhere, and a clean tree."""
    (tmp_path / "config").write_text("[commit]\n\tgpgsign = true\n[init]\n\tdefaultBranch = trunk\n[user]\n\tname = Other\n")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "config"))
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "none"))
    heads = set()
    for name in ("a", "b"):
        repository = demo.prepare(tmp_path / name)
        heads.add((repository / ".git" / "refs" / "heads" / "main").read_text().strip())
    assert len(heads) == 1

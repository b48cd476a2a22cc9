"""git asked so that it only reads, whatever the repository says."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from secondtake.cassettes.errors import Corrupt
from secondtake.harness.git import Git, GitFailed, hardened, index_pack
from tests.harness.workspaces import git, repository


def test_nothing_of_a_repository_runs(tmp_path: Path) -> None:
    """Issue 5: no hook, filter, file-system monitor, pager, helper or text converter of the repository is run, and nothing is written."""
    work = repository(tmp_path / "work", {"a": "1", ".gitattributes": "* filter=evil diff=evil\n"})
    trap = tmp_path / "trap"
    trap.write_text(f"#!/bin/sh\ntouch {tmp_path}/sprung\ncat\n")
    trap.chmod(0o755)
    for key in (
        "core.fsmonitor",
        "filter.evil.clean",
        "filter.evil.smudge",
        "diff.evil.textconv",
        "core.pager",
        "core.askPass",
        "core.sshCommand",
    ):
        git(work, "config", key, str(trap))
    git(work, "config", "alias.ls-files", f"!{trap}")
    (work / ".git/hooks/post-index-change").write_text(trap.read_text())
    (work / ".git/hooks/post-index-change").chmod(0o755)
    (work / "a").write_text("2")
    before = {path: path.stat().st_mtime_ns for path in (work / ".git").rglob("*")}
    asked = Git.at(work, os.environ)
    assert asked.ask("ls-files", "-z") == b".gitattributes\0a\0"
    assert asked.ask("rev-parse", "--abbrev-ref", "HEAD").strip() == b"main"
    assert asked.try_("ls-files", "-o", "-i", "--exclude-standard", "--directory") == b""
    head = asked.ask("rev-parse", "HEAD").decode().strip()
    ((name, kind, content),) = asked.objects([head])
    assert (name, kind) == (head, "commit")
    assert content is not None
    assert not (tmp_path / "sprung").exists()
    assert before == {path: path.stat().st_mtime_ns for path in (work / ".git").rglob("*")}


def test_a_repository_around_a_folder_is_not_asked(tmp_path: Path) -> None:
    """A workspace that is no repository must not be taken for the one it lies in."""
    work = repository(tmp_path / "work", {"sub/a": "1"})
    assert Git.at(work / "sub", os.environ).try_("rev-parse", "HEAD") is None
    assert Git.at(work, os.environ).try_("rev-parse", "HEAD") is not None


def test_a_git_that_fails_or_is_not_there_says_so(tmp_path: Path) -> None:
    """Issue 5: what cannot be read is named."""
    work = repository(tmp_path / "work", {"a": "1"})
    with pytest.raises(GitFailed, match="git rev-parse failed: fatal"):
        Git.at(work, os.environ).ask("rev-parse", "--verify", "no-such-ref")
    with pytest.raises(GitFailed, match="not installed"):
        Git.at(work, {"PATH": str(tmp_path)}).ask("rev-parse", "HEAD")
    assert list(Git.at(work, os.environ).objects(["0" * 40])) == [("0" * 40, "", None)]
    assert "GITHUB_TOKEN" not in hardened({"GITHUB_TOKEN": "x"})


def test_a_pack_that_is_none_is_damage(tmp_path: Path) -> None:
    """B-11: git checks each object; nothing of a broken pack is there afterwards."""
    work = repository(tmp_path / "work", {"a": "1"})
    with pytest.raises(Corrupt, match="objects of a recorded repository"):
        index_pack(work / ".git", b"PACK\0\0\0\2\0\0\0\1garbage", hardened(os.environ))
    assert not list((work / ".git/objects/pack").glob("*.idx"))

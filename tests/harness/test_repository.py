"""The git state of a workspace, case by case."""

from __future__ import annotations

import os
from pathlib import Path

from secondtake.cassettes import repositories
from secondtake.harness.capturing import Snapshot
from secondtake.harness.repository import Found, capture_repositories, ignored_folders
from secondtake.harness.restore import restore
from secondtake.harness.snapshot import capture
from secondtake.harness.walking import Limits
from tests.harness.workspaces import Kept, git, redactor, repository, status, write


def found_in(work: Path, kept: Kept) -> Found:
    files = Snapshot(work, kept.keep, redactor(), limits=Limits(), clock_s=lambda: 0.0).take()
    return capture_repositories(work, files, kept.keep, redactor(), limits=Limits(), environ=os.environ)


def back(work: Path, into: Path) -> Path:
    """Capture and restore."""
    kept = Kept()
    captured = capture(work, kept.keep, redactor())
    restore(kept, captured.tree.digest, captured.repository_digest, into)
    assert capture(into, Kept().keep, redactor()).fingerprint == captured.fingerprint
    return into


def test_a_merge_conflict_comes_back_stage_by_stage(tmp_path: Path) -> None:
    """Issue 5: conflict stages; what was going on besides is listed."""
    work = repository(tmp_path / "work", {"a": "base\n"})
    git(work, "checkout", "-qb", "other")
    write(work, {"a": "theirs\n"})
    git(work, "commit", "-qam", "theirs")
    git(work, "checkout", "-q", "main")
    write(work, {"a": "ours\n"})
    git(work, "commit", "-qam", "ours")
    try:
        git(work, "merge", "other")
    except AssertionError:
        pass
    found = found_in(work, Kept())
    assert found.notes == ("MERGE_HEAD: what was going on is not captured; conflicts in the index are",)
    assert status(back(work, tmp_path / "back")) == status(work)
    assert git(tmp_path / "back", "ls-files", "-u").count(b"\n") == 3
    assert b"theirs" in git(tmp_path / "back", "cat-file", "-p", ":3:a")


def test_submodules_are_told_one_by_one(tmp_path: Path) -> None:
    """Issue 5: initialised ones with their own commit and state, nested ones too; an uninitialised one is named."""
    inner = repository(tmp_path / "inner", {"i": "1"})
    outer = repository(tmp_path / "outer", {"o": "1"})
    git(outer, "submodule", "add", "-q", str(inner), "deep")
    git(outer, "commit", "-qm", "deep")
    work = repository(tmp_path / "work", {"w": "1"})
    git(work, "submodule", "add", "-q", str(outer), "lib")
    git(work, "submodule", "add", "-q", str(inner), "later")
    git(work, "commit", "-qm", "libraries")
    git(work, "submodule", "update", "--init", "--recursive", "lib")
    git(work, "submodule", "deinit", "-f", "later")
    repository(work / "embedded", {"e": "1"})
    write(work, {"lib/deep/i": "dirty"})
    found = found_in(work, Kept())
    assert found.repositories is not None
    assert [(one.path, one.place) for one in found.repositories.each] == [
        (b"", b""),
        (b"embedded", b""),
        (b"lib", b"modules/lib"),
        (b"lib/deep", b"modules/lib/modules/deep"[12:]),
    ]
    assert found.repositories.each[0].uninitialised == (b"later",)
    restored = back(work, tmp_path / "back")
    assert status(restored) == status(work)
    assert git(restored, "submodule", "status", "--recursive") == git(work, "submodule", "status", "--recursive")
    assert git(restored / "lib/deep", "rev-parse", "--show-toplevel").decode().strip() == str(restored / "lib/deep")


def test_configuration_that_changes_behaviour_comes_back_and_what_runs_does_not(tmp_path: Path) -> None:
    """Issue 5: core.autocrlf and its like; hooks, filters and credentials in URLs stay behind."""
    work = repository(tmp_path / "work", {"a": "1"})
    for key, value in {
        "core.autocrlf": "input",
        "core.filemode": "false",
        "core.hooksPath": ".husky",
        "filter.x.clean": "rm",
        "remote.origin.url": "https://me:hunter2secretpw@host.example/x.git",
        "branch.main.remote": "origin",
    }.items():
        git(work, "config", key, value)
    (work / "a").chmod(0o755)
    (work / ".git/info/exclude").write_text("*.tmp\n")
    write(work, {"x.tmp": ""})
    found = found_in(work, Kept())
    assert found.notes == ("hooks of the repository: they are not captured",)
    restored = back(work, tmp_path / "back")
    said = git(restored, "config", "--local", "--list").decode()
    assert "core.autocrlf=input" in said
    assert "branch.main.remote=origin" in said
    assert "husky" not in said
    assert "filter" not in said
    assert "hunter2" not in said
    assert status(restored) == status(work)


def test_git_lfs_pointers_are_told_from_contents(tmp_path: Path) -> None:
    """Issue 5: pointer or content, by file."""
    pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:" + "0" * 64 + "\nsize 12345\n"
    work = repository(tmp_path / "work", {"a.bin": pointer, "b.bin": pointer.replace("0", "1")})
    write(work, {"b.bin": b"\0content"})
    found = found_in(work, Kept())
    assert found.repositories is not None
    assert (found.repositories.each[0].lfs_pointers, found.repositories.each[0].lfs_contents) == ((b"a.bin",), (b"b.bin",))
    assert found.notes == ("git-lfs: 1 files have their content, as files only; .git/lfs is not captured",)
    back(work, tmp_path / "back")


def test_a_linked_worktree_becomes_a_repository_of_its_own(tmp_path: Path) -> None:
    """Issue 5: worktrees, `.git` files."""
    main = repository(tmp_path / "main", {"a": "1"})
    git(main, "worktree", "add", "-q", "-b", "side", str(tmp_path / "work"))
    write(tmp_path / "work", {"a": "2"})
    restored = back(tmp_path / "work", tmp_path / "back")
    assert status(restored) == status(tmp_path / "work")
    assert (restored / ".git").is_dir()


def test_a_repository_that_cannot_be_read_is_named_and_the_rest_is_captured(tmp_path: Path) -> None:
    """Issue 5: never raises for what a repository says."""
    work = repository(tmp_path / "work", {"a": "1"})
    write(work, {"broken/.git": "gitdir: /nonexistent\n", "broken/b": "1"})
    (work / ".git/HEAD").write_text("nonsense\n")
    kept = Kept()
    found = found_in(work, kept)
    assert found.repositories is None
    assert [note.split(":")[0] for note in found.notes] == ["the git repository cannot be read", "broken"]
    assert ignored_folders(work, os.environ) == ()


def test_a_workspace_inside_a_larger_repository_is_captured_without_it(tmp_path: Path) -> None:
    """Issue 5: what is not captured is listed."""
    work = repository(tmp_path / "work", {"part/a": "1"})
    found = found_in(work / "part", Kept())
    assert (found.repositories, found.notes) == (None, (f"the git repository around the workspace, {work}",))


def test_line_ends_that_git_converts_are_clean_after_a_restore_too(tmp_path: Path) -> None:
    """Issue 5: core.autocrlf: the file is not the blob byte for byte, and git says it is unchanged, before and after."""
    work = repository(tmp_path / "work", {"a": "1\n2\n"})
    git(work, "config", "core.autocrlf", "true")
    (work / "a").unlink()
    git(work, "checkout", "-q", "a")
    assert (work / "a").read_bytes() == b"1\r\n2\r\n"
    os.utime(work / "a", (1_600_000_000, 1_600_000_000))
    git(work, "update-index", "--refresh")
    restored = back(work, tmp_path / "back")
    assert (restored / "a").read_bytes() == b"1\r\n2\r\n"
    assert git(restored, "status", "--porcelain") == b""


def test_the_state_is_one_artifact_and_reads_back(tmp_path: Path) -> None:
    """Contract: an artifact of kind `repository`."""
    work = repository(tmp_path / "work", {"a": "1", ".gitignore": "out/\n"})
    write(work, {"out/x": ""})
    kept = Kept()
    found = found_in(work, kept)
    assert found.digest is not None
    assert repositories.decode(kept[found.digest]) == found.repositories
    assert ignored_folders(work, os.environ) == (b"out/",)

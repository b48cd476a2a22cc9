"""Issue 5's first "must show": restore, capture again, the same fingerprint."""

from __future__ import annotations

import os
from pathlib import Path

from secondtake.harness.restore import restore
from secondtake.harness.snapshot import capture
from tests.harness.workspaces import SECRET, Kept, awkward, git, redactor, status, write


def test_what_is_restored_is_captured_as_the_same(tmp_path: Path) -> None:
    """Issue 5: two submodules, a dirty patch with a rename and a mode change, untracked and ignored files, a symlink, a name with a newline
    and one that is not UTF-8; git says the same of both, down to the flags of the index."""
    work = awkward(tmp_path)
    before = sorted((p.relative_to(work), p.lstat().st_mtime_ns) for p in (work / ".git").rglob("*"))
    kept = Kept()
    captured = capture(work, kept.keep, redactor())
    assert captured.repository is not None
    assert before == sorted((p.relative_to(work), p.lstat().st_mtime_ns) for p in (work / ".git").rglob("*"))
    back = tmp_path / "back"
    restored = restore(kept, captured.tree.digest, captured.repository_digest, back)
    assert restored.notes == ()
    again = capture(back, Kept().keep, redactor())
    assert again.tree == captured.tree
    assert again.repository is not None
    assert again.repository.fingerprint == captured.repository.fingerprint
    assert again.fingerprint == captured.fingerprint
    assert status(back) == status(work)
    assert git(back / "lib/one", "status", "--porcelain=v2") == git(work / "lib/one", "status", "--porcelain=v2")
    assert os.listxattr(back) == os.listxattr(work)


def test_no_later_commit_is_in_what_is_restored(tmp_path: Path) -> None:
    """Issue 5, DESIGN 6: an agent must not find the fix in the history: no ref, no object, no reflog, no stash."""
    work = awkward(tmp_path)
    kept = Kept()
    captured = capture(work, kept.keep, redactor())
    back = tmp_path / "back"
    restore(kept, captured.tree.digest, captured.repository_digest, back)
    assert git(back, "log", "--all", "--format=%s").decode().split() == ["libraries", "base"]
    later = git(work, "rev-parse", "later").decode().strip()
    objects = git(back, "cat-file", "--batch-all-objects", "--batch-check").decode()
    assert later not in objects
    assert not any(b"THE FIX" in git(back, "cat-file", "-p", line.split()[0]) for line in objects.splitlines())
    assert git(back, "for-each-ref", "--format=%(refname)").decode().split() == ["refs/heads/main", "refs/tags/v1"]
    assert not list((back / ".git").glob("logs/**/*"))
    assert git(back, "fsck", "--no-dangling") == b""


def test_nothing_secret_is_kept(tmp_path: Path) -> None:
    """Issue 5, SECURITY C: known values are hidden in files, in history and in remotes; a credential file's values are never kept."""
    work = awkward(tmp_path)
    write(
        work, {"config.txt": b"key = " + SECRET + b"\n", ".env": b"A=" + SECRET + b"\nOTHER=unknown-to-us-value\n# old unknown-comment\n"}
    )
    git(work, "add", "config.txt", ".env")
    git(work, "commit", "-qm", "with " + SECRET.decode())
    git(work, "remote", "add", "origin", "https://user:hunter2secretpw@host.example/x.git")
    write(work, {"config.txt": b"later\n"})
    kept = Kept()
    captured = capture(work, kept.keep, redactor())
    objects = captured.repository.root.objects if captured.repository and captured.repository.root else None
    assert objects is not None
    back = tmp_path / "back"
    restored = restore(kept, captured.tree.digest, captured.repository_digest, back)
    assert restored.files
    everything = kept.all + b"".join(p.read_bytes() for p in back.rglob("*") if p.is_file() and not p.is_symlink())
    everything += git(back, "log", "-p", "--all") + git(back, "cat-file", "--batch-all-objects", "--batch", "--buffer")
    for secret in (SECRET, b"unknown-to-us-value", b"unknown-comment", b"hunter2secretpw"):
        assert secret not in everything
    (there,) = captured.credentials
    assert (there.path, there.kind, there.scope, there.size_bytes) == (b".env", "dotenv", "A, OTHER", (work / ".env").stat().st_size)
    assert (back / ".env").read_bytes().startswith(b"A=_2T.")
    assert len((back / ".env").read_bytes()) == there.size_bytes
    assert git(back, "rev-parse", "HEAD") == git(work, "rev-parse", "HEAD")
    assert b".env" not in git(back, "status", "--porcelain")
    assert capture(back, Kept().keep, redactor()).fingerprint == captured.fingerprint


def test_no_name_that_git_knows_keeps_a_credential(tmp_path: Path) -> None:
    """SECURITY C: branches, tags and remotes are left out by their names; a repository with a file of such a name altogether."""
    work = awkward(tmp_path)
    git(work, "branch", "b-" + SECRET.decode())
    git(work, "tag", "t-" + SECRET.decode())
    git(work, "remote", "add", "r-" + SECRET.decode(), "https://host.example/x.git")
    kept = Kept()
    captured = capture(work, kept.keep, redactor())
    assert captured.repository is not None
    assert captured.repository.root is not None
    assert "refs/heads/main" in [name for name, _ in captured.repository.root.refs]
    assert SECRET not in kept.all
    git(work, "checkout", "-q", "b-" + SECRET.decode())
    assert (again := capture(work, kept.keep, redactor()).repository) is not None
    assert again.root is not None
    assert (again.root.branch, again.root.head) == (None, captured.repository.root.head)
    write(work, {f"of-{SECRET.decode()}": "same"})
    git(work, "add", "-A")
    git(work, "commit", "-qm", "it")
    git(work, "mv", "of-" + SECRET.decode(), "away")
    last = capture(work, kept.keep, redactor())
    assert last.repository is None or last.repository.root is None
    assert "the git repository cannot be read: a file's name in its history holds what looks like a credential" in last.not_captured
    assert SECRET not in kept.all


def test_an_empty_repository_a_detached_head_and_none_at_all(tmp_path: Path) -> None:
    """Issue 5: every state a workspace can be in comes back as it was."""
    unborn, detached, plain = (tmp_path / name for name in ("unborn", "detached", "plain"))
    for folder in (unborn, detached, plain):
        folder.mkdir()
        write(folder, {"a": "1"})
    git(unborn, "init", "-q", "-b", "trunk")
    git(unborn, "add", "a")
    git(detached, "init", "-q")
    git(detached, "add", "a")
    git(detached, "commit", "-qm", "one")
    git(detached, "checkout", "-q", "--detach")
    for folder in (unborn, detached, plain):
        kept = Kept()
        captured = capture(folder, kept.keep, redactor())
        back = tmp_path / f"back-{folder.name}"
        restore(kept, captured.tree.digest, captured.repository_digest, back)
        assert capture(back, Kept().keep, redactor()).fingerprint == captured.fingerprint
        if folder is not plain:
            assert status(back) == status(folder)
        else:
            assert captured.repository is None
            assert not (back / ".git").exists()

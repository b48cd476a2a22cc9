"""Files captured: content, placeholders, limits; a second capture reads what has changed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from secondtake.cassettes import trees
from secondtake.cassettes.trees import Node, Tree
from secondtake.harness.capturing import NotStaged, Snapshot, capture_home, refuse_root
from secondtake.harness.walking import Limits
from tests.harness.workspaces import SECRET, Kept, git, redactor, repository, write


def snapshot(root: Path, kept: Kept, *, only: frozenset[bytes] | None = None, **limits: int) -> Snapshot:
    return Snapshot(root, kept.keep, redactor(), limits=Limits(**limits), clock_s=lambda: 0.0, only=only)


def test_a_second_capture_reads_only_what_changed(tmp_path: Path) -> None:
    """DESIGN 6: an unchanged tree costs one walk; a change of content, mode, name or kind is seen."""
    write(tmp_path, {f"d/f{n}": f"{n}" for n in range(20)})
    kept = Kept()
    one = snapshot(tmp_path, kept)
    first = one.take().tree
    assert trees.decode(kept[first.digest]) == first
    newest = tmp_path / "d/f19"
    made_ns = newest.stat().st_ctime_ns
    while newest.stat().st_ctime_ns < made_ns + 25_000_000:  # until the others are old: file systems count time in steps
        newest.write_text("n")
    one.take()
    again = one.take()
    assert again.cost.size_bytes == 1
    write(tmp_path, {"d/f1": "changed", "d/f2": "2"})
    (tmp_path / "d/f3").chmod(0o755)
    (tmp_path / "d/f4").rename(tmp_path / "d/g4")
    (tmp_path / "d/f5").unlink()
    (tmp_path / "d/f5").symlink_to("f6")
    found = [(change.path, str(change.kind)) for change in trees.changes(again.tree, one.take().tree)]
    assert found == [(b"d/f1", "changed"), (b"d/f3", "mode"), (b"d/f5", "changed"), (b"d/g4", "renamed")]
    assert isinstance(first, Tree)


def test_a_change_of_the_same_size_in_the_same_moment_is_seen(tmp_path: Path) -> None:
    """A file as new as the last look is read again, whatever its times say."""
    write(tmp_path, {"a": "1"})
    one = snapshot(tmp_path, Kept())
    first = one.take().tree
    status = (tmp_path / "a").stat()
    write(tmp_path, {"a": "2"})
    os.utime(tmp_path / "a", ns=(status.st_atime_ns, status.st_mtime_ns))
    assert one.take().tree != first


def test_what_is_over_a_limit_is_listed_and_its_content_is_not_kept(tmp_path: Path) -> None:
    """Issue 5: too large, with its size; a hole costs nothing."""
    with (tmp_path / "hole").open("wb") as file:
        file.truncate(10**12)
    write(tmp_path, {"a": "x" * 60, "b": "x" * 60, "c": "x"})
    kept = Kept()
    taken = snapshot(tmp_path, kept, file_bytes=100, total_bytes=100).take()
    assert taken.not_captured == ("b: too large", "hole: too large")
    entries = taken.tree.by_path()
    assert (entries[b"hole"].note, entries[b"hole"].digest, entries[b"hole"].size_bytes) == ("too-large", None, 10**12)
    assert entries[b"c"].digest is not None


def test_too_many_files_are_refused_but_for_what_git_ignores(tmp_path: Path) -> None:
    """Issue 5: refused by name; ignored folders are left out first, and listed."""
    work = repository(tmp_path / "work", {".gitignore": "node_modules/\n", "a": "1"})
    write(work, {f"node_modules/{n}": "" for n in range(30)})
    said = git(work, "ls-files", "-z", "-o", "-i", "--exclude-standard", "--directory").split(b"\0")
    one = Snapshot(work, Kept().keep, redactor(), limits=Limits(files=10), clock_s=lambda: 0.0, ignored=lambda: said)
    taken = one.take()
    assert [entry.path for entry in taken.tree.entries] == [b".gitignore", b"a"]
    assert taken.not_captured == ("node_modules/: ignored by git, and too many files",)
    write(work, {f"src/{n}": "" for n in range(30)})
    with pytest.raises(NotStaged, match="more than 10 files"):
        one.take()


def test_links_are_kept_as_they_are_and_never_followed(tmp_path: Path) -> None:
    """D-15: what lies outside is not read."""
    outside = tmp_path / "outside"
    write(outside, {"file": "OUTSIDE CONTENT"})
    work = tmp_path / "work"
    work.mkdir()
    (work / "file").symlink_to(outside / "file")
    (work / "folder").symlink_to(outside)
    (work / "loop").symlink_to("loop")
    kept = Kept()
    taken = snapshot(work, kept).take()
    assert {entry.node for entry in taken.tree.entries} == {Node.LINK}
    assert b"OUTSIDE" not in kept.all


def test_secrets_become_placeholders_and_are_captured_so_again(tmp_path: Path) -> None:
    """SECURITY C: by value in any file, by name for credential files; a link's target is a text like others."""
    write(tmp_path, {"notes": b"key " + SECRET, ".npmrc": "//index.example/:_authToken=abcdefgh12345678\n", "same": "nothing"})
    (tmp_path / "link").symlink_to(SECRET.decode())
    kept = Kept()
    taken = snapshot(tmp_path, kept).take()
    entries = taken.tree.by_path()
    assert {path.decode(): entry.note for path, entry in entries.items()} == {
        ".npmrc": "placeholder",
        "link": "redacted",
        "notes": "redacted",
        "same": "",
    }
    assert SECRET not in kept.all
    assert b"abcdefgh" not in kept.all
    assert len(kept[entries[b"notes"].digest or taken.tree.digest]) == entries[b"notes"].size_bytes == 4 + len(SECRET)
    assert [(one.path, one.kind, one.scope) for one in taken.credentials] == [(b".npmrc", "npmrc", "index.example")]


def test_no_name_and_no_binary_file_keeps_a_credential(tmp_path: Path) -> None:
    """SECURITY C: a token in the name of a file, folder or link, and one that nobody knew in a file that is no text."""
    token = b"ghp_" + b"Zq3vT9kLm2Xw8RbN5yHc" + b"4JdP7sUgA1eFoB6t"
    write(
        tmp_path,
        {
            f"kept-{SECRET.decode()}": "a",
            f"folder-{token.decode()}/inner": "b",
            "data.bin": b"\0\1" + token + b"\0",
            "words": "c",
        },
    )
    (tmp_path / ("empty-" + token.decode())).mkdir()
    kept = Kept()
    taken = snapshot(tmp_path, kept).take()
    assert {path: entry.note for path, entry in taken.tree.by_path().items()} == {b"data.bin": "redacted", b"words": ""}
    assert not [secret for secret in (SECRET, token) if secret in kept.all or secret in "".join(taken.not_captured).encode()]
    assert sum("its name holds what looks like a credential" in line for line in taken.not_captured) == 3


def test_hard_links_are_noted(tmp_path: Path) -> None:
    """Issue 5: two names of one file become two files."""
    write(tmp_path, {"a": "x"})
    (tmp_path / "b").hardlink_to(tmp_path / "a")
    assert snapshot(tmp_path, Kept()).take().not_captured == (
        "2 files have other names: hard links; each name is a file of its own when restored",
    )


def test_files_of_home_are_captured_by_name_through_links_of_their_own(tmp_path: Path) -> None:
    """DESIGN 6: the HOME files a driver names, nothing else; a link is what it leads to; a name with too much in it is left."""
    home = tmp_path / "home"
    write(home, {".agent/settings.json": "{}", ".agent/other": "x", ".big/a": "", ".big/b": "", ".big/c": "", "private": "p"})
    write(tmp_path, {"dotfiles/RULES.md": "rules", "dotfiles/token": '{"t": "secretsecretsecret"}'})
    (home / ".agent/RULES.md").symlink_to(tmp_path / "dotfiles/RULES.md")
    (home / ".agent/auth.json").symlink_to(tmp_path / "dotfiles/token")
    kept = Kept()
    names = (".agent/settings.json", ".agent/RULES.md", ".agent/auth.json", ".big", ".none")
    taken = capture_home(names, lambda only: snapshot(home, kept, only=only, files=2), kept.keep)
    files = {entry.path: entry for entry in taken.tree.entries if entry.node is Node.FILE}
    assert set(files) == {b".agent/settings.json", b".agent/RULES.md", b".agent/auth.json"}
    assert kept[files[b".agent/RULES.md"].digest or taken.tree.digest] == b"rules"
    assert files[b".agent/auth.json"].note == "placeholder"
    assert b"secretsecret" not in kept.all
    assert taken.not_captured == ("~/.big: it holds more than 2 files",)
    assert capture_home((), lambda only: snapshot(home, kept, only=only), kept.keep).tree == Tree()


def test_some_folders_are_no_workspace(tmp_path: Path) -> None:
    """Issue 5: `/`, HOME itself and what is around it are refused by name."""
    for root in (Path("/"), tmp_path, tmp_path.parent):
        with pytest.raises(NotStaged):
            refuse_root(root, tmp_path)
    refuse_root(tmp_path / "work", tmp_path)
    refuse_root(tmp_path, Path("/"))

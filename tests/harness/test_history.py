"""The objects of a repository: what HEAD contains, within a limit, without credentials."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from secondtake.harness.git import Git, hardened, index_pack
from secondtake.harness.history import DEPTHS, Collecting, Objects
from secondtake.harness.walking import Limits
from tests.harness.workspaces import SECRET, Kept, git, redactor, repository, write


def collect(work: Path, kept: Kept, notes: list[str], judged: frozenset[str] = frozenset(), **limits: int) -> Objects:
    asked = Git.at(work, os.environ)
    head = asked.ask("rev-parse", "HEAD").decode().strip()
    return Collecting(asked, kept.keep, redactor(), Limits(**limits), notes.append, stand_ins={}, judged=judged).collected(head, [])


def names_in(kept: Kept, objects: Objects, folder: Path) -> list[str]:
    """What git finds in the pack."""
    assert objects.digest is not None
    folder.mkdir()
    git(folder, "init", "-q")
    index_pack(folder / ".git", kept[objects.digest], hardened(os.environ))
    return git(folder, "cat-file", "--batch-all-objects", "--batch-check=%(objectname)").decode().split()


def test_a_pack_holds_what_head_contains_and_nothing_else(tmp_path: Path) -> None:
    """Issue 5: no later commit, no other branch, tags and remote branches only where HEAD contains them."""
    work = repository(tmp_path / "work", {"a": "1"})
    git(work, "update-ref", "refs/remotes/origin/main", "HEAD")
    git(work, "symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/main")
    git(work, "checkout", "-qb", "other")
    write(work, {"a": "other"})
    git(work, "commit", "-qam", "other")
    git(work, "tag", "later")
    git(work, "update-ref", "refs/remotes/origin/later", "HEAD")
    git(work, "checkout", "-q", "main")
    write(work, {"a": "2"})
    git(work, "commit", "-qam", "two")
    git(work, "tag", "-am", "x", "now")
    write(work, {"a": "stashed"})
    git(work, "stash")
    kept, notes = Kept(), list[str]()
    objects = collect(work, kept, notes)
    expected = {line.split()[0] for line in git(work, "rev-list", "--objects", "now").decode().splitlines()}
    assert set(names_in(kept, objects, tmp_path / "out")) == expected
    assert [name for name, _ in objects.refs] == [
        "refs/heads/main",
        "refs/remotes/origin/HEAD",
        "refs/remotes/origin/main",
        "refs/tags/now",
    ]
    assert objects.refs[1][1] == "ref: refs/remotes/origin/main"
    assert (objects.shallow, objects.replaced, notes) == ((), (), [])


def test_of_a_long_history_the_newest_commits_are_kept(tmp_path: Path) -> None:
    """Issue 5: a stated limit, and what is beyond it is listed; the restored repository is shallow there."""
    work = repository(tmp_path / "work", {"a": "1"})
    for number in range(12):
        write(work, {"b": os.urandom(30_000).hex()})
        git(work, "add", "-A")
        git(work, "commit", "-qm", f"{number}")
    kept, notes = Kept(), list[str]()
    objects = collect(work, kept, notes, history_bytes=650_000)
    tenth = git(work, "rev-list", "HEAD").decode().split()[9]
    assert objects.shallow == (tenth,)
    assert notes == ["history before the newest 10 commits"]
    assert DEPTHS[-1] == 1
    notes.clear()
    assert collect(work, kept, notes, history_bytes=1000, total_bytes=1000) == Objects()
    assert notes == ["the objects of the git repository: too large"]


def test_what_holds_a_credential_is_kept_without_it_under_its_name(tmp_path: Path) -> None:
    """SECURITY C: history passes the redactor; names of commits stay, so the rest of the history stands."""
    work = repository(tmp_path / "work", {"a": b"x " + SECRET, ".env": "TOKEN=abcdefgh\n", "b": "b"})
    kept, notes = Kept(), list[str]()
    objects = collect(work, kept, notes)
    assert [one.kind for one in objects.replaced] == ["blob", "blob"]
    assert SECRET not in kept.all
    assert b"abcdefgh" not in kept.all
    gone = {one.oid for one in objects.replaced}
    assert gone == set(git(work, "rev-parse", "HEAD:a", "HEAD:.env").decode().split())
    assert not gone & set(names_in(kept, objects, tmp_path / "out"))
    assert notes == ["2 objects of the repository hold credentials; they are kept with placeholders, under their names"]


def test_shallow_and_partial_clones_are_taken_as_they_are(tmp_path: Path) -> None:
    """Issue 5: a shallow clone stays one; objects that are not here are not fetched, and listed."""
    origin = repository(tmp_path / "origin", {"a": "1", "b": "2"})
    write(origin, {"a": "2"})
    git(origin, "commit", "-qam", "two")
    git(origin, "config", "uploadpack.allowFilter", "true")
    git(tmp_path, "clone", "-q", "--depth=1", f"file://{origin}", "shallow")
    kept, notes = Kept(), list[str]()
    objects = collect(tmp_path / "shallow", kept, notes)
    assert objects.shallow == (git(origin, "rev-parse", "HEAD").decode().strip(),)
    assert notes == []
    git(tmp_path, "clone", "-q", "--no-checkout", "--filter=blob:none", f"file://{origin}", "partial")
    before = sorted((tmp_path / "partial/.git/objects").rglob("*"))
    objects = collect(tmp_path / "partial", kept, notes)
    assert notes == ["2 objects of the repository are not here (a partial clone?); they are not captured"]
    assert objects.digest is not None
    assert before == sorted((tmp_path / "partial/.git/objects").rglob("*"))


@pytest.mark.parametrize("judged", [False, True])
def test_what_was_searched_as_a_file_is_not_searched_again(tmp_path: Path, judged: bool) -> None:
    """DESIGN 6: the cost is modest: of a clean workspace only what is not in it is read from git."""
    work = repository(tmp_path / "work", {"a": b"x" * 5000})
    blob = git(work, "rev-parse", "HEAD:a").decode().strip()
    asked: list[str] = []

    class Watched(Git):
        def objects(self, names):  # type: ignore[no-untyped-def]
            asked.extend(names)
            return super().objects(names)

    at = Git.at(work, os.environ)
    head = at.ask("rev-parse", "HEAD").decode().strip()
    one = Collecting(
        Watched(at.root, at.environ),
        Kept().keep,
        redactor(),
        Limits(),
        lambda _: None,
        stand_ins={},
        judged=frozenset({blob} if judged else ()),
    )
    one.collected(head, [])
    assert (blob in asked) is not judged

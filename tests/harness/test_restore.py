"""What a stranger's tree may do to a disk: nothing outside the folder it is restored in."""

from __future__ import annotations

import os
import stat
from dataclasses import replace
from pathlib import Path

import pytest

from secondtake.cassettes import layout, repositories, trees
from secondtake.cassettes.errors import BadInput, Corrupt, NotFound
from secondtake.cassettes.exchange import Digest
from secondtake.cassettes.repositories import Repositories, Repository
from secondtake.cassettes.store import Store
from secondtake.cassettes.trees import Entry, Node, Tree, tree_of
from secondtake.harness.restore import restore, restored_home, restored_scratch, tree_at
from secondtake.harness.snapshot import capture
from tests.harness.workspaces import Kept, awkward, git, redactor, repository, write


def kept_tree(kept: Kept, *entries: Entry) -> Digest:
    return kept.keep("tree", trees.encode(tree_of(entries)))


def file(kept: Kept, path: bytes, content: bytes = b"x", mode: int = 0o644) -> Entry:
    return Entry(path, Node.FILE, mode, kept.keep("blob", content), len(content))


def test_modes_links_holes_and_times_come_back(tmp_path: Path) -> None:
    """Issue 5: modes whatever the umask, links as they are, read-only folders, a hole where the content was not captured."""
    kept = Kept()
    digest = kept_tree(
        kept,
        file(kept, b"ro/f", mode=0o400),
        Entry(b"ro", Node.FOLDER, 0o555),
        Entry(b"link", Node.LINK, 0, target=b"/etc/passwd"),
        Entry(b"big", Node.FILE, 0o640, None, 10**9, note="too-large"),
        Entry(b"empty", Node.FOLDER, 0o1777),
        file(kept, b"\xff\n", b"odd"),
    )
    before = os.umask(0o077)
    try:
        told = restore(kept, digest, None, tmp_path / "out", modified_ns=1_000_000_000)
    finally:
        os.umask(before)
    out = tmp_path / "out"
    assert told.notes == ("big: its content was not captured",)
    assert {path.name: oct(stat.S_IMODE(path.lstat().st_mode)) for path in out.rglob("*") if not path.is_symlink()} == {
        "ro": "0o555",
        "f": "0o400",
        "big": "0o640",
        "empty": "0o1777",
        os.fsdecode(b"\xff\n"): "0o644",
    }
    assert (out / "link").readlink() == Path("/etc/passwd")
    assert (out / "big").stat().st_size == 10**9
    assert (out / "big").stat().st_blocks < 100
    assert {path.lstat().st_mtime_ns for path in out.rglob("*")} == {1_000_000_000}
    assert stat.S_IMODE(out.stat().st_mode) == 0o755
    (out / "ro").chmod(0o755)


@pytest.mark.parametrize("path", [b"../out", b"/tmp/out", b"a/../../out", b".git/hooks/post-checkout", b"a/.git/config"])
def test_a_tree_that_leads_out_is_refused_before_anything_is_written(tmp_path: Path, path: bytes) -> None:
    """B-11: untrusted is the default."""
    kept = Kept()
    digest = kept.keep("tree", trees.encode(Tree((file(kept, path),))))
    with pytest.raises(Corrupt):
        restore(kept, digest, None, tmp_path / "into")
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_written_through_a_link(tmp_path: Path) -> None:
    """B-11: neither one of the tree's own, nor one that stands where the folder should be."""
    kept = Kept()
    outside = tmp_path / "outside"
    outside.mkdir()
    entries = (Entry(b"a", Node.LINK, 0, target=os.fsencode(outside)), file(kept, b"a/f"))
    with pytest.raises(Corrupt):
        restore(kept, kept.keep("tree", trees.encode(Tree(entries))), None, tmp_path / "into")
    (tmp_path / "link").symlink_to(outside)
    with pytest.raises(BadInput):
        restore(kept, kept_tree(kept, file(kept, b"f")), None, tmp_path / "link")
    write(tmp_path / "full", {"x": ""})
    with pytest.raises(BadInput):
        restore(kept, kept_tree(kept, file(kept, b"f")), None, tmp_path / "full")
    assert list(outside.iterdir()) == []


def test_no_set_user_id_comes_from_a_recording(tmp_path: Path) -> None:
    """A stranger's tree restored by root makes no program that runs as root."""
    kept = Kept()
    restore(kept, kept_tree(kept, file(kept, b"f", mode=0o6755)), None, tmp_path / "out")
    assert stat.S_IMODE((tmp_path / "out/f").stat().st_mode) == 0o755


def test_a_repository_is_put_only_where_the_tree_has_a_folder_for_it(tmp_path: Path) -> None:
    """B-11: a repository's path may not lead through a link either."""
    kept = Kept()
    outside = tmp_path / "outside"
    outside.mkdir()
    digest = kept_tree(kept, Entry(b"lib", Node.LINK, 0, target=os.fsencode(outside)))
    for one in (Repository(path=b"lib"), Repository(path=b"lib/x"), Repository(path=b"none")):
        state = kept.keep("repository", repositories.encode(Repositories((one,))))
        with pytest.raises(Corrupt):
            restore(kept, digest, state, tmp_path / "into")
    state = kept.keep("repository", repositories.encode(Repositories((replace(Repository(path=b"s"), place=b"modules/s"),))))
    with pytest.raises(Corrupt):
        restore(kept, kept_tree(kept, Entry(b"s", Node.SUBMODULE, 0o755)), state, tmp_path / "into")
    assert list(outside.iterdir()) == []


def test_a_restored_repository_runs_nothing_of_the_recording(tmp_path: Path) -> None:
    """Issue 5: what a stranger's workspace configures does not run when its restored copy is used."""
    work = repository(tmp_path / "work", {"a": "1", ".gitattributes": "* filter=evil\n"})
    git(work, "config", "filter.evil.clean", f"touch {tmp_path}/sprung; cat")
    git(work, "config", "core.fsmonitor", f"touch {tmp_path}/sprung")
    kept = Kept()
    captured = capture(work, kept.keep, redactor())
    restore(kept, captured.tree.digest, captured.repository_digest, tmp_path / "back")
    write(tmp_path / "back", {"a": "2"})
    git(tmp_path / "back", "commit", "-qam", "x")
    assert not (tmp_path / "sprung").exists()


@pytest.fixture
def recorded(tmp_path: Path) -> Store:
    """A store with a recording of a workspace."""
    work = awkward(tmp_path)
    write(tmp_path / "home", {".agent/settings.json": "{}"})
    store = Store(tmp_path / "store")
    writer = store.create("one", meta={})
    captured = capture(work, writer.keep, redactor())
    home = capture(tmp_path / "home", writer.keep, redactor())
    stage = {"workspace": captured.tree.digest, "repository": captured.repository_digest, "home": home.tree.digest, "root": str(work)}
    writer.close(meta={"stage": stage})
    writer = store.create("without", meta={})
    writer.close(meta={})
    return store


def test_a_recording_restores_its_workspace_as_a_scratch_copy(tmp_path: Path, recorded: Store) -> None:
    """Issue 5 item 1: a replay needs no directory of the person's: the recorded workspace is restored, with its name."""
    parent = tmp_path / "scratch"
    parent.mkdir()
    with recorded.open("one") as cassette:
        place = restored_scratch(cassette, parent)
        assert place == parent / "work"
        assert capture(place, Kept().keep, redactor()).tree.digest == cassette.meta["stage"]["workspace"]  # type: ignore[index]
        assert restored_home(cassette, parent / "home") == (b".agent/settings.json",)
        assert (parent / "home/.agent/settings.json").read_text() == "{}"
        assert stat.S_IMODE((parent / "home").stat().st_mode) == 0o700
        assert b"b.py" in tree_at(cassette, cassette.meta["stage"]["workspace"]).by_path()  # type: ignore[index]
        with pytest.raises(Corrupt):
            tree_at(cassette, next(one.digest for one in cassette.artifacts if one.kind == "blob"))
    with recorded.open("without") as cassette:
        with pytest.raises(NotFound, match="no recorded workspace"):
            restored_scratch(cassette, parent)
        assert restored_home(cassette, parent / "nothing") == ()


@pytest.mark.parametrize("root", ["/", "", "/..", "/a/\0", "/" + "x" * 300])
def test_the_name_of_a_scratch_copy_is_never_a_way_out(tmp_path: Path, root: str) -> None:
    """B-11: the recorded path is a stranger's text."""
    store = Store(tmp_path / "store")
    writer = store.create("one", meta={})
    digest = writer.keep("tree", trees.encode(Tree()))
    writer.close(meta={"stage": layout.ordered({"workspace": digest, "root": root})})
    with store.open("one") as cassette:
        assert restored_scratch(cassette, tmp_path / "parent") == tmp_path / "parent/workspace"

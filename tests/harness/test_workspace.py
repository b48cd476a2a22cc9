"""Scratch copies and tree comparison, on real folders."""

# Names here are bytes, which pathlib does not hold.
# ruff: noqa: PTH101, PTH102, PTH115, PTH118, PTH208, PTH211

from __future__ import annotations

import os
import shutil
import socket
import stat
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from secondtake.cassettes.errors import BadInput, NotStored
from secondtake.harness.workspace import (
    Change,
    Changed,
    Note,
    Trouble,
    compare,
    copy_workspace,
    read_tree,
    remove_workspace,
    shown,
)

NAMES = st.binary(min_size=1, max_size=12).filter(lambda n: b"/" not in n and b"\0" not in n and n not in (b".", b".."))
"""Any name a Linux file system takes: line ends, escapes, bytes that are not UTF-8."""

FILES = st.tuples(st.just("file"), st.binary(max_size=64), st.sampled_from([0o644, 0o755, 0o400, 0o600, 0o4755]))
LINKS = st.tuples(st.just("link"), NAMES, st.just(0))
TREES = st.recursive(
    st.one_of(FILES, LINKS),
    lambda inner: st.tuples(st.just("folder"), st.dictionaries(NAMES, inner, max_size=3), st.sampled_from([0o755, 0o700, 0o500])),
    max_leaves=8,
)


def build(root: bytes, content: dict[bytes, tuple[str, object, int]]) -> None:
    for name, (kind, what, mode) in content.items():
        path = os.path.join(root, name)
        if kind == "file":
            Path(os.fsdecode(path)).write_bytes(what)  # type: ignore[arg-type]  # what FILES makes
            os.chmod(path, mode)
        elif kind == "link":
            os.symlink(what, path)  # type: ignore[arg-type]  # what LINKS makes
        else:
            os.mkdir(path)
            build(path, what)  # type: ignore[arg-type]  # what TREES makes
            os.chmod(path, mode)
        if kind != "link":
            os.utime(path, ns=(1_000_000_001, 1_000_000_002))


@settings(max_examples=60, deadline=None)
@given(st.dictionaries(NAMES, TREES, max_size=4))
def test_a_copy_is_the_same_tree(content: dict[bytes, tuple[str, object, int]]) -> None:
    """Property: names of any bytes, modes, links and empty folders come through, times too; and the copy can be removed."""
    place = Path(tempfile.mkdtemp())
    source, copy = place / "source", place / "copy"
    source.mkdir()
    build(os.fsencode(source), content)
    copied = copy_workspace(source, copy)
    before, after = read_tree(source), read_tree(copy)
    assert after == before
    assert after.digest == before.digest
    assert compare(before, after) == ()
    assert copied.files == sum(1 for e in before.entries if e.kind == "file")
    for entry in before.entries:
        times = [os.lstat(os.path.join(os.fsencode(root), entry.path)).st_mtime_ns for root in (source, copy)]
        assert times[0] == times[1]
    remove_workspace(copy)
    assert not copy.exists()
    remove_workspace(source)
    place.rmdir()


@settings(max_examples=60, deadline=None)
@given(st.lists(NAMES, min_size=2, max_size=5, unique=True), st.data())
def test_every_single_change_changes_the_digest_and_is_named(names: list[bytes], data: st.DataObject) -> None:
    """Property: content, mode, kind, addition and removal of one path are seen, and nothing else is."""
    root = Path(tempfile.mkdtemp())
    top = os.fsencode(root)
    new, *old = names
    for name in old:
        Path(os.fsdecode(os.path.join(top, name))).write_bytes(b"x")
        os.chmod(os.path.join(top, name), 0o644)
    before = read_tree(root)
    changed = data.draw(st.sampled_from(list(Changed)))
    name = new if changed is Changed.ADDED else data.draw(st.sampled_from(old))
    path = Path(os.fsdecode(os.path.join(top, name)))
    match changed:
        case Changed.ADDED:
            path.touch()
        case Changed.REMOVED:
            path.unlink()
        case Changed.CONTENT:
            path.write_bytes(b"y")
        case Changed.MODE:
            path.chmod(0o755)
        case Changed.KIND:
            path.unlink()
            path.mkdir()
    after = read_tree(root)
    assert compare(before, after) == (Change(changed, name),)
    assert before.digest != after.digest
    shutil.rmtree(root)


def test_special_files_are_left_out_and_named(tmp_path: Path) -> None:
    """A pipe, a socket: opening one could hang or act; they are noted, and the rest is copied."""
    source = tmp_path / "w"
    source.mkdir()
    os.mkfifo(source / "pipe")
    (source / "file").write_text("x")
    listening = socket.socket(socket.AF_UNIX)
    here = Path.cwd()
    os.chdir(source)  # the name of a socket is at most 108 bytes long
    try:
        listening.bind("socket")
    finally:
        os.chdir(here)
        listening.close()
    copied = copy_workspace(source, tmp_path / "c")
    assert copied.notes == (Note(Trouble.SPECIAL, b"pipe"), Note(Trouble.SPECIAL, b"socket"))
    assert os.listdir(tmp_path / "c") == ["file"]
    assert {c.path for c in compare(read_tree(source), read_tree(tmp_path / "c"))} == {b"pipe", b"socket"}


@pytest.mark.parametrize("link", ["/etc/hosts", "../beside", "deep/../../x"])
def test_a_link_that_leads_out_is_kept_and_named(tmp_path: Path, link: str) -> None:
    """A replay cannot hurt (DESIGN 6): writing through such a link would change the original."""
    source = tmp_path / "w"
    source.mkdir()
    (source / "out").symlink_to(link)
    (source / "in").symlink_to("out/../file")
    assert copy_workspace(source, tmp_path / "c").notes == (Note(Trouble.LEADS_OUT, b"out"),)
    assert os.readlink(tmp_path / "c" / "out") == link


def test_a_link_to_a_folder_is_not_entered(tmp_path: Path) -> None:
    """A loop of links ends; what a link points to is neither copied twice nor removed with the copy."""
    source, other = tmp_path / "w", tmp_path / "other"
    source.mkdir()
    other.mkdir()
    (other / "precious").touch()
    (source / "self").symlink_to(".")
    (source / "other").symlink_to(other)
    copy_workspace(source, tmp_path / "c")
    remove_workspace(tmp_path / "c")
    assert (other / "precious").exists()


def test_where_a_copy_may_not_be_made(tmp_path: Path) -> None:
    """Into itself, around itself, over something: refused with both names, and nothing is touched."""
    source = tmp_path / "w"
    source.mkdir()
    full = tmp_path / "full"
    full.mkdir()
    (full / "x").touch()
    (tmp_path / "link").symlink_to(source)
    for destination in (source / "inside", source, tmp_path, full, full / "x", tmp_path / "link" / "inside"):
        with pytest.raises(BadInput):
            copy_workspace(source, destination)
    with pytest.raises(BadInput, match="not a folder"):
        copy_workspace(full / "x", tmp_path / "c")
    assert os.listdir(source) == []
    assert os.listdir(full) == ["x"]


def test_a_full_disk_leaves_no_half_copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """B-05's kind: the disk refuses in the middle; one error, and the folder is gone."""
    source = tmp_path / "w"
    source.mkdir()
    (source / "a").touch()
    (source / "a").chmod(0o400)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(shutil, "copyfileobj", full)
    with pytest.raises(NotStored, match="No space left") as error:
        copy_workspace(source, tmp_path / "c")
    assert error.value.reason == "ENOSPC"
    assert not (tmp_path / "c").exists()


def test_the_copy_is_private_until_it_is_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another user cannot read a half copy whose folder modes are not set yet."""
    source = tmp_path / "w"
    source.mkdir(mode=0o755)
    (source / "a").touch()
    seen = []

    def look(*_: object) -> None:
        seen.append(stat.S_IMODE((tmp_path / "c").stat().st_mode))

    monkeypatch.setattr(shutil, "copyfileobj", look)
    copy_workspace(source, tmp_path / "c")
    assert seen == [0o700]
    assert stat.S_IMODE((tmp_path / "c").stat().st_mode) == stat.S_IMODE(source.stat().st_mode)


def test_a_path_is_shown_without_control_characters() -> None:
    """Untrusted names never reach a terminal raw."""
    assert shown(b"a\x1b[2Jb\n\xff\xc3\xa9\xe2\x80\xae") == "a\\x1b[2Jb\\n\\xffé\\u202e"

"""One walk: what is found, what is named, what is not captured."""

from __future__ import annotations

import os
import socket
from pathlib import Path

from secondtake.cassettes.trees import Entry, Node
from secondtake.harness.walking import Limits, Notes, Walk
from tests.harness.workspaces import write


def walk(root: Path, **limits: int) -> Walk:
    return Walk(root, Limits(**limits), frozenset(), None)


def test_a_walk_names_files_links_and_the_folders_that_nothing_else_shows(tmp_path: Path) -> None:
    """Issue 5: empty folders and unusual modes; names are bytes; no link is followed."""
    write(tmp_path, {"a/b": "", "line\nend": ""})
    Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff")).touch()
    (tmp_path / "up").symlink_to("..")
    (tmp_path / "empty").mkdir()
    (tmp_path / "private").mkdir(mode=0o700)
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub/.git").write_text("gitdir: ../.git/modules/sub\n")
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git/HEAD").touch()
    one = walk(tmp_path)
    found = one.all()
    assert found is not None
    assert [each.path for each in found] == [b"a/b", b"line\nend", b"up", b"\xff"]
    assert sorted(one.folders, key=lambda each: each.path) == [
        Entry(b"empty", Node.FOLDER, 0o755),
        Entry(b"private", Node.FOLDER, 0o700),
        Entry(b"sub", Node.SUBMODULE, 0o755),
    ]
    assert one.nested == [b"sub"]
    assert one.notes.lines() == ()


def test_what_is_no_file_is_listed(tmp_path: Path) -> None:
    """Issue 5: sockets, pipes and devices are listed as not captured, and nothing waits for a pipe."""
    os.mkfifo(tmp_path / "pipe")
    listening = socket.socket(socket.AF_UNIX)
    here = Path.cwd()
    os.chdir(tmp_path)  # a socket's path is short
    try:
        listening.bind("sock")
    finally:
        os.chdir(here)
        listening.close()
    (tmp_path / ".GIT").touch()
    one = walk(tmp_path)
    assert one.all() == []
    assert one.notes.lines() == (
        "pipe: a socket, pipe or device",
        "sock: a socket, pipe or device",
        ".GIT: named like a repository's own folder",
    )


def test_a_walk_ends_at_its_limits(tmp_path: Path) -> None:
    """Issue 5: over the number of files the walk gives up; what is too deep is listed."""
    write(tmp_path, {f"f{n}": "" for n in range(5)} | {"1/2/3/4/deep": ""})
    assert walk(tmp_path, files=5).all() is None
    one = walk(tmp_path, depth=2)
    assert one.all() is not None
    assert one.notes.lines() == ("1/2/3/4: too deep",)


def test_of_many_paths_the_first_are_named() -> None:
    """A list of ten thousand is no list."""
    notes = Notes()
    for number in range(30):
        notes.add("too large", b"f%02d\n" % number)
    assert notes.lines()[0] == "f00\\n: too large"
    assert notes.lines()[-1] == "10 more: too large"
    assert len(notes.lines()) == 21

"""Which turn changed a file."""

from __future__ import annotations

from pathlib import Path

import pytest

from secondtake.cassettes import trees
from secondtake.cassettes.cassette import Cassette
from secondtake.cassettes.digest import digest_of
from secondtake.cassettes.errors import NotFound
from secondtake.cassettes.store import Store
from secondtake.cassettes.trees import Entry, Node, tree_of
from secondtake.cassettes.writer import Writer
from secondtake.harness.blame import blame, states
from tests.cassettes.scenes import commit, numbered
from tests.cli.scenes import sample


def tree(writer: Writer, **files: str) -> str:
    entries = []
    for name, content in files.items():
        path = name.replace("__", "/").encode()
        entries.append(Entry(path, Node.FILE, 0o644, writer.keep("blob", content.encode()), len(content)))
    return writer.keep("tree", trees.encode(tree_of(entries)))


@pytest.fixture
def cassette(tmp_path: Path) -> Cassette:
    """Five model calls that ask for a tool, and a workspace that changed at three of them: edited, renamed, edited again."""
    store = Store(tmp_path)
    writer = store.create("one", meta={})
    one, bodies = sample()[0]
    for seq in (1, 4, 6, 8, 9):
        assert commit(writer, numbered(one, seq), {digest_of(data): data for data in bodies}) is None
    start = tree(writer, a="one\n", b="b\n")
    turns = [
        [1, 4, tree(writer, a="two\n", b="b\n")],
        [3, 8, tree(writer, lib__a="two\n", b="b\n")],
    ]
    final = tree(writer, lib__a="three\n", b="b\n", new="n\n")
    writer.close(meta={"stage": {"workspace": start, "turns": turns, "final": final, "root": "/repo"}})
    return store.open("one")


def test_every_change_of_a_file_is_found_through_its_renames(cassette: Cassette) -> None:
    """Issue 5: turn, exchange, what happened, and the tool calls of that turn."""
    found = blame(cassette, b"lib/a", patches=True)
    assert [(str(one.change.kind), one.change.path, one.step, one.seq) for one in found] == [
        ("changed", b"a", 1, 1),
        ("renamed", b"lib/a", 3, 6),
        ("changed", b"lib/a", 5, 9),
    ]
    assert [call.name for call in found[0].calls] == ["run"]
    assert "-one\n+two\n" in found[0].patch
    assert "rename from a\nrename to lib/a\n" in found[1].patch
    assert found[2].patch.startswith("diff --git a/lib/a b/lib/a\n")
    assert len(states(cassette)) == 4


def test_a_folder_stands_for_what_is_in_it_and_a_path_that_is_gone_is_found(cassette: Cassette) -> None:
    """Issue 5: all changes below a path; where a file went is told of its old name as well."""
    assert [one.change.path for one in blame(cassette, b"lib/")] == [b"a", b"lib/a", b"lib/a"]
    assert [str(one.change.kind) for one in blame(cassette, b"a")] == ["changed", "renamed"]
    assert len(blame(cassette, b"")) == 4
    assert blame(cassette, b"b") == ()


def test_what_cannot_be_answered_says_why(cassette: Cassette, tmp_path: Path) -> None:
    """STYLE: what happened, to which thing, what came closest."""
    with pytest.raises(NotFound) as unknown:
        blame(cassette, b"lib/b")
    assert unknown.value.hint == "closest: lib/a"
    with pytest.raises(NotFound) as other:
        blame(cassette, b"x/new")
    assert other.value.hint == "closest: new"
    store = Store(tmp_path)
    writer = store.create("none", meta={})
    writer.close(meta={"stage": {"root": "/", "not_captured": ["the workspace: it is HOME itself"]}})
    with store.open("none") as without, pytest.raises(NotFound, match="it is HOME itself"):
        blame(without, b"a")


def test_a_take_does_not_name_a_turn_that_nobody_looked_at(tmp_path: Path) -> None:
    """A take is looked at before and after: the last turn is not blamed for what an earlier one did."""
    writer = Store(tmp_path).create("take", meta={"kind": "take"})
    one, bodies = sample()[0]
    assert commit(writer, one, {digest_of(data): data for data in bodies}) is None
    start, final = tree(writer, a="one\n"), tree(writer, a="two\n")
    writer.close(meta={"stage": {"workspace": start, "final": final, "root": "/repo"}})
    (found,) = blame(Store(tmp_path).open("take"), b"a", patches=True)
    assert (found.step, found.seq, found.calls) == (None, None, ())
    assert "-one\n+two\n" in found.patch

"""Trees as values: one encoding, no way out, what changed, and the patch."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from secondtake.cassettes import layout, trees
from secondtake.cassettes.digest import digest_of
from secondtake.cassettes.errors import Corrupt
from secondtake.cassettes.trees import Change, Entry, Kind, Node, Tree, changes, decode, encode, patch, shown, tree_of

NAMES = st.binary(min_size=1, max_size=12).filter(
    lambda b: b"\0" not in b and b"/" not in b and b not in (b".", b"..") and b.lower() != b".git"
)


def file(path: bytes, content: bytes = b"x", mode: int = 0o644, note: str = "") -> Entry:
    return Entry(path, Node.FILE, mode, digest_of(content), len(content), note=note)


@st.composite
def some_trees(draw: st.DrawFn) -> Tree:
    """Trees of any names, a folder deep or two."""
    made: dict[bytes, Entry] = {}
    for name in draw(st.sets(NAMES, max_size=6)):
        match draw(st.integers(0, 4)):
            case 0:
                made[name] = Entry(name, Node.LINK, 0, target=draw(st.binary(min_size=1, max_size=9).filter(lambda b: b"\0" not in b)))
            case 1:
                made[name] = Entry(name, Node.FOLDER, 0o700)
                inner = name + b"/" + draw(NAMES)
                made[inner] = file(inner, draw(st.binary(max_size=3)), draw(st.integers(0, 0o7777)))
            case 2:
                made[name] = Entry(name, Node.FILE, 0o600, None, 10**12, note="too-large")
            case _:
                made[name] = file(name, draw(st.binary(max_size=3)))
    return tree_of(made.values())


@given(some_trees())
def test_a_tree_is_what_its_encoding_says(tree: Tree) -> None:
    """One value, one encoding, one digest."""
    assert decode(encode(tree)) == tree
    assert tree.digest == digest_of(encode(tree))


@given(some_trees(), some_trees())
def test_changes_lead_from_one_tree_to_the_other(before: Tree, after: Tree) -> None:
    """Nothing that differs is left out, nothing else is named."""
    state = before.by_path()
    for change in changes(before, after):
        assert change.before == (state.pop(change.source or change.path, None) if change.before else None)
    for change in changes(before, after):
        if change.after is not None:
            state[change.path] = change.after
    assert state == after.by_path()
    assert changes(after, after) == ()


@pytest.mark.parametrize(
    "path", [b"", b"/etc/passwd", b"..", b"a/../b", b"a//b", b"./a", b"a/", b"a\0b", b".git/config", b"a/.GIT/hooks/x", b"x" * 5000]
)
def test_no_path_leads_out_nor_into_a_repository(path: bytes) -> None:
    """B-11: trees come from strangers."""
    with pytest.raises(Corrupt):
        decode(encode(Tree((file(path),))))


@pytest.mark.parametrize(
    "entries",
    [
        (file(b"b"), file(b"a")),
        (file(b"a"), file(b"a")),
        (Entry(b"a", Node.LINK, 0, target=b"/etc"), file(b"a/passwd")),
        (file(b"a"), file(b"a-b"), file(b"a/b/c")),
        (Entry(b"a", Node.LINK, 0),),
        (Entry(b"a", Node.LINK, 0, target=b"x\0y"),),
        (Entry(b"a", Node.FOLDER, 0o755, digest_of(b"")),),
        (Entry(b"a", Node.FILE, 0o10000),),
        (Entry(b"a", Node.FILE, 0o644, size_bytes=-1),),
        (Entry(b"a", Node.FILE, 0o644, note="other"),),
    ],
)
def test_a_tree_that_cannot_be_is_damage(entries: tuple[Entry, ...]) -> None:
    """B-11: nothing stands below a link or a file, nothing twice."""
    with pytest.raises(Corrupt):
        decode(encode(Tree(entries)))


@pytest.mark.parametrize(
    "value", [{}, {"v": 2, "entries": []}, {"v": 1, "entries": [[1]]}, {"v": 1, "entries": "x"}, {"entries": [], "v": 1}, 3]
)
def test_bytes_that_are_no_tree_are_damage(value: object) -> None:
    """B-11: also the right value in another encoding."""
    with pytest.raises(Corrupt):
        decode(layout.pack(value))


def test_a_rename_a_mode_change_and_an_edit_are_told_apart() -> None:
    """Issue 5, `blame`: what happened to a path is one word."""
    before = tree_of([file(b"a.py", b"one"), file(b"run.sh", b"two"), file(b"c", b"three"), file(b"gone", b"four"), file(b"empty", b"")])
    after = tree_of(
        [file(b"lib/a.py", b"one"), file(b"run.sh", b"two", 0o755), file(b"c", b"3"), file(b"new", b"five"), file(b"void", b"")]
    )
    assert [(one.kind, one.path, one.source) for one in changes(before, after)] == [
        (Kind.CHANGED, b"c", b""),
        (Kind.REMOVED, b"empty", b""),
        (Kind.REMOVED, b"gone", b""),
        (Kind.RENAMED, b"lib/a.py", b"a.py"),
        (Kind.ADDED, b"new", b""),
        (Kind.MODE, b"run.sh", b""),
        (Kind.ADDED, b"void", b""),
    ]


def test_of_equal_files_the_one_of_the_same_name_was_moved() -> None:
    """A licence text stands in ten places."""
    before = tree_of([file(b"a/LICENSE"), file(b"b/COPYING")])
    after = tree_of([file(b"c/COPYING")])
    assert Change(b"c/COPYING", Kind.RENAMED, before.entries[1], after.entries[0], b"b/COPYING") in changes(before, after)


def test_git_applies_the_patch(tmp_path: Path) -> None:
    """The patch is one that `git apply` takes: edits, no line end at the end, new, gone, renamed, modes, odd names."""
    before = {
        b"edit.txt": b"".join(b"line %d\n" % n for n in range(40)),
        b"gone": b"bye\n",
        b"old name": b"moved\n",
        b"tail": b"a\nb",
        b"crlf": b"x\r\ny\r\n",
    }
    after = {
        **before,
        b"edit.txt": before[b"edit.txt"].replace(b"line 20\n", b"twenty\n"),
        b"tail": b"a\nB",
        b'n"ew\n\xc3\xa9': b"one\ntwo\n",
        b"crlf": b"x\r\nY\r\n",
    }
    del after[b"gone"], after[b"old name"]
    after[b"new name"] = b"moved\n"
    for name, content in before.items():
        (tmp_path / name.decode()).write_bytes(content)
    (tmp_path / "edit.txt").chmod(0o644)
    trees_of = [
        tree_of(file(p, c, 0o755 if p == b"edit.txt" and n else 0o644) for p, c in s.items()) for n, s in enumerate((before, after))
    ]
    contents = {digest_of(content): content for content in [*before.values(), *after.values()]}
    text = patch(changes(*trees_of), lambda e: contents[e.digest or digest_of(b"")], lambda e: contents[e.digest or digest_of(b"")])
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    subprocess.run(["git", "apply", "--whitespace=nowarn", "-"], input=text.encode(), cwd=tmp_path, check=True)
    assert {p.name.encode(): p.read_bytes() for p in tmp_path.iterdir() if p.is_file()} == after
    assert (tmp_path / "edit.txt").stat().st_mode & 0o111


def test_what_is_no_text_is_named_not_shown() -> None:
    """Untrusted bytes never reach a terminal raw; a credential file was never read."""
    one, two = (
        tree_of([file(b"b", b"\0\1"), file(b".env", b"xx", note="placeholder")]),
        tree_of([file(b"b", b"\0\2"), file(b".env", b"yy", note="placeholder")]),
    )
    text = patch(changes(one, two), lambda e: b"\0\1", lambda e: b"\0\2")
    assert text.count("Binary files") == 2
    assert "\0" not in text
    folder = tree_of([Entry(b"d", Node.FOLDER, 0o700)])
    assert patch(changes(Tree(), folder), lambda e: None, lambda e: None) == ""
    link = [tree_of([Entry(b"l", Node.LINK, 0, target=target)]) for target in (b"a", b"b")]
    assert "-a\n\\ No newline at end of file\n+b\n" in patch(changes(*link), lambda e: None, lambda e: None)


def test_a_path_is_shown_as_one_line_of_printable_text() -> None:
    """T-U: control characters do not reach a terminal."""
    assert shown(b"a\nb\x1b[31m\xff\xc3\xa9") == "a\\nb\\x1b[31m\\xffé"
    assert {"too-large"} <= trees.NOTES

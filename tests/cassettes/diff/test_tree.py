"""Patches of two runs, and whether they come to the same."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from secondtake.cassettes.diff.tree import Equivalence, Stood, compare, litter
from secondtake.cassettes.digest import digest_of
from secondtake.cassettes.trees import TOO_LARGE, Entry, Node, tree_of

START = {"foo.py": b"def f():\n    return 1\n", "bar.py": b"x = 1\n"}


def stood(final: dict[str, bytes] | None, start: dict[str, bytes] | None = None, *, modes: dict[str, int] | None = None) -> Stood:
    """A run from `start` to `final`."""
    contents: dict[str, bytes] = {}

    def tree(files: dict[str, bytes], modes: dict[str, int]) -> list[Entry]:
        for data in files.values():
            contents[digest_of(data)] = data
        return [Entry(path.encode(), Node.FILE, modes.get(path, 0o644), digest_of(data), len(data)) for path, data in files.items()]

    begun = tree_of(tree(START if start is None else start, {}))
    ended = None if final is None else tree_of(tree(final, modes or {}))
    return Stood(begun, ended, lambda entry: contents.get(entry.digest or ""))


def fixed(body: str) -> dict[str, bytes]:
    return {**START, "foo.py": body.encode()}


def test_equal_final_trees_are_an_equivalent_patch() -> None:
    """Issue 6: two different paths to an equivalent patch say so."""
    made = compare(stood(fixed("def f():\n    return 2\n")), stood(fixed("def f():\n    return 2\n")))
    assert made.equivalence is Equivalence.TREES
    assert made.equivalent
    assert not made.differs
    assert made.same_start
    assert made.a is not None
    assert "-    return 1\n+    return 2\n" in made.a.text


def test_white_space_alone_is_said_separately() -> None:
    """Issue 6.4: equal after white-space normalisation, said separately. It is no equal tree."""
    made = compare(stood(fixed("def f():\n    return 2\n")), stood(fixed("def f():\n\treturn  2\n\n")))
    assert made.equivalence is Equivalence.SPACE
    assert made.equivalent
    assert made.differs


def test_another_patch_is_shown_from_end_to_end() -> None:
    """Issue 6.4: unified diff between both final trees."""
    made = compare(stood(fixed("return 2\n")), stood({**fixed("return 3\n"), "new.py": b""}))
    assert made.equivalence is Equivalence.DIFFERENT
    assert made.between is not None
    assert [str(change) for change in made.between.changes] == ["changed foo.py", "added new.py"]
    assert "-return 2\n+return 3\n" in made.between.text


def test_the_same_changes_on_different_starts_are_the_same_patch() -> None:
    """A run on a later commit that makes the same change."""
    there = {**START, "other.py": b"y\n"}
    made = compare(stood(fixed("return 2\n")), stood({**there, "foo.py": b"return 2\n"}, there))
    assert made.equivalence is Equivalence.PATCH
    assert made.same_start is False


def test_a_change_that_is_only_named_does_not_make_a_patch_the_same() -> None:
    """Two binaries that differ have the same line in both patches."""
    there = {**START, "other.py": b"y\n"}
    made = compare(stood({**START, "x.bin": b"\0a"}), stood({**there, "x.bin": b"\0b"}, there))
    assert made.equivalence is Equivalence.DIFFERENT
    assert made.between is not None
    assert "Binary files a/x.bin and b/x.bin differ\n" in made.between.text


def test_modes_and_renames_are_differences() -> None:
    """Issue 6.4: modes, renames."""
    made = compare(stood(START), stood(START, modes={"foo.py": 0o755}))
    assert made.equivalence is Equivalence.DIFFERENT
    assert made.between is not None
    assert "old mode 100644\nnew mode 100755\n" in made.between.text
    moved = compare(stood(START), stood({"baz.py": START["foo.py"], "bar.py": START["bar.py"]}))
    assert moved.between is not None
    assert [str(change) for change in moved.between.changes] == ["renamed baz.py (was foo.py)"]


def test_what_tools_leave_beside_their_work_is_counted_and_left_aside() -> None:
    """A byte-code file holds the time it was made: no two final trees of a Python project were ever equal with it."""
    left = {**START, "__pycache__/foo.cpython-312.pyc": b"\0\1", ".pytest_cache/v/x": b"1"}
    made = compare(stood(left), stood(START))
    assert made.equivalence is Equivalence.TREES
    assert made.between is not None
    assert made.between.litter == 2
    assert litter(b"a/__pycache__/b.txt")
    assert not litter(b"pycache/a.py")


def test_without_a_final_tree_on_both_sides_nothing_is_called_equal() -> None:
    """What was not kept cannot be compared; what was is shown all the same."""
    made = compare(stood(fixed("return 2\n")), Stood(None, None, lambda _: None))
    assert made.equivalence is None
    assert not made.comparable
    assert not made.equivalent
    assert made.a is not None
    assert (made.b, made.between, made.same_start) == (None, None, None)


def test_files_whose_content_was_not_kept_are_named() -> None:
    """Equal by size is not equal by content."""
    large = [Entry(b"big", Node.FILE, 0o644, None, size, note=TOO_LARGE) for size in (10, 11)]
    one, other = (Stood(None, tree_of([entry]), lambda _: None) for entry in large)
    made = compare(one, other)
    assert made.equivalence is Equivalence.DIFFERENT
    assert made.unseen == ("big",)


FILES = st.dictionaries(st.sampled_from(["a", "b/c", "d"]), st.sampled_from([b"x\n", b" x\n", b"y\n", b"\0"]), max_size=3)


@given(FILES, FILES)
def test_a_tree_equals_itself_and_sides_can_be_exchanged(one: dict[str, bytes], other: dict[str, bytes]) -> None:
    """Issue 6.4: diff(x, x) is empty; symmetric."""
    assert not compare(stood(one), stood(one)).differs
    forth, back = compare(stood(one), stood(other)), compare(stood(other), stood(one))
    assert forth.equivalence is back.equivalence
    assert forth.differs == (one != other)
    assert (forth.a, forth.b) == (back.b, back.a)

"""Where the arguments of two calls differ."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from secondtake.cassettes.diff.arguments import TEXT_LINES, Changed, differ


def changed(one: object, other: object) -> Changed:
    return differ("edit", json.dumps(one), json.dumps(other))


def test_fields_that_differ_are_named_with_both_values() -> None:
    """Issue 6.4: a substitution with an argument-level field diff."""
    made = changed({"path": "a", "new": "1", "at": [1, 2]}, {"path": "a", "new": "2", "at": [1, 3], "all": True})
    assert [(item.path, item.recorded, item.live) for item in made.fields] == [
        ("all", None, "true"),
        ("at[1]", "2", "3"),
        ("new", "1", "2"),
    ]
    assert (made.texts, made.more) == ((), 0)


def test_a_text_of_several_lines_is_compared_line_by_line() -> None:
    """Of a file that is written: what is written otherwise."""
    text = "\n".join(f"line {number}" for number in range(50))
    made = changed({"content": text.replace("line 7\n", "one\n")}, {"content": text.replace("line 7\n", "--- two\n")})
    assert made.fields == ()
    assert made.texts == (("content", ("@@ -7,3 +7,3 @@", " line 6", "-one", "+--- two", " line 8")),)


def test_long_texts_are_bounded() -> None:
    """Strangers' text: lines shown, and lines compared."""
    text = "\n".join(f"line {number}" for number in range(50))
    ((_, lines),) = changed({"content": text}, {"content": text.replace("line", "x")}).texts
    assert len(lines) == TEXT_LINES
    assert lines[-1] == "… 62 more lines"
    long = changed({"content": "x\n" * 5000}, {"content": "x\n" * 5000 + "y"})
    assert long.texts == ()
    assert len(long.fields) == 1


def test_free_text_is_one_field() -> None:
    """A custom tool's argument is no JSON."""
    made = differ("apply_patch", "*** Begin\n+a\n", "*** Begin\n+b\n")
    assert made.texts == (("text", ("@@ -1,3 +1,3 @@", " *** Begin", "-+a", "++b", " ")),)
    (item,) = differ("t", "a", "b").fields
    assert (item.path, item.recorded, item.live) == ("text", "a", "b")


VALUES = st.dictionaries(st.sampled_from("abc"), st.one_of(st.text(max_size=4), st.integers(), st.just("x\ny")), max_size=3)


@given(VALUES, VALUES)
def test_something_is_named_exactly_where_arguments_differ(one: dict[str, object], other: dict[str, object]) -> None:
    """Issue 6.4: diff(x, x) is empty."""
    made = changed(one, other)
    assert bool(made.fields or made.texts) == (one != other)

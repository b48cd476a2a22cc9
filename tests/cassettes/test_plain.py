"""Plain values from strangers: each member as it was asked for, or named."""

from __future__ import annotations

from enum import StrEnum

import pytest

from secondtake.cassettes.errors import Corrupt
from secondtake.cassettes.plain import ITEMS, Table


class Word(StrEnum):
    ONE = "one"


TABLE = Table.of(
    {"text": "a", "number": 3, "real": 1, "truth": True, "word": "one", "texts": ["a"], "pairs": [["a", "b"]], "table": {"x": 1}}, "t"
)


def test_members_are_read_as_what_they_are() -> None:
    """Each in the type that was asked for."""
    assert (TABLE.text("text"), TABLE.number("number"), TABLE.real("real"), TABLE.truth("truth")) == ("a", 3, 1.0, True)
    assert (TABLE.one_of("word", Word), TABLE.texts("texts"), TABLE.pairs("pairs")) == (Word.ONE, ("a",), (("a", "b"),))
    assert TABLE.table("table").number("x") == 1


def test_what_is_absent_is_none_false_or_the_default() -> None:
    """A member that came later is absent in what was kept before."""
    assert (TABLE.text_or_none("no"), TABLE.number_or_none("no"), TABLE.real_or_none("no"), TABLE.truth_or_none("no")) == (None,) * 4
    assert (TABLE.text("no", ""), TABLE.number("no", 1), TABLE.truth("no")) == ("", 1, False)


@pytest.mark.parametrize(
    "value", [True, None, "x", 1.5, float("nan"), 2**70, [], ["a", 1], [["a"]], [["a", 1]], ["a"] * (ITEMS + 1), {}, "\ud800", "x" * 2001]
)
def test_a_wrong_member_is_named_and_never_converted(value: object) -> None:
    """A wrong type is damage."""
    table = Table.of({"m": value}, "take")
    for read, good in (
        (table.text, isinstance(value, str) and value == "x"),
        (table.number, False),
        (table.real, value == 1.5),
        (table.truth, value is True),
        (table.texts, value == []),
        (table.pairs, value == []),
        (table.tables, value == []),
        (table.table, value == {}),
    ):
        if good:
            read("m")
        else:
            with pytest.raises(Corrupt, match=r"take\.m"):
                read("m")
    with pytest.raises(Corrupt, match=r"take\.m"):
        table.one_of("m", Word)


def test_what_is_no_table_is_said() -> None:
    """The outermost value is a stranger's too."""
    with pytest.raises(Corrupt, match="take is no table"):
        Table.of([], "take")

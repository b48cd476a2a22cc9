"""Two lists side by side at the least cost."""

from __future__ import annotations

from functools import cache

from hypothesis import given
from hypothesis import strategies as st

from secondtake.cassettes.diff.alignment import CELLS, IN_COMMON, NOTHING_IN_COMMON, ONE_SIDE, OTHER_ARGUMENTS, Alignment, Mark, Pair, align

MARKS = st.lists(
    st.builds(lambda number, parts: Mark(f"{number} {parts}", tuple(parts)), st.integers(0, 2), st.sampled_from(["a", "b", "ab"])),
    max_size=7,
)


def marks(text: str) -> list[Mark]:
    """One mark a word: its first letter is the tool."""
    return [Mark(word, (word[0],)) for word in text.split()]


def shown(made: Alignment) -> str:
    """An alignment as text: `=` the same, `~` set beside another, `-` and `+` on one side only."""
    return "".join("=" if pair.same else "-" if pair.b is None else "+" if pair.a is None else "~" for pair in made.pairs)


def cost_of(pair: Pair, a: list[Mark], b: list[Mark]) -> int:
    if pair.a is None or pair.b is None:
        return ONE_SIDE
    one, other = a[pair.a], b[pair.b]
    if one.key == other.key:
        return 0
    if one.parts == other.parts:
        return OTHER_ARGUMENTS
    return IN_COMMON if set(one.parts) & set(other.parts) else NOTHING_IN_COMMON


def least(a: list[Mark], b: list[Mark]) -> int:
    """The least cost, by the definition."""

    @cache
    def from_here(at: int, beside: int) -> int:
        if at == len(a) or beside == len(b):
            return ONE_SIDE * (len(a) - at + len(b) - beside)
        together = cost_of(Pair(at, beside), a, b) + from_here(at + 1, beside + 1)
        return min(together, ONE_SIDE + from_here(at + 1, beside), ONE_SIDE + from_here(at, beside + 1))

    return from_here(0, 0)


def test_the_same_tool_with_other_arguments_is_one_change_and_not_two() -> None:
    """Issue 6.4: same tool, other arguments is a substitution."""
    assert shown(align(marks("run1 edit1 run2"), marks("run1 edit2 run2"))) == "=~="
    assert shown(align(marks("a1 b1"), marks("b1"))) == "-="
    assert shown(align(marks("a1"), marks("b1"))) == "~"
    assert shown(align(marks("a1 a2 b1"), marks("a3 b1"))) in {"-~=", "~-="}


@given(MARKS, MARKS)
def test_the_cost_is_the_least_there_is(a: list[Mark], b: list[Mark]) -> None:
    """Against the definition, written down a second time."""
    made = align(a, b)
    assert not made.bounded
    assert sum(cost_of(pair, a, b) for pair in made.pairs) == least(a, b)


@given(MARKS, MARKS, st.sampled_from([0, 4, CELLS]))
def test_every_step_stands_once_in_its_order_and_is_the_same_only_where_it_is(a: list[Mark], b: list[Mark], cells: int) -> None:
    """Also where the least cost is not looked for."""
    made = align(a, b, cells=cells)
    assert [pair.a for pair in made.pairs if pair.a is not None] == list(range(len(a)))
    assert [pair.b for pair in made.pairs if pair.b is not None] == list(range(len(b)))
    assert all((None not in (pair.a, pair.b)) and a[pair.a or 0].key == b[pair.b or 0].key for pair in made.pairs if pair.same)


@given(MARKS, MARKS, st.sampled_from([0, 4, CELLS]))
def test_exchanging_the_sides_exchanges_the_pairs(a: list[Mark], b: list[Mark], cells: int) -> None:
    """Issue 6.4: symmetric."""
    one, other = align(a, b, cells=cells), align(b, a, cells=cells)
    turned = [(pair.b, pair.a, pair.same) for pair in other.pairs]
    together = [(pair.a, pair.b, pair.same) for pair in one.pairs]
    assert [row for row in turned if None not in row[:2]] == [row for row in together if None not in row[:2]]
    assert one.bounded == other.bounded


@given(MARKS)
def test_a_list_beside_itself_is_the_same_throughout(a: list[Mark]) -> None:
    """Issue 6.4: diff(x, x) is empty."""
    made = align(a, a)
    assert made.first is None
    assert len(made.pairs) == len(a)


def test_what_is_too_large_for_a_table_is_cut_where_a_step_occurs_once_and_says_so() -> None:
    """Issue 6.4: bounded, and said."""
    a = marks(" ".join(f"a{n}" for n in range(40)) + " x1 " + " ".join(f"b{n}" for n in range(40)))
    b = marks(" ".join(f"c{n}" for n in range(30)) + " x1 " + " ".join(f"d{n}" for n in range(30)))
    made = align(a, b, cells=2000)
    assert made.bounded
    assert Pair(40, 30, same=True) in made.pairs
    assert align(a, b).bounded is False


def test_steps_of_one_side_only_come_with_those_of_a_first() -> None:
    """One order, whichever side is which."""
    assert shown(align(marks("x1 a1 a2 y1"), marks("x1 y1"))) == "=--="
    assert shown(align(marks("x1 y1"), marks("x1 a1 a2 y1"))) == "=++="

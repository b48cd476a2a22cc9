"""Decisions of agents that work in parallel, in one order."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from secondtake.cassettes.diff.order import ordered


def told(text: str) -> str:
    """Turns written as `m1 a1 b1`: a conversation and what it did, in the order of their requests."""
    turns = text.split()
    return " ".join(ordered(turns, lambda turn: turn[0], lambda turn: (turn[1:],)))


def test_one_conversation_stays_as_it_is() -> None:
    """Issue 6.4: nothing is reordered without need."""
    assert told("m3 m1 m2") == "m3 m1 m2"


def test_a_second_agent_that_the_first_waits_for_stays_where_it_is() -> None:
    """Issue 6.4: the order of what was done one after the other means something."""
    assert told("m1 s9 s8 m2") == "m1 s9 s8 m2"
    assert told("m1 s9 t1 m2") == "m1 s9 t1 m2"


def test_agents_side_by_side_are_told_one_after_the_other_however_they_interleaved() -> None:
    """Issue 6.4: two runs of the same thing are the same."""
    assert told("m1 a1 b5 a2 b6 m2") == told("m1 b5 a1 a2 b6 m2") == told("m1 b5 a1 b6 a2 m2") == "m1 a1 a2 b5 b6 m2"


def test_too_many_conversations_are_left_as_they_came() -> None:
    """Bounded."""
    turns = [(number % 300, number) for number in range(900)]
    assert ordered(turns, lambda turn: str(turn[0]), lambda turn: (str(turn[1]),)) == turns


@given(st.lists(st.tuples(st.sampled_from("abcd"), st.integers(0, 3)), max_size=20))
def test_no_turn_is_lost_and_each_conversation_keeps_its_own_order(turns: list[tuple[str, int]]) -> None:
    """Issue 6.4: an order, nothing else."""
    numbered = [(name, place, what) for place, (name, what) in enumerate(turns)]
    made = ordered(numbered, lambda turn: turn[0], lambda turn: (str(turn[2]),))
    assert sorted(made) == sorted(numbered)
    for name in "abcd":
        assert [turn for turn in made if turn[0] == name] == [turn for turn in numbered if turn[0] == name]

"""Leaf differences."""

from __future__ import annotations

import json
import time

import pytest

from secondtake.cassettes.canonical import Json, document
from secondtake.cassettes.differences import COUNTED, MOST, Found, body_differences, json_differences, target_differences


def differ(one: Json, other: Json) -> list[tuple[str, str | None, str | None]]:
    found = Found()
    json_differences(one, other, found)
    return [(item.path, item.recorded, item.live) for item in found.items]


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ({"a": 1}, {"a": 1}, []),
        ({"a": 1}, {"a": 2}, [("a", "1", "2")]),
        ({"a": 1}, {}, [("a", "1", None)]),
        ({}, {"a": [1, 2]}, [("a", None, "an array of 2 items")]),
        ({"a": {"b.c": 1}}, {"a": {"b.c": "1"}}, [('a["b.c"]', "1", "1")]),
        ([1, 2, 3], [1, 9, 3], [("[1]", "2", "9")]),
        ([1, 2, 3], [1, 3], [("[1]", "2", None)]),
        ([{"x": 1}, {"x": 2}], [{"x": 1}, {"x": 5}, {"x": 2}], [("[1]", None, "an object of 1 members")]),
        ([1, 2, 3, 4], [2, 3, 4, 5], [("[0]", "1", "2"), ("[1]", "2", "3"), ("[2]", "3", "4"), ("[3]", "4", "5")]),
        ({"a": [{"b": [{"t": "x"}]}]}, {"a": [{"b": [{"t": "y"}]}]}, [("a[0].b[0].t", "x", "y")]),
        (True, 1, [("", "true", "1")]),
        ({"a": None}, {"a": {}}, [("a", "null", "an object of 0 members")]),
    ],
)
def test_each_leaf_is_named(one: Json, other: Json, expected: list[tuple[str, str | None, str | None]]) -> None:
    """T-A7."""
    assert differ(one, other) == expected


def test_an_inserted_turn_is_one_difference() -> None:
    """T-A7: arrays are aligned by content."""
    turns: list[Json] = [{"role": "user", "content": f"turn {n}"} for n in range(50)]
    assert len(differ(turns, [*turns[:20], {"role": "user", "content": "new"}, *turns[20:]])) == 1


def test_a_long_text_is_shown_where_it_differs() -> None:
    """T-A7: not 200 KB."""
    one = "x" * 100_000 + "session-1111" + "y" * 100_000
    ((_, recorded, live),) = differ({"t": one}, {"t": one.replace("1111", "2222")})
    assert recorded is not None
    assert "session-1111" in recorded
    assert live is not None
    assert "session-2222" in live
    assert len(live) < 120


def test_documents_that_have_nothing_in_common_cost_little() -> None:
    """T-A14: bounded."""
    one: Json = {str(n): [n, {"a": n}] for n in range(20_000)}
    other: Json = {str(n): [n + 1, {"a": -n}] for n in range(20_000)}
    start = time.perf_counter()
    found = Found()
    json_differences(one, other, found)
    assert time.perf_counter() - start < 1
    assert len(found.items) == MOST
    assert found.count >= COUNTED


def test_a_boolean_against_a_number_is_a_difference() -> None:
    """A: Python's equality takes true for one."""
    found = Found()
    body_differences(document(b'{"a":[true]}'), document(b'{"a":[1]}'), found)
    assert found.count == 1


def test_opaque_bodies_differ_as_a_whole() -> None:
    """A."""
    found = Found()
    body_differences(document(b"abc"), document(json.dumps({"a": 1}).encode()), found)
    assert [(item.where, item.recorded, item.live) for item in found.items] == [("body", "3 bytes", "8 bytes")]


def test_path_and_query_are_told_apart() -> None:
    """A."""
    found = Found()
    target_differences(b"/a?x=1&y", b"/b?y&x=1&z=2", found)
    assert [(item.where, item.path) for item in found.items] == [("path", ""), ("query", "z")]

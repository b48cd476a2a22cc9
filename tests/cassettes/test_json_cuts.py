"""Members and elements cut out of JSON text, and nothing else touched."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from secondtake.cassettes.json_cuts import cut
from secondtake.cassettes.json_places import Item, Step

ELEMENTS = (("a", Step.EACH),)


def ones(item: Item, value: bytes) -> bool:
    return value == b"1"


@pytest.mark.parametrize(
    ("content", "left"),
    [
        (b'{"a":[1]}', b'{"a":[]}'),
        (b'{"a":[1,2]}', b'{"a":[2]}'),
        (b'{"a":[2,1]}', b'{"a":[2]}'),
        (b'{"a":[ 2 , 1 , 3 ]}', b'{"a":[ 2 , 3 ]}'),
        (b'{"a":[1,1,2,1,1,3,1,1]}', b'{"a":[2,3]}'),
        (b'{"a":[ 1 , 1 ]}', b'{"a":[  ]}'),
        (b'{"a":[2,\n1\n]}', b'{"a":[2\n]}'),
        (b'{"a":[1],"a":[2,1]}', b'{"a":[],"a":[2]}'),
        (b'{"b":[1]}', b'{"b":[1]}'),
    ],
)
def test_a_cut_takes_its_comma(content: bytes, left: bytes) -> None:
    """First, last, runs, all; white space of what stays is kept."""
    assert cut(content, ELEMENTS, ones)[0] == left


def test_a_cut_within_a_cut_is_one() -> None:
    """A member asked for inside an element that goes too."""
    content = b'{"a":[{"x":1},{"y":2}],"z":0}'
    left, cuts = cut(content, (("a", Step.EACH), ("a", Step.EACH, "x")), lambda item, value: b"x" in content[item.start : item.stop])
    assert left == b'{"a":[{"y":2}],"z":0}'
    assert [one.path for one in cuts] == ["a[0]"]


@given(st.lists(st.sampled_from([1, 2, "1", [1], {"k": 1}, None]), max_size=9), st.sampled_from([None, 0, 2]))
def test_what_is_left_is_what_a_filter_leaves(values: list[Any], indent: int | None) -> None:
    """Any arrangement, any white space."""
    left, cuts = cut(json.dumps({"a": values, "b": 1}, indent=indent).encode(), ELEMENTS, ones)
    assert json.loads(left) == {"a": [value for value in values if value != 1 or value is True], "b": 1}
    assert len(cuts) == values.count(1)


@given(st.dictionaries(st.sampled_from("abcd"), st.integers(0, 1)), st.sampled_from([None, 0, 2]))
def test_members_go_with_their_keys(body: dict[str, int], indent: int | None) -> None:
    """By key, in any order."""
    left, _ = cut(json.dumps(body, indent=indent).encode(), (("a",), ("c",)), lambda item, value: True)
    assert json.loads(left) == {key: value for key, value in body.items() if key not in "ac"}

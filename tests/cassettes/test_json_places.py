"""Where strings stand in JSON text: found by byte, so that a splice leaves all else."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from secondtake.cassettes import json_places
from secondtake.cassettes.errors import BadInput, TooLarge
from secondtake.cassettes.json_places import NotJson, Step, quoted, splice, strings

PATTERNS = (("model",), ("fallbacks", Step.EACH, "model"), ("any", Step.ANY, Step.EACH))


def texts(content: bytes) -> list[tuple[str, bytes]]:
    return [(one.dotted, content[one.start : one.stop]) for one in strings(content, PATTERNS)]


@pytest.mark.parametrize(
    ("content", "found"),
    [
        (b'{"model":"a"}', [("model", b"a")]),
        (b'\xef\xbb\xbf { "x" : [ { } , "]" ] , "model" :\t"a" }\n', [("model", b"a")]),
        (b'{"model":"a","model":"b"}', [("model", b"a"), ("model", b"b")]),
        (b'{"mod\\u0065l":"\\u0061\\/b"}', [("model", b"\\u0061\\/b")]),
        (b'{"x":{"model":"no"},"y":[{"model":"no"}],"z":"\\"model\\":\\"no\\"","model":""}', [("model", b"")]),
        (
            b'{"fallbacks":[{"model":"a"},"x",{"model":1},{"deep":{"model":"no"}},{"model":"b"}]}',
            [("fallbacks[0].model", b"a"), ("fallbacks[4].model", b"b")],
        ),
        (b'{"any":{"k":["a"],"l":["b"]}}', [("any.k[0]", b"a"), ("any.l[0]", b"b")]),
        (b'{"model":null}', []),
        (b'{"model":["a"]}', []),
        (b'["model","a"]', []),
        (b'"model"', []),
        (b"{}", []),
    ],
    ids=repr,
)
def test_a_string_is_found_by_its_path_only(content: bytes, found: list[tuple[str, bytes]]) -> None:
    """A-03: odd key order, white space, duplicates, escapes, decoys in nested objects and inside strings."""
    assert texts(content) == found


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6) | st.just("model"), inner, max_size=4),
    max_leaves=20,
)


@given(
    st.dictionaries(st.text(max_size=6) | st.sampled_from(["model", "tools"]), json_values, max_size=6),
    st.text(),
    st.booleans(),
    st.sampled_from([None, 0, 3]),
)
def test_a_splice_is_the_same_as_editing_the_value(body: dict[str, object], new: str, ascii_only: bool, indent: int | None) -> None:
    """A-03: whatever stands around it, and however it was serialised."""
    body["model"] = "old"
    content = json.dumps(body, ensure_ascii=ascii_only, indent=indent).encode("utf-8", "replace")
    (one,) = strings(content, [("model",)])
    swapped = splice(content, [(one.start, one.stop, quoted(new))])
    assert swapped[: one.start] == content[: one.start]
    assert swapped[len(swapped) - (len(content) - one.stop) :] == content[one.stop :]
    assert json.loads(swapped)["model"] == new


def test_a_body_of_100000_messages_is_walked_in_one_pass() -> None:
    """A-03: 1e5 messages; what is not wanted is skipped by bracket, so brackets, not tokens, are what costs."""
    message = b'{"role":"user","content":[{"type":"text","text":"say \\"model\\": \\\\"}]}'
    content = b'{"messages":[' + b",".join([message] * 100_000) + b'],"model":"a"}'
    assert texts(content) == [("model", b"a")]


@pytest.mark.parametrize("closers", [b"]" * 9, b"]" * 8 + b"}", b"] " * 9])
def test_a_run_of_closing_brackets_ends_where_the_value_ends(closers: bytes) -> None:
    """The skip passes runs of brackets at once and must not run past its own."""
    content = b'{"a":{"b":' + b"[" * 9 + b"{}" + b"]" * 9 + b'},"model":"x","c":[[[{"d":[]}]]]}'
    assert texts(content) == [("model", b"x")]
    assert texts(b"[" * 9 + closers) == []


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b'{"a"',
        b'{"a" 1',
        b'{"a":',
        b'{"a":[',
        b'{"a":"',
        b"{a:1}",
        b'{"a":1 "b":2}',
        b'{"model":"\\x"}',
        b'{"model":"\xff"}',
        b'{"a":]}',
    ],
)
def test_what_is_not_json_on_the_way_is_said(content: bytes) -> None:
    """A-08: never another exception."""
    with pytest.raises(NotJson):
        strings(content, PATTERNS)


@given(st.binary(max_size=60) | st.text(alphabet='{}[]":,\\ model1', max_size=60).map(str.encode))
def test_any_bytes_are_walked_or_refused(content: bytes) -> None:
    """A-08."""
    try:
        found = strings(content, PATTERNS)
    except BadInput:
        return
    assert all(0 <= one.start <= one.stop <= len(content) for one in found)


def test_too_many_places_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """B-11."""
    monkeypatch.setattr(json_places, "JSON_PLACES", 3)
    strings(b'{"any":{"k":["a","b","c"]}}', PATTERNS)
    with pytest.raises(TooLarge):
        strings(b'{"any":{"k":["a","b","c","d"]}}', PATTERNS)
    with pytest.raises(TooLarge):
        strings(b"{}", [("a",) * 300])


@pytest.mark.parametrize("changes", [[(0, 3, b""), (2, 4, b"")], [(3, 9, b"")], [(2, 1, b"")], [(-1, 1, b"")]])
def test_a_splice_outside_or_across_another_is_refused(changes: list[tuple[int, int, bytes]]) -> None:
    """Offsets from one body must not be used on another."""
    with pytest.raises(BadInput):
        splice(b"abcd", changes)


@pytest.mark.parametrize("depth", [1, 4, 5, 9])
def test_depth_is_counted_without_recursion(depth: int) -> None:
    """B-11: on both sides of the boundary; brackets in strings and flat neighbours do not count."""
    content = b'{"a":"[[[[[[[[",' + b'"b":[],"c":{},' * 9 + b'"d":' + b'[{"x":' * (depth // 2) + b"[" * (depth % 2)
    content += b"1" + b"]" * (depth % 2) + b"}]" * (depth // 2) + b"}"
    assert json.loads(content)
    assert json_places.deeper(content, 5) is (depth + 1 > 5)
    assert json_places.deeper(b"[" * 3_000_000, 5)

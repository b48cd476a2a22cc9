"""Parameters and tools are changed by byte, and nothing else is."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from secondtake.cassettes.errors import BadInput
from secondtake.cassettes.settings import applied, check

BODY = b'{ "model" : "m",\n "temperature":1.0, "tools":[{"name":"run"}, {"name":"edit","input_schema":{}}],"messages":[{"role":"user"}]}'


@pytest.mark.parametrize(
    ("rule", "before", "after"),
    [
        ("set:temperature=0.2", BODY, BODY.replace(b'"temperature":1.0', b'"temperature":0.2')),
        ("set:top_p=0.5", BODY, BODY.replace(b'{ "model"', b'{"top_p":0.5, "model"')),
        ("set:a.b=[1]", b"{}", b'{"a":{"b":[1]}}'),
        ("set:generationConfig.topK=4", b'{"generationConfig":{"temperature":1}}', b'{"generationConfig":{"topK":4,"temperature":1}}'),
        ("set:a.b.c=true", b'{"a":{}}', b'{"a":{"b":{"c":true}}}'),
        ("set:temperature=1.0", BODY, BODY),
        ("only-tools:edit", BODY, BODY.replace(b'{"name":"run"}, ', b"")),
        ("only-tools:run,edit", BODY, BODY),
    ],
)
def test_one_thing_is_changed(rule: str, before: bytes, after: bytes) -> None:
    """DESIGN 5 and 6: one changed thing per arm; every other byte stands as it was."""
    assert applied(before, [rule])[0] == after


@pytest.mark.parametrize(
    ("before", "gone"),
    [
        (b'{"tools":[{"type":"function","function":{"name":"a"}},{"type":"function","function":{"name":"b"}}]}', ["b"]),
        (b'{"tools":[{"functionDeclarations":[{"name":"a"},{"name":"b"}]}]}', ["b"]),
        (b'{"toolConfig":{"tools":[{"toolSpec":{"name":"b"}},{"toolSpec":{"name":"a"}}]}}', ["b"]),
        (b'{"tools":[{"type":"web_search"},{"name":"a"}]}', []),
        (b'{"messages":[]}', []),
    ],
)
def test_tools_go_from_each_format(before: bytes, gone: list[str]) -> None:
    """Where each provider defines them; what has no name is the provider's own and stays."""
    content, notes = applied(before, ["only-tools:a"])
    json.loads(content)
    assert [note.split("`")[1] for note in notes] == gone
    assert (b'"b"' in content) is False


@pytest.mark.parametrize(
    "rule",
    [
        "set:",
        "set:a",
        "set:a=",
        "set:=1",
        "set:a..b=1",
        "set:a=nope",
        "set:a=NaN",
        'set:model="x"',
        "only-tools:",
        "only-tools:a,,b",
        "set:a=" + "1" * 2000,
    ],
)
def test_a_rule_that_cannot_be_applied_is_refused_before(rule: str) -> None:
    """Before anything is sent."""
    with pytest.raises(BadInput):
        check(rule)


def test_what_is_no_object_is_not_edited() -> None:
    """A body that cannot hold the member is not sent as if it did."""
    for content in (b"[]", b'"text"', b"", b'{"a":1}'):
        with pytest.raises(BadInput):
            applied(content, ["set:a.b=1"])


@given(st.dictionaries(st.text(max_size=5), st.recursive(st.integers() | st.text(max_size=5), lambda inner: st.lists(inner, max_size=3))))
def test_the_value_is_set_and_the_rest_is_as_it_was(body: dict[str, object]) -> None:
    """Whatever the body."""
    content, _ = applied(json.dumps(body).encode(), ["set:temperature=0.25"])
    assert json.loads(content) == {**body, "temperature": 0.25}

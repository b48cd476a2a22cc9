"""Aliases, declared rules and the shapes of model calls."""

from __future__ import annotations

import json
from urllib.parse import quote

import pytest

from secondtake.cassettes.canonical import document, dump_json, parse_json
from secondtake.cassettes.normalise import Aliases, Subject, format_of, ignore, normalised, turns

CA = "/run/a b/ca.pem"


@pytest.mark.parametrize(
    "written",
    [
        CA,
        quote(CA),
        quote(CA, safe=""),
        quote(CA, safe="").lower(),
        json.dumps(CA)[1:-1],
        CA.replace("/", "\\/"),
        json.dumps(json.dumps(CA))[1:-1].strip('\\"'),
    ],
)
def test_a_value_is_seen_in_plain_url_and_json_form(written: str) -> None:
    """T-R13."""
    assert Aliases({CA.encode(): b"ca"}).replace(f"x={written};".encode()) == b"x={ca};"


def test_a_quoted_value_is_seen_in_json_inside_json() -> None:
    """T-R13: an `env` result inside a nested document."""
    value = 'C:\\ca "x".pem'
    names = Aliases({value.encode(): b"ca"})
    assert names.replace(json.dumps(json.dumps(value)).encode()) == b'"\\"{ca}\\""'
    assert names.replace(json.dumps(value).encode()) == b'"{ca}"'


def test_a_port_is_replaced_only_as_a_whole_number() -> None:
    """T-R13: 4100 in 41001 is not our port."""
    assert Aliases({b"4100": b"port"}).replace(b"4100 41001 14100 :4100/ x4100y") == b"{port} 41001 14100 :{port}/ x{port}y"


@pytest.mark.parametrize("text", [b'"/app"', b"/app/x", b"see /app, now", b'"a\\n/app/x"', b"is: /app"])
def test_a_short_path_is_replaced_as_a_whole_path_only(text: bytes) -> None:
    """AGENTS 5.4: `/root` and `/app` are common homes and workspaces, and parts of many words."""
    assert b"{w}" in Aliases({b"/app": b"w"}).replace(text)


@pytest.mark.parametrize("text", [b"/application", b"/usr/app", b"x/app", b"./app", b"/app.js", b"/app-1"])
def test_a_short_path_inside_another_word_stays(text: bytes) -> None:
    """The same."""
    assert Aliases({b"/app": b"w"}).replace(text) == text


def test_a_short_slug_is_replaced_inside_a_path() -> None:
    """AGENTS 2: agents name a folder after the workspace."""
    assert Aliases({b"-app": b"w"}).replace(b"projects/-app/memory my-app") == b"projects/{w}/memory my-app"


def test_the_longest_value_wins_and_none_at_all_changes_nothing() -> None:
    """T-R13."""
    names = Aliases({b"/run/x": b"home", b"/run/x/ca.pem": b"ca", b"": b"nothing"})
    assert names.replace(b"/run/x/ca.pem /run/x/y") == b"{ca} {home}/y"
    assert not Aliases()
    assert Aliases({}).replace(b"abc") == b"abc"


def apply(place: str, source: str) -> str:
    rule = ignore(place)
    subject = Subject("POST", "h", b"/p")
    return dump_json(normalised(document(source.encode(), b"application/json"), subject, [rule]).json or "").decode()


@pytest.mark.parametrize(
    ("place", "before", "after"),
    [
        ("a.b", '{"a":{"b":1,"c":2}}', '{"a":{"b":"(ignored)","c":2}}'),
        ("a[*].b", '{"a":[{"b":1},{"b":2},{"c":3},4]}', '{"a":[{"b":"(ignored)"},{"b":"(ignored)"},{"c":3},4]}'),
        ("a[1]", '{"a":[1,2,3]}', '{"a":[1,"(ignored)",3]}'),
        ("*.x", '{"p":{"x":1},"q":{"x":2}}', '{"p":{"x":"(ignored)"},"q":{"x":"(ignored)"}}'),
        ("a.b", '{"a":[1]}', '{"a":[1]}'),
        ("z", '{"a":1}', '{"a":1}'),
    ],
)
def test_a_declared_place_is_forgiven_and_its_presence_is_not(place: str, before: str, after: str) -> None:
    """T-A7."""
    assert apply(place, before) == after


@pytest.mark.parametrize(
    ("changed", "applies"), [({}, True), ({"method": "GET"}, False), ({"host": "x"}, False), ({"path": b"/other"}, False)]
)
def test_a_declared_rule_is_for_its_own_endpoint(changed: dict[str, object], applies: bool) -> None:
    """T-A7."""
    rule = ignore("a", method="POST", host="h", path=b"/p")
    subject = {"method": "POST", "host": "h", "path": b"/p", **changed}
    assert rule.applies(Subject(**subject)) is applies  # type: ignore[arg-type]  # names of Subject


@pytest.mark.parametrize(
    ("path", "source", "expected"),
    [
        (b"/v1/messages", {"model": "m", "max_tokens": 1, "messages": [{"role": "user", "content": "x"}]}, "anthropic"),
        (b"/any/gateway", {"model": "m", "max_tokens": 1, "messages": [{"role": "user", "content": "x"}]}, "anthropic"),
        (b"/x/models/m:rawPredict", {"anthropic_version": "v", "max_tokens": 1, "messages": [{"role": "user"}]}, "anthropic"),
        (b"/v1/messages/count_tokens", {"model": "m", "messages": [{"role": "user", "content": "x"}]}, "anthropic"),
        (b"/v1/chat/completions", {"model": "m", "max_tokens": 1, "messages": [{"role": "user", "content": "x"}]}, "chat"),
        (b"/any", {"model": "m", "max_tokens": 1, "messages": [{"role": "tool", "tool_call_id": "c"}]}, "chat"),
        (b"/any", {"model": "m", "messages": [{"role": "user", "content": "x"}]}, "chat"),
        (b"/v1/responses", {"model": "m", "input": "x"}, "responses"),
        (b"/v1/responses", {"model": "m", "previous_response_id": "r"}, "responses"),
        (b"/socket", {"type": "response.create", "input": []}, "responses"),
        (b"/v1/embeddings", {"model": "m", "input": "x"}, ""),
        (b"/any", {"model": "m", "input": "x", "encoding_format": "float"}, ""),
        (b"/x:generateContent", {"contents": [{"parts": [{"text": "x"}]}]}, "gemini"),
        (b"/x", {"contents": []}, ""),
        (b"/x", {"messages": [{"text": "hello"}]}, ""),
        (b"/x", [1], ""),
    ],
)
def test_the_format_of_a_call_is_told_by_its_shape(path: bytes, source: object, expected: str) -> None:
    """AGENTS 5.1: rules are scoped to calls of the right shape."""
    assert format_of(path, parse_json(json.dumps(source).encode())) == expected


def test_turns_are_counted_in_every_format() -> None:
    """DESIGN 3: the position in a conversation."""
    assert [turns({name: [1, 2]}) for name in ("messages", "input", "contents")] == [2, 2, 2]
    assert turns({"input": "x"}) is None
    assert turns(None) is None

"""Rules a person declares: read, written, and refused where they forgive too much."""

from __future__ import annotations

import pytest

from secondtake.cassettes.canonical import Document
from secondtake.cassettes.declared import Declared, parse, rules_of, too_broad
from secondtake.cassettes.errors import BadInput
from secondtake.cassettes.exchange import Request
from secondtake.cassettes.match import normal_key, request_keys
from secondtake.cassettes.memory import digest_of
from secondtake.cassettes.normalise import Subject, normalised, rules_version
from secondtake.cassettes.volatile import RULES


@pytest.mark.parametrize(
    "rule",
    [
        Declared("POST", "api.provider.example", "/v1/messages", "metadata.nonce"),
        Declared(body="messages[*].content[*].text", text=r"Session \w{3}'[0-9a-f]{8}"),
        Declared(body='a["b.c"].d', text='run "[0-9a-f]{8}"\t\x7f'),
        Declared(host="web.example", query="at"),
    ],
)
def test_a_rule_is_read_back_as_it_was_written(rule: Declared) -> None:
    """Issue 4, item 3: what is printed can be pasted."""
    assert parse(f"# a comment\n\n  {rule.line}  \n", "rules") == (rule,)


def key(body: bytes, rule: Declared | None, path: bytes = b"/v1/x") -> bytes:
    """The normal key of a POST."""
    request = Request("POST", "https", "web.example", 443, path, fields=((b"content-type", b"application/json"),))
    rules = (*RULES, *rules_of([rule])) if rule else RULES
    return normal_key(request, body, digest_of(body), rules=rules)


def test_a_rule_forgives_its_place_and_nothing_else() -> None:
    """Issue 4, item 2: on the key only; the presence of the place still counts."""
    rule = Declared("POST", "web.example", "/v1/x", "run.id")
    assert key(b'{"run":{"id":1,"x":2}}', rule) == key(b'{"run":{"id":7,"x":2}}', rule)
    assert key(b'{"run":{"id":1,"x":2}}', rule) != key(b'{"run":{"id":1,"x":3}}', rule)
    assert key(b'{"run":{"id":1,"x":2}}', rule) != key(b'{"run":{"x":2}}', rule)
    assert key(b'{"run":{"id":1}}', rule, b"/v1/y") != key(b'{"run":{"id":7}}', rule, b"/v1/y")


def test_a_pattern_forgives_what_it_matches_in_strings_of_its_place() -> None:
    """T-A7: a session id inside a system prompt, by declaration."""
    rule = Declared(body="system[*].text", text="session [0-9a-f]{8}")
    document = Document(b"", json={"system": [{"text": "In session 0123abcd you fix tests."}], "other": "session 0123abcd"})
    found = normalised(document, Subject("POST", "web.example", b"/"), [rule.rule])
    assert found.json == {"system": [{"text": "In (ignored) you fix tests."}], "other": "session 0123abcd"}


def test_a_key_of_the_query_is_forgiven_by_name() -> None:
    """Issue 4, item 3: the query is a place too."""
    rule = Declared(query="at")
    assert key(b"", rule, b"/x?at=1&a=2") == key(b"", rule, b"/x?a=2&at=9")
    assert key(b"", rule, b"/x?at=1&a=2") != key(b"", rule, b"/x?at=1&a=3")
    assert key(b"", rule, b"/x?at=1") != key(b"", rule, b"/x")


def test_the_name_of_a_list_of_rules_says_which_are_declared() -> None:
    """Issue 4, item 2: named and versioned: other rules, other keys."""
    one, two = rules_of([Declared(body="a.id")]), rules_of([Declared(body="b.id")])
    request = Request("POST", "https", "web.example", 443, b"/")
    assert len({rules_version(RULES), rules_version((*RULES, *one)), rules_version((*RULES, *two))}) == 3
    assert request_keys(request, b"{}", digest=digest_of(b"{}"), rules=(*RULES, *one)).rules == rules_version((*RULES, *one))


@pytest.mark.parametrize(
    ("rule", "why"),
    [
        (Declared(), "one place"),
        (Declared(body="a", query="b"), "one place"),
        (Declared(query="*"), "every key"),
        (Declared(body="*"), "everything"),
        (Declared(body="[*]"), "everything"),
        (Declared(body="messages"), "whole message"),
        (Declared(body="messages[*]"), "whole message"),
        (Declared(body="input[3]"), "whole message"),
        (Declared(body="messages[*].content"), "is content"),
        (Declared(body="contents[*].parts[*].text"), "is content"),
        (Declared(body="system[0].text"), "is content"),
        (Declared(body="metadata.*"), "every member of `metadata`"),
        (Declared(body="messages[*].content[*].input"), "arguments of a tool call"),
        (Declared(body="messages[*].tool_calls[*].function.arguments"), "arguments of a tool call"),
        (Declared(body="model"), "the model"),
        (Declared(body="model", text="sonnet-[0-9]{8}"), "the model"),
        (Declared(body="messages[*].role"), "what it is about"),
        (Declared(body="a.b", text=""), None),
        (Declared(body="messages[*].content", text=".*"), "every string"),
        (Declared(body="messages[*].content", text=".+"), "people and models write"),
        (Declared(body="messages[*].content", text=r"\w+"), "people and models write"),
        (Declared(body="messages[*].content", text=r"\d+"), "people and models write"),
        (Declared(body="messages[*].content", text="[a-f]+"), "people and models write"),
        (Declared(body="messages[*].content", text="("), "no regular expression"),
        (Declared(body="messages[*].content", text="x" * 501), "longer than"),
        (Declared(body="messages[*].content", text="Session [0-9a-f]{6,}"), None),
        (Declared(body="messages[*].id"), None),
        (Declared(body="metadata.user_id"), None),
    ],
)
def test_what_a_request_is_about_is_never_forgiven(rule: Declared, why: str | None) -> None:
    """Issue 4, item 3: over-broad rules are refused, with the reason."""
    told = too_broad(rule)
    assert (told is None) if why is None else (told is not None and why in told)


BROKEN = ["forget it", "ignore = 3", "ignore = {}", "ignore = { body = 3 }", 'ignore = { place = "a" }', 'x = { body = "a" }']


@pytest.mark.parametrize("line", BROKEN)
def test_what_is_no_rule_is_told_with_its_line(line: str) -> None:
    """Errors name the thing and what to try."""
    with pytest.raises(BadInput, match=r"^my\.rules, line 2: ") as raised:
        parse(f"# mine\n{line}", "my.rules")
    assert raised.value.hint

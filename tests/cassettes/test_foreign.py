"""What in a request is bound to the model that spoke before."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from secondtake.cassettes.foreign import RULES, SKIP_SIGNATURE, bound, foreign, is_own, known
from secondtake.cassettes.json_places import NotJson

THINKING = {"type": "thinking", "thinking": "hm", "signature": "SIG"}
TEXT = {"type": "text", "text": "I think: encrypted thoughts of reasoning"}


def said(*blocks: Any, **more: Any) -> bytes:
    return json.dumps({"messages": [{"role": "assistant", "content": list(blocks), **more}]}).encode()


CASES: dict[str, tuple[bytes, list[tuple[str, str, tuple[str, ...]]]]] = {
    "Messages": (
        said(TEXT, THINKING, {"type": "redacted_thinking", "data": "CIPHER"}, {"type": "tool_use", "id": "t", "input": {"thinking": "no"}}),
        [("strip-thinking", "messages[0].content[1]", ("SIG",)), ("strip-thinking", "messages[0].content[2]", ("CIPHER",))],
    ),
    "Messages, unsigned": (
        said({"type": "thinking", "thinking": "hm", "signature": ""}),
        [("strip-thinking", "messages[0].content[0]", ("hm",))],
    ),
    "Messages, compaction with its summary": (
        said({"type": "compaction", "content": "so far", "signature": "SIG", "encrypted_content": "C"}),
        [("strip-seal", "messages[0].content[0].signature", ("SIG",)), ("strip-seal", "messages[0].content[0].encrypted_content", ("C",))],
    ),
    "Messages, compaction without": (
        said({"type": "compaction", "content": None, "encrypted_content": "C"}),
        [("strip-compaction", "messages[0].content[0]", ("C",))],
    ),
    "Converse": (
        said({"reasoningContent": {"reasoningText": {"text": "hm", "signature": "SIG"}}}, {"reasoningContent": {"redactedContent": "C"}}),
        [("strip-thinking", "messages[0].content[0]", ("SIG",)), ("strip-thinking", "messages[0].content[1]", ("C",))],
    ),
    "Chat": (
        said(reasoning_content="hm", reasoning=None, reasoning_details=[{"type": "reasoning.encrypted", "data": "C"}]),
        [
            ("strip-reasoning-text", "messages[0].reasoning_content", ("hm",)),
            ("strip-reasoning-text", "messages[0].reasoning_details", ("C",)),
        ],
    ),
    "Chat, Gemini's": (
        said(tool_calls=[{"id": "c", "function": {}, "extra_content": {"google": {"thought_signature": "SIG"}}}]),
        [("skip-thought-signature", "messages[0].tool_calls[0].extra_content.google.thought_signature", ("SIG",))],
    ),
    "Responses": (
        json.dumps(
            {
                "input": [
                    {"type": "message", "content": "a reasoning"},
                    {"type": "reasoning", "id": "rs_1", "encrypted_content": "C"},
                    {"type": "reasoning", "id": "rs_2", "summary": []},
                    {"type": "compaction", "encrypted_content": "D"},
                    {"type": "agent_message", "encrypted_content": "E"},
                ]
            }
        ).encode(),
        [
            ("strip-reasoning-items", "input[1]", ("C",)),
            ("strip-reasoning-items", "input[2]", ("rs_2",)),
            ("strip-compaction", "input[3]", ("D",)),
            ("strip-seal", "input[4].encrypted_content", ("E",)),
        ],
    ),
    "Code Assist": (
        json.dumps(
            {
                "request": {
                    "contents": [
                        {
                            "role": "model",
                            "parts": [
                                {"text": "hm", "thought": True, "thoughtSignature": "A"},
                                {"functionCall": {"name": "f"}, "thoughtSignature": "B"},
                                {"text": "x", "thought_signature": "C"},
                                {"functionCall": {"name": "f"}, "thoughtSignature": SKIP_SIGNATURE},
                            ],
                        }
                    ]
                }
            }
        ).encode(),
        [
            ("strip-thinking", "request.contents[0].parts[0]", ("A",)),
            ("skip-thought-signature", "request.contents[0].parts[1].thoughtSignature", ("B",)),
            ("strip-thought-signature", "request.contents[0].parts[2].thought_signature", ("C",)),
        ],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_each_format_is_known_by_its_places_and_tokens(name: str) -> None:
    """A-11: thinking, signatures and cipher text, wherever a format puts them; namesakes in tools' arguments are none."""
    content, expected = CASES[name]
    assert [(one.rule, one.item.dotted, one.tokens) for one in bound(content)] == expected
    assert {one.rule for one in bound(content)} <= RULES.keys()


def test_a_signature_of_a_document_is_no_thought() -> None:
    """A-11: only what the model thought is bound to it."""
    assert bound(said({"type": "document", "signature": "x", "title": "thinking"})) == []


def test_readable_reasoning_is_told_from_sealed() -> None:
    """A-11: any model may read text, so text alone refuses nothing."""
    assert [one.plain for one in bound(said(reasoning_content="hm"))] == [True]
    assert [one.plain for one in bound(said(THINKING))] == [False]


def test_what_the_live_model_gave_is_its_own() -> None:
    """A-11: by the digest of each token, or by an ID as it is; what has no token is foreign."""
    content = said(THINKING, {**THINKING, "signature": "OTHER"}, {"type": "thinking"})
    assert [one.item.path[-1] for one in foreign(content, {known("SIG")})] == [1, 2]
    assert is_own("resp_1", {"resp_1"})
    assert is_own("resp_1", {known("resp_1")})
    assert not is_own("", frozenset())


def test_an_escaped_word_is_found() -> None:
    """A-11: JSON may write any character as an escape."""
    content = b'{"messages":[{"role":"assistant","content":[{"type":"\\u0074hinking","thinking":"x","signature":"SIG"}]}]}'
    assert [one.tokens for one in bound(content)] == [("SIG",)]


def test_what_is_no_json_is_an_error_and_no_absence() -> None:
    """A-11: nothing found in what cannot be read would be a lie."""
    with pytest.raises(NotJson):
        bound(b'{"messages":[{]}')


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=3),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(["messages", "content", "type", "thinking", "input", "reasoning", "signature", "parts", "thought"]),
                inner,
                max_size=4,
            )
        ),
    )
)
def test_any_json_is_looked_through(value: Any) -> None:
    """A-11: no shape raises."""
    for one in bound(json.dumps(value).encode()):
        assert one.rule in RULES

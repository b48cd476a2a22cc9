"""A recorded history, continued by another model."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from secondtake.cassettes.exchange import Request
from secondtake.cassettes.foreign import SKIP_SIGNATURE, foreign, known
from secondtake.cassettes.history import Recorded
from secondtake.cassettes.stripping import RULES, Held, Stripped, strip, without_listed
from tests.cassettes.adapters.talk import PATHS
from tests.cassettes.test_foreign import CASES, THINKING, said

FORMATS = {"Messages": "anthropic", "Converse": "bedrock", "Chat": "openai-chat", "Responses": "openai-responses", "Code Assist": "gemini"}


def stripped(adapter: str, content: bytes, **options: Any) -> Stripped:
    made = strip(adapter, Request("POST", "https", "h.example", 443, PATHS[adapter].encode()), content, **{"allowed": True, **options})
    assert isinstance(made, Stripped), made
    return made


def held(adapter: str, content: bytes, **options: Any) -> str:
    made = strip(adapter, Request("POST", "https", "h.example", 443, PATHS[adapter].encode()), content, **{"allowed": True, **options})
    assert isinstance(made, Held), made
    return made.reason


@pytest.mark.parametrize("name", CASES)
def test_without_leave_a_sealed_history_is_refused_and_the_places_named(name: str) -> None:
    """A-11: refused unless `--strip-reasoning`. Text alone is no reason."""
    content, places = CASES[name]
    adapter = FORMATS[name.partition(",")[0]]
    if name == "Messages, unsigned":
        assert stripped(adapter, content, allowed=False).content == content
    else:
        reason = held(adapter, content, allowed=False)
        assert "--strip-reasoning" in reason
        assert any(path in reason for _, path, _ in places)


@pytest.mark.parametrize("name", CASES)
def test_with_leave_nothing_foreign_is_left_and_each_removal_is_listed(name: str) -> None:
    """A-11: by the name of its rule and its place."""
    content, places = CASES[name]
    made = stripped(FORMATS[name.partition(",")[0]], content)
    json.loads(made.content)
    assert foreign(made.content, ()) == []
    told = [note.split(": ")[1:] for note in made.notes]
    assert {rule for rule, _ in told} <= RULES.keys()
    assert [(rule, rest.split("`")[1]) for rule, rest in told if rule != "strip-emptied"] == [(rule, path) for rule, path, _ in places]


@pytest.mark.parametrize("name", CASES)
def test_what_the_live_model_gave_stays_byte_for_byte(name: str) -> None:
    """A-11: after the fork the history holds both; the live model's own thinking must come back unchanged."""
    content, places = CASES[name]
    own = {known(token) for _, _, tokens in places for token in tokens}
    for allowed in (False, True):
        assert stripped(FORMATS[name.partition(",")[0]], content, own=own, allowed=allowed) == Stripped(content)


def test_of_calls_the_signature_is_replaced_by_the_documented_value() -> None:
    """A-11: Gemini answers 400 to a call without one; of other parts it goes."""
    made = stripped("gemini", CASES["Code Assist"][0])
    (message,) = json.loads(made.content)["request"]["contents"]
    assert message["parts"] == [
        {"functionCall": {"name": "f"}, "thoughtSignature": SKIP_SIGNATURE},
        {"text": "x"},
        {"functionCall": {"name": "f"}, "thoughtSignature": SKIP_SIGNATURE},
    ]


def test_a_message_of_which_nothing_is_left_goes_with_its_comma() -> None:
    """A-11: a provider refuses an empty message; one that was empty before is the agent's own."""
    turns = [{"role": "user", "content": []}, {"role": "assistant", "content": [THINKING]}, {"role": "user", "content": "x"}]
    made = stripped("anthropic", json.dumps({"messages": turns}).encode())
    assert made.content == b'{"messages": [{"role": "user", "content": []}, {"role": "user", "content": "x"}]}'
    assert made.notes[-1] == "request_patched: strip-emptied: `messages[1]`"


def test_a_summary_stays_when_its_seal_goes() -> None:
    """A-11: what a compaction says in words, another model can read."""
    made = stripped("anthropic", CASES["Messages, compaction with its summary"][0])
    assert json.loads(made.content)["messages"][0]["content"] == [{"type": "compaction", "content": "so far"}]


@pytest.mark.parametrize(
    ("adapter", "body", "path"),
    [
        ("openai-responses", {"model": "m", "previous_response_id": "resp_1", "input": "x"}, "previous_response_id (resp_1)"),
        ("openai-responses", {"model": "m", "conversation": "conv_1", "input": "x"}, "conversation"),
        ("openai-responses", {"model": "m", "input": [{"type": "item_reference", "id": "msg_1"}]}, "input[0].id"),
        (
            "openai-responses",
            {"model": "m", "input": [{"role": "user", "content": [{"type": "input_file", "file_id": "file-1"}]}]},
            "file_id",
        ),
        ("anthropic", {"model": "m", "messages": [], "container": "c_1"}, "container (c_1)"),
        ("anthropic", {"model": "m", "messages": [], "thread": {"continue": {"previous_message_id": "msg_1"}}}, "thread.continue"),
        ("gemini", {"contents": [{"parts": [{"text": "x"}]}], "cachedContent": "cachedContents/1"}, "cachedContent"),
        (
            "gemini",
            {"contents": [{"parts": [{"fileData": {"fileUri": "https://generativelanguage.googleapis.com/v1beta/files/x"}}]}]},
            "contents[0].parts[0]",
        ),
    ],
)
def test_what_the_provider_kept_for_the_recorded_run_is_refused_always(adapter: str, body: Any, path: str) -> None:
    """A-11: no rule can take out half a conversation; an ID of the live run is its own."""
    content = json.dumps(body).encode()
    for allowed in (False, True):
        assert path in held(adapter, content, allowed=allowed)
    identities = {
        "resp_1",
        "conv_1",
        "msg_1",
        "file-1",
        "c_1",
        "cachedContents/1",
        "https://generativelanguage.googleapis.com/v1beta/files/x",
    }
    assert stripped(adapter, content, own=identities).content == content


@pytest.mark.parametrize(
    ("adapter", "body"),
    [
        ("openai-responses", {"model": "m", "input": "x", "tools": [{"type": "file_search", "vector_store_ids": ["vs_1"]}]}),
        ("gemini", {"contents": [{"parts": [{"fileData": {"fileUri": "gs://bucket/x.pdf"}}]}]}),
    ],
)
def test_what_the_agent_is_set_up_with_is_there_for_any_run(adapter: str, body: Any) -> None:
    """A-11: the run did not make it."""
    content = json.dumps(body).encode()
    assert stripped(adapter, content).content == content


def test_a_history_the_provider_held_is_rebuilt_and_then_stripped() -> None:
    """A-11: fork by rebuilding the full input from the cassette."""
    recorded: Mapping[str, Recorded] = {
        "resp_1": Recorded(
            b'{"input": "first"}', (b'{"type":"reasoning","id":"rs_1"}', b'{"type":"message","role":"assistant","content":"one"}')
        ),
    }
    body = b'{"model": "m", "previous_response_id": "resp_1", "input": [{"role": "user", "content": "second"}]}'
    made = stripped("openai-responses", body, earlier=recorded.get)
    assert json.loads(made.content) == {
        "model": "m",
        "input": [
            {"role": "user", "content": "first"},
            {"type": "message", "role": "assistant", "content": "one"},
            {"role": "user", "content": "second"},
        ],
    }
    assert [note.split(": ")[1] for note in made.notes] == ["rebuild-history", "strip-reasoning-items"]
    assert "previous_response_id" in held("openai-responses", body, earlier=recorded.get, allowed=False)
    assert "previous_response_id" in held("openai-responses", body, earlier={}.get)


def test_sealed_things_in_places_no_rule_knows_are_refused() -> None:
    """A-11: what the adapter knows and the rules do not is never forwarded in silence. Gemini reads one part without its list."""
    content = b'{"contents": {"role": "model", "parts": {"text": "x", "thoughtSignature": "S"}}}'
    assert "no rule takes it out" in held("gemini", content)
    assert "bound to the recorded model" in held("gemini", content, allowed=False)


BLOCKS = st.sampled_from(
    [
        {"type": "text", "text": 'a, [b] {"c"}'},
        THINKING,
        {"type": "thinking", "thinking": ']}",', "signature": "OWN"},
        {"type": "redacted_thinking", "data": "C"},
        {"type": "tool_use", "id": "t", "name": "n", "input": {"type": "thinking", "content": [{"type": "thinking", "signature": "x"}]}},
        {"type": "tool_result", "tool_use_id": "t", "content": [{"type": "text", "text": "thinking"}]},
    ]
)


@given(
    st.lists(st.tuples(st.sampled_from(["user", "assistant"]), st.lists(BLOCKS, max_size=5)), max_size=5),
    st.sampled_from([(",", ":"), (" ,\n", " : "), (", ", ": ")]),
)
def test_any_history_without_its_foreign_blocks_is_the_same_history(
    turns: list[tuple[str, list[Any]]], separators: tuple[str, str]
) -> None:
    """A-11: by byte and still JSON: what is left is what was there, in its order."""
    messages = [{"role": role, "content": blocks} for role, blocks in turns]
    made = stripped("anthropic", json.dumps({"messages": messages, "model": "m"}, separators=separators).encode(), own={known("OWN")})
    expected = []
    for role, blocks in turns:
        left = [one for one in blocks if one["type"] != "redacted_thinking" and one != THINKING]
        if left or not blocks:
            expected.append({"role": role, "content": left})
    assert json.loads(made.content) == {"messages": expected, "model": "m"}
    again = stripped("anthropic", made.content, own={known("OWN")})
    assert again == Stripped(made.content), "stripping twice is stripping once"


def test_a_long_history_is_stripped_in_one_pass() -> None:
    """A-11: the cost of a removal does not grow with the number of removals."""
    turn = json.dumps({"role": "assistant", "content": [THINKING, {"type": "text", "text": "x"}]}).encode()
    content = b'{"messages":[' + b",".join([turn] * 4_000) + b"]}"
    made = stripped("anthropic", content)
    assert len(made.notes) == 4_000
    assert b"SIG" not in made.content


@pytest.mark.parametrize(
    ("content", "left", "gone"),
    [
        (b'{"anthropic_beta":["a" , "b"],"x":["a"]}', b'{"anthropic_beta":["b"],"x":["a"]}', ("a",)),
        (b'{"anthropic_beta":["a"]}', b'{"anthropic_beta":[]}', ("a",)),
        (b'{"anthropic_beta":["b", 1, null]}', b'{"anthropic_beta":["b", 1, null]}', ()),
        (b'{"anthropic_beta":[["a"]]}', b'{"anthropic_beta":[["a"]]}', ()),
        (b"{}", b"{}", ()),
    ],
)
def test_names_are_taken_out_of_a_list(content: bytes, left: bytes, gone: tuple[str, ...]) -> None:
    """PROVIDERS A3: betas stand in the body on Bedrock and Vertex."""
    assert without_listed(content, ("anthropic_beta",), {"a"}) == (left, gone)


def test_said_writes_what_the_cases_say() -> None:
    """A-11: the scene itself."""
    assert json.loads(said(THINKING))["messages"][0]["content"] == [THINKING]

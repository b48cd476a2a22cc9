"""Named rules for what another model refuses: only what the rule names goes, and each use is told."""

from __future__ import annotations

import json
from typing import Any

import pytest

from secondtake.cassettes import adapters
from secondtake.cassettes.adapters import Patch, patch, without_betas
from secondtake.cassettes.exchange import Request
from tests.cassettes.adapters.corpus import GEMINI, MESSAGES, RESPONSES

THINKING = {"type": "thinking", "thinking": "hm", "signature": "c2ln"}
TALK = {"type": "text", "text": '"type":"thinking"'}


@pytest.mark.parametrize(
    ("rule", "body", "gone"),
    [
        (Patch.DROP_SAMPLING, {"temperature": 1, "a": {"temperature": 2}, "top_p": 0.1}, ["temperature", "top_p"]),
        (Patch.DROP_SAMPLING, {"generationConfig": {"temperature": 1, "x": 2}}, ["generationConfig.temperature"]),
        (Patch.DROP_SAMPLING, {"inferenceConfig": {"topP": 1}}, ["inferenceConfig.topP"]),
        (Patch.DROP_SAMPLING, {"request": {"generationConfig": {"topK": 1}}}, ["request.generationConfig.topK"]),
        (Patch.DROP_THINKING, {"thinking": {"type": "enabled"}, "reasoning": {"effort": "low"}}, ["thinking", "reasoning"]),
        (Patch.DROP_TOOL_CHOICE, {"tool_choice": {"type": "any"}, "tools": []}, ["tool_choice"]),
        (Patch.DROP_FALLBACKS, {"model": "m", "fallbacks": [{"model": "b"}]}, ["fallbacks"]),
        (Patch.DROP_ADVISOR, {"tools": [{"type": "advisor_20260301", "model": "b"}, {"name": "x"}]}, ["tools[0]"]),
        (Patch.STRIP_REASONING, {"messages": [{"content": [THINKING, TALK]}, {"content": "s"}]}, ["messages[0].content[0]"]),
        (Patch.STRIP_REASONING, {"input": [{"type": "reasoning", "encrypted_content": "x"}, {"type": "message"}]}, ["input[0]"]),
        (Patch.STRIP_REASONING, {"messages": [{"content": [{"reasoningContent": {}}, {"text": "x"}]}]}, ["messages[0].content[0]"]),
        (
            Patch.STRIP_REASONING,
            {"contents": [{"parts": [{"thought": True, "text": "x"}, {"text": "y", "thoughtSignature": "z"}]}]},
            ["contents[0].parts[0]", "contents[0].parts[1].thoughtSignature"],
        ),
        (Patch.STRIP_REASONING, {"messages": [{"content": "x", "reasoning_details": [1]}]}, ["messages[0].reasoning_details"]),
        (Patch.DROP_ADVISOR, {"tools": [{"name": "advisor"}]}, []),
    ],
)
def test_a_rule_cuts_what_it_names_and_tells_it(rule: Patch, body: dict[str, Any], gone: list[str]) -> None:
    """Issue 3, item 3; A-11: each removed block is listed. A rule that finds nothing changes nothing."""
    content = json.dumps(body, indent=1).encode()
    made = patch(content, [rule])
    assert [one.path for one in made.applied] == gone
    assert all(one.patch is rule and one.size_bytes > 0 for one in made.applied)
    assert (made.content == content) is not bool(gone)
    assert patch(made.content, [rule]).applied == ()
    json.loads(made.content)


def test_nothing_is_held_after_the_history_is_stripped() -> None:
    """A-11: thinking signatures and cipher text; the turns are otherwise the same."""
    request = Request("POST", "https", "h.example", 443, b"/v1/messages")
    body = {
        **MESSAGES,
        "messages": [*MESSAGES["messages"], {"role": "assistant", "content": [THINKING, TALK]}, {"role": "user", "content": "go"}],
    }
    content = json.dumps(body).encode()
    assert adapters.read_request("anthropic", request, content).held
    made = patch(content, [Patch.STRIP_REASONING])
    assert not adapters.read_request("anthropic", request, made.content).held
    for adapter, path, other in (
        (
            "gemini",
            "/v1beta/models/g:generateContent",
            {"contents": [*GEMINI["contents"], {"role": "model", "parts": [{"text": "x", "thoughtSignature": "z"}]}]},
        ),
        (
            "openai-responses",
            "/v1/responses",
            {**RESPONSES, "input": [*RESPONSES["input"], {"type": "compaction", "encrypted_content": "x"}]},
        ),
    ):
        request = Request("POST", "https", "h.example", 443, path.encode())
        content = json.dumps(other).encode()
        assert adapters.read_request(adapter, request, content).held
        assert not adapters.read_request(adapter, request, patch(content, [Patch.STRIP_REASONING]).content).held


def test_a_message_of_which_nothing_is_left_is_named() -> None:
    """A provider refuses an empty message: the caller must know."""
    made = patch(json.dumps({"messages": [{"content": [THINKING]}]}).encode(), [Patch.STRIP_REASONING])
    assert made.emptied == ("messages[0].content",)


def test_a_beta_is_dropped_by_name_and_the_other_fields_stay() -> None:
    """A-13: an unknown beta passes unchanged."""
    fields = ((b"X-A", b"1"), (b"Anthropic-Beta", b"a, b,c"), (b"anthropic-beta", b"b"), (b"anthropic-beta", b"d , e"))
    kept, dropped = without_betas(fields, {"b", "z"})
    assert kept == ((b"X-A", b"1"), (b"Anthropic-Beta", b"a,c"), (b"anthropic-beta", b"d , e"))
    assert dropped == ("b", "b")

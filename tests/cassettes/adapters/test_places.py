"""Every place that names a model is found; only what a swap may rewrite is rewritten, and only its bytes."""

from __future__ import annotations

import json
from typing import Any

import pytest

from secondtake.cassettes import adapters
from secondtake.cassettes.adapters import ModelRequest, PlaceKind
from secondtake.cassettes.errors import BadInput
from secondtake.cassettes.exchange import Request
from tests.cassettes.adapters.corpus import CHAT, GEMINI, MESSAGES, RESPONSES

PATHS = {
    "anthropic": "/v1/messages",
    "openai-chat": "/v1/chat/completions",
    "openai-responses": "/v1/responses",
    "gateway": "/v1/chat/completions",
    "gemini": "/v1internal:generateContent",
}
FIXED = (PlaceKind.INDIRECT, PlaceKind.AUXILIARY)


def read(adapter: str, body: dict[str, Any] | bytes, path: str = "") -> tuple[ModelRequest, bytes]:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    request = Request("POST", "https", "h.example", 443, (path or PATHS[adapter]).encode())
    return adapters.read_request(adapter, request, content), content


@pytest.mark.parametrize(
    ("adapter", "body", "places"),
    [
        (
            "anthropic",
            {**MESSAGES, "fallbacks": [{"model": "b"}, {"model": "c"}]},
            {"model": "model", "fallbacks[0].model": "fallback", "fallbacks[1].model": "fallback"},
        ),
        ("anthropic", {**MESSAGES, "fallbacks": "default"}, {"model": "model", "fallbacks": "indirect"}),
        (
            "anthropic",
            {**MESSAGES, "tools": [{"name": "x", "model": "d"}, {"model": "b", "type": "advisor_20260301"}]},
            {"model": "model", "tools[0].model": "auxiliary", "tools[1].model": "advisor"},
        ),
        (
            "openai-responses",
            {**RESPONSES, "moderation": {"model": "omni"}, "prompt": {"id": "p"}},
            {"model": "model", "moderation.model": "auxiliary", "prompt.id": "indirect"},
        ),
        (
            "openai-responses",
            {**RESPONSES, "tools": [{"type": "image_generation", "model": "gpt-image"}]},
            {"model": "model", "tools[0].model": "auxiliary"},
        ),
        ("openai-responses", {"type": "response.create", **RESPONSES}, {"model": "model"}),
        ("openai-responses", {"type": "response.create", "response": RESPONSES}, {"response.model": "model"}),
        (
            "gateway",
            {**CHAT, "models": ["b", "c"], "route": "fallback"},
            {"model": "model", "models[0]": "route", "models[1]": "route", "route": "indirect"},
        ),
        (
            "gateway",
            {**CHAT, "fallbacks": ["b", {"m": ["c"]}]},
            {"model": "model", "fallbacks[0]": "fallback", "fallbacks[1].m[0]": "indirect"},
        ),
        ("gateway", {"agent_id": "a", "messages": []}, {"agent_id": "indirect"}),
        ("gemini", {"model": "m", "request": {**GEMINI, "model": "n"}}, {"model": "model", "request.model": "model"}),
    ],
    ids=lambda value: json.dumps(value)[:60] if isinstance(value, dict) else value,
)
def test_every_model_bearing_place_is_named_with_what_it_is_for(adapter: str, body: dict[str, Any], places: dict[str, str]) -> None:
    """A-04: fallbacks, advisors, routes, stored prompts; `moderation.model` and image tools are never swapped."""
    asked, content = read(adapter, body)
    assert {place.path: place.kind.value for place in asked.places} == places
    for place in asked.places:
        assert content[place.start : place.stop].decode() == place.id
        if place.kind in FIXED:
            with pytest.raises(BadInput):
                adapters.splice(content, {place: "new"})
    changes = {place: "new" for place in asked.places if place.kind not in FIXED}
    again, _ = read(adapter, adapters.splice(content, changes))
    assert all(place.id == "new" for place in again.places if place.kind not in FIXED)
    assert again.turns == asked.turns


@pytest.mark.parametrize("adapter", ["anthropic", "openai-chat", "openai-responses"])
def test_odd_spelling_is_kept_around_the_new_id(adapter: str) -> None:
    """A-03: key order, white space, escapes, a duplicated key, number and Unicode spellings."""
    content = (
        b'\xef\xbb\xbf{\n "input" : "hi", "max_tokens":1e2,"messages":[{"role":"user","content":"\\u00e9\xc3\xa9 \\"model\\":\\"no\\""}],\t'
        b'"mod\\u0065l" : "old\\u002dname" ,"temperature":1.0,"metadata":{"model":"decoy"},"model":"ol\\/d"\n}'
    )
    asked, _ = read(adapter, content)
    assert asked.model == "ol/d"
    assert [place.id for place in asked.places] == ["old-name", "ol/d"]
    swapped = adapters.splice(content, dict.fromkeys(asked.places, 'n"\u00e9w'))
    assert swapped == content.replace(b"old\\u002dname", b'n\\"\\u00e9w').replace(b"ol\\/d", b'n\\"\\u00e9w')


@pytest.mark.parametrize("written", ["models/g-1", "models\\/g-1"])
def test_a_resource_name_keeps_its_prefix(written: str) -> None:
    """A-03: `models/ID` in a Gemini body stays a resource name."""
    content = b'{"generateContentRequest":{"model":"' + written.encode() + b'","contents":[{"parts":[{"text":"x"}]}]}}'
    asked, _ = read("gemini", content, "/v1beta/models/g-1:countTokens")
    assert [place.id for place in asked.places] == ["g-1", "g-1"]
    assert b"/g-2" in adapters.splice(content, dict.fromkeys(asked.places, "g-2"))


@pytest.mark.parametrize("value", [b"null", b"5", b'["m"]', b'{"id":"m"}'])
def test_a_model_that_is_no_string_is_a_fault(value: bytes) -> None:
    """A-04: no place, so a swap has nothing to rewrite and must refuse."""
    asked, _ = read("openai-chat", b'{"model":' + value + b',"messages":[]}')
    assert asked.places == ()
    assert [fault.kind for fault in asked.faults] == ["no-model"]

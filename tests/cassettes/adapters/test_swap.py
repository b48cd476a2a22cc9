"""Every place that names a model is found; only what a swap may rewrite is rewritten, and only its bytes."""

from __future__ import annotations

import json
from typing import Any

import pytest

from secondtake.cassettes import adapters
from secondtake.cassettes.adapters import ModelRequest, PlaceKind
from secondtake.cassettes.errors import BadInput
from secondtake.cassettes.exchange import Request
from tests.cassettes.adapters.corpus import CHAT, CLAUDE, GEMINI, MESSAGES, RESPONSES

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


@pytest.mark.parametrize(
    ("adapter", "path", "model", "new", "expected"),
    [
        ("bedrock", "/model/us.anthropic.claude-x-v1%3A0/converse", "us.anthropic.claude-x-v1:0", "a.b-v2:0", "/model/a.b-v2%3A0/converse"),
        ("bedrock", "/model/a.b/invoke", "a.b", "a.b-v2:0", "/model/a.b-v2%3A0/invoke"),
        ("bedrock", "/model/a.b-v1:0/invoke", "a.b-v1:0", "a.b-v2:0", "/model/a.b-v2:0/invoke"),
        (
            "bedrock",
            "/model/arn%3Aaws%3Abedrock%3Ar%3A1%3Ainference-profile%2Fx/invoke",
            "arn:aws:bedrock:r:1:inference-profile/x",
            "arn:aws:x/y",
            "/model/arn%3Aaws%3Ax%2Fy/invoke",
        ),
        (
            "vertex",
            "/v1/projects/p/locations/l/publishers/anthropic/models/c@20250101:rawPredict?x=c@20250101",
            "c@20250101",
            "d@20260101",
            "/v1/projects/p/locations/l/publishers/anthropic/models/d@20260101:rawPredict?x=c@20250101",
        ),
        (
            "vertex",
            "/v1/projects/p/locations/l/publishers/anthropic/models/c%4020250101:rawPredict",
            "c@20250101",
            "d@20260101",
            "/v1/projects/p/locations/l/publishers/anthropic/models/d%4020260101:rawPredict",
        ),
        (
            "gemini",
            "/v1beta/models/g-1:streamGenerateContent?alt=sse&key=models/g-1",
            "g-1",
            "g-2",
            "/v1beta/models/g-2:streamGenerateContent?alt=sse&key=models/g-1",
        ),
        (
            "azure-openai",
            "/openai/deployments/my%20d/chat/completions?api-version=1",
            "my d",
            "your d",
            "/openai/deployments/your%20d/chat/completions?api-version=1",
        ),
    ],
)
def test_an_id_in_the_path_is_swapped_in_the_manner_it_was_written(adapter: str, path: str, model: str, new: str, expected: str) -> None:
    """A-03: percent-encoding kept; nothing else in the target changes, the query included."""
    body = GEMINI if adapter == "gemini" else CLAUDE if adapter != "azure-openai" else CHAT
    content = json.dumps({key: value for key, value in body.items() if key != "model"}).encode()
    asked, _ = read(adapter, content, path)
    assert asked.model == model
    assert adapters.splice_path(path.encode(), dict.fromkeys(asked.places, new)) == expected.encode()
    assert adapters.splice(content, dict.fromkeys(asked.places, new)) == content


def test_the_body_of_an_azure_call_is_swapped_too_where_it_names_the_deployment() -> None:
    """A-03: two places; which one the provider heeds is its own business."""
    path = "/openai/deployments/d/chat/completions"
    asked, content = read("azure-openai", CHAT, path)
    assert [(place.path, place.id) for place in asked.places] == [("deployment", "d"), ("model", "m")]
    changes = dict.fromkeys(asked.places, "e")
    assert json.loads(adapters.splice(content, changes))["model"] == "e"
    assert adapters.splice_path(path.encode(), changes) == b"/openai/deployments/e/chat/completions"


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

"""IDs in request paths: found, and written in the manner they were written."""

from __future__ import annotations

import json
from typing import Any

import pytest

from secondtake.cassettes import adapters
from secondtake.cassettes.adapters import ModelRequest
from secondtake.cassettes.exchange import Request
from tests.cassettes.adapters.corpus import CHAT, CLAUDE, GEMINI


def read(adapter: str, body: dict[str, Any] | bytes, path: str) -> tuple[ModelRequest, bytes]:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    return adapters.read_request(adapter, Request("POST", "https", "h.example", 443, path.encode()), content), content


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

"""The functions other modules call by an adapter's name."""

from __future__ import annotations

import pytest

from secondtake.cassettes import adapters
from secondtake.cassettes.adapters import Escape, Place, PlaceKind
from secondtake.cassettes.errors import BadInput
from secondtake.cassettes.exchange import Answer, Request
from tests.cassettes.adapters.formats import FORMATS
from tests.cassettes.adapters.scenes import SCENES

REQUEST = Request("POST", "https", "h.example", 443, b"/v1/messages")


@pytest.mark.parametrize(("number", "expected"), [(0, False), (1, True), (2, True)])
def test_an_answer_has_tool_calls_when_the_agent_is_asked_to_run_one(number: int, expected: bool) -> None:
    """Issue 3, item 1: in every format."""
    for form in FORMATS:
        request, _ = form.request(SCENES[number])
        answer = Answer(200, fields=form.fields)
        assert adapters.has_tool_calls(form.adapter, request, answer, form.stream(SCENES[number])) is expected


def test_what_the_provider_runs_is_not_asked_of_the_agent() -> None:
    """A-14."""
    body = b'{"type":"message","content":[{"type":"server_tool_use","id":"s","name":"web_search","input":{}}]}'
    assert not adapters.has_tool_calls("anthropic", REQUEST, Answer(200), body)


def test_an_unknown_adapter_is_named_with_the_known_ones() -> None:
    """STYLE 4, rule 6; but a refusal is always had."""
    with pytest.raises(BadInput, match="no adapter is called `x`") as caught:
        adapters.read_request("x", REQUEST, b"")
    assert "anthropic" in (caught.value.hint or "")
    assert adapters.refusal("x", "exhausted", "m").status == adapters.refusal(None, "exhausted", "m").status == 400


def test_places_in_the_path_and_in_the_body_are_spliced_apart() -> None:
    """A-03: one mapping of changes serves both."""
    changes = {Place("path", PlaceKind.MODEL, 1, 2, "a", Escape.PATH): "x y", Place("model", PlaceKind.MODEL, 2, 3, "b"): 'q"'}
    assert adapters.splice(b"[ b ]", changes) == b'[ q\\" ]'
    assert adapters.splice_path(b"/a/b", changes) == b"/x%20y/b"

"""An answer while it is being read, and turns put together."""

from __future__ import annotations

import pytest

from secondtake.cassettes.adapters import Role, Stop, Text, ToolCall, ToolResult, Turn
from secondtake.cassettes.adapters.draft import BlockKind, Draft, call_from_text, call_from_value, join


@pytest.mark.parametrize(
    ("text", "form", "expected"),
    [
        ('{ "b": 1, "a": [2.50] }', "json", ToolCall("i", "f", '{"a":[2.5],"b":1}')),
        ("", "json", ToolCall("i", "f", "{}")),
        (" \n", "json", ToolCall("i", "f", "{}")),
        ('{"a":', "json", ToolCall("i", "f", '{"a":', well_formed=False)),
        ('{"a":', "text", ToolCall("i", "f", '{"a":', "text")),
        ('{"n":' + "9" * 30 + "}", "json", ToolCall("i", "f", '{"n":' + "9" * 30 + "}")),
        ('"\\ud800"', "json", ToolCall("i", "f", '"\ud800"')),
    ],
)
def test_arguments_are_canonical_where_they_parse(text: str, form: str, expected: ToolCall) -> None:
    """Equal calls compare equal; large integers keep their digits."""
    assert call_from_text("i", "f", text, form) == expected


def test_arguments_as_text_and_as_a_value_are_the_same() -> None:
    """Chat sends text, Messages an object."""
    assert call_from_value("i", "f", {"b": 1, "a": "é"}) == call_from_text("i", "f", '{"a":"\\u00e9","b":1}')
    assert call_from_value("i", "f", None).arguments == "{}"


def test_neighbours_of_one_speaker_become_one_turn_and_results_are_named() -> None:
    """Items and single results are one turn; two messages of a user stay two."""
    call, result = ToolCall("i", "f", "{}"), ToolResult("i", "", "r")
    said = [Turn(Role.USER, (Text("a"),)), Turn(Role.USER, (Text("b"),)), Turn(Role.ASSISTANT, (Text("c"),)), Turn(Role.ASSISTANT, (call,))]
    said += [Turn(Role.TOOL, (result,)), Turn(Role.ASSISTANT, ()), Turn(Role.TOOL, (ToolResult("other", "", "s"),))]
    assert join(said) == (
        said[0],
        said[1],
        Turn(Role.ASSISTANT, (Text("c"), call)),
        Turn(Role.TOOL, (ToolResult("i", "f", "r"), ToolResult("other", "", "s"))),
    )


def test_a_stop_with_calls_is_a_stop_for_calls() -> None:
    """Gemini and Responses have no word of their own for it; the provider's own calls do not count."""
    draft = Draft(stop=Stop.END)
    block = draft.add(BlockKind.CALL, "f", "i")
    block.server_side = True
    assert draft.answer("x").stop is Stop.END
    block.server_side = False
    assert draft.answer("x").stop is Stop.TOOL_CALLS

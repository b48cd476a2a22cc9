"""Results are matched to their calls, and each is told once."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from secondtake.cassettes.adapters import Role, Stop, Text, ToolCall, ToolResult, Turn
from secondtake.cassettes.events import EventKind, contents, events
from secondtake.cassettes.exchange import Answer, Channel
from secondtake.cassettes.memory import MemoryCassette
from tests.cassettes.adapters.formats import FORMATS, Format
from tests.cassettes.adapters.scenes import SCENES, Scene

ASK, PAIR, RESULTS, MORE = SCENES[2].turns
FIRST = Scene("calls", (ASK,), PAIR.parts, Stop.TOOL_CALLS)  # type: ignore[arg-type]  # text and calls only
AGAIN = Scene("again", SCENES[3].turns, (Text("It says hello."),), Stop.END)


def play(cassette: MemoryCassette, form: Format, scene: Scene) -> None:
    request, sent = form.request(scene)
    answer = Answer(200, fields=form.fields)
    cassette.record(request, answer, sent=sent, received=form.stream(scene), channel=Channel.MODEL, adapter=form.adapter)


def results(cassette: MemoryCassette) -> list[Any]:
    made = events(cassette.exchanges.values(), contents(cassette))
    return [event.data for event in made if event.event is EventKind.TOOL_RESULT]


def test_a_server_that_reuses_ids_gives_each_result_once() -> None:
    """Local servers call every call `call_0`."""
    form = FORMATS[1]
    call, result = ToolCall("call_0", "shell", '{"command":"ls"}'), ToolResult("call_0", "shell", "a")
    turns: tuple[Turn, ...] = (ASK,)
    cassette = MemoryCassette()
    for _ in range(3):
        play(cassette, form, Scene("s", turns, (call,), Stop.TOOL_CALLS))
        turns = (*turns, Turn(Role.ASSISTANT, (call,)), Turn(Role.TOOL, (result,)))
    play(cassette, form, Scene("s", turns, (Text("done"),), Stop.END))
    assert [one["call_exchange"] for one in results(cassette)] == [1, 2, 3]


def test_ids_a_client_makes_up_are_matched_by_name_and_place() -> None:
    """AGENTS: Gemini CLI makes IDs by its clock when the provider gives none."""
    form = next(one for one in FORMATS if one.name == "gemini, SSE")
    bare = tuple(replace(part, id="") for part in PAIR.parts if isinstance(part, ToolCall))
    made_up = tuple(replace(part, id=f"shell_17000_{i}") for i, part in enumerate(bare))
    sent_back = tuple(ToolResult(part.id, "shell", f"r{i}") for i, part in enumerate(made_up))
    cassette = MemoryCassette()
    play(cassette, form, Scene("s", (ASK,), bare, Stop.TOOL_CALLS))
    play(cassette, form, Scene("s", (ASK, Turn(Role.ASSISTANT, made_up), Turn(Role.TOOL, sent_back)), (Text("ok"),), Stop.END))
    assert [(one["call_exchange"], one["matched"]) for one in results(cassette)] == [(1, True), (1, True)]


def test_a_conversation_made_shorter_does_not_tell_its_results_again() -> None:
    """Compaction: the history begins anew, its tail is old."""
    form = FORMATS[0]
    cassette = MemoryCassette()
    play(cassette, form, FIRST)
    play(cassette, form, AGAIN)
    summary = Turn(Role.USER, (Text("Summary of what came before."),))
    play(cassette, form, Scene("s", (summary, PAIR, RESULTS, MORE), (Text("ok"),), Stop.END))
    assert len(results(cassette)) == 2


def test_a_call_that_was_not_recorded_has_no_exchange() -> None:
    """A recording that began in the middle of a conversation."""
    cassette = MemoryCassette()
    play(cassette, FORMATS[0], AGAIN)
    assert [(one["matched"], one["call_exchange"], one["tool"]) for one in results(cassette)] == [(False, None, "shell")] * 2

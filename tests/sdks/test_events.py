"""The same four conversations give the same events, whichever wire format carried them and whether it was streamed."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import pytest

from tests.sdks.conftest import Recording
from tests.sdks.scripts import CONVERSATIONS, LONG

type Neutral = tuple[object, ...]

TOOLS = ("run", "read_file")


def neutral(event: Mapping[str, Any]) -> Neutral:
    """What an event says that no wire format has to do with: IDs, times, token counts and the provider's own words left out."""
    kind = event["event"]
    match kind:
        case "model_request":
            return (kind, event["kind"], event["turns"], tuple(event["tools"]))
        case "model_response":
            return (kind, event["status"], event["outcome"], event["stop"], event["tool_calls"], event["text_sha256"])
        case "tool_call":
            return (kind, event["tool"], event["arguments"], event["well_formed"])
        case "tool_result":
            return (kind, event["tool"], event["matched"], event["exit_code"], event["stdout_sha256"])
        case "retry":
            return (kind, event["attempt"], event["after"])
        case _:
            return (kind, event["reason"])


def asked(turns: int = 1) -> Neutral:
    return ("model_request", "completion", turns, TOOLS)


def answered(text: str, stop: str = "end", calls: int = 0) -> Neutral:
    return ("model_response", 200, "answered", stop, calls, sha256(text) if text else None)


def called(tool: str, arguments: str) -> Neutral:
    return ("tool_call", tool, arguments, True)


def returned(tool: str, text: str, code: int | None = None) -> Neutral:
    return ("tool_result", tool, True, code, sha256(text))


def sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


LOOK = [called("run", '{"command":"ls"}'), called("read_file", '{"path":"README.md"}')]
LOOKED = [returned("run", "output of ls"), returned("read_file", "contents of README.md")]
FAILED = [returned("run", "Exit code 1\nnothing to see", 1)]

EXPECTED: dict[str, list[Neutral]] = {
    "talk": [asked(), answered(f"{LONG}talk, said by the first model."), ("stop", "end")],
    "tools": [
        *[asked(), answered("I will look. Naïvely.", "tool_calls", 2), *LOOK, *LOOKED],
        *[asked(3), answered("", "tool_calls", 1), called("run", '{"command":"false"}'), *FAILED],
        *[asked(5), answered("It is as first thought."), ("stop", "end")],
    ],
    "retried": [
        *[asked(), ("model_response", 429, "infrastructure", None, 0, None), ("retry", 2, "status 429")],
        *[asked(), answered("At last, says the first model."), ("stop", "end")],
    ],
    "length": [asked(), answered(f"{LONG} By the first model", "length"), ("stop", "length")],
}


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("conversation", CONVERSATIONS)
def test_a_conversation_gives_the_same_events_in_every_format(recording: Recording, conversation: str, streamed: bool) -> None:
    """Issue 3: kinds, tools, arguments, results, stops; parallel calls in order; a retry told from a new question."""
    scene = f"{conversation}-streamed" if streamed else conversation
    found = recording.world.conversation("first", scene)
    expected = EXPECTED[conversation]
    assert [neutral(event) for event in found] == expected
    assert {event["model"] for event in found if event["exchange"] is not None} == {recording.world.sdk.model}
    assert {event["adapter"] for event in found if "adapter" in event} == {recording.world.sdk.adapter}
    assert all(event["stream"] is streamed for event in found if event["event"] == "model_request")
    calls = [event["call_id"] for event in found if event["event"] == "tool_call"]
    assert len(set(calls)) == len(calls)
    assert [event["call_id"] for event in found if event["event"] == "tool_result"] == calls


@pytest.mark.parametrize(("scene", "ended"), [("broken-streamed", "complete"), ("cut-streamed", "reset")])
def test_a_stream_that_breaks_is_the_infrastructures_fault_in_every_format(recording: Recording, scene: str, ended: str) -> None:
    """A-12, T-B4, T-B5: an error inside a 200, and a 200 that stops."""
    found = recording.world.conversation("first", scene)
    assert [event["event"] for event in found] == ["model_request", "model_response", "stream_error", "stop"]
    response, error, stop = found[1:]
    assert (response["status"], response["outcome"], response["complete"], response["ended"]) == (200, "infrastructure", False, ended)
    assert (error["ended"], stop["reason"]) == (ended, "infrastructure")


def test_a_refused_call_is_the_models_matter(recording: Recording) -> None:
    """A 400 is no fault of the infrastructure."""
    found = recording.world.conversation("first", "refused")
    assert [event["event"] for event in found] == ["model_request", "model_response", "stop"]
    assert (found[1]["status"], found[1]["outcome"], found[1]["error"]["infrastructure"]) == (400, "incompatible", False)

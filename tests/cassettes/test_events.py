"""The log of a recording: the same story whichever wire format told it."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from typing import Any

import pytest

from secondtake.cassettes import content as codings
from secondtake.cassettes.adapters import Stop, Text
from secondtake.cassettes.events import Event, EventKind, contents, events, line
from secondtake.cassettes.exchange import Answer, Answered, Channel, Ending, Request
from secondtake.cassettes.memory import MemoryCassette
from tests.cassettes.adapters.formats import FORMATS, Format
from tests.cassettes.adapters.scenes import MODEL, SCENES, Scene

ASK, PAIR, RESULTS, MORE = SCENES[2].turns
FIRST = Scene("calls", (ASK,), PAIR.parts, Stop.TOOL_CALLS)  # type: ignore[arg-type]  # text and calls only
FAILED = SCENES[3]
AGAIN = Scene("again", FAILED.turns, (Text("It says hello."),), Stop.END)


def play(cassette: MemoryCassette, form: Format, scene: Scene, **more: Any) -> int:
    request, sent = form.request(scene)
    answer = Answer(200, fields=form.fields)
    return cassette.record(request, answer, sent=sent, received=form.stream(scene), channel=Channel.MODEL, adapter=form.adapter, **more)


def log(cassette: MemoryCassette) -> list[Event]:
    return list(events(cassette.exchanges.values(), contents(cassette)))


def told(event: Event) -> dict[str, Any]:
    """An event without what only the wire format decides."""
    keep: tuple[str, ...] = (
        "tool",
        "call_id",
        "arguments",
        "exit_code",
        "stdout_sha256",
        "matched",
        "call_exchange",
        "reason",
        "attempt",
        "of",
        "stop",
    )
    keep += ("text_sha256", "system_sha256", "tools_sha256", "turns", "complete", "outcome", "tool_calls", "last_exchange")
    data = {key: event.data[key] for key in keep if key in event.data}
    if event.event is EventKind.STREAM_ERROR:
        del data["reason"]
    return {"event": event.event, "sequence": event.sequence, "exchange": event.exchange, "model": event.model, **data}


def story(form: Format) -> list[Event]:
    cassette = MemoryCassette()
    for scene in (FIRST, FAILED, AGAIN):
        play(cassette, form, scene)
    return log(cassette)


@pytest.mark.parametrize("form", FORMATS, ids=lambda form: form.name)
def test_one_story_gives_one_log_in_every_format(form: Format) -> None:
    """Issue 3: calls in parallel, their results, an error in mid-stream and the retry after it."""
    made = story(form)
    assert [told(event) for event in made] == [told(event) for event in story(FORMATS[0])]
    assert [(event.event.value, event.exchange) for event in made] == [
        ("model_request", 1),
        ("model_response", 1),
        ("tool_call", 1),
        ("tool_call", 1),
        ("tool_result", 2),
        ("tool_result", 2),
        ("model_request", 2),
        ("model_response", 2),
        ("stream_error", 2),
        ("retry", 3),
        ("model_request", 3),
        ("model_response", 3),
        ("stop", None),
    ]
    assert [event.sequence for event in made] == list(range(len(made)))
    assert [event.offset_us for event in made] == sorted(event.offset_us for event in made)


def test_a_result_is_told_once_and_names_its_call() -> None:
    """Issue 3, item 7: payloads by hash, and the hash is that of the bytes."""
    made = [event for event in story(FORMATS[0]) if event.event is EventKind.TOOL_RESULT]
    assert [(event.data["tool"], event.data["call_id"], event.data["matched"], event.data["call_exchange"]) for event in made] == [
        ("shell", "call_1", True, 1),
        ("shell", "call_2", True, 1),
    ]
    assert made[0].data["stdout_sha256"] == hashlib.sha256(b"hello\n").hexdigest()
    for event in story(FORMATS[0]):
        assert all(hashlib.sha256(data).hexdigest() == name for name, data in event.payloads.items())


def test_a_line_has_the_fixed_names() -> None:
    """DESIGN 5: these names are fixed."""
    made = story(FORMATS[0])
    lines = [json.loads(line(event, run_id="r", fixture="f")) for event in made]
    assert all(one["run_id"] == "r" and one["fixture"] == "f" and one["model"] in (MODEL, None) for one in lines)
    result = next(one for one in lines if one["event"] == "tool_result")
    assert {"tool", "exit_code", "stdout_sha256", "sequence", "offset_us"} <= result.keys()
    assert all("\n" not in line(event) for event in made)


def test_a_failed_attempt_that_is_still_running_is_not_retried_by_its_twin() -> None:
    """T-A9: two equal requests in flight together are two, not one and its retry."""
    cassette = MemoryCassette()
    play(cassette, FORMATS[0], FAILED, started_us=1000, ended_us=9000)
    play(cassette, FORMATS[0], AGAIN, started_us=2000, ended_us=3000)
    assert EventKind.RETRY not in [event.event for event in log(cassette)]


@pytest.mark.parametrize(("status", "ended"), [(429, Ending.COMPLETE), (529, Ending.COMPLETE), (None, Ending.RESET)])
def test_attempts_are_counted(status: int | None, ended: Ending) -> None:
    """A-12: each attempt is an exchange of its own; the cassette is only read."""
    cassette = MemoryCassette()
    request, sent = FORMATS[0].request(FIRST)
    body = b'{"type":"error","error":{"type":"overloaded_error","message":"x"}}'
    for _ in range(2):
        answer = None if status is None else Answer(status)
        cassette.record(request, answer, sent=sent, received=body, channel=Channel.MODEL, adapter="anthropic", ended=ended)
    play(cassette, FORMATS[0], FIRST)
    retries = [event.data for event in log(cassette) if event.event is EventKind.RETRY]
    assert [(one["of"], one["attempt"]) for one in retries] == [(1, 2), (2, 3)]


def test_a_history_kept_by_the_provider_is_followed_by_its_id() -> None:
    """A-10: only new items are sent, with `previous_response_id`."""
    form = next(one for one in FORMATS if one.name == "responses")
    cassette = MemoryCassette()
    play(cassette, form, FIRST)
    items = [{"type": "function_call_output", "call_id": "call_1", "output": "Process exited with code 3\nOutput:\n"}]
    sent = json.dumps({"model": MODEL, "previous_response_id": "a-1", "input": items}).encode()
    request, _ = form.request(FIRST)
    cassette.record(request, None, sent=sent, channel=Channel.MODEL, adapter="openai-responses", ended=Ending.RESET)
    (result,) = [event for event in log(cassette) if event.event is EventKind.TOOL_RESULT]
    assert (result.data["call_exchange"], result.data["tool"], result.data["exit_code"]) == (1, "shell", 3)
    (stop,) = [event for event in log(cassette) if event.event is EventKind.STOP]
    assert stop.data["reason"] == "tool-calls-unanswered"


def test_misses_of_any_channel_and_unread_calls_are_told() -> None:
    """DESIGN 3: a miss is an answer, an event, and a take that is not clean."""
    cassette = MemoryCassette()
    seq = cassette.record(Request("GET", "https", "index.example", 443, b"/x"), Answer(424), details={"miss": "new-resource"})
    cassette.exchanges[seq] = replace(cassette.exchanges[seq], answered=Answered.MISS)
    cassette.record(Request("POST", "https", "h.example", 443, b"/what"), Answer(200), sent=b"?", channel=Channel.MODEL)
    miss, unread = log(cassette)
    assert (miss.event, miss.data["kind"], miss.data["url"]) == (EventKind.MISS, "new-resource", "https://index.example/x")
    assert unread.event is EventKind.UNREAD


@pytest.mark.parametrize("coding", ["gzip", "br", "zstd"])
def test_bodies_with_a_content_coding_are_read_and_a_cut_one_as_far_as_it_goes(coding: str) -> None:
    """T-E4: Codex sends zstd; A-09: a cut stream is told as cut."""
    form = FORMATS[0]
    request, sent = form.request(FIRST)
    packed = codings.encode(form.stream(FIRST), (coding,))
    coded = (b"content-encoding", coding.encode())
    for received, complete in ((packed, True), (packed[: len(packed) - 20], False)):
        cassette = MemoryCassette()
        answer = Answer(200, fields=(*form.fields, coded))
        request = replace(request, fields=(coded,))
        cassette.record(
            request, answer, sent=codings.encode(sent, (coding,)), received=received, channel=Channel.MODEL, adapter="anthropic"
        )
        response = next(event for event in log(cassette) if event.event is EventKind.MODEL_RESPONSE)
        assert response.data["complete"] is complete
        assert (EventKind.STREAM_ERROR in [event.event for event in log(cassette)]) is not complete


def test_side_calls_do_not_say_why_all_ended() -> None:
    """A title or router call without tools may end last."""
    cassette = MemoryCassette()
    play(cassette, FORMATS[0], AGAIN)
    request, _ = FORMATS[0].request(AGAIN)
    title = json.dumps({"model": "small", "max_tokens": 9, "messages": [{"role": "user", "content": "Title?"}]}).encode()
    cassette.record(request, None, sent=title, channel=Channel.MODEL, adapter="anthropic", ended=Ending.RESET)
    stop = log(cassette)[-1]
    assert (stop.event, stop.data["reason"], stop.data["last_exchange"]) == (EventKind.STOP, "end", 1)


def test_a_call_that_was_live_in_a_retake_says_as_what_it_went() -> None:
    """A-06, DESIGN 5: requested, forwarded, served and the proof are in the log of the take; a played call has none of it."""
    cassette = MemoryCassette()
    call = {"step": 3, "requested": ["old"], "forwarded": "new", "proof": "medium", "mismatch": False, "infrastructure": None, "more": 1}
    play(cassette, FORMATS[0], FIRST, details={"model_call": call})
    play(cassette, FORMATS[0], AGAIN, details={"source_seq": 2})
    live, played = [event.data for event in log(cassette) if event.event is EventKind.MODEL_RESPONSE]
    assert {key: live[key] for key in ("step", "requested", "forwarded", "proof", "mismatch")} == {
        "step": 3,
        "requested": ["old"],
        "forwarded": "new",
        "proof": "medium",
        "mismatch": False,
    }
    assert "more" not in live
    assert "forwarded" not in played

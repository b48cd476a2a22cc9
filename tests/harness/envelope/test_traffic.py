"""What the recorded traffic says of the envelope."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest

from secondtake.cassettes import envelope
from secondtake.cassettes.envelope import UNKNOWN, Layer
from secondtake.cassettes.exchange import Answer, Channel, Request
from secondtake.cassettes.memory import MemoryCassette
from secondtake.harness.envelope.traffic import OF_THIS_RUN, system_by_call, traffic_layers
from tests.harness.envelope.calls import FIELDS, SEARCH, TOOL, ask, recorded


def told(cassette: MemoryCassette, **meta: object) -> Any:
    """The envelope of a cassette's traffic."""
    return envelope.of(traffic_layers(cassette, meta)).layers


def test_system_prompts_parameters_and_tools_are_read_from_the_requests() -> None:
    """Issue 5, item 2: what is derivable from the recorded traffic is read from there."""
    said = told(recorded(ask(temperature=0.5), ask("fix it", "yes", "go on", temperature=0.5)), root="x")
    model, tools = said[Layer.MODEL], said[Layer.TOOLS]
    assert model["providers"] == [{"format": "anthropic", "host": "api.provider.example"}]
    assert list(model["requested"]) == ["hasty-20260101"]
    assert model["parameters"] == {"hasty-20260101": [{"max_tokens": 64, "stream": False, "temperature": 0.5}]}
    assert list(tools["offered"]) == ["run"]
    assert tools["offered"]["run"][0]["description"] == hashlib.sha256(b"Runs a command").hexdigest()
    assert len(said[Layer.INSTRUCTIONS]["system"]) == 1


def test_another_tool_schema_is_another_envelope() -> None:
    """DESIGN 6: tools by name and JSON schema."""
    other = {**TOOL, "input_schema": {"type": "object"}}
    one, two = told(recorded(ask())), told(recorded(ask(tools=[other])))
    assert one[Layer.TOOLS]["offered"] != two[Layer.TOOLS]["offered"]
    assert {**one, Layer.TOOLS: {}} == {**two, Layer.TOOLS: {}}


@pytest.mark.parametrize(
    ("one", "two"),
    [
        (ask(), ask(system="You fix code.\nToday's date is 2026-12-24")),
        (ask(metadata={"user_id": "user_a_session_1"}), ask(metadata={"user_id": "user_a_session_2"})),
        (ask(system="In /tmp/copy-1/work."), ask(system="In /home/someone/work.")),
        (ask(system="key sk-_2T.key.aaaaaaaaaaaaaxx_"), ask(system="key sk-_2T.key.bbbbbbbbbbbbbxx_")),
    ],
    ids=["date", "session", "directory", "placeholder"],
)
def test_what_no_two_runs_have_in_common_does_not_count(one: bytes, two: bytes) -> None:
    """DESIGN 3: what agents write into their prompts themselves, and what is ours, tells no two runs apart."""
    places = ["/tmp/copy-1/work", "/home/someone/work"]  # texts only
    first, second = (told(recorded(sent), cwd=place) for sent, place in zip((one, two), places, strict=True))
    assert first == second


def test_another_system_prompt_counts_and_each_call_has_its_own() -> None:
    """Issue 5: system prompt digests per model call."""
    cassette = recorded(ask(), ask(system="You name things."), ask())
    (one, first), (two, second), (three, third) = system_by_call(cassette, {})
    assert (one, two, three) == (1, 2, 3)
    assert first == third != second
    assert set(told(cassette)[Layer.INSTRUCTIONS]["system"]) == {first, second}


def test_the_task_is_what_the_person_typed_not_what_the_agent_put_before_it() -> None:
    """Issue 5: the user's task."""
    texts = [{"type": "text", "text": "<environment>Linux</environment>"}, {"type": "text", "text": "Make it green"}]
    sent = ask(messages=[{"role": "user", "content": texts}])
    assert told(recorded(sent))[Layer.INSTRUCTIONS]["task"]["text"] == "Make it green"
    typed = recorded(ask(messages=[{"role": "user", "content": [*texts[::-1], {"type": "text", "text": "fix a bug"}]}]))
    assert told(typed, command=["agent", "-p", "fix a bug"])[Layer.INSTRUCTIONS]["task"]["text"] == "fix a bug"


def test_a_setting_of_this_run_is_there_without_its_value() -> None:
    """An account or a session in a parameter is personal, and another one each time."""
    said = told(recorded(ask(user="someone@example")))
    assert said[Layer.MODEL]["parameters"]["hasty-20260101"][0]["user"] == OF_THIS_RUN


def test_mcp_servers_are_known_by_their_tools_and_hosts() -> None:
    """DESIGN 6: MCP servers."""
    cassette = recorded(ask(tools=[TOOL, SEARCH]))
    cassette.record(Request("POST", "https", "mcp.example", 443, b"/mcp"), Answer(200), channel=Channel.MCP)
    assert told(cassette)[Layer.TOOLS]["mcp_servers"] == {"hosts": ["mcp.example"], "tools": {"tickets": 1}}


def test_repeated_calls_and_shortened_conversations_are_seen() -> None:
    """DESIGN 6, orchestrator: retry policy and context compaction, as far as the traffic shows them."""
    turns = ["fix it"] + ["more"] * 8
    again = tuple((name, b"2" if name == b"x-stainless-retry-count" else value) for name, value in FIELDS)
    said = told(recorded(ask(*turns), ask(*turns), ask("fix it", "summary", "go on"), fields=again, statuses=[529]))
    assert said[Layer.ORCHESTRATOR]["retry"] == {"by_client": 2, "same_again": 1}
    assert said[Layer.ORCHESTRATOR]["compaction"] == {"by_provider": False, "shortened": 1}
    assert said[Layer.ORCHESTRATOR]["client"]["user_agent"] == ["claude-cli/2.1.197 (external, cli)"]


def test_without_a_model_call_the_model_is_unknown_and_the_hosts_are_not() -> None:
    """Issue 5: what cannot be known is `unknown`: a plain `pip install` has no model."""
    cassette = MemoryCassette()
    cassette.record(Request("GET", "https", "index.example", 8443, b"/simple/"), Answer(200), channel=Channel.INDEX)
    said = told(cassette)
    assert said[Layer.MODEL] == {"providers": UNKNOWN, "requested": UNKNOWN, "parameters": UNKNOWN}
    assert said[Layer.EXTERNAL]["hosts"] == {"index": ["index.example:8443"]}


def test_a_take_names_what_was_played() -> None:
    """Two takes of one recording have one external layer."""
    assert told(recorded(ask()), parent_root="ab")[Layer.EXTERNAL]["cassette"] == "ab"


def test_a_request_that_cannot_be_read_is_no_error() -> None:
    """Recorded bytes are hostile input."""
    assert told(recorded(b"\xff\x00{", b"[]", b'{"model":[1]}'))[Layer.INSTRUCTIONS]["system"] in ({}, UNKNOWN)

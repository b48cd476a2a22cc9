"""What was typed, judged against the recording before anything is sent."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path

import pytest

from secondtake.cassettes.adapters import CallKind
from secondtake.cassettes.casting import Unpinned
from secondtake.cassettes.errors import BadInput
from secondtake.cassettes.exchange import Answer, Channel, Fields, Request
from secondtake.cassettes.memory import MemoryCassette
from secondtake.cassettes.redact import Redactor
from secondtake.harness.cast import Asking, Cast, asked_in, cast_of, earlier_in
from secondtake.harness.plan import Bounds, Recast
from secondtake.proxy.credentials import NoCredential
from secondtake.proxy.retake import Claim, Outgoing
from tests.harness.stages import stage_in

JSON: Fields = ((b"content-type", b"application/json"),)
HELD = "claude-opus-4-6"


def cassette(*hosts: str, adapter: str | None = "anthropic") -> MemoryCassette:
    """Model calls to these hosts."""
    made = MemoryCassette()
    sent = json.dumps({"model": "m", "max_tokens": 1, "messages": [{"role": "user", "content": "x"}]}).encode()
    for host in hosts:
        request = Request("POST", "https", host, 443, b"/v1/messages", fields=JSON)
        made.record(request, Answer(200, fields=JSON), sent=sent, received=b"{}", channel=Channel.MODEL, adapter=adapter)
    made.record(Request("GET", "https", "web.example", 443, b"/"), Answer(200))
    return made


def cast(tmp_path: Path, recast: Recast, *hosts: str, **environ: str) -> Cast:
    """The cast for a recording of calls to `hosts`."""
    return cast_of(stage_in(tmp_path, **environ), cassette(*hosts), recast, Redactor(key=b"k" * 32))


def test_the_recording_says_where_models_are_asked() -> None:
    """Each place once, also where the recorder could not tell the format."""
    places = (Asking("anthropic", "a.example", 443), Asking("anthropic", "b.example", 443))
    assert asked_in(cassette("a.example", "b.example", "a.example")) == places
    assert asked_in(cassette("a.example", adapter=None)) == places[:1]


def test_a_pin_is_judged_by_the_table_of_whom_the_recording_asks(tmp_path: Path) -> None:
    """A4: the vendor promises that its ID stays; a host of one's own maps it as it sees fit."""
    assert cast(tmp_path, Recast((HELD,)), "api.anthropic.com").labels == ()
    with pytest.raises(Unpinned, match="alias \\(gateway\\)"):
        cast(tmp_path, Recast((HELD,)), "llm.internal.example")
    with pytest.raises(Unpinned):
        cast(tmp_path, Recast((HELD,), gateway="https://gateway.example"), "api.anthropic.com")


def test_an_alias_is_refused_with_dated_candidates(tmp_path: Path) -> None:
    """Issue 3.2."""
    with pytest.raises(Unpinned) as raised:
        cast(tmp_path, Recast(("claude-sonnet-4-5",)), "api.anthropic.com")
    assert "claude-sonnet-4-6" in (raised.value.hint or "")


def test_the_labels_name_all_that_a_comparison_must_say(tmp_path: Path) -> None:
    """DESIGN 5: --allow-unpinned, rules, a gateway, a played beginning; each stands in the take."""
    recast = Recast(
        ("router/auto",),
        from_step=3,
        strip_reasoning=True,
        rules=("drop-sampling", "drop-beta:x"),
        gateway="https://gateway.example/v1",
        allow_unpinned=True,
    )
    made = cast(tmp_path, recast, "api.anthropic.com")
    labels = ("unpinned: router/auto", "gateway", "from step 3", "rule: drop-beta:x", "rule: drop-sampling", "reasoning stripped")
    assert made.labels == labels
    told = json.loads(json.dumps(made.told(str)))
    assert told["labels"] == list(labels)
    assert (told["rules"], told["credential"], told["casting"]["gateway"]) == (
        ["drop-beta:x", "drop-sampling"],
        "none",
        "https://gateway.example/v1",
    )


def test_a_versioned_pin_and_a_retired_one_are_labelled(tmp_path: Path) -> None:
    """A4: taken, and named in the report; a take whose pin is gone is `retired`."""
    labels = ("versioned: claude-mythos-preview", "retired: claude-mythos-preview")
    assert cast(tmp_path, Recast(("claude-mythos-preview",)), "api.anthropic.com").labels == labels


@pytest.mark.parametrize("rule", ["drop-everything", "drop-beta:"])
def test_a_rule_that_is_not_known_is_refused_with_those_that_are(tmp_path: Path, rule: str) -> None:
    """Issue 3.3: named, listed rules."""
    with pytest.raises(BadInput) as raised:
        cast(tmp_path, Recast((HELD,), rules=(rule,)), "api.anthropic.com")
    assert "drop-sampling" in (raised.value.hint or "")


def test_a_price_file_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    """Issue 3.5: prices from a file the user gives."""
    with pytest.raises(BadInput, match="cannot read the prices"):
        cast(tmp_path, Recast((HELD,), bounds=Bounds(cost=1.0, prices=tmp_path / "none.toml")), "api.anthropic.com")
    (tmp_path / "bad.toml").write_text("models = 3")
    with pytest.raises(BadInput, match="no `models`"):
        cast(tmp_path, Recast((HELD,), bounds=Bounds(cost=1.0, prices=tmp_path / "bad.toml")), "api.anthropic.com")


def test_without_a_credential_the_agents_own_goes_where_the_agent_sends_it(tmp_path: Path) -> None:
    """No credential is sent to any host but the one it is for; this one is for it."""
    assert cast(tmp_path, Recast((HELD,)), "api.anthropic.com").retake.credentials is None


def test_a_credential_that_is_not_there_is_said_before_anything_is_sent(tmp_path: Path) -> None:
    """Errors say what to try."""
    with pytest.raises(BadInput, match=r"KEY .* is not set") as raised:
        cast(tmp_path, Recast((HELD,), credential_env="KEY"), "api.anthropic.com")
    assert raised.value.hint == "export KEY=…"


@pytest.mark.parametrize(("hosts", "said"), [((), "asks no model"), (("a.example", "b.example"), "at 2 hosts")])
def test_a_credential_is_for_one_host(tmp_path: Path, hosts: tuple[str, ...], said: str) -> None:
    """DESIGN 5: no credential is sent to any host but the one it is for; which one is not guessed."""
    with pytest.raises(BadInput, match=said):
        cast(tmp_path, Recast(("m-20260101",), credential_env="KEY"), *hosts, KEY="sk-test-4f9a8b7c6d5e4f3a2b1c")


def test_the_credential_goes_to_the_recorded_host_only(tmp_path: Path) -> None:
    """DESIGN 3: the proxy puts the real credential on model calls only, to the one host it is for."""
    made = cast(tmp_path, Recast((HELD,), credential_env="KEY"), "api.anthropic.com", KEY="sk-test-4f9a8b7c6d5e4f3a2b1c").retake.credentials
    assert made is not None
    request = Request("POST", "https", "api.anthropic.com", 443, b"/v1/messages", fields=((b"x-api-key", b"dummy"),))
    sent = asyncio.run(made.apply("anthropic", request, b"{}"))
    assert (b"x-api-key", b"sk-test-4f9a8b7c6d5e4f3a2b1c") in sent.fields
    with pytest.raises((BadInput, NoCredential)):
        asyncio.run(made.apply("anthropic", Request("POST", "https", "evil.example", 443, b"/v1/messages"), b"{}"))


def held() -> MemoryCassette:
    """Two Responses calls, of which the second goes on from the first."""
    made = MemoryCassette()
    for number, more in enumerate(({}, {"previous_response_id": "resp_1"}), 1):
        sent = json.dumps({"model": "m", "input": f"ask {number}", **more}).encode()
        item = {
            "type": "message",
            "id": f"msg_{number}",
            "role": "assistant",
            "content": [{"type": "output_text", "text": f"say {number}"}],
        }
        said = json.dumps({"id": f"resp_{number}", "object": "response", "model": "m", "status": "completed", "output": [item]}).encode()
        request = Request("POST", "https", "api.openai.com", 443, b"/v1/responses", fields=JSON)
        made.record(request, Answer(200, fields=JSON), sent=sent, received=said, channel=Channel.MODEL, adapter="openai-responses")
    return made


def test_a_recorded_answer_is_found_by_its_id() -> None:
    """A-11, issue 3.9: server-side response IDs; the history that the provider held is on the cassette."""
    earlier = earlier_in(held())
    found = earlier("resp_2")
    assert found is not None
    assert json.loads(found.content)["previous_response_id"] == "resp_1"
    assert [json.loads(item)["content"][0]["text"] for item in found.output] == ["say 2"]
    assert earlier("resp_9") is None


def test_a_history_that_the_provider_held_is_sent_whole_when_another_model_goes_on(tmp_path: Path) -> None:
    """A-11: --from-step with --strip-reasoning; without it the call is refused and says why."""
    body = json.dumps({"model": "m", "input": "ask 3", "previous_response_id": "resp_2"}).encode()
    request = Request("POST", "https", "api.openai.com", 443, b"/v1/responses", fields=JSON)
    recast = Recast(("gpt-5.5-2026-04-23",), from_step=2)
    for strip in (True, False):
        made = cast_of(stage_in(tmp_path), held(), replace(recast, strip_reasoning=strip), Redactor(key=b"k" * 32))
        sent = made.retake.prepare(Claim("openai-responses", CallKind.COMPLETION, 3), request, body)
        if strip:
            assert isinstance(sent, Outgoing)
            said = json.loads(sent.body)
            assert "previous_response_id" not in said
            assert [item["content"] if isinstance(item["content"], str) else item["content"][0]["text"] for item in said["input"]] == [
                "ask 1",
                "say 1",
                "ask 2",
                "say 2",
                "ask 3",
            ]
        else:
            assert "resp_2" in str(sent)

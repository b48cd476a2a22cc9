"""Real SDKs with another model in the part: only model calls leave, only to its host, and what came back is a whole take."""

from __future__ import annotations

from typing import Any

import pytest

from secondtake.cassettes.exchange import Answered
from secondtake.harness.plan import Bounds, Recast
from secondtake.harness.results import Replayed, Verdict
from tests.sdks.conftest import Recording
from tests.sdks.scripts import SCENES
from tests.sdks.signatures import signed_for
from tests.sdks.stages import KEYS, Retake
from tests.sdks.test_events import answered, asked, called, neutral, returned
from tests.sdks.test_replay import raised


@pytest.fixture(scope="session")
def retake(recording: Recording) -> Retake:
    """Every scene, with the pin instead of each model that is asked for."""
    sdk = recording.world.sdk
    return recording.world.retake("first", Recast(models=(f"{sdk.model}={sdk.pin}",), credential_env=sdk.credential))


@pytest.fixture(scope="session")
def taken(recording: Recording, retake: Retake) -> tuple[Replayed, dict[str, Any]]:
    """The take, replayed: every provider is gone."""
    return recording.world.replay(retake.result.name)


def test_only_model_calls_leave_and_only_to_their_host(recording: Recording, retake: Retake) -> None:
    """Issue 3, T-P6, counted at the sockets: each call as the pin, nothing else, and no other host met anybody."""
    sdk, live = recording.world.sdk, retake.live
    assert retake.trap.connections_made == 0
    assert 0 < live.connections_made <= len(live.seen)
    assert {seen.method for seen in live.seen} == {"POST"}
    assert {seen.call.model for seen in live.seen if seen.call} == {sdk.pin}
    assert len(live.seen) == retake.result.answered[Answered.LIVE]
    assert all(seen.call is not None for seen in live.seen)
    assert not any(sdk.model.encode() in seen.body or sdk.model in seen.target for seen in live.seen)


def test_everything_else_comes_from_the_recording(recording: Recording, retake: Retake) -> None:
    """T-P4: lists, and what is no model's; nothing is missed."""
    assert (retake.result.verdict, retake.result.misses, retake.result.unplayed) == (Verdict.CLEAN, (), ())
    for scene in ("listed", "fetched"):
        assert retake.said[scene] == recording.said[scene]
    assert set(retake.result.answered) == {Answered.LIVE, Answered.EXACT}


def test_a_count_is_asked_of_the_model_in_the_part_where_the_recording_has_none(recording: Recording, retake: Retake) -> None:
    """T-P4: what was recorded of the same prompt still holds; a prompt in which the other model spoke was never counted."""
    if recording.world.sdk.program == "chat":
        assert retake.said["counted"] == recording.said["counted"]
        return
    first, later = retake.said["counted"]
    assert first == recording.said["counted"][0]
    assert later != recording.said["counted"][1]
    counts = [seen for seen in retake.live.seen if "count" in seen.target or "input_tokens" in seen.target]
    assert len(counts) == 1


def test_each_model_says_its_own(recording: Recording, retake: Retake) -> None:
    """The program saw the other model: its words, its tools, and the same kinds of failure."""
    for scene in ("talk", "retried"):
        assert "said by the second model." in repr(retake.said["talk"])
        assert retake.said[scene] != recording.said[scene]
    assert {scene for scene in SCENES if raised(retake.said, scene)} == {scene for scene in SCENES if raised(recording.said, scene)}
    for scene in ("tools", "tools-streamed"):
        found = [neutral(event) for event in recording.world.conversation(retake.result.name, scene)]
        assert found == [
            *[asked(), answered("The second model looks.", "tool_calls", 2)],
            *[called("run", '{"command":"pwd"}'), called("run", '{"command":"ls -l"}')],
            *[returned("run", "output of pwd"), returned("run", "output of ls -l")],
            *[asked(3), answered("It is as the second model thought."), ("stop", "end")],
        ]


def test_who_answered_is_known_for_each_call(recording: Recording, retake: Retake) -> None:
    """A-06, A-12: what was asked, what was sent, who says to have answered; the weather is no model's doing."""
    sdk, calls = recording.world.sdk, retake.result.calls
    assert {call.adapter for call in calls} == {sdk.adapter}
    assert {(call.requested, call.forwarded) for call in calls} == {((sdk.model,), sdk.pin)}
    assert not any(call.mismatch for call in calls)
    # Converse names no model, ever; of OpenAI's formats only Chat has a fingerprint beside the echo.
    proofs = {"messages": "medium", "chat": "medium", "responses": "weak", "contents": "strong", "invoke": "medium"}
    assert {call.proof for call in calls if call.served} == ({proofs[sdk.program]} if sdk.program in proofs else set())
    assert sum(bool(call.served) for call in calls) == {"converse": 0, "chat": 18}.get(sdk.program, 19)
    troubled = [call.status for call in calls if call.infrastructure]
    assert sorted(map(str, troubled)) == ["200", "200", "429", "429"]


def test_a_take_replays_whole_without_any_provider(retake: Retake, taken: tuple[Replayed, dict[str, Any]]) -> None:
    """T-P7: what was live and what was played, the objects equal to those of the retake."""
    result, said = taken
    assert (result.verdict, result.misses, result.unplayed, result.problems) == (Verdict.CLEAN, (), (), ())
    assert result.answered == {Answered.EXACT: retake.result.requests}
    assert said == retake.said


def test_requests_are_signed_as_they_leave(recording: Recording, retake: Retake) -> None:
    """PROVIDERS A3: a recorder leaves a signature good, and a request that was swapped is signed anew."""
    sdk = recording.world.sdk
    if sdk.credential is None:
        assert not any(seen.signer for seen in [*recording.world.provider.seen, *retake.live.seen])
        return
    key, secret = KEYS["AWS_ACCESS_KEY_ID"], KEYS["AWS_SECRET_ACCESS_KEY"]
    for seen in [*retake.live.seen, *(seen for seen in recording.world.provider.seen if seen.call)]:
        assert signed_for(seen, sdk.host, key, secret), seen.target


@pytest.fixture(scope="session")
def trouble(recording: Recording) -> Retake:
    """A retake of four scenes in which another model answers than was asked, and that may ask twice."""
    sdk = recording.world.sdk
    recast = Recast(models=(sdk.pin,), credential_env=sdk.credential, bounds=Bounds(calls=2))
    scenes = ("talk", "talk-streamed", "tools", "tools-streamed")
    return recording.world.retake("first", recast, scenes=scenes, served=sdk.pin.replace("4", "3").replace("2.0", "1.5"))


def test_a_stopping_rule_ends_the_program_cleanly(recording: Recording, trouble: Retake) -> None:
    """Issue 3: the agent gets the provider's own kind of refusal, which its SDK neither retries nor misreads."""
    assert len(trouble.live.seen) == 2
    assert trouble.result.stopped is not None
    assert trouble.result.requests == 4
    refused = [trouble.said[scene][-1] for scene in ("tools", "tools-streamed")]
    names = {"messages": "BadRequestError", "chat": "BadRequestError", "responses": "BadRequestError", "contents": "ClientError"}
    assert {one["raised"] for one in refused} == {names.get(recording.world.sdk.program, "ValidationException")}
    assert all("calls" in one["message"] for one in refused)


def test_an_answer_from_another_model_makes_the_take_invalid(recording: Recording, trouble: Retake) -> None:
    """T-P2: a name that is not the pin's; where a format names none, it is unverified and never counted as right."""
    result = trouble.result
    if recording.world.sdk.program == "converse":
        assert [call.proof for call in result.calls] == ["unverified", "unverified"]
        assert result.mismatches == ()
    else:
        assert len(result.mismatches) == 2
        assert result.verdict is Verdict.DIVERGED

"""Real SDKs, recorded and replayed: nothing that a program can see of its model differs, and nothing leaves."""

from __future__ import annotations

from typing import Any

import pytest

from secondtake.cassettes import adapters, events
from secondtake.cassettes.exchange import Answered, Ending, Side
from secondtake.harness.results import Verdict
from tests.sdks.conftest import Recording, Replay
from tests.sdks.scripts import SCENES
from tests.sdks.stages import KEYS

ELSEWHERE = {"parallel", "counted", "listed", "fetched"}
"""Scenes that are not one conversation."""


def raised(said: dict[str, Any], scene: str) -> str | None:
    """The class of the exception that ended a scene."""
    last = said[scene][-1] if isinstance(said[scene], list) else said[scene]
    name = last.get("raised") if isinstance(last, dict) else None
    return str(name) if name else None


@pytest.mark.parametrize("scene", SCENES)
def test_the_objects_of_a_replay_are_those_of_the_recording(replay: Replay, scene: str) -> None:
    """Issue 3: streaming and not, parallel tool calls, errors, retries, clients that leave, side calls."""
    assert replay.said[scene] == replay.recording.said[scene]


def test_the_scenes_are_what_they_are_called(recording: Recording) -> None:
    """Equal objects prove something only where something happened: what the provider was asked and answered, and what the SDK raised."""
    said, sdk = recording.said, recording.world.sdk
    statuses: dict[str, list[int]] = {}
    for seen in recording.world.provider.seen:
        scene = seen.call.task.removeprefix("Please: ").rstrip(".") if seen.call else ""
        statuses.setdefault(scene, []).append(seen.status)
    once = [scene for scene in SCENES if scene not in ELSEWHERE] + [f"parallel-{n}" for n in range(4)]
    expected = {scene: [200] for scene in once} | {scene: [200, 200, 200] for scene in ("tools", "tools-streamed")}
    expected |= {"retried": [429, 200], "retried-streamed": [429, 200], "refused": [400]}
    if sdk.program != "chat":  # the one format that counts no tokens: a call, and two counts
        expected["count"] = [200, 200, 200]
    assert {scene: found for scene, found in statuses.items() if scene in expected} == expected
    assert statuses[""][-1] == 404
    assert said.keys() == set(SCENES)
    helpless = {"length-streamed"} if sdk.adapter.startswith("openai") else set()
    assert {scene for scene in SCENES if raised(said, scene)} == {"refused", "broken-streamed", "cut-streamed"} | helpless
    assert (len(said["left"]), len(said["parallel"]), said["fetched"][0]) == (3, 4, 404)
    for text in ("It is as first thought.", "Naïvely."):
        assert text in repr(said["tools"])


def test_a_replay_is_whole_and_reaches_nobody(replay: Replay) -> None:
    """T-A13, A-12: every request exact, none missed, nothing left over; the provider was gone and has met no one since."""
    provider, result = replay.recording.world.provider, replay.result
    assert (result.verdict, result.misses, result.unplayed, result.problems) == (Verdict.CLEAN, (), (), ())
    assert result.answered == {Answered.EXACT: replay.recording.result.total}
    assert result.requests == len(provider.seen)


def test_each_exchange_is_recorded_as_what_it_is(recording: Recording) -> None:
    """T-B3, T-B4, T-B6: a client that leaves costs nothing of the answer; a stream that was cut stays cut; no key is kept."""
    world = recording.world
    with world.cassette("first") as cassette:
        content = events.contents(cassette)
        found: dict[str, list[Any]] = {}
        for row in cassette.rows:
            exchange = cassette.exchange(row.seq)
            body = content(exchange, Side.REQUEST) or b""
            assert not any(key in repr(exchange).encode() + body for key in map(str.encode, KEYS.values()))
            for scene in ("left", "ended", "cut-streamed", "broken-streamed", "tools-streamed", "retried"):
                if f"Please: {scene}.".encode() in body:
                    found.setdefault(scene, []).append(exchange)
        for scene, exchanges in found.items():
            for exchange in exchanges:
                assert adapters.recognise(exchange.request, content(exchange, Side.REQUEST) or b"") == world.sdk.adapter
                assert (exchange.ended is Ending.COMPLETE) == (scene != "cut-streamed"), (scene, exchange.ended)
        for scene in ("left", "ended"):
            (exchange,) = found[scene]
            answer = adapters.read_answer(world.sdk.adapter, exchange.request, exchange.answer, content(exchange, Side.RESPONSE) or b"")
            assert answer.complete
        assert [exchange.answer.status for exchange in found["retried"]] == [429, 200]
        assert len(found["tools-streamed"]) == 3

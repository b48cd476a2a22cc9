"""When a replayed agent is ended before its own end."""

from __future__ import annotations

import asyncio

import pytest

from secondtake.cassettes.exchange import Channel
from secondtake.cassettes.misses import Miss, MissKind
from secondtake.harness.stopping import StopOnMiss, notes
from secondtake.proxy.outcome import Missed
from tests.harness.processes import run


def missed(channel: Channel) -> Missed:
    miss = Miss(MissKind.NEW_RESOURCE, None, "not recorded", channel, None)
    return Missed(1, "POST", "https://api.provider.example/v1/messages", channel, miss)


@pytest.mark.parametrize("channel", list(Channel))
def test_only_a_model_call_that_misses_ends_the_agent(channel: Channel) -> None:
    """AGENTS 5.10: an agent whose model call missed plays another piece; without a page or a flag it may still play this one."""

    async def told() -> bool:
        stop = StopOnMiss(0.0)
        stop(missed(channel))
        stop(missed(channel))
        for _ in range(3):
            await asyncio.sleep(0)
        return stop.event.is_set()

    assert asyncio.run(told()) is (channel is Channel.MODEL)


def test_an_agent_that_ended_by_itself_is_not_ended_later() -> None:
    """The timer goes with the agent."""

    async def told() -> bool:
        stop = StopOnMiss(0.0)
        stop(missed(Channel.MODEL))
        stop.close()
        for _ in range(3):
            await asyncio.sleep(0)
        return stop.event.is_set()

    assert asyncio.run(told()) is False


def test_a_person_is_told_only_of_an_agent_that_was_ended() -> None:
    """DESIGN 7: what was done to the agent is said, with the option that leaves it alone."""
    assert notes(run("true")) == ()

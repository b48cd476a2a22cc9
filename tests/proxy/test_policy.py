"""What lets a request out, and what does not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from secondtake.cassettes.exchange import Answer, Answered, Bytes, Channel, Ending, Request
from secondtake.cassettes.misses import Miss, MissKind
from secondtake.cassettes.player import Serve
from secondtake.proxy.policy import Collect, Converse, Live, Mode, Policy, Refuse, Upgrade

REQUEST = Request("POST", "https", "api.provider.example", 443, b"/v1/messages")
SOCKET = Request("GET", "https", "a.example", 443, b"/v1/responses", fields=((b"Upgrade", b"websocket"), (b"Connection", b"Upgrade")))
MISS = Miss(MissKind.NEW_RESOURCE, None, "nothing", Channel.WEB, None)
SERVE = Serve(Answer(200), Bytes(b""), Ending.COMPLETE, Answered.EXACT, 1)


@pytest.mark.parametrize("channel", list(Channel))
def test_replay_lets_nothing_out_on_any_channel(channel: Channel) -> None:
    """Fail closed: whatever the channel, found or missed, the decision is never Live."""
    policy = Policy(Mode.REPLAY)
    assert not isinstance(policy.opening(REQUEST, channel, failed=False), Live)
    assert policy.decide(channel, SERVE) is SERVE
    assert isinstance(policy.decide(channel, MISS), Refuse)


@pytest.mark.parametrize("channel", list(Channel))
def test_recording_lets_everything_out_but_what_it_was_told_to_hold(channel: Channel) -> None:
    assert isinstance(Policy(Mode.RECORD).opening(REQUEST, channel, failed=False), Live)
    quiet = Policy(Mode.RECORD, quiet_telemetry=True).opening(REQUEST, channel, failed=False)
    assert isinstance(quiet, Refuse) == (channel is Channel.TELEMETRY)


def test_a_failed_recording_refuses_only_when_strict() -> None:
    """B-05."""
    assert isinstance(Policy(Mode.RECORD).opening(REQUEST, Channel.WEB, failed=True), Live)
    assert Policy(Mode.RECORD, strict=True).opening(REQUEST, Channel.WEB, failed=True) == Refuse("strict")


def test_a_models_socket_is_refused_in_every_mode() -> None:
    """T-H1."""
    for mode in Mode:
        assert Policy(mode).opening(SOCKET, Channel.MODEL, failed=False) == Refuse("ws-refused")
    assert isinstance(Policy(Mode.RECORD).opening(SOCKET, Channel.WEB, failed=False), Live)


@pytest.mark.parametrize("channel", list(Channel))
def test_a_socket_is_live_only_where_its_messages_are_kept_and_never_in_replay(channel: Channel) -> None:
    """T-H2, A-10: played from the cassette; recorded; in a retake sent on with the model swapped."""
    for mode in Mode:
        assert Policy(mode).opening(SOCKET, channel, failed=False, upgrade=Upgrade.PLAY) == Converse(live=False)
    assert isinstance(Policy(Mode.RECORD).opening(SOCKET, channel, failed=False, upgrade=Upgrade.KEEP), Live)
    assert Policy(Mode.RETAKE).opening(SOCKET, channel, failed=False, upgrade=Upgrade.KEEP) == Converse(live=True)
    for upgrade in Upgrade:
        found = Policy(Mode.REPLAY).opening(SOCKET, channel, failed=False, upgrade=upgrade)
        assert isinstance(found, Collect) or found == Converse(live=False)


def test_telemetry_that_was_not_recorded_is_answered_and_never_a_miss() -> None:
    """T-O3."""
    assert Policy(Mode.REPLAY).decide(Channel.TELEMETRY, MISS) == Refuse("telemetry")
    assert isinstance(Policy(Mode.REPLAY).opening(REQUEST, Channel.TELEMETRY, failed=False), Collect)


def test_telemetry_that_only_its_content_tells_is_answered_too() -> None:
    """AGENTS 3, Qwen Code: a beacon posts to `/`; the head alone says nothing."""
    beacon = replace(MISS, channel=Channel.TELEMETRY)
    assert Policy(Mode.REPLAY).decide(Channel.WEB, beacon) == Refuse("telemetry")


def test_what_varies_in_the_background_is_no_miss() -> None:
    """AGENTS 3, opencode: 29 to 33 packages in equal runs."""
    assert Policy(Mode.REPLAY).decide(Channel.INDEX, replace(MISS, burst=True)) == Refuse("burst")


@pytest.mark.parametrize("mode", list(Mode))
def test_only_a_retake_lets_a_named_channel_go(mode: Mode) -> None:
    """DESIGN 3: never to the network unless the policy names that channel; a replay has no such names."""
    policy = Policy(mode, live=frozenset({Channel.WEB}))
    assert isinstance(policy.opening(REQUEST, Channel.WEB, failed=False), Live) is (mode is not Mode.REPLAY)
    assert isinstance(policy.opening(REQUEST, Channel.INDEX, failed=False), Live) is (mode is Mode.RECORD)


def test_what_the_cassette_lacks_is_let_out_only_to_extend_it() -> None:
    """DESIGN 6: in a retake, of the channels that were named; telemetry and a background burst are never worth it."""
    miss = Miss(MissKind.NEW_RESOURCE, None, "not recorded", Channel.WEB, None)
    extending = frozenset({Channel.WEB, Channel.TELEMETRY})
    assert isinstance(Policy(Mode.RETAKE, extend=extending).decide(Channel.WEB, miss), Live)
    assert Policy(Mode.RETAKE, extend=extending).decide(Channel.INDEX, miss) == Refuse("miss", miss)
    assert Policy(Mode.RETAKE, extend=extending).decide(Channel.TELEMETRY, miss) == Refuse("telemetry")
    assert Policy(Mode.REPLAY, extend=extending).decide(Channel.WEB, miss) == Refuse("miss", miss)

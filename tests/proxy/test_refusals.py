"""What a client is told when the answer is ours."""

from __future__ import annotations

import json

import pytest

from secondtake.cassettes.errors import Corrupt
from secondtake.cassettes.exchange import Channel, Request
from secondtake.cassettes.misses import Miss, MissKind
from secondtake.proxy.local import LocalAnswer
from secondtake.proxy.policy import Refuse
from secondtake.proxy.refusals import Refusals

REQUEST = Request("GET", "https", "index.example", 443, b"/simple/x/")


def field(answer: LocalAnswer, name: bytes) -> bytes | None:
    return next((value for key, value in answer.fields if key.lower() == name), None)


@pytest.mark.parametrize(
    ("channel", "host_known", "status"),
    [
        (Channel.INDEX, False, 424),
        (Channel.INDEX, True, 424),
        (Channel.VCS, False, 424),
        (Channel.WEB, True, 424),
        (Channel.WEB, False, 404),
        (Channel.CONTROL, False, 404),
        (Channel.CONTROL, True, 404),
    ],
)
def test_a_miss_gets_the_status_that_makes_tools_stop(channel: Channel, host_known: bool, status: int) -> None:
    """CASES, the table of statuses: 424 for indexes and known hosts, 404 at once for hosts the recording never saw; one line; no retry."""
    miss = Miss(MissKind.NEW_RESOURCE, None, "GET https://index.example/simple/x/ is not on the cassette", channel, None)
    answer = Refusals().of(Refuse("miss", miss), REQUEST, channel, host_known=host_known)
    assert answer.status == status
    assert field(answer, b"x-should-retry") == b"false"
    assert field(answer, b"x-secondtake-miss") == b"new-resource"
    assert answer.body.count(b"\n") == 1
    assert b"not recorded" in answer.body
    assert field(answer, b"content-length") == b"%d" % len(answer.body)


@pytest.mark.parametrize("adapter", ["anthropic", "openai-chat", "openai-responses", "gemini", None])
def test_a_missed_model_call_gets_400_in_the_providers_own_shape(adapter: str | None) -> None:
    """AGENTS 5.10: one try and exit."""
    miss = Miss(MissKind.MODEL_DIVERGED, None, "messages[0] differs", Channel.MODEL, adapter)
    answer = Refusals().of(Refuse("miss", miss), REQUEST, Channel.MODEL)
    assert answer.status == 400
    assert "messages[0] differs" in json.dumps(json.loads(answer.body))
    assert [value for name, value in answer.fields if name.lower() == b"x-should-retry"] == [b"false"]
    assert field(answer, b"content-length") == b"%d" % len(answer.body)


def test_the_other_reasons() -> None:
    refusals = Refusals()
    assert refusals.of(Refuse("ws-refused"), REQUEST, Channel.MODEL).status == 426
    assert refusals.of(Refuse("telemetry"), REQUEST, Channel.TELEMETRY).status == 204
    assert refusals.of(Refuse("burst"), REQUEST, Channel.INDEX).status == 404
    assert field(refusals.of(Refuse("burst"), REQUEST, Channel.INDEX), b"x-should-retry") == b"false"
    assert refusals.of(Refuse("strict"), REQUEST, Channel.WEB).status == 424
    assert refusals.of(Refuse("names-disagree"), REQUEST, Channel.WEB).status == 424
    assert refusals.of(Refuse("refused: a is loopback"), REQUEST, Channel.WEB).status == 403
    assert refusals.damaged(Corrupt("body of exchange 3 is damaged")).status == 424
    assert field(refusals.unreachable(REQUEST, "refused"), b"x-should-retry") is None
    head, _, body = refusals.credential.partition(b"\r\n\r\n")
    assert b"Content-Length: %d" % len(body) in head

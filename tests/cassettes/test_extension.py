"""A cassette with what others had to ask beside it."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

import pytest

from secondtake.cassettes.cassette import Cassette
from secondtake.cassettes.errors import NotFound
from secondtake.cassettes.exchange import Answer, Answered, Body, Channel, Digest, Ending, Exchange, Request
from secondtake.cassettes.extension import STEP, Extended, additions
from secondtake.cassettes.memory import MemoryCassette, digest_of
from secondtake.cassettes.misses import Miss
from secondtake.cassettes.player import Live, Player, Serve

WEB = "web.example"


class Kept(MemoryCassette):
    """A cassette in memory whose exchanges were answered as is said."""

    how = Answered.LIVE

    def exchange(self, seq: int) -> Exchange:
        return replace(super().exchange(seq), answered=self.how)


def kept(**pages: bytes) -> Kept:
    """One page each."""
    made = Kept()
    for name, said in pages.items():
        made.record(Request("GET", "https", WEB, 443, f"/{name}".encode()), Answer(200), received=said)
    return made


def extended(base: Kept, *others: Kept) -> Extended:
    return Extended(cast(Cassette, base), additions([cast(Cassette, other) for other in others]))


def asked(extended: Extended, name: str) -> Serve | Miss:
    request = Request("GET", "https", WEB, 443, f"/{name}".encode())
    return Player(extended).session().answer(request, Live(0, digest_of(b""), b""))


def said(found: Serve | Miss) -> bytes:
    assert isinstance(found, Serve), found
    return found.body.read(0, found.body.size_bytes)


def test_what_others_fetched_is_played_beside_the_recording_under_numbers_of_its_own() -> None:
    """DESIGN 6: the shared extension; the recording's word comes first."""
    both = extended(kept(a=b"recorded"), kept(b=b"first"), kept(b=b"second", a=b"later"))
    assert (said(asked(both, "a")), said(asked(both, "b"))) == (b"recorded", b"first")
    found = asked(both, "b")
    assert isinstance(found, Serve)
    assert found.seq == STEP + 1
    assert isinstance(asked(both, "c"), Miss)


@pytest.mark.parametrize(
    "other",
    [
        pytest.param({"how": Answered.EXACT}, id="played, not fetched"),
        pytest.param({"how": Answered.MISS}, id="refused"),
        pytest.param({"ended": Ending.RESET}, id="cut short"),
        pytest.param({"channel": Channel.CONTROL}, id="steers the agent"),
        pytest.param({"channel": Channel.MODEL}, id="a model's"),
        pytest.param({"synthetic": True}, id="our own answer"),
    ],
)
def test_only_what_was_fetched_whole_extends(other: dict[str, object]) -> None:
    """DESIGN 6: a take's other exchanges are its own."""
    made = Kept()
    made.how = cast(Answered, other.get("how", Answered.LIVE))
    channel, ended = cast(Channel, other.get("channel", Channel.WEB)), cast(Ending, other.get("ended", Ending.COMPLETE))
    answer = Answer(200, synthetic=bool(other.get("synthetic")))
    made.record(Request("GET", "https", WEB, 443, b"/b"), answer, received=b"x", channel=channel, ended=ended)
    assert isinstance(asked(extended(kept(a=b"y"), made), "b"), Miss)


def test_what_is_nowhere_is_not_found() -> None:
    """An exchange past the last addition, a body of no exchange."""
    both = extended(kept(a=b"recorded"), kept(b=b"first"))
    with pytest.raises(NotFound):
        both.exchange(9 * STEP)
    with pytest.raises(NotFound):
        both.body(Body(Digest("0" * 64), 5))

"""A second task, with more of what agents do: recorded once, played where it was recorded and elsewhere, with nothing reachable."""

from __future__ import annotations

import hashlib

import pytest

from tests.agents.casts import Cast
from tests.agents.errands import ERRANDS, INSTALLED
from tests.agents.index import HOST, served
from tests.agents.installs import installed
from tests.agents.runs import Place, begun, provided


@pytest.mark.parametrize("cast", ERRANDS, ids=lambda cast: cast.name)
def test_calls_at_once_an_edit_a_failure_and_an_installation_play(cast: Cast, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Issue 4, T-A9, T-N1: zero misses, nothing by position, the same tree; the index is played with the model."""
    root = tmp_path_factory.mktemp(cast.name)
    run = begun(cast, installed(cast.driver), root)
    with provided(cast) as provider, served() as index:
        recorded = run.record("errand", provider, routes={HOST: index})
    result = recorded.clean()
    assert result["agent_status"] == 0, recorded.said
    assert result["exchanges"]["index"] >= 2, recorded.said
    digests = {name: hashlib.sha256(text.encode()).hexdigest() for name, text in cast.files.items()}
    assert {name: run.files.get(name) for name in digests} == digests, recorded.said
    assert INSTALLED in run.files
    events = run.events("errand")
    assert [event["tool"] for event in events if event["event"] == "tool_call"] == [tool.name for turn in cast.turns for tool in turn.tools]
    assert 2 in [event["exit_code"] for event in events if event["event"] == "tool_result"]
    for place in (None, Place(root / "elsewhere", "another_project")):
        played = run.replay("errand", place=place)
        answered = played.ran.clean()["answered"]
        assert (answered["positional"], answered["miss"], answered["live"]) == (0, 0, 0), played.ran.out
        assert played.ran.result["unplayed"] == []
        assert played.files == run.files

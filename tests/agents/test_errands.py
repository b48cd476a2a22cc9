"""A second task, with more of what agents do: recorded once, played where it was recorded and elsewhere, with nothing reachable."""

from __future__ import annotations

import hashlib
from collections import Counter

import pytest

from tests.agents.errands import ERRANDS, Errand
from tests.agents.index import HOST, served
from tests.agents.installs import installed
from tests.agents.runs import Place, begun, provided
from tests.agents.test_task import calls, tools
from tests.tools.scene import tool


@pytest.mark.parametrize("errand", ERRANDS, ids=lambda errand: errand.cast.name)
def test_calls_at_once_an_edit_a_failure_an_installation_and_a_sub_agent_play(
    errand: Errand, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Issue 4, T-A9, T-N1, D-04: zero misses, nothing by position, the same tree, the same events; the index is played with the model."""
    cast, installer = errand.cast, errand.installer
    if installer:
        tool(installer.program)
    root = tmp_path_factory.mktemp(cast.name)
    run = begun(cast, installed(cast.driver), root)
    with provided(cast) as provider, served() as index:
        recorded = run.record("errand", provider, routes={HOST: index})
    result = recorded.clean()
    assert result["agent_status"] == 0, recorded.said
    digests = {name: hashlib.sha256(text.encode()).hexdigest() for name, text in cast.files.items()}
    assert {name: run.files.get(name) for name in digests} == digests, recorded.said
    if installer:
        assert result["exchanges"]["index"] >= 2, recorded.said
        assert installer.leaves in run.files
    events = run.events("errand")
    assert Counter(event["tool"] for event in events if event["event"] == "tool_call") == Counter(errand.calls)
    results = [event for event in events if event["event"] == "tool_result"]
    assert all(result["matched"] for result in results)
    if installer and cast.driver.exits:
        assert 2 in [result["exit_code"] for result in results]
    for place in (None, Place(root / "elsewhere", "another_project")):
        played = run.replay("errand", place=place)
        result = played.ran.clean()
        assert (result["answered"]["positional"], result["answered"]["miss"], result["answered"]["live"]) == (0, 0, 0), played.ran.out
        assert [row for row in result["unplayed"] if row["channel"] != "telemetry"] == []
        assert place or result["seal"] == "sealed", played.ran.said
        assert played.files == run.files
        assert tools(played.events) == tools(events)
        assert calls(played.events) == calls(events)

"""A recording from its name to its last word."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from secondtake.cassettes.errors import NameTaken
from secondtake.harness.equipment import equipped
from secondtake.harness.plan import HostRules, Naming
from secondtake.harness.recording import Take, begin, recording_proxy
from secondtake.harness.results import Verdict
from secondtake.proxy.outcome import Outcome
from secondtake.proxy.policy import Sockets
from tests.harness.stages import stage_in


def begun(folder: Path, naming: Naming, *agent: str, **environ: str) -> Take:
    """A recording that has begun; it is closed with what it has."""
    stage = stage_in(folder, **environ)
    with equipped(stage) as equipment:
        return begin(stage, naming, equipment, 4321, agent=agent, wire=HostRules(routes={"web.example": "http://127.0.0.1:1"}))


def test_a_recording_says_what_it_is_of(tmp_path: Path) -> None:
    """What the next run needs to know: when, what, where, which credentials there were; no value of one."""
    secret = "sk-test-4f9a8b7c6d5e4f3a2b1c"
    take = begun(tmp_path, Naming("one"), "agent", f"--key={secret}", PROVIDER_API_KEY=secret)
    take.close(Outcome(), ("agent",), Path("/b"), 0)
    with take.stage.store.open("one") as cassette:
        meta = cassette.meta
    assert meta["created"] == "2026-11-30T12:00:00+00:00"
    assert meta["cwd"] == str(tmp_path)
    assert meta["credentials"] == ["PROVIDER_API_KEY"]
    assert meta["routes"] == {"web.example": "http://127.0.0.1:1"}
    assert secret not in repr(meta)
    assert meta["agent_status"] == 0


@pytest.mark.parametrize("websocket", list(Sockets))
def test_whether_sockets_are_kept_is_as_asked(tmp_path: Path, websocket: Sockets) -> None:
    """Issue 3.6: `--websocket record`; the recording says so."""
    stage, wire = stage_in(tmp_path), HostRules(websocket=str(websocket))
    with equipped(stage) as equipment:
        assert recording_proxy(stage, wire, equipment, port=0).settings.websocket is websocket
        take = begin(stage, Naming("one"), equipment, 4321, agent=(), wire=wire)
    take.close(Outcome(), (), Path("/b"), None)
    with take.stage.store.open("one") as cassette:
        assert cassette.meta["websocket"] == str(websocket)


def test_names_are_taken_made_up_replaced_or_sidestepped(tmp_path: Path) -> None:
    """DESIGN 7: an existing NAME is refused (--replace, --as)."""
    begun(tmp_path, Naming("one")).close(Outcome(), (), Path("/b"), None)
    with pytest.raises(NameTaken) as raised:
        begun(tmp_path, Naming("one"))
    assert "--as" in str(raised.value.hint) or "--replace" in str(raised.value.hint)
    for naming, expected in ((Naming("one", otherwise="two"), "two"), (Naming("one", replace=True), "one"), (Naming(), "2026-11-30-")):
        take = begun(tmp_path, naming)
        assert take.writer.name.startswith(expected)
        take.close(Outcome(), (), Path("/b"), None)


def test_a_recording_that_never_began_leaves_no_trace(tmp_path: Path) -> None:
    """An agent that cannot be started."""
    take = begun(tmp_path, Naming("one"))
    take.discard()
    assert take.stage.store.list() == []


def test_a_recording_of_nothing_is_closed_and_not_clean(tmp_path: Path) -> None:
    """T-O2."""
    result = begun(tmp_path, Naming("one")).close(Outcome(), ("true",), Path("/b"), 0)
    assert (result.verdict, result.total, result.agent_status) == (Verdict.DIVERGED, 0, 0)
    assert result.root is not None
    assert replace(result, problems=()).verdict is Verdict.CLEAN

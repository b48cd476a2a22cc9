"""The events of a replay, read as any recording is."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from secondtake.cassettes.digest import digest_of
from secondtake.cassettes.events import Event, contents, events
from secondtake.harness.eventlog import overheard
from tests.cassettes.diff.plays import cassette, edit, exchanges, run, say
from tests.cassettes.scenes import commit

TURNS = (run("pytest -q", "Exit code 1\n1 failed"), edit("a.py"), say("done"))


@pytest.fixture
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where temporary folders are made."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def test_what_is_written_is_told_as_events_and_leaves_nothing_behind(scratch: Path) -> None:
    """DESIGN 5: a pure function of the exchanges, of a replay's as of a recording's."""
    heard: list[Event] = []
    with overheard(heard.append) as writer:
        assert writer is not None
        for one, bodies in exchanges(TURNS):
            assert commit(writer, one, {digest_of(data): data for data in bodies}) is None
        assert heard == []
    kept = cassette(TURNS)
    assert heard == list(events(kept.exchanges.values(), contents(kept)))
    assert list(scratch.iterdir()) == []


def test_a_replay_that_failed_tells_nothing_and_leaves_nothing_behind(scratch: Path) -> None:
    """Half a log looks like a short run."""
    heard: list[Event] = []
    with pytest.raises(ValueError, match="gone"), overheard(heard.append):
        raise ValueError("gone")
    assert heard == []
    assert list(scratch.iterdir()) == []


def test_without_a_listener_nothing_is_kept(scratch: Path) -> None:
    """A replay without --events writes nothing."""
    with overheard(None) as writer:
        assert writer is None
        assert list(scratch.iterdir()) == []

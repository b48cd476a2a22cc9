"""Takes whose agent sees the recorded time."""

from __future__ import annotations

import asyncio
import os
from datetime import UTC, datetime
from pathlib import Path

import pytest

from secondtake.cassettes import execs
from secondtake.harness import clock
from secondtake.harness.demo import CAREFUL
from secondtake.harness.taking import Conditions
from tests.agents.installs import later
from tests.harness.retakes import agent
from tests.harness.takes import staged

START = datetime(2026, 2, 28, 23, 59, 30, tzinfo=UTC)


def test_the_agent_of_a_take_sees_the_recorded_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """D-13, issue 5: its clock begins at the recorded start, its TLS to the proxy stands, and its commands keep their real times."""
    library = clock.find_library() or Path(later()["LD_PRELOAD"])
    monkeypatch.setattr(clock, "find_library", lambda: library)
    # The test's recording is seconds old; it is taken for an older one.
    monkeypatch.setattr("secondtake.harness.taking.recorded_start", lambda _cassette: START)

    async def take() -> None:
        async with staged(tmp_path) as made:
            look = ["sh", "-c", 'date +%s >date.txt; exec "$@"', "sh", *agent()]
            taken = await made.take(CAREFUL, command=look, conditions=Conditions(wire=made.scene.rules, freeze_clock=True))
            assert taken.take.clock == "recorded"
            with made.scene.stage.store.open(taken.name) as kept:
                (log,) = [kept.artifact(one.digest) for one in kept.artifacts if one.kind == "exec"]
                texts = [kept.artifact(one.digest) for one in kept.artifacts if one.kind == "blob" and one.size_bytes < 16]
            assert all(command.started_us >= 0 for command in execs.decode(log))
            assert any(text.strip().isdigit() and 0 <= int(text) - START.timestamp() < 600 for text in texts), texts

    asyncio.run(take())
    assert "LD_PRELOAD" not in os.environ

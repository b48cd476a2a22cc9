"""`demo`: the whole story in a minute, offline, no key."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.scenes import Command

pytestmark = pytest.mark.loopback


def test_demo_tells_the_whole_story(command: Command, tmp_path: Path) -> None:
    """Issue 2, item 6: offline, no key; records the incident, replays it with the provider stopped, shows what the agent saw."""
    ran = command("demo", "--json", "--keep", str(tmp_path / "story"))
    said = json.loads(ran.out)
    assert ran.code == said["exit_code"] == 0, ran.err
    assert said["tests_red"] is True
    assert said["recorded"]["exchanges"] == {"model": 4}
    assert said["replayed"]["answered"]["exact"] == 4
    assert said["replayed"]["misses"] == said["replayed"]["unplayed"] == []
    assert 'calls  run {"command":"python3 check.py"}' in ran.err
    assert "FAIL test_nothing_is_lost" in ran.err
    assert command("verify", "incident", "--store", str(tmp_path / "story" / "store")).code == 0
    assert command("demo", "--keep", str(tmp_path / "story")).code == 64

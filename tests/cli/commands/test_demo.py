"""`demo`: the whole story in a minute, offline, no key."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import pytest

from secondtake.harness import replaying
from secondtake.harness.seal import Seal, sealing
from tests.cli.scenes import Command

pytestmark = pytest.mark.loopback


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where temporary folders are made."""
    made = tmp_path / "temporary"
    made.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(made))
    return made


def _experiment(said: dict[str, Any]) -> None:
    """The other model passes; of both, three times each, every take is where it belongs."""
    assert (said["taken"]["outcome"], said["taken"]["resources"]["model_calls"]) == ("pass", 5)
    matrix = said["matrix"]
    assert (matrix["headline"], matrix["complete"], matrix["takes"]) == ("REPRODUCED 3/3 (same signature)", True, 6)
    assert [(row["rate"]["passed"], row["rate"]["runs"], row["same"]) for row in matrix["rows"]] == [(0, 3, 3), (3, 3, 0)]
    assert matrix["rows"][1]["comparison"]["finding"] == "better"


def test_demo_tells_the_whole_story(command: Command, tmp_path: Path, temporary: Path) -> None:
    """Issues 2.6 and 6: offline, no key; an incident is recorded, replayed with the provider stopped, becomes a fixture and a table."""
    ran = command("demo", "--json", "--keep", str(tmp_path / "story"))
    said = json.loads(ran.out)
    assert ran.code == said["exit_code"] == 0, ran.err
    assert said["tests_red"] is True
    assert said["recorded"]["exchanges"] == {"model": 4}
    assert said["replayed"]["answered"]["exact"] == 4
    assert said["replayed"]["misses"] == said["replayed"]["unplayed"] == []
    assert said["replayed"]["seal"] == said["taken"]["tier"] == "sealed"
    assert 'calls  run {"command":"python3 check.py"}' in ran.err
    assert "FAIL test_nothing_is_lost" in ran.err
    _experiment(said)
    assert (said["taken"]["control"], said["matrix"]["label"], said["matrix"]["study"]) == ("controlled", "controlled", None)
    assert "REPRODUCED 3/3" in Path(said["report"]).read_text()
    store = str(tmp_path / "story" / "store")
    assert command("verify", "incident", "--store", store).code == 0
    assert command("report", said["matrix"]["matrix"], "--store", store).code == 0
    assert list(temporary.iterdir()) == []
    assert command("demo", "--keep", str(tmp_path / "story")).code == 64


def test_where_no_seal_can_be_had_the_story_is_told_without_one(command: Command, temporary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """D-01: the tier is named; takes start where they cannot reach the original. The report is the one thing that is left."""

    async def refused(_gateway: object, seal: Seal, _cwd: Path) -> None:
        seal.refused = ("sealed: not permitted",)

    monkeypatch.setattr(sealing, "_strongest", refused)
    monkeypatch.setattr(replaying, "_stand_in", lambda *_: None)
    ran = command("demo")
    assert ran.code == 0, ran.err
    assert "the recorded repository is put aside" in ran.err
    assert "  uncontrolled: seal cooperative: a bypass cannot be excluded\n" in ran.err
    assert "REPRODUCED 3/3 (same signature)  ·  uncontrolled: seal cooperative: a bypass cannot be excluded\n" in ran.out
    assert "careful-20260101 passed 3 of 3, hasty-20260101 0 of 3: better" in ran.out
    for typed in (
        "record incident --",
        "replay incident --scratch",
        "verify incident",
        "fixture create bill --from incident",
        "run bill --model",
    ):
        assert f"   $ secondtake {typed}" in ran.err
    (folder,) = temporary.iterdir()
    (left,) = folder.iterdir()
    assert f"for a browser: {left}\n" in ran.err
    assert left.read_text().startswith("<!DOCTYPE html>")

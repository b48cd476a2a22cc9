"""A matrix whose candidate asks for a page that the recording does not hold: without an extension, and with one."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from http.server import ThreadingHTTPServer
from pathlib import Path

import pytest

from secondtake.cassettes.store import Store
from secondtake.harness.demo import HASTY, TASK, Running, agent_environment, prepare
from secondtake.harness.demo.repository import SPLIT_FIXED, SPLIT_ROUNDED_UP
from secondtake.harness.demo.scripts import script
from secondtake.harness.fixture import load
from secondtake.harness.provider import Reply, Scene, Script, ToolCall
from tests.cli.models import AGENT, running
from tests.cli.scenes import Command
from tests.harness.takes import with_checks

pytestmark = pytest.mark.loopback

READER = "reader-20260101"
"""Fixes the bug where a page tells it how; else it guesses, wrongly."""

READS = (
    "python3 -c \"import urllib.request as r; r.urlopen('https://web.example/how', timeout=20)\""
    f" && cat > bill/split.py <<'END'\n{SPLIT_FIXED}END\n"
)


@pytest.fixture
def models(here: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Running]:
    """The demo's models, and one that reads."""
    guess = ToolCall("write_file", {"path": "bill/split.py", "content": SPLIT_ROUNDED_UP})
    looks = ToolCall("run", {"command": READS})
    reader = Scene((Reply("I guess.", (guess,)), Reply("I look it up.", (looks,)), Reply("Done.")), READER, TASK)
    with running(tmp_path, played=Script((*script().scenes, reader))) as made:
        for name, value in agent_environment(dict(os.environ)).items():
            monkeypatch.setenv(name, value)
        monkeypatch.setenv("SSL_CERT_FILE", str(made.ca_path))
        prepare(here)
        yield made


@pytest.fixture
def incident(command: Command, models: Running, route: tuple[str, str]) -> Running:
    """Recorded with the same routes as the takes have: another route is a difference of the surroundings."""
    recorded = command("record", "incident", "--route", models.route, *route, *AGENT)
    assert recorded.code == 0, recorded.err
    return models


def test_what_warm_ups_fetch_is_played_by_all_takes_after_them(
    command: Command, incident: Running, origin: ThreadingHTTPServer, route: tuple[str, str], tmp_path: Path
) -> None:
    """DESIGN 6: a discarded warm-up take per arm fills the shared extension, which is then frozen: fetched once, and nothing is live."""
    assert command("fixture", "create", "bill", "--from", "incident").code == 0
    with_checks(load("bill", Store(tmp_path / "store")))
    common = ("bill", "--model", HASTY, "--model", READER, "--repeats", "2", "--yes", "--json", "--route", incident.route, *route)
    without = command("matrix", *common, "--as", "without")
    assert without.code == 0, without.err
    rows = {row["arm"]: row for row in json.loads(without.out)["rows"]}
    assert (rows[READER]["contaminated"], rows[READER]["rate"]["runs"]) == (2, 0)
    assert origin.asked == []  # type: ignore[attr-defined]
    extended = command("matrix", *common, "--as", "with", "--extend", "web")
    assert extended.code == 0, extended.err
    said = json.loads(extended.out)
    rows = {row["arm"]: row for row in said["rows"]}
    assert (rows[READER]["rate"]["passed"], rows[READER]["rate"]["runs"], rows[READER]["contaminated"]) == (2, 2, 0)
    assert origin.asked == ["/how"]  # type: ignore[attr-defined]
    assert said["matrix"] != json.loads(without.out)["matrix"]
    assert [(row["label"], row["live"]) for row in said["rows"]] == [("controlled", [])] * 2


def test_an_extension_needs_the_takes_that_fetch_it(command: Command, incident: Running, tmp_path: Path) -> None:
    """Bad input: one line, 64."""
    assert command("fixture", "create", "bill", "--from", "incident").code == 0
    ran = command("matrix", "bill", "--model", HASTY, "--extend", "web", "--no-warm-up", "--yes", "--route", incident.route)
    assert ran.code == 64
    assert "--extend and --no-warm-up exclude each other" in ran.err

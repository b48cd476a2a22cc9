"""A known agent at the start of a run."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest

from secondtake.cassettes.cassette import Cassette
from secondtake.cassettes.redact import Redactor
from secondtake.harness.drivers import DRIVERS, Driver
from secondtake.harness.driving import driven, noted, start_problems, version_of
from secondtake.harness.plan import HostRules, Naming, Where
from secondtake.harness.session import record_session, replay_session
from secondtake.proxy.policy import Pace
from tests.harness.stages import stage_in

DRIVER = Driver(
    "plain", ("plain",), "npm:@vendor/plain", "1", lambda task: ("plain", task), {"A": "1"}, switches=("S", "T", "U"), seed=(".plain",)
)
AGENT = ("plain", "x")
REDACTOR = Redactor(key=bytes(32))


class Said:
    """A cassette as far as it is looked at."""

    def __init__(self, meta: dict[str, object]) -> None:
        self.meta = meta


def recorded(folder: Path, **environ: str) -> Cassette:
    """What a recording in that environment says of itself, read back from JSON."""
    meta = noted(driven(stage_in(folder, **environ), DRIVER), DRIVER, AGENT, REDACTOR)
    return cast(Cassette, Said(json.loads(json.dumps(meta))))


def test_a_replay_has_the_switches_of_the_recording_and_no_others(tmp_path: Path) -> None:
    """AGENTS 3, Claude Code: without nonessential traffic the main prompt changes, so both runs must have the same setting."""
    cassette = recorded(tmp_path, S="1", PATH="/bin")
    assert driven(stage_in(tmp_path, T="2", PATH="/bin"), DRIVER, cassette).environ == {"S": "1", "PATH": "/bin", "A": "1"}
    assert driven(stage_in(tmp_path, S="2"), DRIVER, cassette).environ == {"S": "1", "A": "1"}
    assert driven(stage_in(tmp_path, T="2"), None, cassette).environ == {"T": "2"}


@pytest.mark.parametrize("value", ["x; rm", "/home/rm/config", "~/rm", "../rm", '{"mcp": {}}', "a\nb", "é", "x" * 600])
def test_a_switch_that_is_not_plain_is_neither_noted_nor_taken(tmp_path: Path, value: str) -> None:
    """A cassette may come from a stranger, and a value may be a program."""
    assert "rm" not in json.dumps(noted(stage_in(tmp_path, S=value), DRIVER, AGENT, REDACTOR))
    stranger = cast(Cassette, Said({"driver": {"name": "plain", "switches": {"S": value, "PATH": "/evil", "LD_PRELOAD": "x"}}}))
    assert driven(stage_in(tmp_path, S="mine"), DRIVER, stranger).environ == {"S": "mine", "A": "1"}


@pytest.mark.parametrize("meta", [{}, {"driver": 1}, {"driver": {"name": "plain", "switches": [1]}}, {"driver": {"name": [], "seed": "x"}}])
def test_a_recording_that_says_nothing_or_nonsense_changes_nothing(tmp_path: Path, meta: dict[str, object]) -> None:
    """Recorded before there were drivers, or by somebody who means ill."""
    cassette = cast(Cassette, Said(meta))
    assert driven(stage_in(tmp_path, S="mine"), DRIVER, cassette).environ == {"S": "mine", "A": "1"}
    start_problems(stage_in(tmp_path), DRIVER, AGENT, cassette)


def test_what_differs_at_the_start_is_said(tmp_path: Path) -> None:
    """AGENTS 5.22: another version or another first run is told before anybody wonders at a miss."""
    stage = replace(stage_in(tmp_path), environ={"PATH": str(installed(tmp_path, "1.2.3"))})
    cassette = cast(Cassette, Said(noted(stage, DRIVER, AGENT, REDACTOR)))
    assert start_problems(stage, DRIVER, AGENT, cassette) == ()
    (tmp_path / ".plain").write_text("logged in")
    newer = replace(stage, environ={"PATH": str(installed(tmp_path / "other", "1.3.0"))})
    said = start_problems(newer, DRIVER, AGENT, cassette)
    assert [problem.kind for problem in said] == ["other-version", "other-home"]
    assert "1.2.3" in said[0].message
    assert "1.3.0" in said[0].message
    assert "~/.plain" in said[1].message
    assert [problem.kind for problem in start_problems(stage, DRIVERS["pi"], ("pi",), cassette)] == ["other-agent"]
    assert start_problems(stage, None, AGENT, cassette) == ()


def test_a_replay_starts_the_agent_as_the_recording_did(tmp_path: Path) -> None:
    """AGENTS 5.21, 5.22: what the driver sets, and the switches that were set then; another agent's name, or none, changes nothing."""
    for folder in ("bin", "work"):
        (tmp_path / folder).mkdir()
    agent = tmp_path / "bin/claude"
    agent.write_text('#!/bin/sh\necho "${CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC-unset} ${DISABLE_AUTOUPDATER-unset}" >> ../said\n')
    agent.chmod(0o755)
    switch = "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC"
    stage = replace(stage_in(tmp_path, PATH=f"{agent.parent}:/usr/bin:/bin"), cwd=tmp_path / "work")
    switched = replace(stage, environ={**stage.environ, switch: "1"})
    asyncio.run(record_session(switched, HostRules(), Naming("on"), ["claude"]))
    asyncio.run(record_session(stage, HostRules(), Naming("off"), ["claude"]))
    asyncio.run(replay_session(stage, "on", ["claude"], pace=Pace.FAST, where=Where()))
    asyncio.run(replay_session(switched, "off", ["claude"], pace=Pace.FAST, where=Where()))
    asyncio.run(replay_session(switched, "off", ["claude"], pace=Pace.FAST, where=Where(), driver="none"))
    assert (tmp_path / "said").read_text().splitlines() == ["1 1", "unset 1", "1 1", "unset 1", "1 unset"]


def test_a_version_is_read_from_the_package_and_nothing_is_run(tmp_path: Path) -> None:
    """A probe that starts the agent would be a first run of it."""
    assert version_of(DRIVER, "plain", {"PATH": str(installed(tmp_path, "1.2.3"))}) == "1.2.3"
    assert version_of(DRIVER, "absent", {"PATH": str(tmp_path)}) is None
    python = replace(DRIVER, package="pip:plain-agent")
    (tmp_path / "venv/lib/python3.12/site-packages/Plain_Agent-4.5.dist-info").mkdir(parents=True)
    (tmp_path / "venv/bin").mkdir()
    (tmp_path / "venv/bin/plain").write_text("")
    (tmp_path / "venv/bin/plain").chmod(0o755)
    assert version_of(python, "plain", {"PATH": str(tmp_path / "venv/bin")}) == "4.5"
    assert version_of(DRIVER, str(tmp_path / "venv/bin/plain"), {}) is None


def installed(folder: Path, version: str) -> Path:
    """A folder with the program as npm puts it there: a link into its package."""
    package = folder / "lib/node_modules/@vendor/plain"
    (package / "bin").mkdir(parents=True)
    (package / "package.json").write_text(json.dumps({"name": "@vendor/plain", "version": version}))
    (package / "bin/plain.js").write_text("boom")
    (package / "bin/plain.js").chmod(0o755)
    (folder / "bin").mkdir()
    (folder / "bin/plain").symlink_to(package / "bin/plain.js")
    return folder / "bin"

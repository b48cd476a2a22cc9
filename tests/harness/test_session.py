"""Runs put together; what a person sees of them is tested in tests/cli/commands."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path

import pytest

from secondtake.harness.launch import NotStarted
from secondtake.harness.plan import HostRules, Naming
from secondtake.harness.running import Ready, run_directory
from secondtake.harness.session import check_startable, proxy_record_session, record_session
from secondtake.proxy import runtime
from tests.harness.stages import stage_in


@pytest.mark.parametrize("agent", ["no-such-agent", "./no-such-agent", "/nonexistent/agent"])
def test_an_agent_that_is_not_there_is_refused_before_anything_is_made(tmp_path: Path, agent: str) -> None:
    """Issue 2, bad input: nothing begun, nothing left behind."""
    with pytest.raises(NotStarted):
        asyncio.run(record_session(stage_in(tmp_path, PATH=os.defpath), HostRules(), Naming("x"), [agent]))
    assert list(tmp_path.iterdir()) == []


def test_an_agent_on_the_path_of_the_child_is_found(tmp_path: Path) -> None:
    """Its PATH counts, not ours; a path is read from where the agent will stand."""
    program = tmp_path / "agent"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    check_startable(["agent"], stage_in(tmp_path, PATH=str(tmp_path)))
    check_startable(["./agent"], stage_in(tmp_path, PATH="/nonexistent"))


@pytest.mark.loopback
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_proxy_that_records_ends_on_a_signal_and_takes_its_runtime_file_away(tmp_path: Path, number: signal.Signals) -> None:
    """DESIGN 7: until interrupted; a running proxy leaves a runtime file per port."""
    seen: list[Ready] = []

    def ready(told: Ready) -> None:
        seen.append(told)
        assert runtime.read(run_directory(tmp_path / "store"), told.port).cassette == "x"
        os.kill(os.getpid(), number)

    result = asyncio.run(proxy_record_session(stage_in(tmp_path), HostRules(), Naming("x"), port=0, new_ca=False, ready=ready))
    assert (result.name, result.agent_status) == ("x", None)
    assert runtime.running(run_directory(tmp_path / "store")) == []
    assert seen[0].environment["HTTPS_PROXY"] == f"http://127.0.0.1:{seen[0].port}"

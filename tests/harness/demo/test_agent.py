"""The demo's agent, unmodified, over TLS."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from secondtake.harness import demo
from secondtake.harness.launch import Finished, launch
from secondtake.harness.provider import CutOff, Failure, Provider, Reply, Scene, Script, ToolCall
from tests.harness.demo.runs import agent


@pytest.mark.parametrize(
    ("turn", "printed"),
    [
        (Failure(400, "not on the cassette"), "agent: model call failed: HTTP 400: not on the cassette\n"),
        (Reply("Half a", broken=CutOff(4)), "agent: model call failed: "),
    ],
)
def test_the_agent_says_why_a_call_failed(tmp_path: Path, turn: Reply | Failure, printed: str) -> None:
    """A miss reaches the user through the agent: exit 1, the provider's message in one line."""
    ran = agent(tmp_path, script=Script((Scene((turn,)),)))
    assert ran.finished.status == 1
    assert printed in ran.printed
    assert len(ran.provider.seen) == 1


def test_the_agents_tools_report_their_failures(tmp_path: Path) -> None:
    """A missing file, a failing command and an unknown tool are results the model reads, never the agent's end."""
    tools = (
        ToolCall("read_file", {"path": "none"}),
        ToolCall("run", {"command": "echo out; echo err >&2; exit 3"}),
        ToolCall("write_file", {"path": "x"}),
        ToolCall("fly"),
    )
    ran = agent(tmp_path, script=Script((Scene((Reply(tools=tools), Reply("Done."))),)))
    assert ran.finished.status == 0
    body = ran.provider.seen[1].body
    assert body.count(b'"is_error": true') == 4
    assert b"out\\nerr\\nExit code 3" in body
    assert b"FileNotFoundError" in body
    assert b"no such tool: fly" in body


def test_an_agent_without_the_authority_fails_and_calls_nothing(tmp_path: Path) -> None:
    """The agent is an honest TLS client: without the CA variable it sends no request."""
    repository = demo.prepare(tmp_path / "bill")

    async def run() -> tuple[Finished, Provider]:
        async with demo.provider(tmp_path) as running:
            environment = demo.agent_environment({"PATH": os.environ["PATH"]}, base_url=running.base_url)
            with (tmp_path / "out").open("wb") as out:
                return await launch(demo.agent_command(), env=environment, cwd=repository, stdout=out), running.provider

    finished, provider = asyncio.run(run())
    assert finished.status == 1
    assert "CERTIFICATE_VERIFY_FAILED" in (tmp_path / "out").read_text()
    assert (provider.connections_made, provider.seen) == (1, [])


def test_the_route_names_the_host_the_agent_asks_for(tmp_path: Path) -> None:
    """`--route` needs no more than this; the agent's key is no key."""

    async def run() -> None:
        async with demo.provider(tmp_path, tls=False) as running:
            assert running.route == f"api.provider.example=http://127.0.0.1:{running.provider.port}"
            assert running.ca_path is None

    asyncio.run(run())
    environment = demo.agent_environment({"PATH": "/bin", "KEPT": "1"})
    assert environment["ANTHROPIC_BASE_URL"] == "https://api.provider.example"
    assert (environment["KEPT"], environment["PATH"].endswith(":/bin")) == ("1", True)

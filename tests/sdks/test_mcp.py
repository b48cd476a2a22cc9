"""MCP by its official SDK: over HTTP through the proxy like any host, and over standard input and output through the shim."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.cli.scenes import PROGRAM, environment

PROGRAMS = Path(__file__).with_name("programs")
PATIENCE_S = 120
"""Far above what a program takes; only a hang reaches it."""

SAID = {"tools": ["add"], "one": "3", "many": {"0": "10", "1": "11", "2": "12"}}

type Secondtake = Callable[..., tuple[dict[str, Any], list[dict[str, Any]]]]


@contextmanager
def serving(transport: str) -> Iterator[int]:
    """The SDK's server on loopback, until the end of the block."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = subprocess.Popen([sys.executable, PROGRAMS / "mcp_server.py", transport, str(port)], stderr=subprocess.PIPE, text=True)
    assert server.stderr is not None
    for line in server.stderr:
        if "Uvicorn running" in line:
            break
    try:
        yield port
    finally:
        server.kill()
        server.communicate()


@pytest.fixture
def secondtake(tmp_path: Path) -> Secondtake:
    """Run a command of ours with the SDK's client as the agent; gives its summary, and what the client said."""
    (tmp_path / "work").mkdir()

    def ran(command: str, *arguments: str, client: Sequence[str]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        agent = [sys.executable, str(PROGRAMS / "mcp_client.py"), *client]
        kept = {name: value for name, value in environment().items() if not name.lower().endswith("_proxy")}
        ours = {**kept, "SECONDTAKE_STORE": str(tmp_path / "store"), "HOME": str(tmp_path), "TMPDIR": str(tmp_path)}
        done = subprocess.run(
            [*PROGRAM, command, "scene", "--json", *arguments, "--", *agent],
            cwd=tmp_path / "work",
            env=ours,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
        )
        summary = json.loads(done.stdout)
        said = [json.loads(line) for line in done.stderr.splitlines() if line.startswith('{"tools"')]
        assert said, done.stderr
        return summary, said

    return ran


def rows(folder: Path) -> list[dict[str, Any]]:
    """What `show --json` prints of the recording."""
    shown = subprocess.run(
        [*PROGRAM, "show", "scene", "--json"], env={**environment(), "SECONDTAKE_STORE": str(folder)}, capture_output=True
    )
    return [json.loads(line) for line in shown.stdout.splitlines()]


def test_servers_over_http_are_played_with_the_servers_gone(secondtake: Secondtake, tmp_path: Path) -> None:
    """Issue 4, item 6: a session with its id and its stream, and HTTP with SSE; ids mapped where calls come in another order."""
    urls = ("https://mcp.example/mcp", "https://old.example/sse")
    with serving("http") as port, serving("sse") as other:
        routes = ("--route", f"mcp.example=http://127.0.0.1:{port}", "--route", f"old.example=http://127.0.0.1:{other}")
        recorded, said = secondtake("record", *routes, client=("legacy", "012", *urls))
    assert recorded["verdict"] == "clean"
    assert [{**one, "heard": None} for one in said] == [{**SAID, "heard": None}] * 2
    assert {row["channel"] for row in rows(tmp_path / "store")} == {"mcp"}
    played, again = secondtake("replay", client=("legacy", "210", *urls))
    assert (played["verdict"], played["misses"], again) == ("clean", [], said)
    assert played["answered"]["normalised"] == 4


def test_the_shim_serves_the_sdks_client_and_server(secondtake: Secondtake, tmp_path: Path) -> None:
    """Issue 4, item 6: the SDK gives a server few variables, the run is found all the same; in replay nothing is started."""
    shim = [*PROGRAM, "mcp", "--", sys.executable]
    _, said = secondtake("record", client=("auto", "012", *shim, str(PROGRAMS / "mcp_server.py"), "stdio"))
    assert [{**one, "heard": None} for one in said] == [{**SAID, "heard": None}]
    assert rows(tmp_path / "store")[0]["url"] == "stdio://mcp-server/"
    played, again = secondtake("replay", client=("auto", "210", *shim, "/nowhere/mcp_server.py", "stdio"))
    assert (played["verdict"], again) == ("clean", said)
    assert played["answered"]["normalised"] > 0

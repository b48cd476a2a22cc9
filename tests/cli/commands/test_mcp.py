"""`mcp`: an MCP server on standard input and output, recorded and played, with real processes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from tests.cli.scenes import PROGRAM, Command, Proxied, environment, python

pytestmark = pytest.mark.loopback

CALCULATOR = Path(__file__).parents[1] / "calculator.py"

AGENT = """
import json, os, subprocess, sys
first, program, script, bare = int(sys.argv[1]), json.loads(sys.argv[2]), json.loads(sys.argv[3]), len(sys.argv) > 4
env = {"PATH": os.environ["PATH"], "PYTHONPATH": os.environ.get("PYTHONPATH", "")} if bare else dict(os.environ)
server = subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env)
for number, (message, answers) in enumerate(script):
    if "id" in message:
        message = {**message, "id": message["id"] if "result" in message else first + number}
    if "_meta" in message.get("params", {}):
        message["params"]["_meta"] = {"progressToken": f"t{first + number}"}
    server.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\\n")
    server.stdin.flush()
    for _ in range(answers):
        sys.stdout.buffer.write(server.stdout.readline())
server.stdin.close()
sys.stdout.buffer.write(server.stdout.read())
sys.stdout.flush()
sys.exit(server.wait())
"""
"""Starts the server, says a script to it, each message followed by so many lines of the server's, and exits as it does."""

HELLO = [{"id": 0, "method": "initialize", "params": {}}, 1], [{"method": "notifications/initialized"}, 1]


def add(a: int, b: int, **more: object) -> dict[str, object]:
    """A call of the calculator's tool."""
    return {"id": 0, "method": "tools/call", "params": {"name": "add", "arguments": {"a": a, "b": b, **more}}}


SCRIPT = [
    *HELLO,
    [{**add(1, 2, ask=True), "params": {"name": "add", "arguments": {"a": 1, "b": 2, "ask": True}, "_meta": {}}}, 2],
    [{"id": "s1", "result": {"action": "accept"}}, 1],
    [add(3, 4), 1],
]


def agent(script: Sequence[object], *, first: int = 0, server: str = str(CALCULATOR), bare: bool = False) -> tuple[str, ...]:
    """The agent's command line."""
    program = [*PROGRAM, "mcp", "--", sys.executable, server]
    return python(AGENT, str(first), json.dumps(program), json.dumps(list(script)), *(["bare"] if bare else []))


@pytest.fixture(autouse=True)
def packages(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The shim is started by the agent, and finds our packages."""
    monkeypatch.setenv("PYTHONPATH", environment()["PYTHONPATH"])


def test_a_session_is_recorded_as_it_is_and_played_without_the_server(command: Command) -> None:
    """Issue 4, item 6: lines unchanged both ways, played in order, ids mapped; exit code as the recorded server's."""
    recorded = command("record", "calc", *agent(SCRIPT, bare=True))
    assert recorded.code == 4, recorded.err
    said = [json.loads(line) for line in recorded.out.splitlines()]
    assert [one.get("method") or one["id"] for one in said] == [
        0,
        "notifications/message",
        "notifications/progress",
        "elicitation/create",
        2,
        4,
    ]
    alone = subprocess.run(
        [sys.executable, "-c", AGENT, "0", json.dumps([sys.executable, str(CALCULATOR)]), json.dumps(SCRIPT)],
        capture_output=True,
        text=True,
    )
    assert (alone.stdout, "calculator: ready" in recorded.err) == (recorded.out, True)
    shown = [json.loads(line) for line in command("show", "calc", "--json").out.splitlines()]
    assert [one["url"].removeprefix("stdio://calculator/") for one in shown] == [
        "",
        "initialize",
        "notifications/initialized",
        "tools/call",
        "reply/elicitation/create",
        "tools/call",
    ]
    assert {one["channel"] for one in shown} == {"mcp"}
    same = command("replay", "calc", *agent(SCRIPT, server="/nowhere/calculator.py"))
    assert (same.code, same.out, "calculator: ready" in same.err) == (4, recorded.out, False)
    other = command("replay", "calc", "--json", *agent(SCRIPT, first=70, server="/nowhere/calculator.py"))
    assert (other.code, json.loads(other.out.splitlines()[-1])["answered"]["normalised"]) == (4, 3), other.err
    assert [line["id"] for line in map(json.loads, other.err.splitlines()[:6]) if "result" in line] == [70, 72, 74]


def test_a_request_that_was_not_recorded_is_an_error_and_a_miss(command: Command) -> None:
    """Issue 4, item 6: a JSON-RPC error, code -32000, whose message names the nearest; the replay is not clean."""
    assert command("record", "calc", *agent([*HELLO, [add(1, 2), 1]])).code == 4
    ran = command("replay", "calc", *agent([*HELLO, [add(1, 5), 1]]))
    assert ran.code == 103
    error = json.loads(ran.out.splitlines()[-1])["error"]
    assert (error["code"], "differs at body `params.arguments.b`" in error["message"]) == (-32000, True)
    assert "left the recording at request 4 (mcp): POST stdio://calculator/tools/call; closest: exchange 4" in ran.err
    assert "miss (new-resource): POST stdio://calculator/tools/call" in ran.err


def test_a_server_that_crashes_crashes_again(command: Command) -> None:
    """Issue 4, item 6: exit code as the recorded server's, at the same place."""
    crash = [*HELLO, [add(1, 2, crash=True), 0]]
    for ran in (command("record", "calc", *agent(crash)), command("replay", "calc", *agent(crash))):
        assert ran.code == 9, ran.err
        assert len(ran.out.splitlines()) == 2


def test_a_message_of_megabytes_is_passed_on_and_played(command: Command) -> None:
    """Issue 4, item 6: any size within limits, byte for byte."""
    script = [*HELLO, [add(0, 0, size=9_000_000), 1]]
    recorded = command("record", "calc", *agent(script))
    assert (recorded.code, len(recorded.out) > 9_000_000) == (4, True)
    played = command("replay", "calc", *agent(script))
    assert (played.code, played.out == recorded.out) == (4, True)


def test_outside_of_any_run_the_server_is_simply_started(here: Path) -> None:
    """The same configuration serves every day: one warning, and nothing in between."""
    asked = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize"}) + "\n"
    shim = [*PROGRAM, "mcp", "--", sys.executable, str(CALCULATOR)]
    ran = subprocess.run(shim, input=asked, env=environment(), capture_output=True, text=True, timeout=60)
    assert (ran.returncode, json.loads(ran.stdout)["id"]) == (4, 1)
    assert ran.stderr.splitlines()[0].startswith("warning: not in a run of secondtake")


def test_where_the_run_does_not_answer_nothing_is_started(here: Path, tmp_path: Path) -> None:
    """Fail closed: a replay whose proxy is gone must not start a server that acts on the world."""
    shim = [*PROGRAM, "mcp", "--", sys.executable, "-c", f"open({str(tmp_path / 'started')!r}, 'w')"]
    named = {**environment(), "SECONDTAKE_PROXY": "http://127.0.0.1:9"}
    ran = subprocess.run(shim, env=named, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
    assert (ran.returncode, (tmp_path / "started").exists()) == (64, False)
    assert "the run that this server belongs to does not answer" in ran.stderr


def test_a_proxy_that_stays_is_found_in_the_same_way(command: Command, proxied: Callable[..., Proxied]) -> None:
    """Issue 4, item 6: the surrounding `proxy record`."""
    proxy = proxied("record", "calc")
    ran = subprocess.run(agent(HELLO)[1:], env={**os.environ, **proxy.ready["environment"]}, capture_output=True, text=True, timeout=60)
    assert ran.returncode == 4, ran.stderr
    assert proxy.stop()[1]["exchanges"] == {"mcp": 3}

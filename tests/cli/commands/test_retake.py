"""`retake`: another model in the part; only model calls leave."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from secondtake.cassettes.store import Store
from secondtake.harness.demo import Running, prepare
from tests.cli.models import AGENT, CAREFUL
from tests.cli.scenes import Command, Proxied, environment

pytestmark = pytest.mark.loopback


def test_the_careful_model_does_what_the_hasty_one_did_not(command: Command, incident: Running, here: Path, tmp_path: Path) -> None:
    """Issue 3: only model calls leave; the take is kept, listed, and replays with the provider gone; the log is its own."""
    fresh = prepare(tmp_path / "fresh")
    ran = command("retake", "incident", "--model", CAREFUL, "--route", incident.route, "--workspace", str(fresh), *AGENT)
    assert ran.code == 0, ran.err
    assert "retake of incident, kept as incident-take-1" in ran.err
    assert "All three tests pass" in ran.out
    assert f"  1  hasty-20260101 → {CAREFUL} → {CAREFUL}  200, weak" in ran.err
    connections = incident.provider.connections_made
    assert connections == 4 + 5
    played = command("replay", "incident-take-1", "--workspace", str(fresh), *AGENT)
    assert (played.code, played.out) == (0, ran.out)
    assert incident.provider.connections_made == connections
    log = [json.loads(line) for line in command("events", "incident-take-1", "--json").out.splitlines()]
    assert [one["tool"] for one in log if one["event"] == "tool_call"] == ["run", "read_file", "read_file", "write_file", "run"]
    assert {tuple(one["served"]) for one in log if one["event"] == "model_response"} == {(CAREFUL,)}


def test_json_tells_both_codes_and_each_call(command: Command, incident: Running, tmp_path: Path) -> None:
    """DESIGN 7: standard output is ours alone, and a rule that stopped it leaves the agent's own status."""
    fresh = prepare(tmp_path / "fresh")
    ran = command(
        *("retake", "incident", "--model", CAREFUL, "--max-calls", "1", "--as", "short", "--json", "-q"),
        *("--route", incident.route, "--workspace", str(fresh), *AGENT),
    )
    said = json.loads(ran.out)
    assert (ran.code, said["exit_code"], said["agent_status"]) == (1, 1, 1)
    assert (said["name"], said["parent"], said["valid"]) == ("short", "incident", True)
    assert said["stopped"].startswith("--max-calls 1")
    assert len(said["model_calls"]) == 1
    assert sum(said["answered"].values()) == said["requests"] == 2
    again = command(*("retake", "incident", "--model", CAREFUL, "--as", "short", "--workspace", str(fresh), *AGENT))
    assert (again.code, "a take never overwrites another" in again.err) == (104, True)


def test_an_alias_is_refused_with_dated_candidates_before_anything_runs(command: Command, store: Store, here: Path) -> None:
    """Issue 3.2."""
    ran = command("retake", "incident", "--model", "latest", "--in-place", "--", "touch", "ran")
    assert ran.code == 64
    assert "error: `latest` is no pin but an alias (gateway): " in ran.err
    assert not (here / "ran").exists()
    assert [summary.name for summary in store.list()] == ["incident"]


def test_nothing_runs_where_another_model_could_act_on_the_original(command: Command, store: Store, here: Path) -> None:
    """DESIGN 6: exit 105; the line to paste is what was typed, and where."""
    typed = ("retake", "incident", "--model", CAREFUL, "--max-calls", "3")
    ran = command(*typed, "--", "touch", "ran")
    assert ran.code == 105
    assert f"hint: secondtake {' '.join(typed)} --workspace {here} -- touch ran" in ran.err
    assert list(here.iterdir()) == []


@pytest.mark.parametrize("words", [("--workspace", ".", "--in-place"), ("--keep",)])
def test_options_that_exclude_each_other(command: Command, store: Store, words: tuple[str, ...]) -> None:
    """As for `replay`."""
    assert command("retake", "incident", "--model", CAREFUL, *words, "--", "true").code == 64


def test_a_proxy_retakes_whoever_comes_into_one_take(command: Command, incident: Running, proxied: Callable[..., Proxied]) -> None:
    """DESIGN 7: `proxy retake`, until interrupted."""
    proxy = proxied("retake", "incident", "--model", CAREFUL, "--route", incident.route)
    assert (proxy.ready["mode"], proxy.ready["name"]) == ("retake", "incident-take-1")
    ran = subprocess.run(AGENT[1:], env={**environment(), **proxy.ready["environment"]}, capture_output=True, text=True, timeout=60)
    assert ran.returncode == 0, ran.stdout
    code, said = proxy.stop()
    assert (code, said["event"], said["name"], len(said["model_calls"])) == (0, "done", "incident-take-1", 5)

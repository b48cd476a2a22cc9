"""`probe`: one recorded decision, asked again of several models, without running an agent."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from secondtake.cassettes.store import Store
from tests.cli.models import AGENT, CAREFUL, HASTY, running
from tests.cli.scenes import Command

pytestmark = pytest.mark.loopback


def test_two_models_are_asked_for_one_decision(command: Command, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Issue 3.10: a table with counts; as JSON the same."""
    monkeypatch.setenv("REAL_KEY", "sk-ant-api03-Zk3vQ9xT1mB7wL5nR2cY8dF4gH6jK0pS")
    with running(tmp_path) as models:
        monkeypatch.setenv("SSL_CERT_FILE", str(models.ca_path))
        asked = ("--model", CAREFUL, "--model", HASTY, "--repeats", "2", "--route", models.route, "--credential-env", "REAL_KEY")
        ran = command("probe", "incident", *asked)
        assert ran.code == 0, ran.err
        assert ran.out.startswith("exchange 1 of incident (model call 1), recorded with hasty-20260101\n")
        assert f"\n{CAREFUL}  snapshot      2   2  no tool\n" in ran.out
        assert "4 calls, kept as incident-probe-1: secondtake show incident-probe-1" in ran.err
        said = json.loads(command("probe", "incident", "1", *asked, "--json").out)
        assert (said["name"], said["exit_code"]) == ("incident-probe-2", 0)
        assert [(arm["model"], arm["answered"]) for arm in said["arms"]] == [(CAREFUL, 2), (HASTY, 2)]
        assert len(models.provider.seen) == 8


def test_seq_and_step_exclude_each_other(command: Command, store: Store) -> None:
    """One decision."""
    assert command("probe", "incident", "1", "--step", "1", "--model", CAREFUL).code == 64


def test_an_exchange_that_asks_no_model_is_no_decision(command: Command, store: Store) -> None:
    """Errors say what to look at."""
    ran = command("probe", "incident", "2", "--model", CAREFUL)
    assert ran.code == 64
    assert "exchange 2 is no model call" in ran.err
    assert "hint: secondtake events incident" in ran.err


def test_no_agent_is_taken(command: Command, store: Store) -> None:
    """A probe runs none."""
    assert command("probe", "incident", "--model", CAREFUL, *AGENT).code == 64

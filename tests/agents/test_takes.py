"""A take of a real agent: its recording as a fixture, another model in the part, from the first-run state that was recorded."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from secondtake.harness.provider import Reply, Scene, ToolCall
from tests.agents.casts import CASTS, Cast
from tests.agents.installs import installed
from tests.agents.runs import Run, begun, provided

PINS = {"claude": "claude-opus-4-5-20251101", "codex": "gpt-5-2025-08-07"}


def by_claude(run: Run) -> None:
    """What its shell finds in the environment is said by a file of HOME."""
    settings = run.place.home / ".claude" / "settings.json"
    settings.parent.mkdir()
    settings.write_text(json.dumps({"env": {"SEEDED": "by claude"}}))


def by_codex(run: Run) -> None:
    """The same."""
    settings = run.place.home / ".codex" / "config.toml"
    settings.parent.mkdir()
    settings.write_text('[shell_environment_policy]\nset = { SEEDED = "by codex" }\n')


SEEDS: dict[str, Callable[[Run], None]] = {"claude": by_claude, "codex": by_codex}


def script(cast: Cast) -> Cast:
    """The recorded model writes what it finds; the second model writes that too, and one file more."""
    (shell, *_) = cast.turns[0].tools
    key = "cmd" if "cmd" in shell.arguments else "command"

    def turns(command: str) -> tuple[Reply, ...]:
        return (Reply("", (ToolCall(shell.name, {**shell.arguments, key: command}),)), Reply("All is done."))

    second = Scene(turns('printf "$SEEDED" > seed.txt; echo more > more.txt'), model=PINS[cast.name])
    return replace(cast, turns=turns('printf "$SEEDED" > seed.txt'), aside=(second, *cast.aside))


@pytest.mark.parametrize("cast", [script(cast) for cast in CASTS if cast.name in SEEDS], ids=lambda cast: cast.name)
def test_a_take_begins_from_the_recorded_home(cast: Cast, tmp_path: Path) -> None:
    """Issue 5, AGENTS 5.22: sealed and controlled, and what a file of HOME says holds in the take, though HOME is another by then."""
    run = begun(cast, installed(cast.driver), tmp_path)
    with provided(cast) as provider:
        SEEDS[cast.name](run)
        routes = [word for host in cast.hosts for word in ("--route", f"{host}={provider.base_url}")]
        recorded = run.secondtake("record", "--json", *routes, "task", "--", *cast.command(), place=run.place)
        recorded.clean()
        assert (run.place.work / "seed.txt").read_text() == f"by {cast.name}"
        made = run.secondtake("fixture", "create", "seeded", "--from", "task", "--json", place=run.place)
        assert made.code == 0, made.said
        assert made.result["home_tree"]
        run.place.fresh()
        # The small model of titles stays; each model that is asked for has its pin.
        parts = {model: model if "haiku" in model else PINS[cast.name] for model in made.result["models"]}
        models = [word for asked, pin in parts.items() for word in ("--model", f"{asked}={pin}")]
        command = ("run", "seeded", *models, *routes, "--seal", "require", "--json", "--keep")
        took = run.secondtake(*command, place=run.place)
    assert took.code == 0, took.said
    said = took.result
    assert (said["outcome"], said["tier"], said["agent_status"], said["misses"], said["escapes"]) == ("pass", "sealed", 0, [], []), (
        took.out + took.said
    )
    assert (said["control"], said["problems"]) == ("controlled", []), took.said
    kept = next(Path(said["kept"]).rglob("seed.txt"))
    assert (kept.read_text(), kept.with_name("more.txt").read_text()) == (f"by {cast.name}", "more\n")

"""Options of the commands that ask another model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from secondtake.cli.recast import recast_options
from secondtake.harness.plan import Bounds, HostRules, Recast


def read(*arguments: str, playing: bool = True) -> tuple[Recast, HostRules]:
    """The plan that a command line becomes."""
    found: list[Any] = []

    @click.command()
    @recast_options(playing=playing)
    def command(recast: Recast, wire: HostRules) -> None:
        found.extend((recast, wire))

    ran = CliRunner().invoke(command, list(arguments))
    if ran.exit_code != 0:
        raise click.UsageError(ran.output)
    return found[0], found[1]


def test_a_pin_alone_is_all_that_is_needed() -> None:
    """DESIGN 7: retake NAME --model PIN."""
    assert read("--model", "p") == (Recast(("p",)), HostRules())


def test_everything_that_is_given_reaches_the_plan(tmp_path: Path) -> None:
    """No option is lost on the way."""
    prices = tmp_path / "prices.toml"
    prices.write_text("")
    line = (
        "--model a=b --model c --as t --from-step 3 --strip-reasoning --rule drop-sampling --rule drop-beta:x "
        "--gateway https://g.example/v1 --credential-env KEY --allow-unpinned --max-calls 1 --max-tokens 2 --max-seconds 3.5 "
        f"--max-cost 4.5 --prices {prices} --route h.example=http://127.0.0.1:1 --loopback"
    )
    bounds = Bounds(1, 2, 3.5, 4.5, prices)
    recast = Recast(("a=b", "c"), "t", 3, True, ("drop-sampling", "drop-beta:x"), "https://g.example/v1", "KEY", None, True, bounds)
    assert read(*line.split()) == (recast, HostRules(routes={"h.example": "http://127.0.0.1:1"}, loopback=True))


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("", "Missing option '--model'"),
        ("--model p --credential-env A --credential-command b", "exclude each other"),
        ("--model p --max-cost 1", "--max-cost needs --prices"),
        ("--model p --gateway ftp://x", "not an http or https URL"),
        ("--model p --gateway https://x/?q=1", "not an http or https URL"),
        ("--model p --gateway https://user:pass@x", "carries a credential"),
        ("--model p --max-calls 0", "--max-calls"),
        ("--model p --from-step -1", "--from-step"),
        ("--model p --prices nowhere.toml", "--prices"),
    ],
)
def test_what_makes_no_sense_is_a_usage_error(line: str, said: str) -> None:
    """Errors say which option, and nothing is asked."""
    with pytest.raises(click.UsageError, match=said):
        read(*line.split())


def test_a_password_in_a_url_is_not_repeated() -> None:
    """C-10: messages never show a credential."""
    with pytest.raises(click.UsageError) as raised:
        read("--model", "p", "--gateway", "https://user:hunter2hunter2@x")
    assert "hunter2" not in str(raised.value)


def test_a_probe_plays_nothing() -> None:
    """No step to begin from where no agent runs."""
    with pytest.raises(click.UsageError, match="--from-step"):
        read("--model", "p", "--from-step", "1", playing=False)

"""`matrix`: a fixture, several models, several repeats of each."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from secondtake.cli.commands.fixture import fixture_argument
from secondtake.cli.exits import Exit
from secondtake.cli.interrupts import interrupted_by_signals
from secondtake.cli.options import TYPED_KEY, Surface, surface_options
from secondtake.cli.recast import gateway_url
from secondtake.cli.reports import Files, file_options, show
from secondtake.cli.wire import extend_option, host_options, live_option, matching_options, seal_option, stage_of
from secondtake.harness.plan import Bounds, HostRules, Matching, Recast

if TYPE_CHECKING:
    from secondtake.harness.matrix.design import Change
    from secondtake.harness.matrix.planning import Instructions
    from secondtake.harness.matrix.schedule import Progress
    from secondtake.harness.matrix.session import Before

_FILE = click.Path(path_type=Path, exists=True, dir_okay=False)


@click.command("matrix")
@fixture_argument()
@click.option("--model", "models", multiple=True, required=True, metavar="PIN", help="A model; the first is the baseline. Give several.")
@click.option("--repeats", type=click.IntRange(1, 1000), default=5, show_default=True, metavar="N", help="Takes per arm.")
@click.option("--jobs", type=click.IntRange(1, 64), default=1, show_default=True, metavar="N", help="Takes under way together.")
@click.option("--instructions", multiple=True, metavar="[NAME=]FILE[:PATH]", help="An arm: the last model with other rules at PATH.")
@click.option("--parameters", multiple=True, metavar="PATH=JSON", help="An arm: the last model with this member of each request.")
@click.option("--tools", "tools", multiple=True, metavar="NAME,NAME", help="An arm: the last model with these tools and no others.")
@click.option("--agent", "agents", multiple=True, metavar="COMMAND", help="An arm: the last model with another agent's command line.")
@click.option("--no-control", is_flag=True, help="Leave out the arm that runs the recorded model again.")
@click.option("--no-warm-up", is_flag=True, help="Leave out the take before each arm's first, which is not counted.")
@click.option(
    "--attempts", type=click.IntRange(1, 20), default=3, show_default=True, metavar="N", help="Runs of a cell that infrastructure ends."
)
@click.option("--gap", type=click.FloatRange(min=0), default=0.0, metavar="S", help="Seconds between two takes' starts at one provider.")
@click.option("--resume", is_flag=True, help="Go on with the matrix of this design; more --repeats top it up.")
@click.option("--as", "label", metavar="NAME", help="How its ID begins; else as the fixture is called.")
@click.option("--yes", "-y", is_flag=True, help="Do not ask before money is spent.")
@click.option(
    "--max-cost", type=click.FloatRange(min=0, min_open=True), metavar="X", help="Begin no take that would go beyond X, by --prices."
)
@click.option("--prices", type=_FILE, metavar="FILE", help="What models cost (TOML); others have an unknown price.")
@click.option("--strip-reasoning", is_flag=True, help="Take thinking that another model is bound to out of the history.")
@click.option("--rule", "rules", multiple=True, metavar="NAME", help="Change what a model refuses, by a named rule; in every arm.")
@click.option("--gateway", metavar="URL", callback=gateway_url, help="Send model calls to this endpoint of the same wire format.")
@click.option("--credential-env", metavar="VAR", help="Put the credential in VAR on model calls, instead of the agent's.")
@click.option("--credential-command", metavar="COMMAND", help="The same, from what COMMAND prints; run again when it expires.")
@click.option("--allow-unpinned", is_flag=True, help="Take aliases, routers and deployments too, and label the takes.")
@file_options
@seal_option("auto")
@matching_options(positional=False)
@live_option
@extend_option
@host_options
@surface_options
@click.pass_context
def command(
    context: click.Context,
    surface: Surface,
    fixture: str,
    models: Sequence[str],
    repeats: int,
    jobs: int,
    instructions: Sequence[str],
    parameters: Sequence[str],
    tools: Sequence[str],
    agents: Sequence[str],
    no_control: bool,
    no_warm_up: bool,
    attempts: int,
    gap: float,
    resume: bool,
    label: str | None,
    yes: bool,
    max_cost: float | None,
    prices: Path | None,
    strip_reasoning: bool,
    rules: Sequence[str],
    gateway: str | None,
    credential_env: str | None,
    credential_command: str | None,
    allow_unpinned: bool,
    files: Files,
    seal: str,
    matching: Matching,
    wire: HostRules,
) -> int:
    """Run a fixture with several models, several times each, and compare.

    What differed is said, and how sure that is. The design is sealed before the first call: the arms, how often, the bounds. Every take
    starts in a fresh workspace. A matrix that was broken off goes on with --resume: what is closed is not run again. Exits 0 when every
    cell is settled, 103 when some are left, and 107 when infrastructure failed every attempt of one.
    """
    import asyncio

    from secondtake.cassettes.names import check as check_name
    from secondtake.cli.render.matrix import left_lines, progress_line
    from secondtake.cli.render.progress import working
    from secondtake.harness.fixture import load
    from secondtake.harness.matrix.design import Pacing
    from secondtake.harness.matrix.planning import Wanted, planned
    from secondtake.harness.matrix.session import matrix_session
    from secondtake.harness.taking import Conditions, Interrupted

    if credential_env and credential_command:
        raise click.UsageError("--credential-env and --credential-command exclude each other", context)
    if max_cost is not None and prices is None:
        raise click.UsageError("--max-cost needs --prices FILE: no price is known here", context)
    files.check()
    recast = Recast(
        models=(),
        strip_reasoning=strip_reasoning,
        rules=tuple(rules),
        gateway=gateway,
        credential_env=credential_env,
        credential_command=credential_command,
        allow_unpinned=allow_unpinned,
        bounds=Bounds(prices=prices),
    )
    if wire.extend and no_warm_up:
        raise click.UsageError("--extend and --no-warm-up exclude each other: it is the warm-ups that fetch", context)
    stage = stage_of(surface)
    found = load(fixture, stage.store)
    wanted = Wanted(
        models=tuple(models),
        repeats=repeats,
        jobs=jobs,
        attempts=attempts,
        instructions=tuple(map(_instructions, instructions)),
        changes=_changes(parameters, tools, agents),
        control=not no_control,
        warm_up=not no_warm_up,
        pacing=Pacing(gap_s=gap),
        max_cost=max_cost,
        seal=seal,
        label=check_name(label) if label else None,
    )
    plan = planned(stage, found, wanted, recast, wire)
    conditions = Conditions(wire=wire, seal=seal, matching=matching)

    def told(step: Progress) -> None:
        line = progress_line(step)
        if line is not None:
            surface.say(line)

    def judging() -> AbstractContextManager[None]:
        return working(surface, "judging the untouched workspace")

    def agreed(before: Before) -> bool:
        return _agreed(surface, before, yes=yes, context=context)

    typed: tuple[str, ...] = context.meta[TYPED_KEY]
    again = shlex.join(["secondtake", *typed, *([] if resume else ["--resume"])])
    try:
        with interrupted_by_signals():
            playing = matrix_session(stage, found, plan, recast, conditions, resume=resume, agreed=agreed, progress=told, judging=judging)
            made = asyncio.run(playing)
    except (Interrupted, KeyboardInterrupt):
        surface.say(f"broken off; what is closed stays. To go on: {again}")
        raise KeyboardInterrupt from None
    if made is None:
        raise click.Abort
    if not made.report.complete:
        code = Exit.DIVERGED
    else:
        code = Exit.INFRASTRUCTURE if any(row.given_up for row in made.report.rows) else Exit.CLEAN
    show(surface, made.report, {"ran": len(made.ran.takes), "stopped": made.ran.stopped, "left": made.ran.left, "exit_code": int(code)})
    for path in files.write(made.report, made.takes):
        surface.say(f"written: {path}")
    for line in left_lines(made.ran, again):
        surface.say(line)
    return code


def _agreed(surface: Surface, before: Before, *, yes: bool, context: click.Context) -> bool:
    """Say what it will cost, and ask."""
    from secondtake.cli.render.matrix import before_lines

    for line in before_lines(before):
        surface.say(line)
    for doubt in before.doubts:
        surface.warn(f"the fixture's checks: {doubt}")
    if yes:
        return True
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise click.UsageError("this spends money, and there is no terminal to ask at: give --yes", context)
    return click.confirm("run it?", err=True)


def _instructions(text: str) -> Instructions:
    """Read `[NAME=]FILE[:PATH]`."""
    from secondtake.harness.matrix.planning import Instructions

    name, equals, rest = text.partition("=")
    if not equals:
        name, rest = "", text
    path, colon, target = rest.rpartition(":")
    if not colon or Path(rest).exists():
        path, target = rest, ""
    file = Path(path)
    if not file.is_file():
        raise click.BadParameter(f"{str(file)!r} is no file", param_hint="--instructions")
    return Instructions(name.strip() or file.stem, file, target or None)


def _changes(parameters: Sequence[str], tools: Sequence[str], agents: Sequence[str]) -> tuple[Change, ...]:
    """Read the other axes, one arm each."""
    import json

    from secondtake.harness.matrix.design import Axis, Change

    made: list[Change] = []
    for text in parameters:
        name, equals, value = text.partition("=")
        if not equals or not name.strip() or not value:
            raise click.BadParameter(f"{text!r} is not PATH=JSON", param_hint="--parameters")
        try:
            json.loads(value)
        except ValueError:
            value = json.dumps(value)  # a word is a text
        made.append(Change(Axis.PARAMETERS, text, [f"{name.strip()}={value}"]))
    for text in tools:
        names = [name.strip() for name in text.split(",")]
        if not all(names):
            raise click.BadParameter(f"{text!r} is not NAME,NAME", param_hint="--tools")
        made.append(Change(Axis.TOOLS, f"tools {', '.join(names)}", list(names)))
    for text in agents:
        try:
            words = shlex.split(text)
        except ValueError as error:
            raise click.BadParameter(f"{text!r}: {error}", param_hint="--agent") from error
        if not words:
            raise click.BadParameter("an empty command", param_hint="--agent")
        made.append(Change(Axis.AGENT, f"agent {shlex.join(words)}", list(words)))
    return tuple(made)

"""`replay`: as it was; nothing leaves."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from secondtake.cli.exits import exit_of
from secondtake.cli.options import AgentCommand, Surface, agent_of, driver_option, name_argument, surface_options
from secondtake.cli.wire import matching_options, pace_option, seal_option, stage_of
from secondtake.harness.plan import Matching, Where


@click.command("replay", cls=AgentCommand)
@name_argument()
@click.option(
    "--workspace", metavar="DIR", type=click.Path(path_type=Path, exists=True, file_okay=False), help="Run in a scratch copy of DIR."
)
@click.option("--in-place", is_flag=True, help="Run here, although the recorded model calls tools; says first what they would do.")
@click.option("--keep", is_flag=True, help="With --workspace: keep the scratch copy.")
@click.option("--keep-going", is_flag=True, help="Let the agent go on after a model call that missed.")
@seal_option("auto")
@matching_options(positional=True)
@pace_option
@driver_option
@surface_options
@click.pass_context
def command(
    context: click.Context,
    surface: Surface,
    name: str,
    workspace: Path | None,
    in_place: bool,
    keep: bool,
    keep_going: bool,
    seal: str,
    matching: Matching,
    pace: str,
    driver: str,
) -> int:
    """Run an agent against a cassette. Nothing leaves this machine.

    Everything after `--` is the agent's command. A recording whose model calls tools runs in a scratch copy, or not at all: give
    --workspace DIR, or --in-place where that is what you want. Exits with the agent's own status when every request was answered.
    After a model call that missed, an agent that does not end by itself within a second is ended.
    """
    import asyncio

    from secondtake.cli.render.summary import announced_lines, replayed_fields, replayed_lines
    from secondtake.harness.session import replay_session
    from secondtake.proxy.policy import Pace

    agent = agent_of(context)
    if workspace and in_place:
        raise click.UsageError("--workspace and --in-place exclude each other", context)
    if keep and not workspace:
        raise click.UsageError("--keep goes with --workspace", context)
    where = Where(copy_of=workspace.absolute() if workspace else None, in_place=in_place, keep=keep, seal=seal)

    def announce(calls: tuple[str, ...]) -> None:
        for line in announced_lines(calls):
            surface.say(line)

    stdout = sys.stderr.fileno() if surface.json else None
    played = replay_session(
        stage_of(surface),
        name,
        agent,
        pace=Pace(pace),
        where=where,
        matching=matching,
        keep_going=keep_going,
        driver=driver,
        announce=announce,
        stdout=stdout,
    )
    result = asyncio.run(played)
    code = exit_of(result.verdict, result.agent_status)
    if surface.json:
        from secondtake.cli.render.objects import as_line

        print(as_line({**replayed_fields(result), "exit_code": int(code)}))
    for line in replayed_lines(result):
        surface.say(line)
    return code

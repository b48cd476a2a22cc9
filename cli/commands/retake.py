"""`retake`: another model in the part; only model calls leave."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import click

from secondtake.cli.exits import exit_of
from secondtake.cli.options import (
    AgentCommand,
    Surface,
    agent_of,
    driver_option,
    keep_out_of_workspace,
    name_argument,
    split_agent,
    surface_options,
)
from secondtake.cli.recast import recast_options
from secondtake.cli.wire import matching_options, pace_option, seal_option, stage_of, where_of
from secondtake.harness.plan import HostRules, Matching, Recast

OURS_KEY = "secondtake.ours"


class RetakeCommand(AgentCommand):
    """Remembers the command line as typed: a hint about where to run repeats all of it."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Keep our part of the line."""
        ctx.meta[OURS_KEY] = split_agent(args)[0]
        return super().parse_args(ctx, args)


@click.command("retake", cls=RetakeCommand)
@name_argument()
@recast_options(playing=True)
@click.option(
    "--workspace", metavar="DIR", type=click.Path(path_type=Path, exists=True, file_okay=False), help="Run in a scratch copy of DIR."
)
@click.option("--scratch", is_flag=True, help="Run in a scratch copy of the workspace as it was recorded.")
@click.option("--in-place", is_flag=True, help="Run here, although the model is offered tools.")
@click.option("--keep", is_flag=True, help="Keep the scratch copy.")
@seal_option("auto")
@matching_options(positional=False)
@pace_option
@driver_option
@surface_options
@click.pass_context
def command(
    context: click.Context,
    surface: Surface,
    name: str,
    recast: Recast,
    wire: HostRules,
    workspace: Path | None,
    scratch: bool,
    in_place: bool,
    keep: bool,
    seal: str,
    matching: Matching,
    pace: str,
    driver: str,
) -> int:
    """Run an agent against a cassette with another model in the part.

    Everything after `--` is the agent's command. All recorded traffic comes from the cassette; only model calls leave, with PIN instead of
    the model they ask for. What came back is kept as a take, a cassette of its own. A model that is offered tools runs in a scratch copy,
    or not at all. Exits with the agent's own status when nothing was missed and the model that answered was the one asked.
    """
    import asyncio

    from secondtake.cli.render.progress import until_told
    from secondtake.cli.render.retake import announced_lines, retaken_fields, retaken_lines, started_line
    from secondtake.harness.session import retake_session
    from secondtake.proxy.policy import Pace

    agent = agent_of(context)
    where = where_of(context, workspace, scratch=scratch, in_place=in_place, keep=keep, seal=seal)
    stage = stage_of(surface)
    keep_out_of_workspace(surface, workspace.absolute() if workspace else stage.cwd)
    typed: list[str] = context.meta[OURS_KEY]
    again = "" if any(word.split("=")[0] == "--store" for word in typed) else surface.again

    def announce(calls: tuple[str, ...]) -> None:
        over()
        for line in announced_lines(calls):
            surface.say(line)

    def started(take: str, labels: tuple[str, ...]) -> None:
        over()
        surface.say(started_line(take, name, labels))

    with until_told(surface, "putting the scene in its place") as over:
        retaken = retake_session(
            stage,
            name,
            recast,
            wire,
            agent,
            pace=Pace(pace),
            driver=driver,
            matching=matching,
            where=where,
            command=f"secondtake retake {shlex.join(typed)}{again}",
            announce=announce,
            started=started,
            stdout=sys.stderr.fileno() if surface.json else None,
        )
        result = asyncio.run(retaken)
    code = exit_of(result.verdict, result.agent_status)
    if surface.json:
        from secondtake.cli.render.objects import as_line

        print(as_line({**retaken_fields(result), "exit_code": int(code)}))
    for line in retaken_lines(result, again=surface.again):
        surface.say(line)
    return code

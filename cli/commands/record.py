"""`record`: run an agent behind the recorder."""

from __future__ import annotations

import sys

import click

from secondtake.cli.exits import exit_of
from secondtake.cli.options import AgentCommand, Surface, agent_of, driver_option, keep_out_of_workspace, surface_options
from secondtake.cli.wire import record_options, seal_option, stage_of
from secondtake.harness.plan import HostRules, Naming


@click.command("record", cls=AgentCommand)
@click.argument("name", metavar="[NAME]", required=False)
@click.option("--replace", is_flag=True, help="Replace the cassette of that name.")
@click.option("--as", "otherwise", metavar="NAME", help="The name to use where the first is taken.")
@record_options
@seal_option("off")
@driver_option
@click.option("--no-stage", is_flag=True, help="Do not capture the workspace: no scratch copy can be made from the recording then.")
@click.option(
    "--stage-limit",
    type=click.IntRange(1, 1024 * 1024),
    default=512,
    show_default=True,
    metavar="MB",
    help="Capture at most so much of the workspace; what is beyond is listed.",
)
@surface_options
@click.pass_context
def command(
    context: click.Context,
    surface: Surface,
    name: str | None,
    replace: bool,
    otherwise: str | None,
    wire: HostRules,
    seal: str,
    driver: str,
    no_stage: bool,
    stage_limit: int,
) -> int:
    """Run an agent and record everything it sends and receives.

    Everything after `--` is the agent's command. It runs here, with the proxy and certificate variables of every common tool set. The
    workspace is captured before it starts, after each model turn and at the end, without credentials. Without NAME a readable one is made
    up. Exits with the agent's own status when the recording is clean.
    """
    import asyncio

    from secondtake.cli.render.summary import recorded_fields, recorded_lines
    from secondtake.harness.session import record_session

    agent = agent_of(context)
    if replace and otherwise:
        raise click.UsageError("--replace and --as exclude each other", context)
    stage, naming = stage_of(surface), Naming(name, otherwise, replace)
    keep_out_of_workspace(surface, stage.cwd)

    def started(kept_as: str) -> None:
        if name is None:
            surface.say(f"recording as {kept_as}")

    # With --json, standard output is ours alone; what the agent prints goes to standard error.
    stdout = sys.stderr.fileno() if surface.json else None
    stage_bytes = None if no_stage else stage_limit * 1024 * 1024
    result = asyncio.run(
        record_session(stage, wire, naming, agent, driver=driver, seal=seal, stage_bytes=stage_bytes, started=started, stdout=stdout)
    )
    code = exit_of(result.verdict, result.agent_status)
    if surface.json:
        from secondtake.cli.render.objects import as_line

        print(as_line({**recorded_fields(result), "exit_code": int(code)}))
    for line in recorded_lines(result, again=surface.again):
        surface.say(line)
    return code

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
) -> int:
    """Run an agent and record everything it sends and receives.

    Everything after `--` is the agent's command. It runs here, with the proxy and certificate variables of every common tool set. Without
    NAME a readable one is made up. Exits with the agent's own status when the recording is clean.
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
    result = asyncio.run(record_session(stage, wire, naming, agent, driver=driver, seal=seal, started=started, stdout=stdout))
    code = exit_of(result.verdict, result.agent_status)
    if surface.json:
        from secondtake.cli.render.objects import as_line

        print(as_line({**recorded_fields(result), "exit_code": int(code)}))
    for line in recorded_lines(result, again=surface.again):
        surface.say(line)
    return code

"""`calibrate`: what varies by itself from run to run, and the rules that would forgive exactly that."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from secondtake.cli.exits import Exit
from secondtake.cli.options import AgentCommand, Surface, agent_of, driver_option, name_argument, surface_options
from secondtake.cli.wire import matching_options, seal_option, stage_of, where_of
from secondtake.harness.plan import Matching


@click.command("calibrate", cls=AgentCommand)
@name_argument()
@click.option(
    "--workspace", metavar="DIR", type=click.Path(path_type=Path, exists=True, file_okay=False), help="Run in scratch copies of DIR."
)
@click.option("--scratch", is_flag=True, help="Run in scratch copies of the workspace as it was recorded.")
@click.option("--in-place", is_flag=True, help="Run here, although the recorded model calls tools; says first what they would do.")
@seal_option("auto")
@matching_options(positional=False)
@driver_option
@surface_options
@click.pass_context
def command(
    context: click.Context,
    surface: Surface,
    name: str,
    workspace: Path | None,
    scratch: bool,
    in_place: bool,
    seal: str,
    matching: Matching,
    driver: str,
) -> int:
    """Replay a cassette twice, and say what varies by itself.

    Everything after `--` is the agent's command; it runs as for `replay`, but a model call that misses is answered by its place, so that
    the agent goes on. Lists every field that differs, and prints a rule for each that holds a random value or a time: paste those you agree
    with into the store's file `rules`, or into a file for --rules. A rule that would forgive more than that is never proposed, and refused
    when it is read. Exits with 0 when the printed rules make both replays the recording, else with 103.
    """
    import asyncio

    from secondtake.cli.render.calibrate import calibrated_fields, calibrated_lines
    from secondtake.cli.render.summary import announced_lines
    from secondtake.harness.calibrating import calibrate_session

    agent = agent_of(context)

    def announce(calls: tuple[str, ...]) -> None:
        for line in announced_lines(calls):
            surface.say(line)

    calibrated = calibrate_session(
        stage_of(surface),
        name,
        agent,
        where=where_of(context, workspace, scratch=scratch, in_place=in_place, keep=False, seal=seal),
        driver=driver,
        matching=matching,
        announce=announce,
        begun=lambda number: surface.say(f"replay {number} of 2"),
        stdout=sys.stderr.fileno(),  # standard output is for the rules alone
    )
    result = asyncio.run(calibrated)
    code = Exit.DIVERGED if result.left else Exit.CLEAN
    for line in calibrated_lines(result, surface.place.root):
        surface.say(line)
    if surface.json:
        from secondtake.cli.render.objects import as_line

        print(as_line({**calibrated_fields(result), "exit_code": int(code)}))
    else:
        for rule in result.proposed:
            print(rule.line)
    return code

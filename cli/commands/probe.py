"""`probe`: one recorded decision, asked again of several models, without running an agent."""

from __future__ import annotations

import click

from secondtake.cli.exits import exit_of
from secondtake.cli.options import Surface, name_argument, surface_options
from secondtake.cli.recast import recast_options
from secondtake.cli.wire import stage_of
from secondtake.harness.plan import HostRules, Recast


@click.command("probe")
@name_argument()
@click.argument("seq", metavar="[SEQ]", type=click.IntRange(min=0), required=False)
@click.option("--step", type=click.IntRange(min=1), metavar="K", help="The K-th model call, instead of SEQ.")
@click.option("--repeats", type=click.IntRange(min=1), default=5, show_default=True, metavar="N", help="How often each model is asked.")
@click.option("--at-once", type=click.IntRange(min=1), default=4, show_default=True, metavar="N", help="Calls under way together.")
@recast_options(playing=False)
@surface_options
@click.pass_context
def command(
    context: click.Context,
    surface: Surface,
    name: str,
    seq: int | None,
    step: int | None,
    repeats: int,
    at_once: int,
    recast: Recast,
    wire: HostRules,
) -> int:
    """Ask several models for one recorded decision, and compare what they choose.

    The recorded request of exchange SEQ, or of the last model call that ended in a tool call, is sent N times to each model. No agent runs
    and no tool is called. The answers are kept in a cassette of their own.
    """
    import asyncio

    from secondtake.cli.render.probe import HEADINGS, fields, head_lines, rows, tail_lines
    from secondtake.cli.render.progress import working
    from secondtake.harness.probing import probe_session

    if seq is not None and step is not None:
        raise click.UsageError("SEQ and --step exclude each other", context)
    with working(surface, f"asking {len(recast.models)} models, {repeats} times each"):
        result = asyncio.run(probe_session(stage_of(surface), name, recast, wire, seq=seq, step=step, repeats=repeats, at_once=at_once))
    code = exit_of(result.verdict, None)
    if surface.json:
        from secondtake.cli.render.objects import as_line

        print(as_line({**fields(result), "exit_code": int(code)}))
    else:
        from secondtake.cli.render.tables import print_table

        for line in head_lines(result):
            print(line)
        print_table(HEADINGS, rows(result))
    for line in tail_lines(result, again=surface.again):
        surface.say(line)
    return code

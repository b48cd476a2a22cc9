"""`run`: one sealed take of a fixture."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, assert_never

import click

from secondtake.cli.commands.fixture import fixture_argument
from secondtake.cli.exits import Exit
from secondtake.cli.interrupts import interrupted_by_signals
from secondtake.cli.options import AGENT_KEY, Surface, split_agent, surface_options
from secondtake.cli.recast import recast_options
from secondtake.cli.wire import matching_options, seal_option, stage_of
from secondtake.harness.plan import HostRules, Matching, Recast

if TYPE_CHECKING:
    from secondtake.cassettes.takes import Take
    from secondtake.harness.taking import Taken


class RunCommand(click.Command):
    """A command whose line may end in `-- AGENT…`, in place of the fixture's own."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Split at the first `--`."""
        ours, agent = split_agent(args)
        ctx.meta[AGENT_KEY] = agent
        return super().parse_args(ctx, ours)

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        """End the usage line with the agent."""
        return [*super().collect_usage_pieces(ctx), "[-- AGENT...]"]


@click.command("run", cls=RunCommand)
@fixture_argument()
@recast_options(playing=True)
@seal_option("auto")
@click.option("--no-trace", is_flag=True, help="Leave out the log of commands and exit codes as the kernel saw them.")
@click.option("--freeze-clock", is_flag=True, help="Give the agent the recorded time, whatever the fixture says.")
@click.option("--keep", is_flag=True, help="Keep the scratch folder the agent worked in.")
@matching_options(positional=False)
@surface_options
@click.pass_context
def command(
    context: click.Context,
    surface: Surface,
    fixture: str,
    recast: Recast,
    wire: HostRules,
    seal: str,
    no_trace: bool,
    freeze_clock: bool,
    keep: bool,
    matching: Matching,
) -> int:
    """Run one take of a fixture, sealed and judged.

    The scene is put back with another model in the part: workspace and HOME are restored into a scratch folder and stand at the recorded
    paths, only the proxy can be reached, and only model calls leave it. What the agent left is judged by the fixture's checks. Exits 0
    when the take passed, 102 when it did not, 103 when it is contaminated or invalid, 107 when infrastructure ended it.
    """
    import asyncio

    from secondtake.cli.render.progress import until_told
    from secondtake.cli.render.take import taken_fields, taken_lines
    from secondtake.harness.fixture import load
    from secondtake.harness.flooring import floor_of
    from secondtake.harness.taking import Conditions, Interrupted, Part, run_take

    stage = stage_of(surface)
    found = load(fixture, stage.store)
    agent: tuple[str, ...] = context.meta[AGENT_KEY]

    def started(name: str) -> None:
        over()
        surface.say(f"take {name}: {', '.join(recast.models)} in {found.name}")

    async def play() -> Taken:
        floor = await floor_of(stage, found, seal=seal)
        for doubt in floor.problems if floor is not None else ():
            over()
            surface.warn(f"the fixture's checks: {doubt}")
        conditions = Conditions(
            wire=wire, seal=seal, trace=not no_trace, freeze_clock=freeze_clock, keep=keep, matching=matching, floor=floor
        )
        part = Part(recast, command=agent or None)
        return await run_take(stage, found, part, conditions, started=started, stdout=sys.stderr.fileno() if surface.json else None)

    try:
        with interrupted_by_signals(), until_told(surface, "putting the scene back, and judging it as it is") as over:
            taken = asyncio.run(play())
    except Interrupted:
        raise KeyboardInterrupt from None
    code = exit_of_take(taken.take, kept=taken.retaken.root is not None)
    if surface.json:
        from secondtake.cli.render.objects import as_line

        print(as_line({**taken_fields(taken), "exit_code": int(code)}))
    for line in taken_lines(taken, again=surface.again):
        surface.say(line)
    return code


def exit_of_take(take: Take, *, kept: bool = True) -> Exit:
    """Return the exit code of a take. `kept`: it could be written to its end; one that was not counts for nothing later."""
    from secondtake.cassettes.takes import Outcome

    if not kept:
        return Exit.STORE
    if take.invalid:
        return Exit.DIVERGED
    match take.outcome:
        case Outcome.PASS:
            return Exit.CLEAN
        case Outcome.SAME | Outcome.OTHER:
            return Exit.FAILED
        case Outcome.CONTAMINATED:
            return Exit.DIVERGED
        case Outcome.INFRASTRUCTURE:
            return Exit.INFRASTRUCTURE
        case _:
            assert_never(take.outcome)

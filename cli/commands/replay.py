"""`replay`: as it was; nothing leaves."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from secondtake.cli.exits import Unusable, exit_of
from secondtake.cli.options import AgentCommand, Surface, agent_of, driver_option, name_argument, surface_options
from secondtake.cli.wire import matching_options, pace_option, seal_option, stage_of, where_of
from secondtake.harness.plan import Matching

if TYPE_CHECKING:
    from secondtake.cassettes.events import Event


@click.command("replay", cls=AgentCommand)
@name_argument()
@click.option(
    "--workspace", metavar="DIR", type=click.Path(path_type=Path, exists=True, file_okay=False), help="Run in a scratch copy of DIR."
)
@click.option("--scratch", is_flag=True, help="Run in a scratch copy of the workspace as it was recorded.")
@click.option("--in-place", is_flag=True, help="Run here, although the recorded model calls tools; says first what they would do.")
@click.option("--keep", is_flag=True, help="Keep the scratch copy.")
@click.option("--events", "log", metavar="FILE", type=click.Path(path_type=Path), help="Write what happened, in order, as JSON lines.")
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
    scratch: bool,
    in_place: bool,
    keep: bool,
    log: Path | None,
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

    from secondtake.cli.render.progress import until_told
    from secondtake.cli.render.summary import announced_lines, replayed_fields, replayed_lines
    from secondtake.harness.session import replay_session
    from secondtake.proxy.policy import Pace

    agent = agent_of(context)
    where = where_of(context, workspace, scratch=scratch, in_place=in_place, keep=keep, seal=seal)

    def announce(calls: tuple[str, ...]) -> None:
        over()
        for line in announced_lines(calls):
            surface.say(line)

    stdout = sys.stderr.fileno() if surface.json else None
    with _events(log, name) as told_events, until_told(surface, "putting the scene in its place") as over:
        played = replay_session(
            stage_of(surface),
            name,
            agent,
            pace=Pace(pace),
            where=where,
            matching=matching,
            keep_going=keep_going,
            driver=driver,
            told_events=told_events,
            asked=lambda _player: over(),
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


@contextmanager
def _events(path: Path | None, name: str) -> Iterator[Callable[[Event], None] | None]:
    """A way to write events, one a line as `events --json` does, to a file for us only; opened before anything runs."""
    if path is None:
        yield None
        return
    from secondtake.cassettes.events import fields
    from secondtake.cli.render.objects import as_line

    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    except OSError as error:
        raise Unusable(f"cannot write events to {path}: {error.strerror or error}") from error
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        yield lambda event: print(as_line(fields(event, run_id=name)), file=file)

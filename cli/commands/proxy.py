"""`proxy`: just the proxy, until interrupted."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from secondtake.cli.exits import exit_of
from secondtake.cli.options import Surface, name_argument, surface_options
from secondtake.cli.recast import recast_options
from secondtake.cli.wire import matching_options, pace_option, record_options, stage_of
from secondtake.harness.plan import HostRules, Matching, Naming, Place, Recast

if TYPE_CHECKING:
    from secondtake.harness.running import Ready

port_option = click.option("--port", type=click.IntRange(0, 65535), default=0, metavar="P", help="Port; a free one without it.")
new_ca_option = click.option("--new-ca", is_flag=True, help="Make a new certificate authority for the store's proxies.")


def place_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Where the proxy listens, and what agents elsewhere are told of it, handed to the command as one `place`."""

    @click.option("--listen", default="127.0.0.1", metavar="ADDRESS", help="Listen there; off loopback whoever comes needs a credential.")
    @click.option("--reached-as", metavar="HOST", help="What agents elsewhere call this machine; its own name without it.")
    @click.option("--share", metavar="DIR", help="Put the certificate bundle there, where agents elsewhere see it too.")
    @functools.wraps(command)
    def with_place(*, listen: str, reached_as: str | None, share: str | None, **rest: Any) -> Any:
        return command(place=Place(listen, reached_as, None if share is None else Path(share)), **rest)

    return with_place


@click.group("proxy")
def command() -> None:
    """Run just the proxy, until interrupted; prints how to point an agent at it."""


@command.command("record")
@click.argument("name", metavar="[NAME]", required=False)
@port_option
@place_options
@new_ca_option
@click.option("--replace", is_flag=True, help="Replace the cassette of that name.")
@click.option("--as", "otherwise", metavar="NAME", help="The name to use where the first is taken.")
@record_options
@surface_options
def record(
    surface: Surface, name: str | None, port: int, new_ca: bool, replace: bool, otherwise: str | None, wire: HostRules, place: Place
) -> int:
    """Record what comes through a proxy, until interrupted."""
    import asyncio

    from secondtake.cli.render.summary import recorded_fields, recorded_lines
    from secondtake.harness.session import proxy_record_session

    result = asyncio.run(
        proxy_record_session(
            stage_of(surface),
            wire,
            Naming(name, otherwise, replace),
            port=port,
            new_ca=new_ca,
            ready=lambda ready: _announce(surface, ready),
            place=place,
        )
    )
    code = exit_of(result.verdict, result.agent_status)
    if surface.json:
        from secondtake.cli.render.objects import as_line

        print(as_line({"event": "done", **recorded_fields(result), "exit_code": int(code)}))
    for line in recorded_lines(result, again=surface.again):
        surface.say(line)
    return code


@command.command("replay")
@name_argument()
@port_option
@place_options
@new_ca_option
@matching_options(positional=True)
@pace_option
@surface_options
def replay(surface: Surface, name: str, port: int, new_ca: bool, matching: Matching, pace: str, place: Place) -> int:
    """Answer from a cassette through a proxy, until interrupted. SIGHUP starts the recording over."""
    import asyncio

    from secondtake.cli.render.summary import replayed_fields, replayed_lines
    from secondtake.harness.session import proxy_replay_session
    from secondtake.proxy.policy import Pace

    result = asyncio.run(
        proxy_replay_session(
            stage_of(surface),
            name,
            pace=Pace(pace),
            port=port,
            new_ca=new_ca,
            ready=lambda ready: _announce(surface, ready),
            place=place,
            matching=matching,
        )
    )
    code = exit_of(result.verdict, result.agent_status)
    if surface.json:
        from secondtake.cli.render.objects import as_line

        print(as_line({"event": "done", **replayed_fields(result), "exit_code": int(code)}))
    for line in replayed_lines(result):
        surface.say(line)
    return code


@command.command("retake")
@name_argument()
@recast_options(playing=True)
@port_option
@place_options
@new_ca_option
@matching_options(positional=False)
@pace_option
@surface_options
def retake(
    surface: Surface, name: str, recast: Recast, wire: HostRules, port: int, new_ca: bool, matching: Matching, pace: str, place: Place
) -> int:
    """Answer from a cassette and ask another model, until interrupted. All that comes is one take."""
    import asyncio

    from secondtake.cli.render.retake import retaken_fields, retaken_lines
    from secondtake.harness.session import proxy_retake_session
    from secondtake.proxy.policy import Pace

    result = asyncio.run(
        proxy_retake_session(
            stage_of(surface),
            name,
            recast,
            wire,
            pace=Pace(pace),
            port=port,
            new_ca=new_ca,
            ready=lambda ready: _announce(surface, ready),
            place=place,
            matching=matching,
        )
    )
    code = exit_of(result.verdict, result.agent_status)
    if surface.json:
        from secondtake.cli.render.objects import as_line

        print(as_line({"event": "done", **retaken_fields(result), "exit_code": int(code)}))
    for line in retaken_lines(result, again=surface.again):
        surface.say(line)
    return code


def _announce(surface: Surface, ready: Ready) -> None:
    if surface.json:
        from secondtake.cli.render.objects import as_line

        print(
            as_line(
                {
                    "event": "ready",
                    "mode": str(ready.mode),
                    "name": ready.name,
                    "port": ready.port,
                    "address": ready.address,
                    "pid": ready.pid,
                    "ca_bundle": str(ready.bundle),
                    "environment": dict(ready.environment),
                }
            ),
            flush=True,
        )
    doing = {"record": "recording as", "retake": "retaking, kept as"}.get(ready.mode, "replaying")
    surface.say(f"{doing} {ready.name} on http://{ready.address}\n")
    surface.say("point a shell and the agents it starts at it with")
    surface.say(f'  eval "$(secondtake env --port {ready.port}{surface.again})"\n')
    surface.say("stop with Ctrl-C")

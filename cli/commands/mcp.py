"""`mcp`: stands where an agent expects an MCP server on standard input and output."""

from __future__ import annotations

import os

import click

from secondtake.cli.options import AGENT_KEY, Surface, split_agent, surface_options


class ServerCommand(click.Command):
    """A command whose line ends in `-- SERVER…`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Split at the first `--`."""
        ours, server = split_agent(args)
        if not server and not {"--help", "-h"} & set(ours):
            raise click.UsageError("no server to run: put its command after `--`", ctx)
        ctx.meta[AGENT_KEY] = server
        return super().parse_args(ctx, ours)

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        """End the usage line with the server."""
        return [*super().collect_usage_pieces(ctx), "-- SERVER..."]


@click.command("mcp", cls=ServerCommand)
@click.option("--name", metavar="NAME", help="What the server is called on the cassette; else made from its command.")
@click.option("--alone", is_flag=True, help="Start the server and record nothing, whatever run this is in.")
@surface_options
@click.pass_context
def command(context: click.Context, surface: Surface, name: str | None, alone: bool) -> int:
    """Stand in front of an MCP server that speaks on standard input and output.

    Everything after `--` is the server's command; put this in its place in the agent's configuration. In a recording the server runs, and
    what it and the agent say is kept on the run's cassette, as channel `mcp`. In a replay or retake it does not run: the cassette answers.
    Outside of any run the server is started as if this were not there, with a warning. Exits with the server's status.
    """
    from secondtake.cassettes.servers import server_name
    from secondtake.proxy.mcp_stdio import run_of, serve

    server: tuple[str, ...] = context.meta[AGENT_KEY]
    address = None if alone else run_of(os.environ)
    if address is None:
        if not alone:
            surface.warn(f"not in a run of secondtake: {server[0]} is started, and nothing is recorded")
        os.execvp(server[0], server)  # noqa: S606 # the server takes our place
    return serve(server, name or server_name(server), address, surface.warn)

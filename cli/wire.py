"""Options of the commands that run a proxy, read into one plan."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import click

from secondtake.cli.exits import Unusable
from secondtake.cli.options import Surface, pairs, version_here
from secondtake.harness.plan import HostRules, Matching, Stage, Where

if TYPE_CHECKING:
    from random import Random


def stage_of(surface: Surface) -> Stage:
    """Return the world a run happens in: the one place where the command line reads clock, randomness and environment."""
    import time
    from random import SystemRandom

    random: Random = SystemRandom()
    return Stage(
        store=surface.store(),
        environ=dict(os.environ),
        cwd=Path.cwd(),
        home=Path(os.environ.get("HOME") or Path.home()),
        now=lambda: datetime.now(UTC),
        monotonic_s=time.monotonic,
        random=random,
        again=surface.again,
        version=version_here(),
    )


SOCKETS = ("refuse", "record")
"""The values of `proxy.policy.Sockets`, which `--help` does not load."""


def websocket_option(told: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """`--websocket`, described as `told`."""
    return click.option("--websocket", type=click.Choice(SOCKETS), default="refuse", show_default=True, help=told)


def record_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options of everything that records, handed to the command as one `wire`."""

    @click.option("--route", "routes", multiple=True, metavar="HOST=URL", help="Send a host's traffic to another origin.")
    @click.option("--only-hosts", multiple=True, metavar="HOST[,HOST]", help="Constrain the CA to these hosts; others get 403.")
    @click.option("--passthrough", multiple=True, metavar="HOST", help="Tunnel a host unread (pinned certificates); it is not recorded.")
    @click.option("--client-cert", "client_certs", multiple=True, metavar="HOST=PEM", help="Certificate and key to show to a host.")
    @click.option("--loopback", is_flag=True, help="Record loopback targets too, instead of refusing them.")
    @click.option("--strict", is_flag=True, help="Refuse further requests once the recording has failed.")
    @click.option("--quiet-telemetry", is_flag=True, help="Answer telemetry here instead of sending it.")
    @websocket_option("Refuse a model's WebSocket, or let it and any other go and keep the messages.")
    @functools.wraps(command)
    def with_wire(
        *,
        routes: Sequence[str],
        only_hosts: Sequence[str],
        passthrough: Sequence[str],
        client_certs: Sequence[str],
        loopback: bool,
        strict: bool,
        quiet_telemetry: bool,
        websocket: str,
        **rest: Any,
    ) -> Any:
        wire = HostRules(
            routes=_routes(routes),
            only_hosts=tuple(host.strip().lower() for value in only_hosts for host in value.split(",") if host.strip()),
            passthrough=tuple(host.strip().lower() for host in passthrough),
            client_certs=_client_certs(client_certs),
            loopback=loopback,
            strict=strict,
            quiet_telemetry=quiet_telemetry,
            websocket=websocket,
        )
        return command(wire=wire, **rest)

    return with_wire


LIVE = ("index", "vcs", "web", "mcp", "control")
"""Values of `cassettes.exchange.Channel` that may stay live."""

live_option = click.option(
    "--live", multiple=True, type=click.Choice(LIVE), help="Let requests of this channel go out too; the take is not controlled then."
)


EXTENDABLE = ("index", "vcs", "web")
"""Values of `cassettes.extension.EXTENDABLE`."""

extend_option = click.option(
    "--extend",
    multiple=True,
    type=click.Choice(EXTENDABLE),
    help="Let warm-ups fetch what the recording lacks in this channel; all takes after them play it.",
)


def host_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options of what asks models live and plays the rest, handed to the command as one `wire`."""

    @click.option("--route", "routes", multiple=True, metavar="HOST=URL", help="Send a host's traffic to another origin.")
    @click.option("--client-cert", "client_certs", multiple=True, metavar="HOST=PEM", help="Certificate and key to show to a host.")
    @click.option("--loopback", is_flag=True, help="Let model calls go to loopback targets too, instead of refusing them.")
    @functools.wraps(command)
    def with_wire(
        *,
        routes: Sequence[str],
        client_certs: Sequence[str],
        loopback: bool,
        live: Sequence[str] = (),
        extend: Sequence[str] = (),
        websocket: str = "refuse",
        **rest: Any,
    ) -> Any:
        certs = _client_certs(client_certs)
        wire = HostRules(
            routes=_routes(routes), client_certs=certs, loopback=loopback, live=tuple(live), extend=tuple(extend), websocket=websocket
        )
        return command(wire=wire, **rest)

    return with_wire


PACES = ("fast", "real")
"""The values of `proxy.policy.Pace`, which `--help` does not load."""

pace_option = click.option(
    "--pace",
    type=click.Choice(PACES),
    default="fast",
    show_default=True,
    help="Serve at the recorded speed, or as fast as the client reads.",
)


SEALS = ("auto", "require", "off")
"""The values of `harness.seal.Wanted`, which `--help` does not load."""


def seal_option(default: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """`--seal`: how much of the world beside the proxy the agent may reach."""
    told = "No network but the proxy: the strongest seal there is, one or nothing, or none."
    return click.option("--seal", type=click.Choice(SEALS), default=default, show_default=True, help=told)


def where_of(context: click.Context, workspace: Path | None, *, scratch: bool, in_place: bool, keep: bool, seal: str) -> Where:
    """Return where an agent may run, from the options that say so.

    Raises:
        click.UsageError: two of them exclude each other.
    """
    given = [name for name, on in (("--workspace", workspace), ("--scratch", scratch), ("--in-place", in_place)) if on]
    if len(given) > 1:
        raise click.UsageError(f"{given[0]} and {given[1]} exclude each other", context)
    if keep and not (workspace or scratch):
        raise click.UsageError("--keep goes with --workspace or --scratch", context)
    return Where(workspace.absolute() if workspace else None, scratch, in_place, keep, seal)


def matching_options(*, positional: bool) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """The options about how requests are compared, handed to the command as one `matching`."""

    def decorated(command: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(command)
        def with_matching(*, rule_files: Sequence[Path], by_position: bool = False, **rest: Any) -> Any:
            return command(matching=Matching(tuple(rule_files), by_position), **rest)

        given = click.option(
            "--rules",
            "rule_files",
            multiple=True,
            metavar="FILE",
            type=click.Path(path_type=Path, exists=True, dir_okay=False),
            help="Rules of what does not count, one a line, beside those in the store's file `rules`.",
        )
        placed = click.option("--positional", "by_position", is_flag=True, help="Answer a model call that misses by its place; not clean.")
        return given(placed(with_matching) if positional else with_matching)

    return decorated


def _routes(values: Sequence[str]) -> dict[str, str]:
    routes = pairs("--route", values, "URL")
    for host, url in routes.items():
        try:
            parts = urlsplit(url)
            usable = parts.scheme in {"http", "https"} and bool(parts.hostname) and (parts.port is None or parts.port > 0)
        except ValueError:
            usable = False
        if not usable:
            raise click.BadParameter(f"{url!r} (for {host}) is not an http or https URL", param_hint="--route")
        if parts.username or parts.password:
            raise click.BadParameter(f"the URL for {host} carries a credential", param_hint="--route")
    return routes


def _client_certs(values: Sequence[str]) -> dict[str, Path]:
    certificates = {host: Path(path).expanduser() for host, path in pairs("--client-cert", values, "PEM").items()}
    for host, path in certificates.items():
        if not path.is_file():
            raise Unusable(f"no client certificate {path} for {host}", hint="give a PEM file that holds the certificate and its key")
    return certificates

"""Options of the commands that ask another model, read into one plan."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import click

from secondtake.cli.wire import host_options, live_option, websocket_option
from secondtake.harness.plan import Bounds, Recast

_FILE = click.Path(path_type=Path, exists=True, dir_okay=False)


def recast_options(*, playing: bool) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """The options of `retake`, `proxy retake` and `probe`, handed to the command as `recast` and `wire`. `playing`: part is played."""

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        @click.option(
            "--model",
            "models",
            multiple=True,
            required=True,
            metavar="PIN" if not playing else "[REQUESTED=]PIN",
            help="The model to ask; REQUESTED=PIN for the calls that asked for REQUESTED." if playing else "A model to ask; give several.",
        )
        @click.option("--as", "take", metavar="NAME", help="Keep it under this name instead of a numbered one.")
        @click.option("--strip-reasoning", is_flag=True, help="Take thinking that another model is bound to out of the history.")
        @click.option("--rule", "rules", multiple=True, metavar="NAME", help="Drop what the model refuses, by a named rule.")
        @click.option("--gateway", metavar="URL", callback=gateway_url, help="Send model calls to this endpoint of the same wire format.")
        @click.option("--credential-env", metavar="VAR", help="Put the credential in VAR on model calls, instead of the agent's.")
        @click.option("--credential-command", metavar="COMMAND", help="The same, from what COMMAND prints; run again when it expires.")
        @click.option("--allow-unpinned", is_flag=True, help="Take aliases, routers and deployments too, and label the take.")
        @click.option("--max-calls", type=click.IntRange(min=1), metavar="N", help="Stop after N model calls.")
        @click.option("--max-tokens", type=click.IntRange(min=1), metavar="N", help="Stop once N tokens were used, in and out.")
        @click.option("--max-seconds", type=click.FloatRange(min=0, min_open=True), metavar="S", help="Stop asking after S seconds.")
        @click.option("--max-cost", type=click.FloatRange(min=0, min_open=True), metavar="X", help="Stop once X was spent, by --prices.")
        @click.option("--prices", type=_FILE, metavar="FILE", help="What models cost (TOML); others have an unknown price.")
        @host_options
        @functools.wraps(command)
        def with_recast(
            *,
            models: Sequence[str],
            take: str | None,
            strip_reasoning: bool,
            rules: Sequence[str],
            gateway: str | None,
            credential_env: str | None,
            credential_command: str | None,
            allow_unpinned: bool,
            max_calls: int | None,
            max_tokens: int | None,
            max_seconds: float | None,
            max_cost: float | None,
            prices: Path | None,
            from_step: int = 0,
            **rest: Any,
        ) -> Any:
            if credential_env and credential_command:
                raise click.UsageError("--credential-env and --credential-command exclude each other", click.get_current_context())
            if max_cost is not None and prices is None:
                raise click.UsageError("--max-cost needs --prices FILE: no price is known here", click.get_current_context())
            recast = Recast(
                models=tuple(models),
                name=take,
                from_step=from_step,
                strip_reasoning=strip_reasoning,
                rules=tuple(rules),
                gateway=gateway,
                credential_env=credential_env,
                credential_command=credential_command,
                allow_unpinned=allow_unpinned,
                bounds=Bounds(max_calls, max_tokens, max_seconds, max_cost, prices),
            )
            return command(recast=recast, **rest)

        if not playing:
            return with_recast
        step = click.option("--from-step", type=click.IntRange(min=0), default=0, metavar="N", help="Play the first N model calls.")
        return step(live_option(websocket_option("Refuse a model's WebSocket, or swap the model in each call on it.")(with_recast)))

    return decorate


def gateway_url(context: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    """Return the URL of a gateway as it was given. Raises click.BadParameter: it is none, or it carries a credential."""
    if value is None:
        return None
    try:
        parts = urlsplit(value)
        usable = parts.scheme in {"http", "https"} and bool(parts.hostname) and (parts.port is None or parts.port > 0)
        usable = usable and not (parts.query or parts.fragment)
    except ValueError:
        usable = False
    if not usable:
        raise click.BadParameter(f"{value!r} is not an http or https URL", ctx=context, param=parameter)
    if parts.username or parts.password:
        raise click.BadParameter("the URL carries a credential; name it with --credential-env", ctx=context, param=parameter)
    return value

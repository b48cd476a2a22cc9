"""Options that commands share, each a decorator, and where the store is."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from secondtake.cli.exits import Unusable
from secondtake.cli.render.escape import visible_line

if TYPE_CHECKING:
    from secondtake.cassettes.store import Store

STORE_VARIABLE = "SECONDTAKE_STORE"
DEBUG_VARIABLE = "SECONDTAKE_DEBUG"

type Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


@dataclass(frozen=True, slots=True)
class Place:
    """Where the store is, and who said so."""

    root: Path
    asked: bool
    """On the command line: then it may be anywhere."""
    default: bool
    """Nobody said anything: the platform's data folder."""


@dataclass(frozen=True, slots=True)
class Surface:
    """What every command gets: the store's place and how to speak."""

    place: Place
    json: bool
    quiet: bool

    def store(self) -> Store:
        """Open the store. Nothing is written before something is recorded."""
        from secondtake.cassettes.store import Store

        return Store(self.place.root)

    @property
    def again(self) -> str:
        """The option that leads to this store again, for commands that can be pasted: empty, or ` --store DIR`."""
        return f" --store {shlex.quote(str(self.place.root))}" if self.place.asked else ""

    def say(self, text: str) -> None:
        """Prose for a person, on standard error; nothing with `--quiet`."""
        if not self.quiet:
            print(text, file=sys.stderr, flush=True)

    def warn(self, text: str) -> None:
        """Something went not as asked: on standard error, also with `--quiet`."""
        print(f"warning: {visible_line(text)}", file=sys.stderr, flush=True)


def place_of(asked: str | None, environ: Mapping[str, str]) -> Place:
    """Return where the store is: `--store`, else SECONDTAKE_STORE, else the data folder (XDG)."""
    if asked:
        return Place(Path(asked).expanduser().absolute(), asked=True, default=False)
    if named := environ.get(STORE_VARIABLE):
        return Place(Path(named).expanduser().absolute(), asked=False, default=False)
    data = environ.get("XDG_DATA_HOME", "")
    base = Path(data) if data.startswith("/") else Path(environ.get("HOME") or Path.home()) / ".local" / "share"
    return Place(base / "secondtake", asked=False, default=True)


def keep_out_of_workspace(surface: Surface, workspace: Path) -> None:
    """Refuse a store inside `workspace`, where it would change what the agent sees.

    Asked for by `--store` it is allowed, with a warning. The data folder of a person whose home is the workspace is where every
    other program's data is too.

    Raises:
        Unusable: SECONDTAKE_STORE (or XDG_DATA_HOME) points into the workspace.
    """
    place = surface.place
    root, inside = place.root.resolve(), workspace.resolve()
    if not root.is_relative_to(inside):
        return
    if place.asked:
        surface.warn(f"the store {place.root} is inside the workspace, where the agent sees it")
    elif not (place.default and _home().is_relative_to(inside)):
        raise Unusable(
            f"the store {place.root} is inside the workspace {workspace}, where it would change what the agent sees",
            hint=f"unset {STORE_VARIABLE}, or pass `--store {place.root}` to keep it there all the same",
        )


def _home() -> Path:
    return Path(os.environ.get("HOME") or "/nonexistent").resolve()


def version_here() -> str:
    """Return the installed version; a bare checkout says so."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("secondtake")
    except PackageNotFoundError:
        return "checkout"


def surface_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """`--store`, `--json` and `--quiet`, handed to the command as one `surface`."""
    import functools

    @click.option("--store", "store_dir", metavar="DIR", default=None, help=f"The store. Else ${STORE_VARIABLE}, else the data folder.")
    @click.option("--json", "as_json", is_flag=True, help="Print versioned JSON on standard output.")
    @click.option("--quiet", "-q", is_flag=True, help="Leave out prose and progress on standard error.")
    @click.pass_context
    @functools.wraps(command)
    def with_surface(context: click.Context, /, *, store_dir: str | None, as_json: bool, quiet: bool, **rest: Any) -> Any:
        asked = store_dir or (context.find_root().params.get("store_dir"))
        surface = Surface(place_of(asked, os.environ), json=as_json, quiet=quiet)
        return context.invoke(command, surface=surface, **rest)

    return with_surface


def complete_name(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:  # noqa: ARG001  # click's signature
    """Names in the store that begin with what was typed, for the shell."""
    try:
        asked = context.params.get("store_dir") or context.find_root().params.get("store_dir")
        names = [summary.name for summary in Surface(place_of(asked, os.environ), json=False, quiet=True).store().list()]
    except Exception:  # noqa: BLE001  # a completion that fails says nothing: the shell shows no errors
        return []
    return [name for name in ["@last", *names] if name.startswith(incomplete)]


def name_argument(*, required: bool = True) -> Decorator:
    """NAME of a cassette to read: a name, a unique prefix of one, `@last`, or the path of an exported file."""
    return click.argument("name", metavar="NAME", required=required, shell_complete=complete_name)


driver_option = click.option(
    "--driver", metavar="NAME", default="auto", show_default=True, help="The known agent this is; `auto` by its program, or `none`."
)
"""Which of `harness.drivers` is used; they are not loaded for `--help`."""


class AgentCommand(click.Command):
    """A command whose line ends in `-- AGENT…`: everything after the first `--` is the agent's, whatever it looks like."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Split at the first `--`; the agent's part reaches the command as `agent`."""
        ours, agent = split_agent(args)
        if not agent and not {"--help", "-h"} & set(ours) and not ctx.resilient_parsing:  # a shell that asks for names has no agent yet
            raise click.UsageError("no agent to run: put its command after `--`", ctx)
        ctx.meta[AGENT_KEY] = agent
        return super().parse_args(ctx, ours)

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        """End the usage line with the agent."""
        return [*super().collect_usage_pieces(ctx), "-- AGENT..."]


AGENT_KEY = "secondtake.agent"


TYPED_KEY = "secondtake.typed"
"""Where a context keeps the whole command line, for hints that repeat it."""


def split_agent(args: Sequence[str]) -> tuple[list[str], tuple[str, ...]]:
    """Return what stands before the first `--`, and what stands after it."""
    before = list(args)
    if "--" not in before:
        return before, ()
    at = before.index("--")
    return before[:at], tuple(before[at + 1 :])


def agent_of(context: click.Context) -> tuple[str, ...]:
    """Return the agent's command line; `AgentCommand` has seen to it that there is one."""
    agent: tuple[str, ...] = context.meta[AGENT_KEY]
    return agent


def pairs(option: str, values: Sequence[str], what: str) -> dict[str, str]:
    """Read `HOST=VALUE` options.

    Raises:
        click.BadParameter: a value has no `=`, or a host is given twice.
    """
    found: dict[str, str] = {}
    for value in values:
        host, equals, rest = value.partition("=")
        host = host.strip().lower().rstrip(".")
        if not equals or not host or not rest:
            raise click.BadParameter(f"{value!r} is not HOST={what}", param_hint=option)
        if host in found:
            raise click.BadParameter(f"{host} is given twice", param_hint=option)
        found[host] = rest
    return found

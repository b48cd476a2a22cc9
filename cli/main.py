"""The command line: the group, and the one place where an error becomes a line and an exit code."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Sequence

import click

from secondtake.cassettes.errors import Corrupt, RecordedError
from secondtake.cli.exits import MEANINGS, Exit, code_for
from secondtake.cli.options import DEBUG_VARIABLE, TYPED_KEY, version_here
from secondtake.cli.render.escape import visible_line

COMMANDS: dict[str, str] = {
    "record": "record",
    "replay": "replay",
    "retake": "retake",
    "run": "run",
    "matrix": "matrix",
    "report": "report",
    "probe": "probe",
    "proxy": "proxy",
    "env": "env",
    "ls": "ls",
    "show": "show",
    "events": "events",
    "grep": "grep",
    "diff": "diff",
    "blame": "blame",
    "verify": "verify",
    "export": "export",
    "import": "import_",
    "gc": "gc",
    "fixture": "fixture",
    "pin": "pin",
    "calibrate": "calibrate",
    "mcp": "mcp",
    "doctor": "doctor",
    "demo": "demo",
}
"""Each command and its module in `cli/commands/`, in the order of a first day."""


COMPLETION_VARIABLE = "_SECONDTAKE_COMPLETE"
"""Set by the shell when it asks for completions (click's shell completion)."""


class LazyGroup(click.Group):
    """Loads a command's module when it is asked for. The modules import nothing heavy, so `--help` may load them all."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # click's signature
        """Return the names in the order of `COMMANDS`."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # click's signature
        """Return the command of that name, or None."""
        if cmd_name not in COMMANDS:
            return None
        command = importlib.import_module(f"secondtake.cli.commands.{COMMANDS[cmd_name]}").command
        assert isinstance(command, click.Command)
        return command

    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple[str | None, click.Command | None, list[str]]:
        """As click does, but an unknown name says what comes closest."""
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            import difflib

            close = difflib.get_close_matches(args[0], COMMANDS, n=1)
            closest = f"; did you mean `{close[0]}`?" if close else ""
            raise click.UsageError(f"no command `{args[0]}`{closest}", ctx)
        return super().resolve_command(ctx, args)


def _print_version(context: click.Context, parameter: click.Parameter, value: bool) -> None:  # noqa: ARG001  # click's signature
    if value:
        click.echo(f"secondtake {version_here()}")
        context.exit()


def _epilog() -> str:
    rows = "\n".join(f"  {int(code):>3}  {MEANINGS[code]}" for code in Exit if code not in {Exit.INTERRUPTED, Exit.OUTPUT_CLOSED})
    return f"\b\nExit codes (record, replay and retake otherwise exit as their agent did):\n{rows}"


@click.group(cls=LazyGroup, epilog=_epilog(), context_settings={"help_option_names": ["--help", "-h"], "max_content_width": 100})
@click.option("--store", "store_dir", metavar="DIR", default=None, help="The store, for any command.")
@click.option("--version", is_flag=True, is_eager=True, expose_value=False, callback=_print_version, help="Print the version and exit.")
def root(store_dir: str | None) -> None:  # read by the commands from this context
    """Record what a coding agent did; play it again exactly, offline."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and leave the process with its exit code."""
    sys.exit(run(sys.argv[1:] if arguments is None else list(arguments)))


def run(arguments: Sequence[str]) -> int:
    """Run one command and return its exit code. Every error becomes one `error:` line, and a hint where there is one."""
    try:
        if COMPLETION_VARIABLE in os.environ:
            root.main(list(arguments), prog_name="secondtake")
        # Not `root.main`, which turns a reader that left into exit code 1.
        with root.make_context("secondtake", list(arguments)) as context:
            context.meta[TYPED_KEY] = tuple(arguments)
            result = root.invoke(context)
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader left (`| head`). Python would complain once more while it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return Exit.OUTPUT_CLOSED
    except click.exceptions.Exit as left:
        return left.exit_code
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001  # the boundary: what is not known is an internal error, said as one
        return _failed(error, as_json=_wants_json(arguments))
    return result if isinstance(result, int) else Exit.CLEAN


def _wants_json(arguments: Sequence[str]) -> bool:
    ours = list(arguments)
    return "--json" in (ours[: ours.index("--")] if "--" in ours else ours)


def _failed(error: BaseException, *, as_json: bool) -> int:
    code = code_for(error)
    message, hint = describe(error)
    print(f"error: {visible_line(message)}", file=sys.stderr)
    if hint:
        print(f"\nhint: {visible_line(hint)}", file=sys.stderr)
    if code is Exit.INTERNAL and os.environ.get(DEBUG_VARIABLE) == "1":
        import traceback

        traceback.print_exception(error)
    if as_json:
        from secondtake.cli.render.objects import as_line

        kind = type(error).__name__ if isinstance(error, RecordedError) else code.name.lower()
        print(as_line({"error": {"kind": kind, "message": message, "hint": hint}, "exit_code": int(code)}), flush=True)
    return code


def describe(error: BaseException) -> tuple[str, str | None]:
    """Return the line for an error, and a hint that can be run or checked."""
    match error:
        case Corrupt():
            return str(error), error.hint or "`secondtake verify NAME` names every fault"
        case RecordedError():
            return str(error), error.hint
        case click.exceptions.NoArgsIsHelpError():
            return "no command given", "secondtake --help"
        case click.UsageError():
            path = error.ctx.command_path if error.ctx else "secondtake"
            return error.format_message().rstrip("."), f"{path} --help"
        case click.ClickException():
            return error.format_message(), None
        case click.Abort() | KeyboardInterrupt():
            return "interrupted", None
        case OSError():
            where = f": {error.filename}" if error.filename is not None else ""
            return f"{error.strerror or error}{where}", None
        case _:
            hint = None if os.environ.get(DEBUG_VARIABLE) == "1" else f"set {DEBUG_VARIABLE}=1 and run it again to see where"
            return f"internal fault: {type(error).__name__}: {error}", hint

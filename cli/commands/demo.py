"""`demo`: the whole story in a minute, offline, no key."""

from __future__ import annotations

import shlex
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from secondtake.cli.exits import Exit, Unusable, exit_of
from secondtake.cli.options import Surface, surface_options
from secondtake.harness.plan import HostRules, Naming, Where

if TYPE_CHECKING:
    from secondtake.harness.plan import Stage
    from secondtake.harness.results import Recorded, Replayed

NAME = "incident"

_AROUND = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")


@click.command("demo")
@click.option("--keep", metavar="DIR", type=click.Path(path_type=Path), help="Keep everything in DIR, to look around afterwards.")
@surface_options
def command(surface: Surface, keep: Path | None) -> int:
    """Tell the whole story in a minute, offline and without a key.

    A small agent gets a failing repository and a scripted model, and says that it has fixed it. It is recorded, the provider is switched
    off, and the scene is played again.
    """
    if keep is not None and keep.exists() and (not keep.is_dir() or any(keep.iterdir())):
        raise Unusable(f"{keep} is not an empty directory", hint="give a new one")
    with ExitStack() as cleanup:
        folder = keep.absolute() if keep else Path(cleanup.enter_context(tempfile.TemporaryDirectory(prefix="secondtake-demo-")))
        folder.mkdir(parents=True, exist_ok=True)
        return _tell(surface, folder, kept=keep is not None)


def _tell(surface: Surface, folder: Path, *, kept: bool) -> int:
    import asyncio

    from secondtake.cassettes.store import Store
    from secondtake.cli.render.summary import recorded_lines, replayed_lines
    from secondtake.cli.render.timeline import timeline
    from secondtake.cli.render.words import count
    from secondtake.cli.wire import stage_of
    from secondtake.harness.demo import agent_environment, prepare
    from secondtake.harness.toolcalls import model_exchanges, read_call

    say = surface.say
    say("1. A repository with a failing test, and an agent that is asked to fix it.")
    repository, untouched = prepare(folder / "bill"), prepare(folder / "bill-as-it-was")
    environ = {name: value for name, value in agent_environment(stage_of(surface).environ).items() if name.upper() not in _AROUND}
    stage = replace(stage_of(surface), store=Store(folder / "store"), environ=environ, cwd=repository)
    say("\n2. The agent runs behind the recorder. Its provider is a script on this machine.\n")
    output = subprocess.DEVNULL if surface.json or surface.quiet else None
    recorded = asyncio.run(_record(stage, folder, output))
    for line in recorded_lines(recorded, again=None):
        say(line)
    red = _check(stage, repository)
    say(f"\n   The agent says it is fixed. The tests say: {'still red' if red else 'green'}.")
    say("\n3. The provider is stopped: nobody could answer now. The same agent again, in a scratch copy of the repository.\n")
    replayed = asyncio.run(_replay(stage, untouched, output))
    for line in replayed_lines(replayed):
        say(line)
    say("\n4. What the agent saw, from the cassette:\n")
    with stage.store.open(NAME) as cassette:
        calls = [call for exchange in model_exchanges(cassette) if (call := read_call(cassette, exchange)) is not None]
        for line in timeline(calls):
            say(line)
    report = stage.store.verify(NAME)
    say(f"\n5. Verified: {count(report.exchanges, 'exchange')}, {'no fault' if not report.faults else f'{len(report.faults)} faults'}.")
    _next(surface, folder, kept=kept)
    code = max(exit_of(recorded.verdict, recorded.agent_status), exit_of(replayed.verdict, replayed.agent_status))
    if report.damaged:
        code = Exit.STORE
    if surface.json:
        _print_json(recorded, replayed, red=red, faults=len(report.faults), folder=folder if kept else None, code=code)
    return code


async def _record(stage: Stage, folder: Path, output: int | None) -> Recorded:
    from secondtake.harness.demo import HOST, agent_command, provider
    from secondtake.harness.session import record_session

    async with provider(folder) as running:
        trusted = {"SSL_CERT_FILE": str(running.ca_path)} if running.ca_path else {}
        there = replace(stage, environ={**stage.environ, **trusted})
        return await record_session(there, HostRules(routes={HOST: running.base_url}), Naming(NAME), agent_command(), stdout=output)


async def _replay(stage: Stage, workspace: Path, output: int | None) -> Replayed:
    from secondtake.harness.demo import agent_command
    from secondtake.harness.session import replay_session
    from secondtake.proxy.policy import Pace

    return await replay_session(stage, NAME, agent_command(), pace=Pace.FAST, where=Where(copy_of=workspace), stdout=output)


def _check(stage: Stage, repository: Path) -> bool:
    """Run the repository's own tests; True when they are red."""
    done = subprocess.run([sys.executable, "check.py"], cwd=repository, env=dict(stage.environ), capture_output=True, check=False)
    return done.returncode != 0


def _next(surface: Surface, folder: Path, *, kept: bool) -> None:
    if kept:
        store = f"--store {shlex.quote(str(folder / 'store'))}"
        surface.say("\nnext, on what was kept:")
        surface.say(f"  secondtake show {NAME} {store}")
        surface.say(f"  secondtake show {NAME} 1 {store}")
        surface.say(f"  secondtake export {NAME} {NAME}.take {store}")
    else:
        surface.say("\nnext:")
        surface.say("  secondtake demo --keep DIR             the same, kept to look around")
        surface.say("  secondtake doctor                      what would be captured on this machine")
        surface.say("  secondtake record NAME -- AGENT...     your own agent")


def _print_json(recorded: Recorded, replayed: Replayed, *, red: bool, faults: int, folder: Path | None, code: int) -> None:
    from secondtake.cli.render.objects import as_line
    from secondtake.cli.render.summary import recorded_fields, replayed_fields

    print(
        as_line(
            {
                "recorded": recorded_fields(recorded),
                "replayed": replayed_fields(replayed),
                "tests_red": red,
                "faults": faults,
                "kept": str(folder) if folder else None,
                "exit_code": int(code),
            }
        )
    )

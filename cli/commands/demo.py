"""`demo`: the whole story in a minute, offline, no key."""

from __future__ import annotations

import shlex
import shutil
import subprocess
import sys
import tempfile
from contextlib import AsyncExitStack, ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from secondtake.cli.exits import Exit, Unusable, exit_of
from secondtake.cli.options import Surface, surface_options
from secondtake.harness.plan import HostRules, Naming, Recast, Where

if TYPE_CHECKING:
    from collections.abc import Iterable

    from secondtake.harness.demo import Running
    from secondtake.harness.fixture import Fixture
    from secondtake.harness.matrix.session import Outcome
    from secondtake.harness.plan import Stage
    from secondtake.harness.results import Recorded, Replayed
    from secondtake.harness.taking import Conditions, Taken

NAME = "incident"
FIXTURE = "bill"
REPORT = "report.html"
REPEATS, JOBS = 3, 2

_AROUND = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")

_MORE = """
[[acceptance.check]]
name = "only the splitter changed"
kind = "only-changed"
paths = ["bill/split.py"]
"""
"""What a person adds to the fixture."""


@click.command("demo")
@click.option("--keep", metavar="DIR", type=click.Path(path_type=Path), help="Keep everything in DIR, to look around afterwards.")
@surface_options
def command(surface: Surface, keep: Path | None) -> int:
    """Tell the whole story in a minute, offline and without a key.

    A small agent gets a failing repository and a scripted model, and says that it has fixed it. It is recorded, the provider is switched
    off, and the scene is played again. The incident becomes a fixture, another model plays the part, and both models are compared.
    """
    if keep is not None and keep.exists() and (not keep.is_dir() or any(keep.iterdir())):
        raise Unusable(f"{keep} is not an empty directory", hint="give a new one")
    with ExitStack() as cleanup:
        if keep is not None:
            folder = keep.absolute()
            folder.mkdir(parents=True, exist_ok=True)
        else:
            folder = Path(tempfile.mkdtemp(prefix="secondtake-demo-")).absolute()
            cleanup.callback(_cleared, folder, report=not surface.json and not surface.quiet)
        return _Story(surface, folder, kept=keep is not None).tell()


def _cleared(folder: Path, *, report: bool) -> None:
    """Take everything away but the report, where somebody was told of it."""
    for path in folder.iterdir():
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        elif path.name != REPORT or not report:
            path.unlink()
    if not any(folder.iterdir()):
        folder.rmdir()


@dataclass(slots=True)
class _Story:
    """The demo, told in eight steps."""

    surface: Surface
    folder: Path
    kept: bool
    steps: int = 0
    port: int = 0
    """The provider's: where it is changes nothing of a take, but a take that finds it elsewhere says so."""

    def tell(self) -> int:
        from secondtake.cassettes.store import Store
        from secondtake.cli.wire import stage_of
        from secondtake.harness.demo import agent_environment, prepare

        self._step("A repository with a failing test, and an agent that is asked to fix it.")
        repository = prepare(self.folder / "bill")
        person = stage_of(self.surface)
        environ = {name: value for name, value in agent_environment(person.environ).items() if name.upper() not in _AROUND}
        stage = replace(person, store=Store(self.folder / "store"), environ=environ, cwd=repository, again="")
        recorded, red = self._record(stage)
        replayed = self._replay(stage)
        faults, damaged = self._look(stage)
        fixture = self._fixture(stage, sealed=replayed.seal.startswith("sealed"))
        taken, made = self._experiment(stage, fixture)
        report = self._report(made)
        self._next()
        played = (exit_of(run.verdict, run.agent_status) for run in (recorded, replayed))
        code = max(*played, _exit_of(taken, made))
        if damaged:
            code = Exit.STORE
        if self.surface.json:
            self._print_json(recorded, replayed, taken, made, report, red=red, faults=faults, code=code)
        return code

    # ---- the incident

    def _record(self, stage: Stage) -> tuple[Recorded, bool]:
        """Record the incident; returns whether the repository's own tests are red afterwards."""
        import asyncio

        from secondtake.cli.render.summary import recorded_lines
        from secondtake.harness.demo import HOST, agent_command, provider
        from secondtake.harness.session import record_session

        self._step("The agent runs behind the recorder. Its provider is a script on this machine.", "record", NAME, "--", "AGENT")

        async def record() -> Recorded:
            async with provider(self.folder) as running:
                self.port = running.provider.port
                rules = HostRules(routes={HOST: running.base_url})
                return await record_session(_trusting(stage, running), rules, Naming(NAME), agent_command(), stdout=self._output)

        recorded = asyncio.run(record())
        self._say(recorded_lines(recorded, again=None))
        done = subprocess.run([sys.executable, "check.py"], cwd=stage.cwd, env=dict(stage.environ), capture_output=True, check=False)
        red = done.returncode != 0
        self.surface.say(f"\n   The agent says it is fixed. The tests say: {'still red' if red else 'green'}.")
        return recorded, red

    def _replay(self, stage: Stage) -> Replayed:
        import asyncio

        from secondtake.cli.render.summary import replayed_lines
        from secondtake.harness.demo import agent_command
        from secondtake.harness.session import replay_session
        from secondtake.proxy.policy import Pace

        self._step(
            "The provider is stopped: nobody could answer now. The same agent again, in a scratch copy of the repository as it was.",
            "replay", NAME, "--scratch", "--", "AGENT",
        )  # fmt: skip
        where = Where(scratch=True, seal="auto")
        replayed = asyncio.run(replay_session(stage, NAME, agent_command(), pace=Pace.FAST, where=where, stdout=self._output))
        self._say(replayed_lines(replayed))
        return replayed

    def _look(self, stage: Stage) -> tuple[int, bool]:
        """Show what the agent saw, and verify; returns how many faults there are, and whether anything is damaged."""
        from secondtake.cli.render.timeline import timeline
        from secondtake.cli.render.words import count
        from secondtake.harness.toolcalls import model_exchanges, read_call

        self._step("What the agent saw, from the cassette, in short. Event by event it is:", "events", NAME)
        with stage.store.open(NAME) as cassette:
            calls = [call for exchange in model_exchanges(cassette) if (call := read_call(cassette, exchange)) is not None]
            self._say(timeline(calls))
        self._step("Is it still what was recorded?", "verify", NAME)
        report = stage.store.verify(NAME)
        faults = "no fault" if not report.faults else f"{len(report.faults)} faults"
        self.surface.say(f"   Verified: {count(report.exchanges, 'exchange')}, {faults}.")
        return len(report.faults), report.damaged

    # ---- the experiment

    def _fixture(self, stage: Stage, *, sealed: bool) -> Fixture:
        """Make the fixture. Without a full seal the recorded repository is put aside: no take begins where it could reach an original."""
        from secondtake.cli.render.fixture import made_lines
        from secondtake.harness.fixture import load
        from secondtake.harness.fixture.making import create

        self._step(
            "The incident becomes an experiment: where it began, what failed, what success is. A person looks at it, and adds a check.",
            "fixture", "create", FIXTURE, "--from", NAME,
        )  # fmt: skip
        made = create(stage, FIXTURE, recording=NAME)
        self._say(line for line in made_lines(made, again="", named=True) if line and not line.startswith("next:"))
        toml = made.fixture.root / "fixture.toml"
        with toml.open("a", encoding="utf-8") as file:
            file.write(_MORE)
        self._say(f"   | {line}" for line in _MORE.strip().splitlines())
        fixture = load(FIXTURE, stage.store)
        self.surface.say(f"\n   failure:    {', '.join(check.name for check in fixture.failure.check)}")
        self.surface.say(f"   acceptance: {', '.join(check.name for check in fixture.acceptance.check)}")
        if not sealed:
            stage.cwd.rename(stage.cwd.with_name(f"{stage.cwd.name}-put-aside"))
            self.surface.say(
                "\n   No seal can put a copy in its place here, so the recorded repository is put aside: a take could reach it."
            )
        return fixture

    def _experiment(self, stage: Stage, fixture: Fixture) -> tuple[Taken, Outcome]:
        """One take with the other model, then some of both, while the provider answers again."""
        import asyncio

        from secondtake.harness.demo import HOST, provider
        from secondtake.harness.flooring import floor_of
        from secondtake.harness.provider import no_pace
        from secondtake.harness.taking import Conditions, Interrupted

        there = replace(stage, cwd=self.folder)

        async def play() -> tuple[Taken, Outcome]:
            async with AsyncExitStack() as open_:
                try:
                    running = await open_.enter_async_context(provider(self.folder, pace=no_pace, port=self.port))
                except OSError:  # somebody has taken it meanwhile
                    running = await open_.enter_async_context(provider(self.folder, pace=no_pace))
                trusting = _trusting(there, running)
                floor = await floor_of(trusting, fixture)
                conditions = Conditions(wire=HostRules(routes={HOST: running.base_url}), floor=floor)
                return await self._take(trusting, fixture, conditions), await self._matrix(trusting, fixture, conditions)

        try:
            return asyncio.run(play())
        except Interrupted:
            raise KeyboardInterrupt from None

    async def _take(self, stage: Stage, fixture: Fixture, conditions: Conditions) -> Taken:
        from secondtake.cli.render.take import taken_lines
        from secondtake.harness.demo import CAREFUL
        from secondtake.harness.taking import Part, run_take

        self._step("The same scene with another model in the part; what it leaves is judged.", "run", FIXTURE, "--model", CAREFUL)
        taken = await run_take(stage, fixture, Part(Recast((CAREFUL,))), conditions, stdout=self._output)
        self._say(taken_lines(taken, again=None))
        return taken

    async def _matrix(self, stage: Stage, fixture: Fixture, conditions: Conditions) -> Outcome:
        from secondtake.cli.render.matrix import progress_line
        from secondtake.harness.demo import CAREFUL, HASTY
        from secondtake.harness.matrix.planning import Wanted, planned
        from secondtake.harness.matrix.schedule import Progress
        from secondtake.harness.matrix.session import matrix_session

        self._step(
            "Once is an anecdote. Both models, some times each: what differs, and how sure is that?",
            "matrix", FIXTURE, "--model", HASTY, "--model", CAREFUL,
            "--repeats", str(REPEATS), "--jobs", str(JOBS), "--no-warm-up", "--html", REPORT,
        )  # fmt: skip

        def told(step: Progress) -> None:
            line = progress_line(step)
            self._say([] if line is None else [line])

        wanted = Wanted((HASTY, CAREFUL), repeats=REPEATS, jobs=JOBS, warm_up=False)
        recast = Recast(())
        plan = planned(stage, fixture, wanted, recast, conditions.wire)
        made = await matrix_session(stage, fixture, plan, recast, conditions, resume=False, agreed=lambda _: True, progress=told)
        assert made is not None  # it was agreed to
        return made

    def _report(self, made: Outcome) -> Path | None:
        """Show the table and how sure it is, and write the page; None where nobody would find it."""
        from secondtake.cli.render import report as words
        from secondtake.cli.render.tables import print_table
        from secondtake.cli.reports import Files

        if not self.kept and (self.surface.json or self.surface.quiet):
            return None
        (written,) = Files(html=self.folder / REPORT).write(made.report, made.takes)
        if not self.surface.json and not self.surface.quiet:
            self.surface.say("")
            for line in words.head_lines(made.report):
                print(line)
            print_table(words.HEADINGS, words.rows(made.report))
            for line in words.sure_lines(made.report):
                print(line)
            sys.stdout.flush()
        self.surface.say(f"\n   The whole report, for a browser: {written}")
        return written

    # ---- how it is told

    @property
    def _output(self) -> int | None:
        """Where the agent's output goes."""
        return subprocess.DEVNULL if self.surface.json or self.surface.quiet else None

    def _step(self, what: str, *typed: str) -> None:
        """Begin a step. `typed` is what a person types for it."""
        gap = "\n" if self.steps else ""
        self.steps += 1
        self.surface.say(f"{gap}{self.steps}. {what}")
        if typed:
            self.surface.say(f"   $ secondtake {shlex.join(typed)}\n")

    def _say(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.surface.say(line)

    def _next(self) -> None:
        say = self.surface.say
        if self.kept:
            store = f"--store {shlex.quote(str(self.folder / 'store'))}"
            say("\nnext, on what was kept:")
            say(f"  secondtake show {NAME} {store}")
            say(f"  secondtake diff {NAME} {FIXTURE}-take-1 {store}")
            say(f"  secondtake export {NAME} {NAME}.take {store}")
        else:
            say("\nnext:")
            say("  secondtake demo --keep DIR             the same, kept to look around")
            say("  secondtake doctor                      what would be captured on this machine")
            say("  secondtake record NAME -- AGENT...     your own agent")

    def _print_json(
        self,
        recorded: Recorded,
        replayed: Replayed,
        taken: Taken,
        made: Outcome,
        report: Path | None,
        *,
        red: bool,
        faults: int,
        code: int,
    ) -> None:
        from secondtake.cli.render.objects import as_line
        from secondtake.cli.render.report import fields
        from secondtake.cli.render.summary import recorded_fields, replayed_fields
        from secondtake.cli.render.take import taken_fields

        told = {
            "recorded": recorded_fields(recorded),
            "replayed": replayed_fields(replayed),
            "tests_red": red,
            "faults": faults,
            "taken": taken_fields(taken),
            "matrix": fields(made.report),
            "report": str(report) if report is not None else None,
            "kept": str(self.folder) if self.kept else None,
            "exit_code": int(code),
        }
        print(as_line(told))


def _trusting(stage: Stage, running: Running) -> Stage:
    """The stage, where the provider is trusted."""
    trusted = {"SSL_CERT_FILE": str(running.ca_path)} if running.ca_path else {}
    return replace(stage, environ={**stage.environ, **trusted})


def _exit_of(taken: Taken, made: Outcome) -> Exit:
    """Return how the experiment went: the one take is to pass, and every cell of the matrix to be settled."""
    from secondtake.cli.commands.run import exit_of_take

    return max(exit_of_take(taken.take), Exit.CLEAN if made.report.complete else Exit.DIVERGED)

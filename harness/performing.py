"""The part of every run in which the agent acts: within the seal, where it stands, under the tracer, and what was seen of it."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence, Set
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import IO, TYPE_CHECKING

from secondtake.harness.launch import Finished, launch
from secondtake.harness.results import Problem, Verdict
from secondtake.harness.seal import Attempt, Bind, Seal, Tier, Wanted, sealed

if TYPE_CHECKING:
    import asyncio

    from secondtake.harness.equipment import Equipment

ROOMS = Path(__file__).resolve().parent.parent
"""Where our own files lie: what starts the agent is read from there, within the seal too."""


@dataclass(frozen=True, slots=True)
class Standing:
    """Where an agent runs."""

    cwd: Path
    """Its directory, for a launch that puts nothing anywhere."""
    copy: Path | None = None
    """The scratch copy that its tool calls act on; None where it runs in place."""
    prefix: tuple[str, ...] = ()
    """Stands before its command, and puts the copy where the original is, for it alone."""
    binds: tuple[Bind, ...] = ()
    """The same, for a seal that can do it."""
    inside: Path | None = None
    """Its directory once the binds stand."""


@dataclass(frozen=True, slots=True)
class Performed:
    """What was seen of an agent."""

    finished: Finished
    tier: Tier
    refused: tuple[str, ...]
    """Why no higher tier could be had."""
    attempts: tuple[Attempt, ...]
    """To reach something beside the proxy. None came through."""
    holes: tuple[str, ...]
    at_recorded_path: bool
    """It stood where the recorded agent stood."""


@dataclass(frozen=True, slots=True)
class Acting:
    """A stage that stands: commands can be run on it, one after the other."""

    equipment: Equipment
    port: int
    standing: Standing
    seal: Seal

    @property
    def at_recorded_path(self) -> bool:
        """Whether a command finds itself where the recorded agent was."""
        if not self.standing.binds:
            return self.standing.copy is None
        return self.seal.binds_done or bool(self.standing.prefix)

    @property
    def prefix(self) -> tuple[str, ...]:
        """The words that put a command on this stage."""
        placed = self.seal.binds_done or not self.standing.binds
        return self.seal.prefix if placed else (*self.seal.prefix, *self.standing.prefix)

    @property
    def cwd(self) -> Path:
        """Where a launch with `prefix` begins: a seal goes to the directory by itself, once the copy stands there."""
        sealed_there = self.seal.binds_done and self.standing.binds
        return (self.standing.copy or self.standing.cwd) if sealed_there else self.standing.cwd

    def environment(self, more: Mapping[str, str]) -> dict[str, str]:
        """What a command on this stage is told."""
        return {**self.equipment.child(self.seal.port or self.port), **more, **self.seal.environment}

    async def run(
        self,
        command: Sequence[str],
        *,
        within: Sequence[str] = (),
        environ: Mapping[str, str] = MappingProxyType({}),
        stdout: int | IO[bytes] | None = None,
        stop: asyncio.Event | None = None,
        timeout_s: float | None = None,
        aside: str | None = None,
        forward_signals: bool = True,
    ) -> Performed:
        """Run a command to its end. `within`: words that stand directly before it (a tracer's); `environ` is added to what it is told.

        `aside` and `forward_signals` are `launch`'s.

        Raises:
            NotStarted: there is no such command, or its directory cannot be used.
        """
        finished = await launch(
            (*self.prefix, *within, *command),
            env=self.environment(environ),
            cwd=self.cwd,
            stdout=stdout,
            stop=stop,
            timeout_s=timeout_s,
            descriptors=self.equipment.descriptors,
            aside=aside,
            forward_signals=forward_signals,
        )
        seal = self.seal
        return Performed(finished, seal.tier, tuple(seal.refused), tuple(seal.attempts), tuple(seal.holes), self.at_recorded_path)


def _where_it_is(standing: Standing) -> tuple[Path, ...]:
    """The scratch copy itself, where the agent stands in it and not at the recorded path."""
    return () if standing.copy is None or standing.binds else (standing.copy,)


@asynccontextmanager
async def on_stage(
    agent: Sequence[str],
    equipment: Equipment,
    port: int,
    standing: Standing,
    *,
    wanted: Wanted = Wanted.OFF,
    readable: Sequence[Path] = (),
    writable: Sequence[Path] = (),
    known_hosts: Set[str] | None = None,
    now_us: Callable[[], int],
) -> AsyncIterator[Acting]:
    """Give a stage for `agent` beside the proxy at `port`.

    Where it has a scratch copy, a seal throws away whatever is written elsewhere, but for `writable`.
    `known_hosts`: names that were recorded; None: any name may be asked for.

    Raises:
        SealBroken: a seal is required and cannot be had, or one that was made does not hold.
    """
    async with sealed(
        run_dir=equipment.authority.directory,
        proxy_port=port,
        credential=equipment.credential,
        wanted=wanted,
        binds=standing.binds,
        cwd=standing.inside or standing.cwd,
        readable=(*readable, *needs(agent, equipment.stage.environ, equipment.bundle)),
        writable=(*writable, *_where_it_is(standing)),
        discard=standing.copy is not None,
        now_us=now_us,
        known_hosts=known_hosts,
    ) as seal:
        yield Acting(equipment, port, standing, seal)


async def perform(
    agent: Sequence[str],
    equipment: Equipment,
    port: int,
    standing: Standing,
    *,
    wanted: Wanted = Wanted.OFF,
    known_hosts: Set[str] | None = None,
    now_us: Callable[[], int],
    stdout: int | IO[bytes] | None = None,
    stop: asyncio.Event | None = None,
) -> Performed:
    """Run `agent` to its end on a stage of its own. Raises as `on_stage` and `Acting.run` do."""
    async with on_stage(agent, equipment, port, standing, wanted=wanted, known_hosts=known_hosts, now_us=now_us) as acting:
        performed = await acting.run(agent, stdout=stdout, stop=stop)
    return replace(performed, attempts=tuple(acting.seal.attempts))  # complete now


def needs(agent: Sequence[str], environ: Mapping[str, str], bundle: Path) -> tuple[Path, ...]:
    """Return what a sealed agent must find although folders around it may be hidden: its program, interpreters, our files, the bundle."""
    found = [bundle, ROOMS, *map(Path, (sys.prefix, sys.base_prefix, sys.executable))]
    path = environ.get("PATH", os.defpath)
    for name in (*agent[:1], *INTERPRETERS):
        program = shutil.which(name, path=path)
        if program is not None:
            found += installed(Path(program))
    return tuple(dict.fromkeys(each for each in found if each.exists()))


INTERPRETERS = ("node", "python3", "bash", "git", "strace")
"""What an agent's program, or its tools, are likely run by; a person may have them below HOME."""


def installed(program: Path) -> Iterator[Path]:
    """Yield the folders a program is installed in: a virtual environment or package, not the whole of `/usr` or of HOME."""
    for path in dict.fromkeys((program.absolute(), program.resolve())):
        yield path
        for folder in path.parents:
            if (folder / "pyvenv.cfg").is_file() or (folder / "package.json").is_file() or folder.name == "node_modules":
                yield folder
        if path.parent.name == "bin" and path.parent.parent != Path("/") and (path.parent.parent / "lib").is_dir():
            yield path.parent
            yield path.parent.parent / "lib"


def escape_problems(performed: Performed, *, recording: bool = False) -> tuple[Problem, ...]:
    """What a person must know of attempts to leave, and of a seal that could not be had. While recording attempts are a fact about the
    agent; a replay that has one is not clean."""
    found = []
    if performed.attempts:
        where = ", ".join(dict.fromkeys(map(str, performed.attempts[:50])))
        verdict = Verdict.CLEAN if recording else Verdict.DIVERGED
        message = f"refused attempts to reach something beside the proxy: {len(performed.attempts)} ({where})"
        found.append(Problem("escape", message, None, verdict))
    if performed.refused and not recording:
        open_ = f"; open: {', '.join(performed.holes)}" if performed.holes else ""
        message = f"the seal is {performed.tier} only ({'; '.join(performed.refused)}){open_}"
        found.append(Problem("seal", message, "--seal require accepts no less"))
    return tuple(found)

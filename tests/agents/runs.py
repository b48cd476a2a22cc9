"""An unmodified agent, recorded against the scripted provider and played without it: places, runs, and the line of the table they make."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

from secondtake.harness.driving import version_of
from secondtake.harness.provider import Provider
from tests.agents.casts import AUTHOR, TASK, Cast
from tests.agents.installs import cache
from tests.tools.scene import PATIENCE_S, ROOT, Ran, configured, offline, tree


def secondtake() -> tuple[str, ...]:
    """The program, from this checkout. Its bytecode is kept, out of the agent's sight: it is started a hundred times here."""
    begin = f"import sys; sys.dont_write_bytecode = False; sys.path.insert(0, {str(ROOT / '.src')!r})"
    start = f"{begin}; from secondtake.cli.main import main; main()"
    return (sys.executable, "-X", f"pycache_prefix={cache() / 'bytecode'}", "-c", start)


@dataclass(frozen=True, slots=True)
class Place:
    """A workspace and a home that are made anew before each run, at the same paths."""

    root: Path
    project: str = "work"

    @property
    def work(self) -> Path:
        return self.root / self.project

    @property
    def home(self) -> Path:
        return self.root / "home"

    @property
    def temporary(self) -> Path:
        return self.root / "tmp"

    def fresh(self) -> None:
        """One commit, nothing else; an empty home."""
        for folder in (self.work, self.home, self.temporary):
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
        (self.work / "README.md").write_text("# A project\n")
        git = ("git", "-C", str(self.work), "-c", "init.defaultBranch=main")
        environment = {"PATH": os.environ["PATH"], "HOME": str(self.home), **AUTHOR}
        for command in (("init", "--quiet"), ("add", "."), ("commit", "--quiet", "-m", "Begin")):
            subprocess.run([*git, *command], env=environment, check=True, capture_output=True)


@contextmanager
def provided(cast: Cast) -> Iterator[Provider]:
    """The scripted provider on a thread of its own; gone when the block ends."""
    provider = Provider(cast.script())
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    try:
        asyncio.run_coroutine_threadsafe(provider.start(), loop).result(PATIENCE_S)
        yield provider
    finally:
        asyncio.run_coroutine_threadsafe(provider.stop(), loop).result(PATIENCE_S)
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


@dataclass
class Line:
    """One row of the table."""

    agent: str
    version: str
    exchanges: int = 0
    replays: int = 0
    answered: Counter[str] = field(default_factory=Counter)
    """Summed over all replays."""

    def cells(self) -> list[str]:
        counts = [str(self.answered[how]) for how in ("exact", "normalised", "derived", "local", "positional", "miss")]
        return [self.agent, self.version, str(self.exchanges), str(self.replays), *counts]


HEAD = ("agent", "version", "exchanges", "replays", "exact", "normalised", "derived", "local", "positional", "misses")


@dataclass
class Played:
    """One replay: what it said of itself, the tree it left, and what the agent printed."""

    ran: Ran
    files: Mapping[str, str]
    events: Sequence[Mapping[str, Any]] = ()
    """What `replay --events` wrote."""

    @property
    def answered(self) -> Counter[str]:
        return Counter(self.ran.result["answered"])


@dataclass
class Run:
    """One agent's recording, and its replays."""

    cast: Cast
    programs: Path
    place: Place
    store: Path
    line: Line
    recorded: Ran | None = None
    files: Mapping[str, str] = field(default_factory=dict)

    def environment(self, place: Place, extra: Mapping[str, str]) -> dict[str, str]:
        base = {**configured(), **self.cast.environment}
        return {
            **base,
            "PATH": f"{self.programs}{os.pathsep}{base.get('PATH', os.defpath)}",
            "HOME": str(place.home),
            "TMPDIR": str(place.temporary),
            "LANG": "C.UTF-8",
            "TERM": "dumb",
            "TZ": "UTC",
            "SECONDTAKE_STORE": str(self.store),
            "PYTHONDONTWRITEBYTECODE": "1",
            **extra,
        }

    def secondtake(self, *arguments: str, place: Place, before: Sequence[str] = (), extra: Mapping[str, str] | None = None) -> Ran:
        """Run the program in a place, nothing to read for the agent."""
        done = subprocess.run(
            [*before, *secondtake(), *arguments],
            env=self.environment(place, extra or {}),
            cwd=place.work,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=PATIENCE_S,
        )
        return Ran(done.returncode, done.stdout, done.stderr)

    def record(self, name: str, provider: Provider, *, routes: Mapping[str, str] = MappingProxyType({})) -> Ran:
        """Record the task; all the hosts that the cast names are the provider, and others where `routes` says."""
        self.place.fresh()
        whither = {**dict.fromkeys(self.cast.hosts, provider.base_url), **routes}
        options = [word for host, url in whither.items() for word in ("--route", f"{host}={url}")]
        ran = self.secondtake("record", "--json", *options, name, "--", *self.cast.command(), place=self.place)
        self.files = tree(self.place.work, without=self.without)
        return ran

    def replay(
        self,
        name: str,
        *,
        task: str = TASK,
        place: Place | None = None,
        before: Sequence[str] = (),
        extra: Mapping[str, str] | None = None,
    ) -> Played:
        """Play it with nothing reachable: in a copy at the recorded path, or, in another place, right there."""
        where = place or self.place
        where.fresh()
        how = ("--in-place",) if place else ("--workspace", str(where.work), "--keep")
        log = where.root / "events.jsonl"
        log.unlink(missing_ok=True)
        command = ("replay", "--json", *how, "--events", str(log), name, "--", *self.cast.command(task))
        ran = self.secondtake(*command, place=where, before=(*offline(), *before), extra=extra)
        copy = Path(ran.result["ran_in"]) if ran.result.get("ran_in") else where.work
        events = [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []
        return Played(ran, tree(copy, without=self.without), events)

    @property
    def without(self) -> str:
        """Paths that are no part of what the agent made."""
        return rf"^\.git/|{self.cast.own}" if self.cast.own else r"^\.git/"

    def count(self, played: Played) -> None:
        """Add a replay to the table."""
        self.line.replays += 1
        self.line.answered += played.answered

    def events(self, name: str) -> list[dict[str, Any]]:
        """What `events NAME --json` prints."""
        shown = self.secondtake("events", name, "--json", place=self.place)
        assert shown.code == 0, shown.said
        return [json.loads(line) for line in shown.out.splitlines()]


def begun(cast: Cast, programs: Path, root: Path) -> Run:
    """Make the places of a run."""
    environment = {"PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"}
    version = version_of(cast.driver, cast.command()[0], environment) or "unknown"
    place = Place(root / "here")
    place.fresh()
    return Run(cast, programs, place, root / "store", Line(cast.name, version))

"""A recorded scene and a scripted provider that goes on, for tests of retakes: the demo's agent, which also reads a page."""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from random import Random

from secondtake.cassettes.store import Store
from secondtake.harness.demo import HASTY, HOST, TASK, Running, agent_command, agent_environment, prepare, provider
from secondtake.harness.plan import HostRules, Naming, Recast, Stage, Where
from secondtake.harness.provider import Provider, Script, no_pace
from secondtake.harness.results import Recorded, Replayed, Retaken
from secondtake.harness.session import record_session, replay_session, retake_session
from secondtake.proxy.policy import Pace

NAME = "incident"
WEB = "web.example"

_READS_FIRST = """
import runpy, sys, urllib.error, urllib.request
for path in sys.argv.pop(1).split():
    try:
        urllib.request.urlopen("https://%s" + path, timeout=20)
    except urllib.error.HTTPError as error:
        print(path, error.code)
sys.argv[0] = sys.argv.pop(1)
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def agent(*paths: str, model: str = HASTY, task: str = TASK) -> list[str]:
    """The demo's agent, which first reads pages of the web."""
    return [sys.executable, "-I", "-c", _READS_FIRST % WEB, " ".join(paths or ("/page",)), *agent_command(model, task)[2:]]


@dataclass(frozen=True, slots=True)
class Scene:
    """A workspace, a store, and the provider while it runs."""

    stage: Stage
    running: Running

    @property
    def rules(self) -> HostRules:
        """The agent's hosts, both, go to the provider."""
        return HostRules(routes={HOST: self.running.base_url, WEB: self.running.base_url})

    @property
    def provider(self) -> Provider:
        """The scripted provider, with its counters."""
        return self.running.provider

    @property
    def names(self) -> list[str]:
        """Every cassette in the store."""
        return [summary.name for summary in self.stage.store.list()]

    def with_environ(self, **more: str) -> Scene:
        """The same with other variables."""
        return replace(self, stage=replace(self.stage, environ={**self.stage.environ, **more}))

    async def record(self) -> Recorded:
        """The hasty model, recorded."""
        return await record_session(self.stage, self.rules, Naming(NAME), agent(), stdout=asyncio.subprocess.DEVNULL)

    async def retake(
        self, *models: str, take: str | None = None, command: list[str] | None = None, rules: HostRules | None = None, **more: object
    ) -> Retaken:
        """The same scene with another model, in a scratch copy of the workspace as it was."""
        return await retake_session(
            self.stage,
            NAME,
            Recast(models, take, **more),  # type: ignore[arg-type]
            rules or self.rules,
            command or agent(),
            pace=Pace.FAST,
            where=Where(copy_of=self.workspace()),
            command="secondtake retake",
            stdout=asyncio.subprocess.DEVNULL,
        )

    async def replay(self, name: str) -> Replayed:
        """What was kept, again."""
        where = Where(copy_of=self.workspace())
        return await replay_session(self.stage, name, agent(), pace=Pace.FAST, where=where, stdout=asyncio.subprocess.DEVNULL)

    def workspace(self) -> Path:
        """The failing repository as it was before any agent."""
        made = self.stage.home / "as-it-was"
        return made if made.exists() else prepare(made)


@asynccontextmanager
async def scene(folder: Path, *, recorded: Path | None = None, played: Script | None = None) -> AsyncIterator[Scene]:
    """A provider over TLS, trusted by the stage's environment. `recorded`: a store to begin with."""
    async with provider(folder, pace=no_pace, played=played) as running:
        if recorded is not None:
            shutil.copytree(recorded, folder / "store")
        base: Mapping[str, str] = {"PATH": os.environ.get("PATH", os.defpath), "HOME": str(folder), "SSL_CERT_FILE": str(running.ca_path)}
        stage = Stage(
            store=Store(folder / "store"),
            environ=agent_environment(base),
            cwd=prepare(folder / "bill"),
            home=folder,
            now=lambda: datetime.now(UTC),
            monotonic_s=time.monotonic,
            random=Random(1),
            again="",
            version="0",
        )
        yield Scene(stage, running)

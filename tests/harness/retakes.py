"""A recorded scene and a scripted provider that goes on, for tests of retakes: the demo's agent, two models, one of them careful."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from random import Random

from secondtake.cassettes.store import Store
from secondtake.harness.demo import HOST, Running, agent_command, agent_environment, prepare, provider
from secondtake.harness.plan import HostRules, Naming, Recast, Stage, Where
from secondtake.harness.provider import Script, no_pace
from secondtake.harness.results import Recorded, Retaken
from secondtake.harness.session import record_session, retake_session
from secondtake.proxy.policy import Pace

NAME = "incident"


@dataclass(frozen=True, slots=True)
class Scene:
    """A workspace, a store, and the provider while it runs."""

    stage: Stage
    running: Running

    @property
    def rules(self) -> HostRules:
        """The agent's host goes to the provider."""
        return HostRules(routes={HOST: self.running.base_url})

    @property
    def provider(self) -> object:
        return self.running.provider

    async def record(self, name: str = NAME) -> Recorded:
        """The hasty model, recorded."""
        return await record_session(self.stage, self.rules, Naming(name), agent_command(), stdout=asyncio.subprocess.DEVNULL)

    async def retake(self, *models: str, name: str = NAME, agent: list[str] | None = None, **more: object) -> Retaken:
        """The same scene with another model, in a scratch copy of a workspace as it was."""
        fresh = self.stage.cwd.parent / f"as-it-was-{len(list(self.stage.cwd.parent.iterdir()))}"
        return await retake_session(
            self.stage,
            name,
            Recast(models=models, **more),  # type: ignore[arg-type]
            self.rules,
            agent or agent_command(),
            pace=Pace.FAST,
            where=Where(copy_of=prepare(fresh)),
            command="secondtake retake",
            stdout=asyncio.subprocess.DEVNULL,
        )


@asynccontextmanager
async def scene(folder: Path, played: Script | None = None) -> AsyncIterator[Scene]:
    """A provider over TLS, trusted by the stage's environment."""
    async with provider(folder, pace=no_pace, played=played) as running:
        base = {"PATH": os.environ.get("PATH", os.defpath), "HOME": str(folder), "SSL_CERT_FILE": str(running.ca_path)}
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


def elsewhere(scene: Scene, cwd: Path) -> Scene:
    """The same from another directory."""
    return replace(scene, stage=replace(scene.stage, cwd=cwd))

"""One run of the demo's agent, straight to the scripted provider."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from secondtake.harness import demo
from secondtake.harness.launch import Finished, Stdin, launch
from secondtake.harness.provider import Provider, Script, no_pace
from secondtake.harness.workspace import compare, read_tree


@dataclass(frozen=True, slots=True)
class Ran:
    """What one run of the agent came to."""

    finished: Finished
    printed: str
    provider: Provider
    changed: tuple[str, ...]


def agent(place: Path, model: str = demo.HASTY, script: Script | None = None, task: str = demo.TASK) -> Ran:
    """Run the demo's agent in a fresh failing repository, straight to the provider."""
    repository = demo.prepare(place / "bill")
    before = read_tree(repository)

    async def run() -> tuple[Finished, Provider]:
        async with demo.provider(place, pace=no_pace, played=script) as running:
            environment = demo.agent_environment({"PATH": os.environ["PATH"]}, base_url=running.base_url)
            environment["SSL_CERT_FILE"] = str(running.ca_path)
            with (place / "out").open("wb") as out:
                finished = await launch(
                    demo.agent_command(model, task), env=environment, cwd=repository, stdin=Stdin.CLOSED, stdout=out, stderr=out
                )
            return finished, running.provider

    finished, provider = asyncio.run(run())
    changed = tuple(str(c) for c in compare(before, read_tree(repository)) if not c.path.startswith(b".git/"))
    return Ran(finished, (place / "out").read_text(), provider, changed)


def check(repository: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "check.py"], cwd=repository, capture_output=True, text=True)

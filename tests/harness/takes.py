"""A fixture of the demo's incident, and takes of it, for tests."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType

from secondtake.harness.fixture import Fixture, load
from secondtake.harness.fixture.making import create
from secondtake.harness.flooring import floor_of
from secondtake.harness.plan import Recast
from secondtake.harness.provider import Script
from secondtake.harness.taking import Conditions, Part, Taken, run_take
from tests.harness.retakes import NAME, Scene, scene

CHECKS = """
[failure]
summary = "the agent says that it is fixed, and the tests are red"

[[failure.check]]
name = "the tests are red"
kind = "command"
run = ["python3", "check.py"]
exit = "nonzero"

[acceptance]

[[acceptance.check]]
name = "the tests are green"
kind = "command"
run = ["python3", "check.py"]

[[acceptance.check]]
name = "only the splitter changed"
kind = "only-changed"
paths = ["bill/split.py"]

[stop]
calls = 8
seconds = 60
"""


@dataclass(frozen=True, slots=True)
class Staged:
    """A scene, and its fixture."""

    scene: Scene
    fixture: Fixture

    async def take(self, *models: str, command: list[str] | None = None, conditions: Conditions | None = None, **more: object) -> Taken:
        """One take with another model in the part."""
        asked = conditions or Conditions(wire=self.scene.rules)
        floor = await floor_of(self.scene.stage, self.fixture, seal=asked.seal)
        part = Part(Recast(models), command=tuple(command) if command is not None else None, **more)  # type: ignore[arg-type]
        return await run_take(self.scene.stage, self.fixture, part, replace(asked, floor=floor), stdout=asyncio.subprocess.DEVNULL)


def with_checks(fixture: Fixture, checks: str = CHECKS) -> None:
    """Put checks in the place of those that were proposed."""
    toml = fixture.root / "fixture.toml"
    text = toml.read_text()
    start = re.search(r"^# What went wrong", text, re.MULTILINE)
    assert start is not None
    toml.write_text(text[: start.start()] + checks)


@asynccontextmanager
async def staged(
    folder: Path,
    *,
    recorded: Path | None = None,
    played: Script | None = None,
    checks: str = CHECKS,
    beside: Mapping[str, str] = MappingProxyType({}),
) -> AsyncIterator[Staged]:
    """The incident as a fixture, and a provider that goes on. `beside`: further files of the fixture's folder."""
    async with scene(folder, recorded=recorded, played=played) as made:
        if recorded is None:
            await made.record()
        fixture = create(made.stage, "bill", recording=NAME, workspace=made.workspace()).fixture
        with_checks(fixture, checks)
        for name, text in beside.items():
            (fixture.root / name).write_text(text)
        yield Staged(made, load("bill", made.stage.store))

"""Pytest fixtures of the SDK tier: each SDK's recording is made once, and each of its replays."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from secondtake.harness.results import Recorded, Replayed
from tests.sdks.stages import SDKS, World, world_in


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Everything here is of the tier `sdks`."""
    here = Path(__file__).parent
    for item in items:
        if item.path.is_relative_to(here):
            item.add_marker(pytest.mark.sdks)


@dataclass(frozen=True, slots=True)
class Recording:
    """One SDK's recording, and what the SDK handed out meanwhile."""

    world: World
    result: Recorded
    said: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Replay:
    """The replay of a recording, the provider being gone."""

    recording: Recording
    result: Replayed
    said: dict[str, Any]


@pytest.fixture(scope="session", params=SDKS, ids=lambda sdk: sdk.program)
def recording(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Recording:
    """Every scene, recorded."""
    world = world_in(tmp_path_factory.mktemp(request.param.program), request.param)
    return Recording(world, *world.record("first"))


@pytest.fixture(scope="session")
def replay(recording: Recording) -> Replay:
    """Every scene, from the cassette."""
    return Replay(recording, *recording.world.replay("first"))

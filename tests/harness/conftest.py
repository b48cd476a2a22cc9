"""Pytest fixtures of the runs: one recorded scene for all tests of retakes, since recording it takes a second."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.harness.retakes import scene


@pytest.fixture(scope="session")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with the hasty model's incident in it, to be copied."""
    folder = tmp_path_factory.mktemp("recorded")

    async def record() -> None:
        async with scene(folder) as made:
            result = await made.record()
            assert (result.agent_status, result.problems) == (0, ())

    asyncio.run(record())
    return folder / "store"

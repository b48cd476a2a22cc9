"""Pytest fixtures of the image tier: the image of the Dockerfile is built once, as `.ci/image` builds it."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.image.engine import ROOT, Engine, cache, engine, missing


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Everything here is of the tier `image`."""
    here = Path(__file__).parent
    for item in items:
        if item.path.is_relative_to(here):
            item.add_marker(pytest.mark.image)


@pytest.fixture(scope="session")
def image() -> str:
    """The image's name, built from the tree as it is."""
    if why := missing():
        pytest.skip(why)
    built = subprocess.run([ROOT / ".ci/image", cache()], capture_output=True, text=True, timeout=900, stdin=subprocess.DEVNULL)
    assert built.returncode == 0, built.stderr
    return built.stdout.strip()


@pytest.fixture
def podman(image: str) -> Iterator[Engine]:
    """An engine that has the image."""
    with engine(image) as made:
        yield made


@pytest.fixture(autouse=True)
def _no_proxy_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is built and run here does not go through a recorder that the tests may be started under."""
    for name in [name for name in os.environ if name.startswith("SECONDTAKE_") and name != "SECONDTAKE_IMAGES"]:
        monkeypatch.delenv(name)

"""Pytest fixtures of the tools tier: scenes, an origin on loopback, and the package tools of this machine."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.tools.scene import PATIENCE_S, Scene, configured, tool
from tests.tools.servers import Origin, origin


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Everything here is of the tier `tools`."""
    here = Path(__file__).parent
    for item in items:
        if item.path.is_relative_to(here):
            item.add_marker(pytest.mark.tools)


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    """A store of its own."""
    return Scene(tmp_path)


@pytest.fixture(scope="session")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Origin]:
    """The origin, living."""
    with origin(tmp_path_factory.mktemp("repositories")) as state:
        yield state


@pytest.fixture
def local(scene: Scene, served: Origin) -> Scene:
    """A scene whose person trusts the origin on loopback, and nobody else."""
    trusted = scene.root / "origin.pem"
    trusted.write_bytes(served.ca_pem)
    scene.extra["SSL_CERT_FILE"] = str(trusted)
    return scene


@pytest.fixture(scope="session")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A new virtual environment's interpreter, with the pip that this Python brings."""
    folder = tmp_path_factory.mktemp("python") / "venv"
    made = subprocess.run([sys.executable, "-m", "venv", str(folder)], capture_output=True, text=True, timeout=PATIENCE_S)
    if made.returncode:
        pytest.skip(f"a virtual environment with pip: {made.stdout.strip() or made.stderr.strip()}")
    return folder / "bin" / "python"


@pytest.fixture(scope="session")
def uv() -> str:
    """The uv beside this Python, or on PATH."""
    return tool("uv")


@pytest.fixture(scope="session")
def npm() -> str:
    """npm, where it is installed."""
    return tool("npm")


@pytest.fixture(scope="session")
def python_index(python: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    """An index that pip reaches; skips where none answers."""
    scene = Scene(tmp_path_factory.mktemp("index"))
    asked = subprocess.run(
        [str(python), "-m", "pip", "download", "--quiet", "--no-deps", "--retries", "0", "--dest", str(scene.root / "d"), "itsdangerous"],
        env=scene.environment(),
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )
    if asked.returncode:
        pytest.skip(f"a Python package index: none answers ({asked.stderr.strip().splitlines()[-1]})")


@pytest.fixture(scope="session")
def npm_index(npm: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    """A registry that npm reaches; skips where none answers."""
    scene = Scene(tmp_path_factory.mktemp("registry"))
    asked = subprocess.run(
        [npm, "view", "--fetch-retries=0", "ms", "version"], env=scene.environment(), capture_output=True, text=True, timeout=PATIENCE_S
    )
    if asked.returncode:
        pytest.skip(f"an npm registry: none answers ({asked.stderr.strip().splitlines()[-1]}); configured: {sorted(configured())}")

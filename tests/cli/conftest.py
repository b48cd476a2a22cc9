"""Pytest fixtures of the command line: a store with a small cassette in it, golden files of whole commands, an origin on loopback."""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Callable, Iterator
from http.server import ThreadingHTTPServer
from pathlib import Path

import pytest

from secondtake.cassettes.store import Store
from secondtake.cli.main import run
from secondtake.harness.demo import Running, agent_environment, prepare
from tests.cli.models import AGENT, running
from tests.cli.scenes import Command, Origin, Proxied, Ran, filtered, keep, sample

GOLDEN = Path(__file__).parent / "golden"
WRITING = os.environ.get("SECONDTAKE_GOLDEN") == "write"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty workspace, with a home and a store of its own beside it; nothing of the machine's environment decides."""
    for name in [name for name in os.environ if name.startswith("SECONDTAKE_") or name.lower().endswith("_proxy")]:
        monkeypatch.delenv(name)
    workspace = tmp_path / "work"
    workspace.mkdir()
    (tmp_path / "home").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    monkeypatch.setenv("SECONDTAKE_STORE", str(tmp_path / "store"))
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.chdir(workspace)
    return workspace


@pytest.fixture
def command(here: Path, capfd: pytest.CaptureFixture[str]) -> Command:
    """Run one command in this process."""

    def ran(*arguments: str) -> Ran:
        capfd.readouterr()
        code = run(list(arguments))
        captured = capfd.readouterr()
        return Ran(int(code), captured.out, captured.err)

    return ran


@pytest.fixture
def golden(command: Command, tmp_path: Path) -> Command:
    """Compare a whole command, filtered, with `golden/NAME.txt`; SECONDTAKE_GOLDEN=write writes it."""

    def compared(name: str, *arguments: str) -> Ran:
        ran = command(*arguments)
        shown = f"$ secondtake {' '.join(arguments)}\nexit {ran.code}\n----- stdout -----\n{ran.out}----- stderr -----\n{ran.err}"
        shown = filtered(shown, tmp_path)
        path = GOLDEN / f"{name}.txt"
        if WRITING:
            GOLDEN.mkdir(exist_ok=True)
            path.write_text(shown, encoding="utf-8")
        assert path.read_text(encoding="utf-8") == shown
        return ran

    return compared


@pytest.fixture(scope="session")
def written_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a store with one cassette, to be copied: writing it waits for the disk."""
    folder = tmp_path_factory.mktemp("written") / "store"
    keep(Store(folder), "incident", sample())
    return folder


@pytest.fixture
def store(here: Path, tmp_path: Path, written_once: Path) -> Store:
    """A store with one cassette, `incident`."""
    shutil.copytree(written_once, tmp_path / "store")
    return Store(tmp_path / "store")


@pytest.fixture
def origin() -> Iterator[ThreadingHTTPServer]:
    """A plain HTTP server on loopback that `--route` reaches."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Origin)
    server.asked = []  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def route(origin: ThreadingHTTPServer) -> tuple[str, str]:
    """The option that sends web.example to the origin."""
    return ("--route", f"web.example=http://127.0.0.1:{origin.server_port}")


@pytest.fixture
def proxied() -> Iterator[Callable[..., Proxied]]:
    """Proxies that are gone at the end of the test."""
    started: list[Proxied] = []

    def start(*arguments: str) -> Proxied:
        started.append(Proxied(*arguments))
        return started[-1]

    yield start
    for each in started:
        each.process.kill()
        each.process.communicate()


@pytest.fixture
def models(here: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Running]:
    """The scripted provider, trusted, and an agent's environment; the workspace holds the failing repository."""
    with running(tmp_path) as made:
        for name, value in agent_environment(dict(os.environ)).items():
            monkeypatch.setenv(name, value)
        monkeypatch.setenv("SSL_CERT_FILE", str(made.ca_path))
        prepare(here)
        yield made


@pytest.fixture
def incident(command: Command, models: Running, tmp_path: Path) -> Running:
    """The hasty model's incident, recorded; the workspace is as it was again."""
    recorded = command("record", "incident", "--route", models.route, *AGENT)
    assert recorded.code == 0, recorded.err
    return models

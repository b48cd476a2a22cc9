"""Real installations, recorded from the index this machine reaches and installed again in an empty network namespace."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.tools.scene import PATIENCE_S, Ran, Scene, tool, tree

WANTED = ("flask", "requests", "rich", "httpx", "jinja2", "mkdocs", "tox", "twine")
"""Some fifty distributions with what they need, all of them small wheels."""

NPM_WANTED = ("express", "eslint")
"""Some hundred and fifty packages with what they need."""

FEW = ("flask", "rich")

OF_THE_INSTALLER = r"^bin/|\.dist-info/(INSTALLER|RECORD|REQUESTED|uv_.*)$|^\.lock$"
"""What pip and uv write each in its own words."""


def pip(python: Path, target: Path, *wanted: str) -> tuple[str, ...]:
    """`pip install` into a folder of its own, with no cache."""
    return (str(python), "-m", "pip", "install", "--no-cache-dir", "--no-compile", "--quiet", "--target", str(target), *wanted)


def uv_pip(uv: str, python: Path, target: Path, *wanted: str) -> tuple[str, ...]:
    """The same with uv."""
    return (uv, "pip", "install", "--no-cache", "--quiet", "--python", str(python), "--target", str(target), *wanted)


def all_answered(replayed: Ran) -> int:
    """How many requests there were, after making sure that each was answered from the cassette."""
    result = replayed.clean()
    answered = result["answered"]
    assert answered["miss"] == answered["live"] == 0
    assert sum(answered.values()) == result["requests"] > 0
    return int(result["requests"])


def distributions(target: Path) -> int:
    """How many are installed there."""
    return len(list(target.glob("*.dist-info")))


@pytest.mark.usefixtures("python_index")
def test_pip_installs_dozens_of_packages_again_without_a_network(scene: Scene, python: Path) -> None:
    """The issue's first line: pip, recorded with an empty cache, replayed offline, byte for byte and without a miss."""
    first, again = scene.root / "first", scene.root / "again"
    recorded = scene.record("wheels", *pip(python, first, *WANTED)).clean()
    assert distributions(first) >= 36
    assert all_answered(scene.replay("wheels", *pip(python, again, *WANTED))) == recorded["exchanges"]["index"]
    assert tree(again) == tree(first)


@pytest.mark.usefixtures("python_index")
def test_uv_installs_dozens_of_packages_again_without_a_network(scene: Scene, python: Path, uv: str) -> None:
    """The issue's first line: uv over HTTP/2, in parallel, with ranges of wheels for their metadata."""
    first, again = scene.root / "first", scene.root / "again"
    scene.record("wheels", *uv_pip(uv, python, first, *WANTED)).clean()
    assert distributions(first) >= 36
    all_answered(scene.replay("wheels", *uv_pip(uv, python, again, *WANTED)))
    assert tree(again) == tree(first)
    verified = scene.run("verify", "wheels", "--json")
    assert verified.code == 0, verified.out


@pytest.mark.usefixtures("python_index")
def test_the_newest_pip_installs_again_without_a_network(scene: Scene, python: Path, uv: str) -> None:
    """pip since 24.2 trusts through truststore: recorded and replayed as well as the one that this Python brings."""
    newest = scene.root / "newest"
    made = subprocess.run(uv_pip(uv, python, newest, "pip"), env=scene.environment(), capture_output=True, text=True, timeout=PATIENCE_S)
    assert made.returncode == 0, made.stderr
    run = ("env", f"PYTHONPATH={newest}")
    first, again = scene.root / "first", scene.root / "again"
    scene.record("wheels", *run, *pip(python, first, "jinja2")).clean()
    all_answered(scene.replay("wheels", *run, *pip(python, again, "jinja2")))
    assert tree(again) == tree(first)


@pytest.mark.usefixtures("python_index")
def test_what_pip_recorded_uv_installs(scene: Scene, python: Path, uv: str) -> None:
    """T-N1, T-D5: both asked for JSON; what uv asks for beyond that (HEAD, ranges) is derived from the files that pip took."""
    first, again = scene.root / "first", scene.root / "again"
    scene.record("wheels", *pip(python, first, *FEW)).clean()
    all_answered(scene.replay("wheels", *uv_pip(uv, python, again, *FEW)))
    assert tree(again, without=OF_THE_INSTALLER) == tree(first, without=OF_THE_INSTALLER)


@pytest.mark.usefixtures("python_index")
def test_what_uv_recorded_pip_installs(scene: Scene, python: Path, uv: str) -> None:
    """T-N1: the other way round."""
    first, again = scene.root / "first", scene.root / "again"
    scene.record("wheels", *uv_pip(uv, python, first, *FEW)).clean()
    all_answered(scene.replay("wheels", *pip(python, again, *FEW)))
    assert tree(again, without=OF_THE_INSTALLER) == tree(first, without=OF_THE_INSTALLER)


@pytest.mark.usefixtures("python_index")
def test_another_representation_than_the_recorded_is_a_variant_miss(scene: Scene, python: Path, uv: str) -> None:
    """T-N1, T-A12: who accepts only HTML is not given the recorded JSON, nor anything labelled so; who may have either is."""
    curl = tool("curl")
    scene.record("wheels", *uv_pip(uv, python, scene.root / "first", "itsdangerous")).clean()
    page = next(row for row in scene.rows("wheels") if "/simple/" in row["url"])
    ask = (curl, "-sS", "-o", str(scene.root / "body"), "-w", "%{http_code} %{content_type}", page["url"])
    html = scene.replay("wheels", *ask, "-H", "Accept: application/vnd.pypi.simple.v1+html, text/html;q=0.1")
    assert html.code == 103
    assert html.kinds() == ["variant"]
    assert html.said.startswith("424 ")
    assert "json" not in html.said.splitlines()[0]
    assert b"files" not in (scene.root / "body").read_bytes()


@pytest.mark.usefixtures("npm_index")
def test_npm_installs_a_hundred_packages_again_without_a_network(scene: Scene, npm: str) -> None:
    """The issue's first line: npm, with its audit and its tarballs, replayed offline, byte for byte and without a miss."""
    install = (npm, "install", "--audit", "--no-fund", "--loglevel=error", *NPM_WANTED)
    first, again = scene.folder("first/app"), scene.folder("again/app")
    scene.record("tarballs", *install, cwd=first).clean()
    lock = (first / "package-lock.json").read_text()
    assert lock.count('"node_modules/') >= 100
    all_answered(scene.replay("tarballs", *install, cwd=again))
    assert tree(again) == tree(first)

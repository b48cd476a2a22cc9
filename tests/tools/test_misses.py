"""What real package tools make of a request that is not on the cassette: one try, a short answer, and a result that says which."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.tools.scene import Ran, Scene, shell, tool

ABSENT = "secondtake-was-never-recorded"

SOON_US = 10_000_000
"""Bound for a refused tool, in microseconds. Alone on a machine it is done in 2 s; a retried status costs 7 s to 71 s (CASES.md)."""


def refused(replayed: Ran, *, shown: bool = True) -> None:
    """One request for the package, one miss, the tool failed, the result says why; `shown`: the tool tells the status too."""
    result = replayed.result
    assert replayed.code == 103
    assert result["agent_status"] != 0
    assert replayed.kinds() == ["new-resource"], replayed.out
    assert ABSENT in result["misses"][0]["url"]
    assert result["answered"]["miss"] == result["requests"] == 1
    assert result["elapsed_us"] < SOON_US
    assert not shown or "424" in replayed.said
    assert f"miss (new-resource): GET {result['misses'][0]['url']}" in replayed.said


@pytest.fixture(scope="module")
def wheels(python: Path, python_index: None, tmp_path_factory: pytest.TempPathFactory) -> Scene:
    """One package, recorded by pip."""
    made = Scene(tmp_path_factory.mktemp("wheels"))
    made.record("one", str(python), "-m", "pip", "install", "-q", "--target", str(made.root / "first"), "itsdangerous").clean()
    return made


def test_pip_takes_a_miss_for_what_it_is(wheels: Scene, python: Path) -> None:
    """T-N4: a package never recorded is refused at once, and the summary says so. pip itself tells no status unless asked twice (`-vv`)."""
    refused(wheels.replay("one", str(python), "-m", "pip", "install", "--target", str(wheels.root / "pip"), ABSENT), shown=False)


def test_uv_takes_a_miss_for_what_it_is(wheels: Scene, python: Path, uv: str) -> None:
    """T-N4: uv would try 429 and 5xx four times, and call a 404 "not found in the registry"."""
    install = (uv, "pip", "install", "--no-cache", "--python", str(python), "--target", str(wheels.root / "uv"))
    replayed = wheels.replay("one", *install, ABSENT)
    refused(replayed)
    assert "not found in the" not in replayed.said


@pytest.mark.usefixtures("npm_index")
def test_npm_takes_a_miss_for_what_it_is(scene: Scene, npm: str) -> None:
    """T-N4: npm would try 429 and 5xx for more than a minute."""
    scene.record("one", npm, "install", "--no-audit", "--no-fund", "ms", cwd=scene.folder("first")).clean()
    refused(scene.replay("one", npm, "install", "--no-audit", "--no-fund", ABSENT, cwd=scene.folder("again")))


@pytest.mark.usefixtures("python_index")
def test_a_new_file_of_a_known_package_is_told_from_a_new_package(wheels: Scene, python: Path) -> None:
    """T-N4: the page was recorded, the file of another version was not."""
    replayed = wheels.replay("one", str(python), "-m", "pip", "install", "--target", str(wheels.root / "old"), "itsdangerous<2.2")
    assert replayed.code == 103
    assert replayed.kinds() == ["known-index-new-file"]
    assert replayed.result["answered"]["exact"] == 1


def test_a_known_host_says_424_and_an_unknown_one_404(wheels: Scene) -> None:
    """DESIGN 3, misses: neither is retried by anything, and a host that nobody recorded is not there."""
    curl = tool("curl")
    known = wheels.rows("one")[0]["url"].split("/")[2]
    say = f"{curl} -sS -o {{body}} -D {{head}} -w '%{{{{http_code}}}}\\n' {{url}}"
    folder = wheels.folder("answers")

    def ask(name: str, url: str) -> str:
        return say.format(body=folder / name, head=folder / f"{name}.head", url=url)

    asked = shell(f"{ask('known', f'https://{known}/never')}; {ask('unknown', 'https://side.example/never')}")
    replayed = wheels.replay("one", *asked)
    assert replayed.code == 103
    assert replayed.said.split()[:2] == ["424", "404"]
    head = (folder / "known.head").read_text().lower()
    assert "x-should-retry: false" in head
    assert "x-secondtake-miss: new-resource" in head
    assert "not recorded" in (folder / "known").read_text()


@pytest.mark.usefixtures("npm_index")
@pytest.mark.parametrize("twice", [False, True])
def test_a_second_ask_for_the_same_resource_is_no_miss(scene: Scene, npm: str, twice: bool) -> None:
    """DESIGN 3: what is idempotent may be used again; a tool that asks twice is not refused."""
    view: Callable[[], tuple[str, ...]] = lambda: (npm, "view", "ms", "version")  # noqa: E731
    scene.record("view", *view()).clean()
    command = shell(f"{npm} view ms version; {npm} view ms version --prefer-online") if twice else view()
    replayed = scene.replay("view", *command).clean()
    assert replayed["answered"]["exact"] == (2 if twice else 1)

"""A replay cannot hurt: the incident in which the agent deleted the workspace and pushed."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from secondtake.harness.demo import HASTY, TASK, Running, agent_environment, prepare
from secondtake.harness.provider import Reply, Scene, Script, ToolCall
from tests.cli.models import AGENT, running
from tests.cli.scenes import Command

pytestmark = pytest.mark.loopback


def everything(folder: Path) -> dict[str, bytes]:
    """Each file below a folder, with what is in it."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def git(*words: str) -> str:
    return subprocess.run(["git", *words], check=True, capture_output=True, text=True).stdout


@pytest.fixture
def upstream(tmp_path: Path) -> Path:
    """A repository that is pushed to: a folder, as in many shops."""
    git("init", "--quiet", "--bare", str(tmp_path / "upstream.git"))
    return tmp_path / "upstream.git"


@pytest.fixture
def incident(command: Command, here: Path, tmp_path: Path, upstream: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Running]:
    """Recorded: tests deleted by full path, committed, pushed. The workspace is then as it was before, and so is the upstream."""
    push = "git -c user.name=a -c user.email=a@mail.example commit --quiet --all --message=Fix && git push --quiet origin HEAD:main"
    calls = ToolCall("run", {"command": f"rm -r {here}/tests && {push}"})
    script = Script((Scene((Reply("Tests that fail are no use.", (calls,)), Reply("Done.")), HASTY, TASK),))
    with running(tmp_path, played=script) as made:
        for name, value in agent_environment(dict(os.environ)).items():
            monkeypatch.setenv(name, value)
        monkeypatch.setenv("SSL_CERT_FILE", str(made.ca_path))
        prepare(here)
        git("-C", str(here), "remote", "add", "origin", str(upstream))
        recorded = command("record", "incident", "--route", made.route, *AGENT)
        assert recorded.code == 0, recorded.err
        assert not (here / "tests").exists()
        assert "Fix" in git("-C", str(upstream), "log", "--format=%s", "main")
        git("-C", str(upstream), "update-ref", "-d", "refs/heads/main")
        git("-C", str(here), "reset", "--quiet", "--hard", "HEAD~1")
        yield made


def test_from_the_original_directory_it_refuses(command: Command, incident: Running, here: Path) -> None:
    """Issue 5: exit 105, naming the directory, and the line that plays it safely."""
    before = everything(here)
    ran = command("replay", "incident", *AGENT)
    assert ran.code == 105
    assert str(here) in ran.err
    assert "secondtake replay incident --scratch -- " in ran.err
    assert everything(here) == before


@pytest.mark.parametrize("how", ["--scratch", "--workspace"])
def test_in_a_scratch_copy_it_touches_nothing_outside(command: Command, incident: Running, here: Path, upstream: Path, how: str) -> None:
    """Issue 5: deleted by its full path, and pushed to a folder beside it: both happen to the copy's world only."""
    before, pushed = everything(here), everything(upstream)
    where = ("--workspace", str(here)) if how == "--workspace" else ("--scratch",)
    ran = command("replay", "incident", "--json", "--keep", *where, *AGENT)
    assert ran.code == 0, ran.err
    said = json.loads(ran.out)
    assert (said["seal"], said["agent_status"], said["answered"]["miss"]) == ("sealed", 0, 0)
    assert everything(here) == before
    assert everything(upstream) == pushed
    assert not (Path(said["ran_in"]) / "tests").exists()

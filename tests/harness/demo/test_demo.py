"""The demo's pieces together: the unmodified agent, the scripted provider over TLS, the failing repository."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from secondtake.harness import demo
from secondtake.harness.demo.repository import FILES
from secondtake.harness.launch import Finished, Stdin, launch
from secondtake.harness.provider import CutOff, Failure, Provider, Reply, Scene, Script, ToolCall, no_pace
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


def test_the_hasty_model_calls_a_wrong_fix_done(tmp_path: Path) -> None:
    """The incident: the agent ends with 0 and says that it is fixed, and the tests are red."""
    ran = agent(tmp_path)
    assert (ran.finished.status, ran.finished.strays) == (0, 0)
    assert "Fixed" in ran.printed
    assert ran.changed == ("content bill/split.py",)
    assert check(tmp_path / "bill").returncode == 1
    assert [(s.status, s.ended) for s in ran.provider.seen] == [(200, "complete")] * 4


def test_the_careful_model_fixes_it(tmp_path: Path) -> None:
    """The same task and agent, another model: two files read at once, the code alone changed, all tests green."""
    ran = agent(tmp_path, demo.CAREFUL)
    assert ran.finished.status == 0
    assert ran.changed == ("content bill/split.py",)
    done = check(tmp_path / "bill")
    assert (done.returncode, "FAIL" in done.stdout) == (0, False)
    assert len(ran.provider.seen) == 5


def test_two_runs_send_the_same_bytes(tmp_path: Path) -> None:
    """A replay of the demo is exact: neither the agent, nor its tools, nor the provider depend on time, place or chance."""
    (tmp_path / "a").mkdir()
    (tmp_path / "elsewhere").mkdir()
    first, second = agent(tmp_path / "a"), agent(tmp_path / "elsewhere")
    assert [s.body for s in first.provider.seen] == [s.body for s in second.provider.seen]
    assert first.printed == second.printed


def test_the_repository_is_red_and_always_the_same(tmp_path: Path) -> None:
    """Its files, its one commit, its failing tests, also under plain unittest."""
    first, second = demo.prepare(tmp_path / "a"), demo.prepare(tmp_path / "b")
    done = check(first)
    assert done.returncode == 1
    assert done.stdout == (
        "ok   test_an_even_bill\nFAIL test_nobody_pays_a_cent_too_much: 1000 != 1001\nFAIL test_nothing_is_lost: 999 != 1000\n"
    )
    plain = subprocess.run([sys.executable, "-B", "-m", "unittest", "-q"], cwd=first, capture_output=True, text=True)
    assert plain.returncode == 1
    assert "FAILED (failures=2)" in plain.stderr
    assert {str(p.relative_to(second)) for p in second.rglob("*") if p.is_file() and ".git" not in p.parts} == set(FILES)
    with pytest.raises(FileExistsError):
        demo.prepare(first)


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
def test_the_commit_is_the_same_whatever_the_user_configured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fixed author and date, no hooks, no signing: one commit ID everywhere, and a clean tree."""
    (tmp_path / "config").write_text("[commit]\n\tgpgsign = true\n[init]\n\tdefaultBranch = trunk\n[user]\n\tname = Other\n")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "config"))
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "none"))
    heads = set()
    for name in ("a", "b"):
        repository = demo.prepare(tmp_path / name)
        heads.add((repository / ".git" / "refs" / "heads" / "main").read_text().strip())
    assert len(heads) == 1


@pytest.mark.parametrize(
    ("turn", "printed"),
    [
        (Failure(400, "not on the cassette"), "agent: model call failed: HTTP 400: not on the cassette\n"),
        (Reply("Half a", broken=CutOff(4)), "agent: model call failed: "),
    ],
)
def test_the_agent_says_why_a_call_failed(tmp_path: Path, turn: Reply | Failure, printed: str) -> None:
    """A miss reaches the user through the agent: exit 1, the provider's message in one line."""
    ran = agent(tmp_path, script=Script((Scene((turn,)),)))
    assert ran.finished.status == 1
    assert printed in ran.printed
    assert len(ran.provider.seen) == 1


def test_the_agents_tools_report_their_failures(tmp_path: Path) -> None:
    """A missing file, a failing command and an unknown tool are results the model reads, never the agent's end."""
    tools = (
        ToolCall("read_file", {"path": "none"}),
        ToolCall("run", {"command": "echo out; echo err >&2; exit 3"}),
        ToolCall("write_file", {"path": "x"}),
        ToolCall("fly"),
    )
    ran = agent(tmp_path, script=Script((Scene((Reply(tools=tools), Reply("Done."))),)))
    assert ran.finished.status == 0
    body = ran.provider.seen[1].body
    assert body.count(b'"is_error": true') == 4
    assert b"out\\nerr\\nExit code 3" in body
    assert b"FileNotFoundError" in body
    assert b"no such tool: fly" in body


def test_an_agent_without_the_authority_fails_and_calls_nothing(tmp_path: Path) -> None:
    """The agent is an honest TLS client: without the CA variable it sends no request."""
    repository = demo.prepare(tmp_path / "bill")

    async def run() -> tuple[Finished, Provider]:
        async with demo.provider(tmp_path) as running:
            environment = demo.agent_environment({"PATH": os.environ["PATH"]}, base_url=running.base_url)
            with (tmp_path / "out").open("wb") as out:
                return await launch(demo.agent_command(), env=environment, cwd=repository, stdout=out), running.provider

    finished, provider = asyncio.run(run())
    assert finished.status == 1
    assert "CERTIFICATE_VERIFY_FAILED" in (tmp_path / "out").read_text()
    assert (provider.connections_made, provider.seen) == (1, [])


def test_the_route_names_the_host_the_agent_asks_for(tmp_path: Path) -> None:
    """`--route` needs no more than this; the agent's key is no key."""

    async def run() -> None:
        async with demo.provider(tmp_path, tls=False) as running:
            assert running.route == f"api.provider.example=http://127.0.0.1:{running.provider.port}"
            assert running.ca_path is None

    asyncio.run(run())
    environment = demo.agent_environment({"PATH": "/bin", "KEPT": "1"})
    assert environment["ANTHROPIC_BASE_URL"] == "https://api.provider.example"
    assert (environment["KEPT"], environment["PATH"].endswith(":/bin")) == ("1", True)

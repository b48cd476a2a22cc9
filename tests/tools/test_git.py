"""The real git over HTTPS, from a server on this machine that is unreachable afterwards."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.tools.scene import PATIENCE_S, Scene, shell, tool, tree
from tests.tools.servers import Origin

HOST = "git.example"
PERSON = {
    "GIT_AUTHOR_NAME": "person",
    "GIT_AUTHOR_EMAIL": "person@git.example",
    "GIT_COMMITTER_NAME": "person",
    "GIT_COMMITTER_EMAIL": "person@git.example",
}


def git(*arguments: str, cwd: Path, env: Mapping[str, str]) -> str:
    """Run git here and now; what it prints."""
    done = subprocess.run(["git", *arguments], cwd=cwd, env={**env, **PERSON}, capture_output=True, text=True, timeout=PATIENCE_S)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.fixture
def repository(local: Scene, served: Origin, request: pytest.FixtureRequest) -> str:
    """A bare repository on the server, with some history; its path there."""
    tool("git")
    env, source = local.environment(), local.folder("source")
    git("init", "--quiet", "--initial-branch=main", cwd=source, env=env)
    for number in range(30):
        (source / f"file-{number % 7}.txt").write_text(f"line {number}\n" * 200)
        (source / "folder").mkdir(exist_ok=True)
        (source / "folder" / "naïve.bin").write_bytes(bytes(range(256)) * (number + 1))
        git("add", "--all", cwd=source, env=env)
        git("commit", "--quiet", "--message", f"change {number}", cwd=source, env=env)
    git("tag", "v1", cwd=source, env=env)
    name = f"{local.root.name}.git"
    bare = served.repositories / name
    git("clone", "--quiet", "--bare", str(source), str(bare), cwd=local.root, env=env)
    git("config", "http.receivepack", "true", cwd=bare, env=env)
    return f"https://{HOST}/git/{name}"


def test_a_clone_is_the_same_without_its_server(local: Scene, served: Origin, repository: str) -> None:
    """The issue's first line, T-N8: a clone over HTTPS and HTTP/2, protocol version 2; then the same commit and tree, offline."""
    first, again = local.root / "first", local.root / "again"
    trace = local.root / "trace"
    traced = ("env", f"GIT_TRACE_CURL={trace}", "GIT_TRACE_CURL_NO_DATA=1")
    recorded = local.record("clone", *traced, "git", "clone", "--quiet", repository, str(first), options=served.route(HOST)).clean()
    assert recorded["exchanges"] == {"vcs": 3}
    assert "HTTP/2 200" in trace.read_text()
    asked = len(served.requests)
    replayed = local.replay("clone", "git", "clone", "--quiet", repository, str(again)).clean()
    assert replayed["answered"]["miss"] == 0
    assert replayed["requests"] == 3
    assert len(served.requests) == asked
    env = local.environment()
    names = ("rev-parse", "HEAD", "HEAD^{tree}", "v1")
    assert git(*names, cwd=again, env=env) == git(*names, cwd=first, env=env)
    assert tree(again, without=r"^\.git/") == tree(first, without=r"^\.git/")
    git("fsck", "--strict", cwd=again, env=env)


def test_a_fetch_from_other_commits_is_a_miss(local: Scene, served: Origin, repository: str) -> None:
    """T-N8: the lines that say what the client has are part of the question."""
    recorded = local.record("fetch", *shell(f"git clone -q --depth 1 {repository} {local.root}/first"), options=served.route(HOST))
    recorded.clean()
    replayed = local.replay("fetch", *shell(f"git clone -q --depth 2 {repository} {local.root}/again"))
    assert replayed.code == 103
    assert len(replayed.kinds()) == 1
    assert "git-upload-pack" in replayed.result["misses"][0]["url"]
    assert not list((local.root / "again").glob("file-*"))


def test_a_push_is_recorded_and_refused_in_replay(local: Scene, served: Origin, repository: str) -> None:
    """T-R7: a replay must not look as if somebody had been given something."""
    bare = served.repositories / repository.rpartition("/")[2]
    work = local.root / "work-copy"
    make = f"git clone -q {repository} {{0}} && cd {{0}} && git commit -q --allow-empty -m pushed && git push -q origin main"
    local.extra |= PERSON | {"GIT_AUTHOR_DATE": "2026-03-02T10:00:00Z", "GIT_COMMITTER_DATE": "2026-03-02T10:00:00Z"}
    local.record("push", *shell(make.format(work)), options=served.route(HOST)).clean()
    env = local.environment()
    pushed = git("rev-parse", "main", cwd=bare, env=env)
    assert git("log", "-1", "--format=%s", "main", cwd=bare, env=env) == "pushed"
    replayed = local.replay("push", *shell(make.format(local.root / "another")))
    assert replayed.result["agent_status"] != 0
    assert replayed.code == 103
    assert "push" in replayed.said
    refused = replayed.result["misses"][-1]
    assert "git-receive-pack" in refused["url"]
    assert git("rev-parse", "main", cwd=bare, env=env) == pushed

"""Versions of the programs an agent can run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from secondtake.cassettes.envelope import UNKNOWN
from secondtake.harness.envelope import programs


def program(folder: Path, name: str, body: str) -> None:
    """A shell script on the PATH."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(f"#!/bin/sh\n{body}\n")
    (folder / name).chmod(0o755)


def said(folder: Path) -> Any:
    """The versions found in one folder."""
    return programs.versions({"PATH": str(folder)})


def test_each_program_says_its_version_and_one_that_is_not_there_is_null(tmp_path: Path) -> None:
    """Issue 5: tool versions that the agent can run."""
    program(tmp_path, "git", "echo git version 2.39.5")
    program(tmp_path, "java", "echo 'openjdk version \"21.0.2\" 2024' >&2")
    program(tmp_path, "go", "echo go version go1.22.1 linux/amd64")
    program(tmp_path, "make", "echo nothing here")
    found = said(tmp_path)
    assert (found["git"], found["java"], found["go"], found["make"]) == ("2.39.5", "21.0.2", "go1.22.1", "nothing here")
    assert found["ruby"] is None
    assert set(found) == set(programs.PROGRAMS)


def test_a_program_that_fails_or_hangs_is_unknown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Issue 5: what cannot be known is `unknown`; a recording does not wait for it."""
    monkeypatch.setattr(programs, "ASKING_S", 0.2)
    program(tmp_path, "git", "exit 3")
    program(tmp_path, "node", "exec /bin/sleep 60")
    assert (said(tmp_path)["git"], said(tmp_path)["node"]) == (UNKNOWN, UNKNOWN)


def test_it_is_asked_outside_of_the_workspace_without_the_persons_variables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A shim that reads the workspace or HOME must not start to install something."""
    monkeypatch.setenv("A_CREDENTIAL", "x")
    monkeypatch.chdir(tmp_path)
    program(tmp_path, "git", 'echo "$PWD $HOME ${A_CREDENTIAL:-none} 1.2"; pwd > /dev/null')
    program(tmp_path, "bash", 'echo "at $PWD of $HOME with ${A_CREDENTIAL:-none}"')
    assert said(tmp_path)["bash"] == "at / of /nonexistent with none"


def test_a_shim_that_may_fetch_something_is_not_run(tmp_path: Path) -> None:
    """rustup's `cargo` installs a toolchain when it is asked; npm says its version in its package."""
    program(tmp_path / "bin", "cargo", f"touch {tmp_path}/ran")
    program(tmp_path / "bin", "npm", f"touch {tmp_path}/ran")
    (tmp_path / "package.json").write_text('{"name": "npm", "version": "10.8.2"}')
    found = said(tmp_path / "bin")
    assert not (tmp_path / "ran").exists()
    assert (found["cargo"], found["npm"]) == ("10.8.2", "10.8.2")


def test_a_program_is_asked_once(tmp_path: Path) -> None:
    """A matrix has hundreds of takes."""
    program(tmp_path, "git", f"echo x >> {tmp_path}/asked; echo 2.1")
    assert said(tmp_path) == said(tmp_path)
    assert (tmp_path / "asked").read_text() == "x\n"

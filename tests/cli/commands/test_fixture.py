"""`fixture`, whole: a run is recorded, made a fixture, put back, captured again, passed on."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from secondtake.cassettes.digest import digest_of
from secondtake.cassettes.redact import Redactor
from secondtake.cassettes.store import Store
from secondtake.harness.fixture import load
from secondtake.harness.snapshot import Captured, capture
from tests.cli.scenes import GET, Command
from tests.harness.fixture.fixtures import incident, record

needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="git is not here")


def git(folder: Path, *words: str) -> None:
    """Run git, for a person who has no configuration."""
    identity = ["-c", "user.name=a", "-c", "user.email=a@example", "-c", "protocol.file.allow=always", "-c", "init.defaultBranch=main"]
    subprocess.run(["git", *identity, *words], cwd=folder, check=True, capture_output=True)


def odd_workspace(folder: Path, beside: Path) -> None:
    """Fill `folder`: two submodules, a dirty patch with a rename and a mode change, untracked and ignored files, a link, odd names."""
    for name in ("one", "two"):
        (beside / name).mkdir(parents=True)
        git(beside / name, "init")
        (beside / name / "lib.txt").write_text(name)
        git(beside / name, "add", ".")
        git(beside / name, "commit", "-m", name)
    git(folder, "init")
    for name in ("kept", "renamed", "mode", "changed"):
        (folder / name).write_text(f"{name}\n")
    (folder / ".gitignore").write_text("*.log\n")
    git(folder, "add", ".")
    git(folder, "commit", "-m", "start")
    for name in ("one", "two"):
        git(folder, "submodule", "add", str(beside / name), f"libs/{name}")
    git(folder, "commit", "-m", "libraries")
    git(folder, "mv", "renamed", "new-name")
    (folder / "mode").chmod(0o755)
    (folder / "changed").write_text("other\n")
    (folder / "untracked").write_text("x")
    (folder / "ignored.log").write_text("x")
    (folder / "libs" / "one" / "lib.txt").write_text("dirty")
    (folder / "link").symlink_to("kept")
    for raw in (b"line\nend", b"not-utf8-\xff"):
        Path(os.fsdecode(os.fsencode(folder) + b"/" + raw)).write_bytes(b"x")


def captured(folder: Path) -> Captured:
    """What is in a folder now."""
    return capture(folder, lambda _kind, content: digest_of(content), Redactor(key=b"k" * 32))


@pytest.fixture
def incident_store(here: Path, tmp_path: Path) -> Store:
    """The store of the command line, with the recording `incident` of a failed test and its workspace."""
    store = Store(tmp_path / "store")
    record(store, "incident", incident())
    return store


@needs_git
def test_envelope_and_restore_are_exact(command: Command, here: Path, tmp_path: Path, route: tuple[str, str]) -> None:
    """Issue 5, "It must show": restore, capture again, same fingerprint; export, import elsewhere, same digest."""
    odd_workspace(here, tmp_path / "beside")
    before = captured(here)
    assert command("record", "odd", *route, "--", sys.executable, "-c", GET, "/a").code == 0
    made = command("fixture", "create", "odd", "--json")
    assert made.code == 0, made.err
    said: dict[str, Any] = json.loads(made.out)
    assert said["start_tree"] == before.tree.digest

    assert command("fixture", "restore", "odd", str(tmp_path / "back")).code == 0
    after = captured(tmp_path / "back")
    assert after.tree.digest == before.tree.digest
    assert after.fingerprint == before.fingerprint
    assert before.repository is not None
    assert {one.path for one in before.repository.each} == {b"", b"libs/one", b"libs/two"}

    checked = command("fixture", "check", "odd")
    assert (checked.code, checked.out) == (0, "equal: a take would find what the recording did\n"), checked.out

    assert command("fixture", "export", "odd", str(tmp_path / "odd.fixture")).code == 0
    elsewhere = ("--store", str(tmp_path / "other"))
    taken = command("fixture", "import", str(tmp_path / "odd.fixture"), "--json", *elsewhere)
    assert json.loads(taken.out)["digest"] == said["digest"] == load("odd", Store(tmp_path / "other")).digest
    assert command("fixture", "restore", "odd", str(tmp_path / "again"), *elsewhere).code == 0
    assert captured(tmp_path / "again").fingerprint == before.fingerprint


def test_check_says_which_layer_differs(command: Command, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Issue 5, item 2: 103 and a table where the envelope of now is another."""
    (here / "a").write_text("x")
    assert command("record", "x", "--", "true").code in (0, 103)
    assert command("fixture", "create", "x").code == 0
    monkeypatch.setenv("BASH_MAX_TIMEOUT_MS", "9")
    ran = command("fixture", "check", "x")
    assert ran.code == 103
    assert [line.split() for line in ran.out.splitlines()] == [
        ["layer", "field", "recorded", "now"],
        ["tools", "timeouts", "BASH_MAX_TIMEOUT_MS", "(not", "there)", "9"],
    ]
    told = json.loads(command("fixture", "check", "x", "--json").out)
    assert (told["equal"], told["layers"], told["exit_code"]) == (False, ["tools"], 103)
    assert told["differences"][0]["now"] == {"BASH_MAX_TIMEOUT_MS": "9"}


def test_a_failed_test_of_the_recording_is_proposed(command: Command, incident_store: Store) -> None:
    """Issue 5, item 3: a fixture in one command, to be edited by a person."""
    ran = command("fixture", "create", "green", "--from", "incident")
    assert ran.code == 0
    assert "failure: `pytest -q` failed in the recording" in ran.err
    shown = command("fixture", "show", "green").out
    assert "  failure      tests fail\n" in shown
    assert load("green", incident_store).digest in shown


def test_a_typing_mistake_in_fixture_toml_is_one_line(command: Command, incident_store: Store) -> None:
    """Issue 5: one clear line with file, key, hint; exit 64."""
    assert command("fixture", "create", "green", "--from", "incident").code == 0
    toml = incident_store.root / "fixtures" / "green" / "fixture.toml"
    toml.write_text(toml.read_text().replace('clock = "real"', 'clock = "frozen"'))
    ran = command("fixture", "check", "green")
    assert ran.code == 64
    assert ran.err.startswith(f"error: {toml}: scene.clock: input should be 'real' or 'recorded'\n\nhint: docs/fixture.md")
    listed = command("fixture", "ls")
    assert listed.code == 0
    assert "scene.clock" in listed.out


def test_hostile_text_of_a_recording_never_reaches_the_terminal_raw(command: Command, here: Path, tmp_path: Path) -> None:
    """C-14: recorded text is untrusted."""
    record(Store(tmp_path / "store"), "evil", incident("pytest \x1b]0;x\x07 \u202e"), command=["agent\x1b[31m", "\u202etxt"])
    for words in (("create", "evil"), ("show", "evil"), ("show", "evil", "--envelope"), ("check", "evil"), ("ls",)):
        ran = command("fixture", *words)
        assert ran.code in (0, 103), ran.err
        assert not {"\x1b", "\x07", "\u202e"} & set(ran.out + ran.err)


def test_a_fixture_is_found_by_folder_file_and_name(command: Command, incident_store: Store, tmp_path: Path) -> None:
    """Issue 5: FIXTURE is a folder with a fixture.toml, an exported file, or a name in the store."""
    assert command("fixture", "create", "green", "--from", "incident", "--dir", str(tmp_path / "mine")).code == 0
    assert command("fixture", "export", str(tmp_path / "mine"), str(tmp_path / "g.fixture")).code == 0
    assert command("fixture", "import", str(tmp_path / "g.fixture")).code == 0
    said = [json.loads(command("fixture", "show", one, "--json").out) for one in (str(tmp_path / "mine"), str(tmp_path / "g.fixture"), "g")]
    assert len({one["digest"] for one in said}) == 1
    assert [one["fixture"] for one in said] == ["mine", "g", "g"]

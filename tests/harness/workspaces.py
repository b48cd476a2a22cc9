"""Workspaces to capture: repositories with submodules, staged and unstaged changes, names that are no text; and where artifacts go."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

from secondtake.cassettes.digest import digest_of
from secondtake.cassettes.exchange import Digest
from secondtake.cassettes.redact import Redactor
from secondtake.cassettes.secrets import Known

SECRET = b"supersecretvalue1234"

_ENVIRON = {
    "GIT_AUTHOR_NAME": "a",
    "GIT_AUTHOR_EMAIL": "a@mail.example",
    "GIT_COMMITTER_NAME": "a",
    "GIT_COMMITTER_EMAIL": "a@mail.example",
    "GIT_AUTHOR_DATE": "2026-01-01T00:00:00Z",
    "GIT_COMMITTER_DATE": "2026-01-01T00:00:00Z",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_NOSYSTEM": "1",
}


class Kept(dict[Digest, bytes]):
    """Artifacts in memory; read like a cassette's."""

    name = "memory"

    def keep(self, kind: str, content: bytes) -> Digest:
        digest = digest_of(content)
        self[digest] = content
        return digest

    def artifact(self, digest: Digest) -> bytes:
        return self[digest]

    @property
    def all(self) -> bytes:
        return b"\n".join(self.values())


def redactor() -> Redactor:
    """One that knows a secret."""
    return Redactor([Known("api-key", SECRET, "env:API_KEY")], key=b"k" * 32)


def git(at: Path, *args: str, given: bytes | None = None) -> bytes:
    """Run git as a person would, without their configuration."""
    command = ["git", "-c", "protocol.file.allow=always", "-c", "init.defaultBranch=main", "-c", "core.fsync=none", *args]
    ran = subprocess.run(command, cwd=at, env={**os.environ, **_ENVIRON}, input=given, capture_output=True)
    assert ran.returncode == 0, ran.stderr.decode()
    return ran.stdout


def repository(at: Path, files: Mapping[str, str | bytes]) -> Path:
    """A repository with one commit."""
    at.mkdir(parents=True, exist_ok=True)
    git(at, "init", "-q")
    write(at, files)
    git(at, "add", "-A")
    git(at, "commit", "-qm", "base")
    return at


def write(at: Path, files: Mapping[str, str | bytes]) -> None:
    for name, content in files.items():
        path = at / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())


def awkward(folder: Path) -> Path:
    """Issue 5's workspace: two submodules, a dirty patch with a rename and a mode change, untracked and ignored files, a symlink, a file
    name with a newline and one that is not UTF-8; and a later commit on another branch that must not be found."""
    libraries = [repository(folder / name, {"f.txt": name}) for name in ("one", "two")]
    work = repository(
        folder / "work", {"a.py": "print(1)\n" * 20, "run.sh": "#!/bin/sh\n", ".gitignore": "*.log\n", "hidden": "h", "kept": "k"}
    )
    git(work, "tag", "-a", "v1", "-m", "first")
    for library in libraries:
        git(work, "submodule", "add", "-q", str(library), f"lib/{library.name}")
    git(work, "commit", "-qm", "libraries")
    git(work, "checkout", "-qb", "later")
    write(work, {"a.py": "THE FIX"})
    git(work, "commit", "-qam", "THE FIX")
    git(work, "checkout", "-q", "main")
    write(work, {"lib/one/f.txt": "changed inside", "stashed": "x"})
    git(work, "mv", "a.py", "b.py")
    write(work, {"b.py": "print(2)\n" + "print(1)\n" * 20, "new.txt": "untracked", "x.log": "ignored", "line\nend": "nl", "ita": "soon"})
    (work / "run.sh").chmod(0o755)
    (work / "link").symlink_to("b.py")
    (work / "out").symlink_to("/etc/passwd")
    (work / "empty").mkdir()
    (work / "private").mkdir(mode=0o700)
    Path(os.fsdecode(os.fsencode(work) + b"/\xff\xfe")).write_bytes(b"\0bytes")
    git(work, "add", "-N", "ita")
    git(work, "update-index", "--assume-unchanged", "kept")
    git(work, "update-index", "--skip-worktree", "hidden")
    return work


def status(at: Path) -> bytes:
    """What git says of a working tree, every detail."""
    return git(at, "status", "--porcelain=v2", "--branch", "-z", "--untracked-files=all", "--ignored") + git(
        at, "ls-files", "-s", "-v", "-z"
    )

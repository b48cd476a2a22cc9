"""git, asked so that it only reads: no hook, filter, file-system monitor, pager, credential helper or network, no configuration but the
repository's own, nothing written to its folder.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from secondtake.cassettes.errors import Corrupt, RecordedError

_SETTINGS = (
    "core.fsmonitor=false",
    "core.hooksPath=/dev/null",
    "core.untrackedCache=false",
    "core.attributesFile=/dev/null",
    "core.excludesFile=/dev/null",
    "core.pager=cat",
    "core.quotePath=false",
    "credential.helper=",
    "protocol.allow=never",
    "safe.directory=*",
    "gc.auto=0",
    "maintenance.auto=false",
    "submodule.recurse=false",
    "log.showSignature=false",
)
READING_S = 120
"""A git that takes longer is ended: the repository is then not captured."""


class GitFailed(RecordedError):
    """git could not, or is not there."""


def hardened(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of a git that only reads."""
    return {
        "PATH": environ.get("PATH", os.defpath),
        "HOME": "/nonexistent",
        "LC_ALL": "C",
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_COUNT": str(len(_SETTINGS)),
        **{f"GIT_CONFIG_KEY_{n}": setting.partition("=")[0] for n, setting in enumerate(_SETTINGS)},
        **{f"GIT_CONFIG_VALUE_{n}": setting.partition("=")[2] for n, setting in enumerate(_SETTINGS)},
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_ASKPASS": "false",
        "GIT_SSH_COMMAND": "false",
        "GIT_ADVICE": "0",
    }


@dataclass(frozen=True, slots=True)
class Git:
    """git in one working tree. Paths and answers are bytes."""

    root: Path
    environ: Mapping[str, str]

    @classmethod
    def at(cls, root: Path, environ: Mapping[str, str]) -> Git:
        """Git in the working tree whose top is `root`; not in one around it."""
        return cls(root, {**hardened(environ), "GIT_CEILING_DIRECTORIES": str(root.resolve().parent)})

    def replacing(self) -> Git:
        """The same, reading stand-ins for objects that have one (`git replace`)."""
        return Git(self.root, {name: value for name, value in self.environ.items() if name != "GIT_NO_REPLACE_OBJECTS"})

    def stand_ins(self) -> dict[str, str]:
        """What stands for objects that are not there: a restored repository has such for those that held credentials."""
        said = self.ask("for-each-ref", "--format=%(refname) %(objectname)", "refs/replace/").decode().split("\n")
        pairs = dict(line.removeprefix("refs/replace/").split(" ") for line in said if line)
        return {name: other for name, other in pairs.items() if self.try_("cat-file", "-e", name) is None}

    def ask(self, *args: str, given: bytes | None = None) -> bytes:
        """What git says.

        Raises:
            GitFailed: it is not there, takes too long, or fails.
        """
        ran = self._run(args, given)
        if ran.returncode:
            said = ran.stderr.decode("utf-8", "replace").strip().splitlines()
            raise GitFailed(f"git {args[0]} failed: {said[-1] if said else f'exit {ran.returncode}'}")
        return ran.stdout

    def try_(self, *args: str, given: bytes | None = None) -> bytes | None:
        """What git says; None where it fails, which is an answer as well. Raises GitFailed: it is not there."""
        ran = self._run(args, given)
        return None if ran.returncode else ran.stdout

    def _run(self, args: Sequence[str], given: bytes | None) -> subprocess.CompletedProcess[bytes]:
        program = shutil.which("git", path=self.environ["PATH"])
        if program is None:
            raise GitFailed("git is not installed")
        try:
            return subprocess.run(
                [program, *args],
                cwd=self.root,
                env=dict(self.environ),
                input=b"" if given is None else given,
                capture_output=True,
                timeout=READING_S,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise GitFailed(f"git {args[0]} took longer than {READING_S} s") from error
        except OSError as error:
            raise GitFailed(f"git cannot be run: {error.strerror or error}") from error

    def objects(self, names: Sequence[str]) -> Iterator[tuple[str, str, bytes | None]]:
        """Each object's name, type and content; None where it is not there. In batches, so that memory is bounded by the sizes given."""
        answer = self.ask("cat-file", "--batch", "--buffer", given="".join(f"{name}\n" for name in names).encode())
        at = 0
        for _ in names:
            end = answer.index(b"\n", at)
            words = answer[at:end].decode().split(" ")
            at = end + 1
            if len(words) != 3:
                yield words[0], "", None
                continue
            size = int(words[2])
            yield words[0], words[1], answer[at : at + size]
            at += size + 1


def index_pack(folder: Path, pack: bytes, environ: Mapping[str, str]) -> None:
    """Put a pack into the repository whose folder is `folder`. git checks every object's name.

    Raises:
        Corrupt: it is no pack.
        GitFailed: git is not there.
    """
    try:
        Git(folder, {**environ, "GIT_DIR": str(folder)}).ask("index-pack", "--stdin", given=pack)
    except GitFailed as error:
        if shutil.which("git", path=environ["PATH"]) is None:
            raise
        raise Corrupt(f"the objects of a recorded repository cannot be read: {error}") from error

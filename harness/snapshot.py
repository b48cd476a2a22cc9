"""A workspace as it stands, captured whole: the tree, the git state, what is not in them. `restore` is its counterpart."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from secondtake.cassettes.digest import digest_of
from secondtake.harness.capturing import Captured as Files
from secondtake.harness.capturing import Cost, Keep, Snapshot
from secondtake.harness.repository import capture_repositories, ignored_folders
from secondtake.harness.walking import Limits

if TYPE_CHECKING:
    from secondtake.cassettes.credential_files import CredentialFile
    from secondtake.cassettes.exchange import Digest
    from secondtake.cassettes.redact import Redactor
    from secondtake.cassettes.repositories import Repositories
    from secondtake.cassettes.trees import Tree

LIMITS = Limits()


@dataclass(frozen=True, slots=True)
class Captured:
    """A state of a workspace. Digests are of artifacts that were given to `keep`."""

    tree: Tree
    repository: Repositories | None
    """The git repositories of the workspace; None where there is none."""
    repository_digest: Digest | None
    not_captured: tuple[str, ...]
    """What is not in it and why, a line each, escaped for a terminal."""
    credentials: tuple[CredentialFile, ...]
    cost: Cost

    @property
    def fingerprint(self) -> Digest:
        """Equal for two states in which an agent would find the same: files with modes and links, and what git says of them."""
        return digest_of(f"{self.tree.digest}\n{self.repository.fingerprint if self.repository is not None else ''}\n".encode())


def snapshot_of(
    root: Path,
    keep: Keep,
    redactor: Redactor,
    *,
    limits: Limits = LIMITS,
    environ: Mapping[str, str] = os.environ,
    clock_s: Callable[[], float] = time.monotonic,
    paused: Callable[[], None] = lambda: None,
    only: frozenset[bytes] | None = None,
) -> Snapshot:
    """Return what captures `root` again and again; see `Snapshot`."""
    return Snapshot(
        root,
        keep,
        redactor,
        limits=limits,
        clock_s=clock_s,
        paused=paused,
        ignored=lambda: ignored_folders(root, environ),
        only=only,
    )


def capture(
    root: Path,
    keep: Keep,
    redactor: Redactor,
    *,
    limits: Limits = LIMITS,
    environ: Mapping[str, str] = os.environ,
    clock_s: Callable[[], float] = time.monotonic,
) -> Captured:
    """Capture a folder and its repositories. `keep` gets every artifact; one that only names them leaves nothing behind.

    Raises:
        NotStaged: there are too many files.
        OSError: the folder cannot be read.
    """
    begun_s = clock_s()
    files = snapshot_of(root, keep, redactor, limits=limits, environ=environ, clock_s=clock_s).take()
    return with_repositories(root, files, keep, redactor, limits=limits, environ=environ, seconds=lambda: clock_s() - begun_s)


def with_repositories(
    root: Path, files: Files, keep: Keep, redactor: Redactor, *, limits: Limits, environ: Mapping[str, str], seconds: Callable[[], float]
) -> Captured:
    """Add the git state to files just captured. `seconds`: how long all of it took so far."""
    found = capture_repositories(root, files, keep, redactor, limits=limits, environ=environ)
    cost = Cost(files.cost.files, files.cost.size_bytes, seconds())
    return Captured(files.tree, found.repositories, found.digest, (*files.not_captured, *found.notes), files.credentials, cost)

"""One walk over a workspace: its files and links, the folders that must be named, what cannot be captured.

Names are bytes, as the file system has them. No link is followed.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from secondtake.cassettes import trees
from secondtake.cassettes.limits import TREE_PATH_BYTES
from secondtake.cassettes.trees import Entry, Node, shown

PERMISSIONS = 0o1777
"""What of a mode is captured: no set-user-id, no set-group-id; a restored tree may come from a stranger."""

IGNORED = "ignored by git, and too many files"

_LISTED = 20
"""How many paths are named before `… and N more`."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What a snapshot may cost."""

    file_bytes: int = 16 * 1024 * 1024
    """A larger file is listed, its content is not captured."""
    total_bytes: int = 512 * 1024 * 1024
    """Content of all files; beyond it no more is captured."""
    files: int = 50_000
    """Entries. Over it large ignored folders are left out, and then the stage is refused."""
    depth: int = 200
    """Folders within folders."""
    history_bytes: int = 64 * 1024 * 1024
    """Objects of a repository, unpacked; of a longer history only the newest commits are kept."""


class Found(NamedTuple):
    """A file or a link."""

    path: bytes
    status: os.stat_result


class Notes:
    """What could not be captured, by the reason."""

    def __init__(self) -> None:
        self._paths: dict[str, list[bytes]] = {}

    def add(self, reason: str, path: bytes) -> None:
        """Note one path."""
        self._paths.setdefault(reason, []).append(path)

    def lines(self) -> tuple[str, ...]:
        """A line each, escaped for a terminal."""
        made = []
        for reason, paths in sorted(self._paths.items()):
            made += [f"{shown(path)}: {reason}" for path in sorted(paths)[:_LISTED]]
            if len(paths) > _LISTED:
                made.append(f"{len(paths) - _LISTED:,} more: {reason}")
        return tuple(made)


class Walk:
    """One walk over a folder."""

    def __init__(self, root: Path, limits: Limits, left_out: frozenset[bytes], only: frozenset[bytes] | None) -> None:
        self.notes = Notes()
        self.folders: list[Entry] = []
        self.nested: list[bytes] = []
        self._root = os.fsencode(root)
        self._limits = limits
        self._left_out = left_out
        self._only = only

    def all(self) -> list[Found] | None:
        """Files and links; None where there are too many. Raises OSError: the root cannot be read."""
        found: list[Found] = []
        for one in self._below(b"", 0):
            found.append(one)
            if len(found) + len(self.folders) > self._limits.files:
                return None
        return found

    def _wanted(self, path: bytes) -> bool:
        """Whether a path, or something below it, is to be captured."""
        if self._only is None:
            return True
        return any(path == one or path.startswith(one + b"/") or one.startswith(path + b"/") for one in self._only)

    def _below(self, folder: bytes, depth: int) -> Iterator[Found]:
        try:
            with os.scandir(os.path.join(self._root, folder)) as listed:  # noqa: PTH118  # names of bytes
                names = sorted(entry.name for entry in listed)
        except OSError:
            if not folder:
                raise
            self.notes.add("cannot be read", folder)
            return
        for name in names:
            path = folder + b"/" + name if folder else name
            if not self._wanted(path):
                continue
            if name.lower() == b".git":
                if name != b".git" or self._only is not None:
                    self.notes.add("named like a repository's own folder", path)
                continue
            try:
                status = os.lstat(os.path.join(self._root, path))  # noqa: PTH118
            except OSError:
                self.notes.add("cannot be read", path)
                continue
            if len(path) > TREE_PATH_BYTES or depth > self._limits.depth:
                self.notes.add("too deep", path)
            elif stat.S_ISDIR(status.st_mode):
                yield from self._folder(path, status, depth)
            elif stat.S_ISREG(status.st_mode) or stat.S_ISLNK(status.st_mode):
                yield Found(path, status)
            else:
                self.notes.add("a socket, pipe or device", path)

    def _folder(self, path: bytes, status: os.stat_result, depth: int) -> Iterator[Found]:
        if path in self._left_out:
            self.notes.add(IGNORED, path + b"/")
            return
        mode = status.st_mode & PERMISSIONS
        if _is_repository(os.path.join(self._root, path)):  # noqa: PTH118
            self.nested.append(path)
            self.folders.append(Entry(path, Node.SUBMODULE, mode))
            yield from self._below(path, depth + 1)
            return
        place = len(self.folders)
        empty = True
        for one in self._below(path, depth + 1):
            empty = False
            yield one
        if (empty and len(self.folders) == place) or mode != trees.USUAL_FOLDER:
            self.folders.append(Entry(path, Node.FOLDER, mode))


def _is_repository(path: bytes) -> bool:
    try:
        return not stat.S_ISLNK(os.lstat(path + b"/.git").st_mode)
    except OSError:
        return False

"""What in a store belongs to no cassette: objects without a reference, and what interrupted recordings left behind."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

from secondtake.cassettes import names
from secondtake.cassettes.exchange import Digest
from secondtake.cassettes.files import Files
from secondtake.cassettes.folder import INDEX, SPOOL
from secondtake.cassettes.objects import FOLDER as OBJECTS
from secondtake.cassettes.objects import PACKED, object_parts

CASSETTES = "cassettes"
KEY = "key"
NEW = ".new-"
"""Begins the name of a folder that is to become a cassette."""
OLD = ".old-"
"""Begins the name of a folder that was one."""


@dataclass(frozen=True, slots=True)
class Collected:
    """What `gc` removed, or would."""

    files: tuple[str, ...]
    """Paths inside the store."""
    size_bytes: int


def collect(files: Files, root: Path, used: Collection[tuple[Digest, bool]], *, dry_run: bool) -> Collected:
    """Remove all that belongs to nothing. The caller holds the store's lock: no recorder runs. Raises OSError."""
    doomed = [*_left_behind(files, root), *_unreferenced(files, root, used)]
    size = 0
    for path in doomed:
        status = files.status(path)
        if status is None:
            continue
        size += status.allocated_bytes
        if status.is_folder:
            size += sum(one.allocated_bytes for name in files.names(path) if (one := files.status(path / name)) is not None)
        if not dry_run:
            if status.is_folder:
                erase(files, path)
            else:
                files.remove(path)
    return Collected(tuple(path.relative_to(root).as_posix() for path in doomed), size)


def erase(files: Files, folder: Path) -> None:
    """Remove a cassette's folder; it holds files only. Raises OSError."""
    for name in files.names(folder):
        files.remove(folder / name)
    files.remove_folder(folder)


def _left_behind(files: Files, root: Path) -> Iterator[Path]:
    """Folders that never became a cassette or no longer are one, spools, half-written indexes and keys."""
    for name in files.names(root):
        if name.startswith(f"{KEY}{NEW}"):
            yield root / name
    for name in files.names(root / CASSETTES):
        folder = root / CASSETTES / name
        if name.startswith((NEW, OLD)):
            yield folder
        elif names.is_name(name):
            for one in files.names(folder):
                if one.startswith(SPOOL) or one == f"{INDEX}.new":
                    yield folder / one


def _unreferenced(files: Files, root: Path, used: Collection[tuple[Digest, bool]]) -> Iterator[Path]:
    known = {object_parts(digest, packed)[1:] for digest, packed in used}
    for folder in files.names(root / OBJECTS):
        for name in files.names(root / OBJECTS / folder):
            if (folder, name) not in known and _is_object(folder, name):
                yield root / OBJECTS / folder / name


def _is_object(folder: str, name: str) -> bool:
    digest = name.removesuffix(PACKED)
    return len(digest) == 64 and digest.startswith(folder) and all(digit in "0123456789abcdef" for digit in digest)

"""The key of a store: what redacted values are fingerprinted with. 32 random bytes, private, beside the cassettes and never exported."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path

from secondtake.cassettes.errors import Corrupt
from secondtake.cassettes.files import Files
from secondtake.cassettes.garbage import KEY, NEW

KEY_BYTES = 32


def read_or_make(files: Files, root: Path, entropy: Callable[[int], bytes]) -> bytes:
    """The key of the store at `root`; made with `entropy` when there is none. Raises Corrupt, OSError."""
    while True:
        try:
            return _read(files, root)
        except FileNotFoundError:
            _make(files, root, entropy)


def _make(files: Files, root: Path, entropy: Callable[[int], bytes]) -> None:
    files.make_folder(root)
    beside = root / f"{KEY}{NEW}{entropy(8).hex()}"
    fd = files.create(beside)
    try:
        files.write(fd, entropy(KEY_BYTES))
        files.sync(fd)
    finally:
        files.close(fd)
    # Whoever links first wins; everyone then reads the same key.
    with contextlib.suppress(FileExistsError):
        files.link(beside, root / KEY)
    files.remove(beside)
    files.sync_folder(root)


def _read(files: Files, root: Path) -> bytes:
    fd = files.open_read(root, [KEY])
    try:
        data = files.read(fd, 0, KEY_BYTES + 1)
    finally:
        files.close(fd)
    if len(data) != KEY_BYTES:
        raise Corrupt(f"the store's key has {len(data)} bytes, not {KEY_BYTES}", hint="restore the file `key` of the store from a copy")
    return data

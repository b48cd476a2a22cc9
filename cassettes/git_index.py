"""The bytes of a git index: written entry by entry, so that staged, conflicted, assumed and hidden paths come back exactly.

Format: git's Documentation/gitformat-index, versions 2 and 3. Nothing is read here; `git ls-files` reads every version.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterable
from dataclasses import dataclass

from secondtake.cassettes.errors import BadInput

_HEAD = struct.Struct(">4sII")
_STAT = struct.Struct(">10I")
_FLAGS = struct.Struct(">H")
_ASSUME_VALID, _EXTENDED = 0x8000, 0x4000
_SKIP_WORKTREE, _INTENT_TO_ADD = 0x4000, 0x2000
_LONGEST = 0xFFF

MODES = frozenset({0o100644, 0o100755, 0o120000, 0o160000})
"""What an entry can be: file, executable, link, submodule."""


@dataclass(frozen=True, slots=True)
class Staged:
    """One entry. `stage` is 0, or 1 to 3 while a path is in conflict (base, ours, theirs)."""

    path: bytes
    mode: int
    oid: str
    stage: int = 0
    assume_unchanged: bool = False
    skip_worktree: bool = False
    intent_to_add: bool = False
    clean: bool = False
    """The file in the workspace is what the entry says, as git would judge it."""


@dataclass(frozen=True, slots=True)
class Stat:
    """What git compares a file by before it reads it. Times in nanoseconds."""

    changed_ns: int
    modified_ns: int
    device: int
    inode: int
    uid: int
    gid: int
    size_bytes: int


def pack(entries: Iterable[tuple[Staged, Stat | None]], *, hash_name: str = "sha1") -> bytes:
    """An index file. `Stat` only where git may trust it; without one it compares the content. Raises BadInput: an entry that cannot be."""
    ordered = sorted(entries, key=lambda pair: (pair[0].path, pair[0].stage))
    extended = any(entry.skip_worktree or entry.intent_to_add for entry, _ in ordered)
    out = bytearray(_HEAD.pack(b"DIRC", 3 if extended else 2, len(ordered)))
    size = hashlib.new(hash_name, usedforsecurity=False).digest_size
    for entry, stat in ordered:
        oid = bytes.fromhex(entry.oid)
        if len(oid) != size or entry.mode not in MODES or not 0 <= entry.stage <= 3 or not entry.path or b"\0" in entry.path:
            raise BadInput(f"no index can hold {entry.path[:200]!r}")
        start = len(out)
        out += _stat(entry, stat) + oid
        flags = entry.stage << 12 | min(len(entry.path), _LONGEST) | (_ASSUME_VALID if entry.assume_unchanged else 0)
        more = (_SKIP_WORKTREE if entry.skip_worktree else 0) | (_INTENT_TO_ADD if entry.intent_to_add else 0)
        out += _FLAGS.pack(flags | (_EXTENDED if more else 0))
        if more:
            out += _FLAGS.pack(more)
        out += entry.path
        out += bytes(8 - (len(out) - start) % 8)
    return bytes(out) + hashlib.new(hash_name, out, usedforsecurity=False).digest()


def _stat(entry: Staged, stat: Stat | None) -> bytes:
    if stat is None:
        return _STAT.pack(0, 0, 0, 0, 0, 0, entry.mode, 0, 0, 0)
    numbers = (
        *divmod(stat.changed_ns, 1_000_000_000),
        *divmod(stat.modified_ns, 1_000_000_000),
        stat.device,
        stat.inode,
        entry.mode,
        stat.uid,
        stat.gid,
        stat.size_bytes,
    )
    return _STAT.pack(*(number & 0xFFFFFFFF for number in numbers))

"""A workspace as a value: its entries by path, what changed between two states of it, and the changes as a patch.

Names are bytes, as the file system has them: they need not be UTF-8 and may hold line ends. Content is kept beside the tree, under the
digest an entry names. A tree comes from strangers: `decode` takes no path that leads out and nothing below what is not a folder.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from secondtake.cassettes import layout
from secondtake.cassettes.digest import digest_of, named, raw
from secondtake.cassettes.errors import BadInput, Corrupt
from secondtake.cassettes.exchange import Digest
from secondtake.cassettes.limits import PATCH_BYTES, TREE_ENTRIES, TREE_PATH_BYTES

VERSION = 1


class Node(StrEnum):
    """What an entry is."""

    FILE = "file"
    LINK = "link"
    FOLDER = "folder"
    """Listed only where nothing else says that it is there, or where its mode is unusual."""
    SUBMODULE = "submodule"
    """A folder that is a git repository of its own. What is in it is listed as well."""


TOO_LARGE = "too-large"
PLACEHOLDER = "placeholder"
REDACTED = "redacted"
NOTES = frozenset({"", TOO_LARGE, PLACEHOLDER, REDACTED})

USUAL_FOLDER = 0o755
"""The mode of a folder that is not listed for its mode."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry. `mode` holds the permission bits (0 for links); `size_bytes` is that of the file as it stood."""

    path: bytes
    """Relative to the workspace, `/` between its parts, any bytes but NUL."""
    node: Node
    mode: int
    digest: Digest | None = None
    """Of the content as it is kept (redacted); None where none is kept."""
    size_bytes: int = 0
    target: bytes = b""
    """Where a link leads, as it says."""
    note: str = ""
    """`too-large`: the content was not captured; `placeholder`: a credential file, whose content was never read into the store;
    `redacted`: values in the content were hidden."""


@dataclass(frozen=True, slots=True)
class Tree:
    """A state of a workspace: its entries in order of path, the root itself not among them."""

    entries: tuple[Entry, ...] = ()
    _digest: list[Digest] = field(default_factory=list, repr=False, compare=False)

    @property
    def digest(self) -> Digest:
        """SHA-256 of `encode(self)`. Equal for two trees that differ in nothing but times and owners."""
        if not self._digest:
            self._digest.append(digest_of(encode(self)))
        return self._digest[0]

    def by_path(self) -> dict[bytes, Entry]:
        """The entries, to look one up."""
        return {entry.path: entry for entry in self.entries}

    def blobs(self) -> frozenset[Digest]:
        """What must be kept beside the tree."""
        return frozenset(entry.digest for entry in self.entries if entry.digest is not None)


def tree_of(entries: Iterable[Entry]) -> Tree:
    """The tree of `entries`, which may come in any order."""
    return Tree(tuple(sorted(entries, key=lambda entry: entry.path)))


def shown(path: bytes) -> str:
    """A path that can be printed: control characters, odd spaces and what is not UTF-8 appear as escapes."""
    text = path.decode("utf-8", "backslashreplace")
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def encode(tree: Tree) -> bytes:
    """The one encoding of a tree: msgpack `{"v": 1, "entries": [[path, node, mode, digest, size, target, note], …]}`."""
    entries = [
        [
            entry.path,
            str(entry.node),
            entry.mode,
            None if entry.digest is None else raw(entry.digest),
            entry.size_bytes,
            entry.target,
            entry.note,
        ]
        for entry in tree.entries
    ]
    return layout.pack({"v": VERSION, "entries": entries})


def decode(data: bytes) -> Tree:
    """The counterpart of `encode`. Raises Corrupt: a path that leads out, twice the same, below what is no folder; not the one encoding."""
    made = layout.mapping(layout.unpack(data))
    if made.get("v") != VERSION:
        raise Corrupt(f"a tree of version {made.get('v')!r}", hint="update secondtake")
    rows = layout.each(made.get("entries"), list)
    if len(rows) > TREE_ENTRIES:
        raise Corrupt(f"a tree of {len(rows)} entries; at most {TREE_ENTRIES} can be")
    tree = Tree(tuple(map(_entry, rows)))
    _check(tree.entries)
    if encode(tree) != data:
        raise Corrupt("a tree is not in its one encoding")
    return tree


def _entry(row: Sequence[object]) -> Entry:
    match row:
        case [bytes() as path, str() as node, int() as mode, (bytes() | None) as digest, int() as size, bytes() as target, str() as note]:
            pass
        case _:
            raise Corrupt("an entry of a tree is not one")
    if node not in Node or note not in NOTES or not 0 <= mode <= 0o7777 or size < 0 or isinstance(mode, bool) or isinstance(size, bool):
        raise Corrupt(f"the entry {shown(path[:200])} of a tree is of a kind that is not known", hint="update secondtake")
    kind = Node(node)
    if (digest is not None and kind is not Node.FILE) or (target and kind is not Node.LINK) or (kind is Node.LINK and not target):
        raise Corrupt(f"the entry {shown(path[:200])} of a tree holds what its kind does not have")
    if b"\0" in target or len(target) > TREE_PATH_BYTES:
        raise Corrupt(f"the link {shown(path[:200])} of a tree leads nowhere")
    try:
        return Entry(path, kind, mode, None if digest is None else named(digest), size, target, note)
    except BadInput as error:
        raise Corrupt(str(error)) from error


def check_path(path: bytes) -> None:
    """Raises Corrupt for a path that is not below the root it is relative to."""
    if not path or len(path) > TREE_PATH_BYTES or b"\0" in path or any(part in (b"", b".", b"..") for part in path.split(b"/")):
        raise Corrupt(f"a path leads out of its workspace, or is none: {shown(path[:200])}")
    if any(part.lower() == b".git" for part in path.split(b"/")):
        raise Corrupt(f"a path lies in a repository's own folder: {shown(path[:200])}")


def _check(entries: Sequence[Entry]) -> None:
    before: bytes | None = None
    solid: set[bytes] = set()
    for entry in entries:
        check_path(entry.path)
        if before is not None and entry.path <= before:
            raise Corrupt(f"a tree is out of order at {shown(entry.path)}")
        before = entry.path
        if entry.node in (Node.FILE, Node.LINK):
            solid.add(entry.path)
    for entry in entries:
        cut = entry.path.rfind(b"/")
        while cut > 0:
            if entry.path[:cut] in solid:
                raise Corrupt(f"{shown(entry.path)} lies below what is no folder")
            cut = entry.path.rfind(b"/", 0, cut)


class Kind(StrEnum):
    """What happened to a path."""

    ADDED = "added"
    REMOVED = "removed"
    CHANGED = "changed"
    MODE = "mode"
    """Only the permission bits."""
    RENAMED = "renamed"
    """The same content stood under `source`, which is gone."""


@dataclass(frozen=True, slots=True)
class Change:
    """One difference between two trees."""

    path: bytes
    kind: Kind
    before: Entry | None
    after: Entry | None
    source: bytes = b""

    def __str__(self) -> str:
        return f"{self.kind} {shown(self.path)}" + (f" (was {shown(self.source)})" if self.source else "")


def changes(before: Tree, after: Tree) -> tuple[Change, ...]:
    """What happened between two states, in order of path. A file that went and came again elsewhere, unchanged, was renamed."""
    if before.entries == after.entries:
        return ()
    old, new = before.by_path(), after.by_path()
    gone = {path: entry for path, entry in old.items() if path not in new}
    came = {path: entry for path, entry in new.items() if path not in old}
    sources: dict[tuple[Digest | None, bytes], list[bytes]] = {}
    for path in sorted(gone, reverse=True):
        if _movable(gone[path]):
            sources.setdefault(_content(gone[path]), []).append(path)
    found: list[Change] = []
    for path in sorted(came):
        entry = came[path]
        candidates = sources.get(_content(entry), []) if _movable(entry) else []
        if candidates:
            source = _likeliest(candidates, path)
            candidates.remove(source)
            found.append(Change(path, Kind.RENAMED, gone.pop(source), entry, source))
        else:
            found.append(Change(path, Kind.ADDED, None, entry))
    found += [Change(path, Kind.REMOVED, entry, None) for path, entry in gone.items()]
    for path, entry in new.items():
        was = old.get(path)
        if was is not None and was != entry:
            same = (was.node, was.digest, was.size_bytes, was.target) == (entry.node, entry.digest, entry.size_bytes, entry.target)
            found.append(Change(path, Kind.MODE if same and was.mode != entry.mode else Kind.CHANGED, was, entry))
    return tuple(sorted(found, key=lambda change: (change.path, change.kind)))


def _movable(entry: Entry) -> bool:
    return (entry.digest is not None and entry.size_bytes > 0) or entry.node is Node.LINK


def _content(entry: Entry) -> tuple[Digest | None, bytes]:
    return entry.digest, entry.target


def _likeliest(candidates: Sequence[bytes], path: bytes) -> bytes:
    """Of files with the same content, the one with the same name, else the first by path."""
    name = path.rpartition(b"/")[2]
    return next((one for one in reversed(candidates) if one.rpartition(b"/")[2] == name), candidates[-1])


type Content = Callable[[Entry], bytes | None]
"""The kept content of an entry; None where it cannot be had."""


def patch(found: Iterable[Change], before_content: Content, after_content: Content) -> str:
    """The changes as a unified diff, as `git diff` writes them. What is no text is named, not shown."""
    return "".join(_patched(change, before_content, after_content) for change in found)


def _patched(change: Change, before_content: Content, after_content: Content) -> str:
    before, after = change.before, change.after
    if Node.FOLDER in {one.node for one in (before, after) if one is not None} or (before is None and after is None):
        return ""
    old_path = change.source or change.path
    lines = [f"diff --git {_quoted(b'a/' + old_path)} {_quoted(b'b/' + change.path)}\n"]
    match before, after:
        case None, Entry():
            lines.append(f"new file mode {_mode(after)}\n")
        case Entry(), None:
            lines.append(f"deleted file mode {_mode(before)}\n")
        case Entry(), Entry():
            if _mode(before) != _mode(after):
                lines += [f"old mode {_mode(before)}\n", f"new mode {_mode(after)}\n"]
            if change.source:
                lines += ["similarity index 100%\n", f"rename from {_quoted(old_path)}\n", f"rename to {_quoted(change.path)}\n"]
                return "".join(lines)
        case _:
            return ""
    if change.kind is Kind.MODE:
        return "".join(lines)
    old_name = "/dev/null" if before is None else _quoted(b"a/" + old_path)
    new_name = "/dev/null" if after is None else _quoted(b"b/" + change.path)
    old, new = _text(before, before_content), _text(after, after_content)
    if old is None or new is None:
        lines.append(f"Binary files {old_name} and {new_name} differ\n")
        return "".join(lines)
    return "".join(lines) + _hunks(old, new, old_name, new_name)


def _hunks(old: str, new: str, old_name: str, new_name: str) -> str:
    made = difflib.unified_diff(_lines(old), _lines(new), old_name, new_name, n=3)
    return "".join(line if line.endswith("\n") else line + "\n\\ No newline at end of file\n" for line in made)


def _lines(text: str) -> list[str]:
    """Lines end with LF only: `splitlines` knows a dozen other ends."""
    parts = text.split("\n")
    return [part + "\n" for part in parts[:-1]] + ([parts[-1]] if parts[-1] else [])


def _text(entry: Entry | None, content: Content) -> str | None:
    """What is compared line by line; None for what is no text, is too long, or was not kept."""
    if entry is None:
        return ""
    if entry.node is Node.LINK:
        return entry.target.decode("utf-8", "backslashreplace")
    if entry.node is not Node.FILE or entry.note in (TOO_LARGE, PLACEHOLDER):
        return None
    data = content(entry)
    if data is None or len(data) > PATCH_BYTES or b"\0" in data[:8000]:
        return None
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return None


def _mode(entry: Entry | None) -> str:
    """The mode as git has it, with the permission bits where they are unusual."""
    if entry is None:
        return "000000"
    match entry.node:
        case Node.LINK:
            return "120000"
        case Node.SUBMODULE:
            return "160000"
        case _:
            return f"100{entry.mode & 0o777:03o}"


_ESCAPES: Mapping[int, str] = {7: "\\a", 8: "\\b", 9: "\\t", 10: "\\n", 11: "\\v", 12: "\\f", 13: "\\r", 34: '\\"', 92: "\\\\"}


def _quoted(path: bytes) -> str:
    """A path as git writes it: in quotes with octal escapes where it holds what is not printable ASCII."""
    if all(0x20 <= byte < 0x7F and byte not in (0x22, 0x5C) for byte in path):
        return path.decode("ascii")
    return '"' + "".join(_ESCAPES.get(b) or (chr(b) if 0x20 <= b < 0x7F else f"\\{b:03o}") for b in path) + '"'

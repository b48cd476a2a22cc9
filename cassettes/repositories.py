"""The state of a workspace's git repositories as a value: what HEAD is, what is staged, which refs an agent may see.

No ref, object or note is in it that leads to a later commit than HEAD. A value may come from a stranger: what could name a path outside,
run a program or break a config file is refused or left out by `decode`.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace

from secondtake.cassettes import layout, trees
from secondtake.cassettes.digest import digest_of, raw
from secondtake.cassettes.errors import BadInput, Corrupt
from secondtake.cassettes.exchange import Digest
from secondtake.cassettes.git_index import MODES, Staged
from secondtake.cassettes.limits import TREE_ENTRIES

VERSION = 1
PACK = "pack"
"""The kind of the artifact that holds a repository's objects."""

_OID = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_REF = re.compile(r"refs/(?!.*(?:\.\.|@\{|//|/\.|\.lock(?:/|$)))[^\x00-\x20\x7f~^:?*\[\\]+(?<![/.])")

_CORE = (
    "autocrlf", "eol", "safecrlf", "filemode", "ignorecase", "symlinks", "precomposeunicode", "quotepath", "abbrev",
    "sparsecheckout", "sparsecheckoutcone", "longpaths", "trustctime", "checkstat", "whitespace", "untrackedcache", "commentchar",
)  # fmt: skip
_KEPT = re.compile(
    rf"core\.(?:{'|'.join(_CORE)})|user\.(?:name|email)|pull\.(?:rebase|ff)|push\.default|merge\.(?:conflictstyle|ff)|rebase\.autostash"
    r"|diff\.(?:algorithm|renames|noprefix)|init\.defaultbranch|index\.(?:version|sparse|skiphash)|commit\.(?:cleanup|verbose)"
    r"|remote\..+\.(?:url|pushurl|fetch|tagopt|prune)|branch\..+\.(?:remote|merge|rebase|pushremote)"
    r"|submodule\..+\.(?:url|active|branch|ignore)|submodule\.(?:recurse|active)",
    re.DOTALL,
)
"""What of a repository's own configuration changes how it behaves and runs nothing. Hooks, filters, aliases and helpers stay behind."""


def keeps(key: str) -> bool:
    """Whether a config key is kept. Its section and last part are lower-case, as `git config --list` writes them."""
    return _KEPT.fullmatch(key) is not None and "\n" not in key and "\0" not in key


@dataclass(frozen=True, slots=True)
class Replaced:
    """An object that held a credential: it is not kept; `digest` is the artifact that stands for it."""

    oid: str
    kind: str
    digest: Digest


@dataclass(frozen=True, slots=True)
class Repository:
    """One repository: of the workspace, or below it. Object names are hexadecimal."""

    path: bytes = b""
    """Of its working tree, relative to the workspace; empty for the workspace itself."""
    place: bytes = b""
    """Where its folder is, relative to that of the repository around it (`modules/lib`); empty: `.git` in the working tree."""
    object_format: str = "sha1"
    head: str | None = None
    """The commit; None: there is none yet."""
    branch: str | None = None
    """`refs/heads/…`; None: detached."""
    refs: tuple[tuple[str, str], ...] = ()
    """Refs whose commit HEAD contains: (name, object), or (name, `ref: ` and another name)."""
    shallow: tuple[str, ...] = ()
    """Commits whose parents are not there."""
    index: tuple[Staged, ...] | None = None
    """None: there is no index."""
    config: tuple[tuple[str, str], ...] = ()
    files: tuple[tuple[bytes, Digest], ...] = ()
    """`info/exclude` and the like: artifacts."""
    objects: Digest | None = None
    """The pack with every object that is reachable; None where it was not captured."""
    object_names: Digest | None = None
    """SHA-256 of the names of the objects in it, sorted, a line each."""
    replaced: tuple[Replaced, ...] = ()
    uninitialised: tuple[bytes, ...] = ()
    """Submodules that have no repository yet, relative to this one."""
    lfs_pointers: tuple[bytes, ...] = ()
    """Files in git-lfs of which the workspace has the pointer only."""
    lfs_contents: tuple[bytes, ...] = ()


@dataclass(frozen=True, slots=True)
class Repositories:
    """All repositories of a workspace, the outer ones first. Kept as one artifact of kind `repository`."""

    each: tuple[Repository, ...] = ()

    @property
    def root(self) -> Repository | None:
        """The workspace's own."""
        return next((one for one in self.each if not one.path), None)

    @property
    def fingerprint(self) -> Digest:
        """Equal for two states that git cannot tell apart: how objects are packed, and what is read from them first, is not in it."""
        return digest_of(encode(Repositories(tuple(replace(one, objects=None) for one in self.each))))

    def named(self) -> tuple[Digest, ...]:
        """The artifacts that belong to it."""
        found = [one.objects for one in self.each if one.objects is not None]
        found += [digest for one in self.each for _, digest in one.files] + [item.digest for one in self.each for item in one.replaced]
        return tuple(dict.fromkeys(found))


def encode(repositories: Repositories) -> bytes:
    """The one encoding: msgpack `{"v": 1, "each": [{field: value}, …]}`, defaults left out."""
    return layout.pack({"v": VERSION, "each": [_packed(one) for one in repositories.each]})


def _packed(one: Repository) -> dict[str, object]:
    made: dict[str, object] = {}
    for field in fields(one):
        value = getattr(one, field.name)
        if value == field.default:
            continue
        match field.name:
            case "index":
                value = [
                    [
                        e.path,
                        e.mode,
                        bytes.fromhex(e.oid),
                        e.stage,
                        e.assume_unchanged | e.skip_worktree << 1 | e.intent_to_add << 2 | e.clean << 3,
                    ]
                    for e in one.index or ()
                ]
            case "replaced":
                value = [[item.oid, item.kind, item.digest] for item in one.replaced]
            case _:
                value = layout.ordered(value)
        made[field.name] = value
    return made


def decode(data: bytes) -> Repositories:
    """The counterpart of `encode`. Raises Corrupt for what no repository can hold."""
    made = layout.mapping(layout.unpack(data))
    if made.get("v") != VERSION:
        raise Corrupt(f"a repository's state of version {made.get('v')!r}", hint="update secondtake")
    each = tuple(map(_guarded, layout.each(made.get("each"), dict)))
    paths = [one.path for one in each]
    if paths != sorted(set(paths)):
        raise Corrupt("the repositories of a workspace are out of order")
    return Repositories(each)


def _guarded(made: Mapping[str, object]) -> Repository:
    try:
        return _unpacked(made)
    except (TypeError, ValueError, BadInput) as error:
        raise Corrupt(f"a repository's state is not one: {error}") from error


def _unpacked(made: Mapping[str, object]) -> Repository:
    head, branch, objects = made.get("head"), made.get("branch"), made.get("objects")
    one = Repository(
        path=layout.take(made, "path", bytes, b""),
        place=layout.take(made, "place", bytes, b""),
        object_format=layout.take(made, "object_format", str, "sha1"),
        head=None if head is None else _oid(head),
        branch=None if branch is None else _ref(branch),
        refs=tuple((_ref(name), _target(oid)) for name, oid in _pairs(made, "refs")),
        shallow=tuple(_oid(item) for item in layout.each(made.get("shallow", []), str)),
        index=_index(made.get("index")),
        config=tuple((_key(key), _value(value)) for key, value in _pairs(made, "config")),
        files=tuple((_inside(name), _digest(digest)) for name, digest in _pairs(made, "files")),
        objects=None if objects is None else _digest(objects),
        object_names=None if made.get("object_names") is None else _digest(made["object_names"]),
        replaced=tuple(Replaced(_oid(a), _kind(b), _digest(c)) for a, b, c in _triples(made, "replaced")),
        uninitialised=tuple(_path(item) for item in layout.each(made.get("uninitialised", []), bytes)),
        lfs_pointers=tuple(_path(item) for item in layout.each(made.get("lfs_pointers", []), bytes)),
        lfs_contents=tuple(_path(item) for item in layout.each(made.get("lfs_contents", []), bytes)),
    )
    if one.object_format not in ("sha1", "sha256"):
        raise Corrupt(f"a repository of format {one.object_format!r}")
    if one.path:
        _path(one.path)
    if one.place and (not one.path or not one.place.startswith(b"modules/")):
        raise Corrupt(f"a repository's folder cannot be {trees.shown(one.place)}")
    if one.place:
        trees.check_path(one.place)
    return one


def _pairs(made: Mapping[str, object], key: str) -> list[list[object]]:
    rows = layout.each(made.get(key, []), list)
    if any(len(row) != 2 for row in rows):
        raise Corrupt(f"a repository's {key} are not pairs")
    return rows


def _triples(made: Mapping[str, object], key: str) -> list[list[object]]:
    rows = layout.each(made.get(key, []), list)
    if any(len(row) != 3 for row in rows):
        raise Corrupt(f"a repository's {key} are not triples")
    return rows


def _index(value: object) -> tuple[Staged, ...] | None:
    if value is None:
        return None
    rows = layout.each(value, list)
    if len(rows) > TREE_ENTRIES:
        raise Corrupt(f"an index of {len(rows)} entries")
    return tuple(_staged(row) for row in rows)


def _staged(row: list[object]) -> Staged:
    match row:
        case [bytes() as path, int() as mode, bytes() as oid, int() as stage, int() as flags] if mode in MODES and 0 <= stage <= 3:
            _path(path)
            return Staged(path, mode, _oid(oid.hex()), stage, bool(flags & 1), bool(flags & 2), bool(flags & 4), bool(flags & 8))
        case _:
            raise Corrupt("an entry of an index is not one")


def _oid(value: object) -> str:
    if not isinstance(value, str) or not _OID.fullmatch(value):
        raise Corrupt("no object has that name")
    return value


def _kind(value: object) -> str:
    if value not in ("blob", "commit", "tag"):
        raise Corrupt(f"no object is of kind {value!r}")
    return str(value)


def _ref(value: object) -> str:
    if not isinstance(value, str) or len(value) > 1024 or not _REF.fullmatch(value):
        raise Corrupt(f"no ref is called {value!r}")
    return value


def _target(value: object) -> str:
    if isinstance(value, str) and value.startswith("ref: "):
        return "ref: " + _ref(value.removeprefix("ref: "))
    return _oid(value)


def _key(value: object) -> str:
    if not isinstance(value, str) or not keeps(value):
        raise Corrupt(f"a repository's configuration may not say {str(value)[:80]!r}")
    return value


def _value(value: object) -> str:
    if not isinstance(value, str) or "\0" in value:
        raise Corrupt("a repository's configuration holds what is no text")
    return value


def _inside(value: object) -> bytes:
    if value not in FILES:
        raise Corrupt(f"a repository may not bring {value!r}")
    assert isinstance(value, bytes)
    return value


FILES = (b"info/exclude", b"info/attributes", b"info/sparse-checkout")
"""Files of a repository's folder that change how it behaves and run nothing."""


def _path(value: bytes) -> bytes:
    trees.check_path(value)
    return value


def _digest(value: object) -> Digest:
    if not isinstance(value, str):
        raise Corrupt("a repository names what is no digest")
    raw(Digest(value))
    return Digest(value)


def names_digest(names: list[str]) -> Digest:
    """What `object_names` holds for objects of these names."""
    return Digest(hashlib.sha256("".join(f"{name}\n" for name in sorted(names)).encode()).hexdigest())


def config_text(repository: Repository) -> bytes:
    """The config file of a restored repository: what was kept, and nothing that runs a program."""
    version = 1 if repository.object_format != "sha1" else 0
    lines = ["[core]\n", f"\trepositoryformatversion = {version}\n"]
    for key, value in repository.config:
        section, _, rest = key.partition(".")
        subsection, _, name = rest.rpartition(".")
        lines.append(f"[{section}{_quoted(subsection)}]\n\t{name} = {_escaped(value)}\n")
    if repository.object_format != "sha1":
        lines.append(f"[extensions]\n\tobjectformat = {repository.object_format}\n")
    return "".join(lines).encode("utf-8", "surrogateescape")


def _quoted(subsection: str) -> str:
    escaped = subsection.replace("\\", "\\\\").replace('"', '\\"')
    return f' "{escaped}"' if subsection else ""


def _escaped(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t").replace("\b", "\\b")
    return f'"{escaped}"'

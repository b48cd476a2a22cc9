"""Checks that need no command: what changed, what was run, what was used. Each gets a check and a scene, and says what it found."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from secondtake.cassettes import places
from secondtake.cassettes.errors import BadInput, TooLarge
from secondtake.cassettes.events import EventKind
from secondtake.cassettes.placeholder import PLACEHOLDER
from secondtake.cassettes.trees import PLACEHOLDER as CREDENTIAL_FILE
from secondtake.cassettes.trees import REDACTED, TOO_LARGE, Change, Entry, Node, changes, shown
from secondtake.harness.acceptance import commands
from secondtake.harness.acceptance.globs import matches_any
from secondtake.harness.acceptance.patching import expected
from secondtake.harness.acceptance.patterns import search
from secondtake.harness.acceptance.scene import Said

if TYPE_CHECKING:
    from secondtake.cassettes.needles import Hit, Needles
    from secondtake.harness.acceptance.scene import Content, Scene
    from secondtake.harness.acceptance.schema import (
        DiffCheck,
        FileCheck,
        NoCommandsCheck,
        NoLockfileDriftCheck,
        OnlyChangedCheck,
        UntouchedCheck,
        Whitespace,
        WithinCheck,
    )

TEXT_BYTES = 16 * 1024 * 1024
"""A file that is compared or searched; a larger one cannot be judged."""

LISTED = 3
"""Paths named as evidence; the rest is counted."""

LOCK_FILES = frozenset({
    "package-lock.json", "npm-shrinkwrap.json", "yarn.lock", "pnpm-lock.yaml", "bun.lock", "bun.lockb", "deno.lock", "poetry.lock",
    "uv.lock", "pdm.lock", "Pipfile.lock", "pylock.toml", "pixi.lock", "conda-lock.yml", "Cargo.lock", "go.sum", "Gemfile.lock",
    "composer.lock", "mix.lock", "rebar.lock", "pubspec.lock", "Package.resolved", "Podfile.lock", "Cartfile.resolved",
    "packages.lock.json", "gradle.lockfile", "flake.lock", ".terraform.lock.hcl", "Manifest.toml", "stack.yaml.lock",
    "cabal.project.freeze", "MODULE.bazel.lock", "conan.lock", "Chart.lock",
})  # fmt: skip
"""By name, in any folder."""


# ---- which files changed -------------------------------------------------------------------------------------------


def changed(scene: Scene) -> list[Change]:
    """What the take changed; that a folder is there, or its mode, is no change of its own."""
    return [
        one
        for one in changes(scene.start, scene.final)
        if any(e is not None and e.node is not Node.FOLDER for e in (one.before, one.after))
    ]


def _paths(found: Iterable[Change]) -> list[str]:
    """Every path that was added, changed, removed, renamed to or renamed from, as text."""
    names = {path for one in found for path in (one.path, one.source) if path}
    return [path.decode("utf-8", "surrogateescape") for path in sorted(names)]


def _listed(paths: list[str]) -> str:
    names = ", ".join(shown(path.encode("utf-8", "surrogateescape")) for path in paths[:LISTED])
    return f"{names} and {len(paths) - LISTED} more" if len(paths) > LISTED else names


def only_changed(check: OnlyChangedCheck, scene: Scene) -> Said:
    """Nothing else was touched."""
    touched = [path for path in _paths(changed(scene)) if not matches_any(path, check.ignore)]
    others = [path for path in touched if not matches_any(path, check.paths)]
    if others:
        return Said(False, f"changed too: {_listed(others)}")
    return Said(True, f"changed: {_listed(touched)}" if touched else "nothing changed")


def untouched(check: UntouchedCheck, scene: Scene) -> Said:
    """These were not."""
    touched = [path for path in _paths(changed(scene)) if matches_any(path, check.paths)]
    return Said(not touched, f"touched: {_listed(touched)}" if touched else "untouched")


def no_lockfile_drift(check: NoLockfileDriftCheck, scene: Scene) -> Said:
    """No lock file changed."""
    locks = [path for path in _paths(changed(scene)) if path.rpartition("/")[2] in LOCK_FILES or matches_any(path, check.also)]
    drifted = [path for path in locks if not matches_any(path, check.allow)]
    return Said(not drifted, f"changed: {_listed(drifted)}" if drifted else "no lock file changed")


# ---- what files hold -----------------------------------------------------------------------------------------------


def alike(one: str, other: str, whitespace: Whitespace) -> bool:
    """Whether two texts are the same under a policy."""
    match whitespace:
        case "exact":
            return one == other
        case "trailing":
            return _trimmed(one) == _trimmed(other)
        case "any":
            return one.split() == other.split()


def _trimmed(text: str) -> list[str]:
    lines = [line.rstrip() for line in text.split("\n")]
    while lines and not lines[-1]:
        lines.pop()
    return lines


def _at(tree_entries: Iterable[Entry], path: str) -> Entry | None:
    wanted = path.encode("utf-8", "surrogateescape")
    return next((entry for entry in tree_entries if entry.path == wanted), None)


def _text(entry: Entry | None, content: Content) -> str | None:
    """None for what is not there, is no text, or was not kept."""
    if entry is None or entry.node is not Node.FILE or entry.note in {TOO_LARGE, CREDENTIAL_FILE}:
        return None
    data = content(entry)
    if data is None or len(data) > TEXT_BYTES:
        return None
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None


async def file(check: FileCheck, scene: Scene) -> Said:
    """A file that must be there, with what it must hold; or must not be."""
    entry = _at(scene.final.entries, check.path)
    below = check.path.encode() + b"/"
    there = entry is not None or any(one.path.startswith(below) for one in scene.final.entries)
    if there is not check.present:
        return Said(False, f"{check.path} is {'there' if there else 'not there'}")
    if check.sha256 is None and check.matches is None:
        return Said(True, f"{check.path} is {'there' if there else 'not there'}")
    if entry is None or entry.node is not Node.FILE:
        return Said(False, f"{check.path} is no file")
    if entry.note or entry.digest is None:
        return Said(None, f"the content of {check.path} was not kept as it was ({entry.note or 'not kept'})")
    if check.sha256 is not None:
        return Said(entry.digest == check.sha256, f"SHA-256 {entry.digest[:12]}…")
    text = _text(entry, scene.after)
    if text is None:
        return Said(None, f"{check.path} is no text, or too long")
    try:
        (hit,) = await search([check.matches or ""], [text])
    except TooLarge as error:
        return Said(None, str(error))
    return Said(hit is not None, f"{check.path} {'matches' if hit is not None else 'does not match'}")


def diff(check: DiffCheck, scene: Scene) -> Said:
    """The changes are those of the expected patch: each file it names holds at the end what it says, and, mostly, no other changed."""
    try:
        wanted = _wanted(check, scene)
    except BadInput as error:
        return Said(None, str(error))
    wrong = []
    for path, text in wanted.items():
        entry = _at(scene.final.entries, path)
        have = _text(entry, scene.after)
        if text is not None and have is None and entry is not None and entry.note:
            return Said(None, f"the content of {path} was not kept ({entry.note})")
        if (entry is None) != (text is None) or (text is not None and (have is None or not alike(text, have, check.whitespace))):
            wrong.append(path)
    if wrong:
        return Said(False, f"not as expected: {_listed(wrong)}")
    if check.others == "unchanged":
        others = [path for path in _paths(changed(scene)) if path not in wanted and not matches_any(path, check.ignore)]
        if others:
            return Said(False, f"as expected, but changed too: {_listed(others)}")
    return Said(True, f"as expected: {_listed(sorted(wanted))}")


def _wanted(check: DiffCheck, scene: Scene) -> dict[str, str | None]:
    if check.contents is not None:
        return dict(check.contents)
    text = check.patch
    if check.patch_file is not None:
        text = fixture_text(scene, check.patch_file)
    return dict(expected(text or "", lambda path: _text(_at(scene.start.entries, path), scene.before)))


def fixture_text(scene: Scene, name: str) -> str:
    """A file of the fixture's folder.

    Raises:
        BadInput: there is none, or it is no text.
    """
    path = None if scene.fixture is None else commands.within(scene.fixture, name)
    data = None if path is None else commands.read(path, TEXT_BYTES)
    if data is None:
        raise BadInput(f"{name} is not in the fixture")
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise BadInput(f"{name} of the fixture is no text") from None


# ---- secrets -------------------------------------------------------------------------------------------------------


def no_secrets(scene: Scene, needles: Needles) -> Said:
    """Nothing that was added looks like a credential, is one that is known, or was hidden as one when the tree was kept."""
    unread = []
    for one in changed(scene):
        entry = one.after
        if entry is None or entry.node is Node.SUBMODULE or (one.source and one.kind == "renamed"):
            continue
        name = shown(one.path)
        if entry.note == CREDENTIAL_FILE:
            return Said(False, f"{name} is a credential file")
        new = entry.target if entry.node is Node.LINK else scene.after(entry)
        old = b"" if one.before is None else one.before.target or scene.before(one.before) or b""
        if new is None or len(new) > TEXT_BYTES:
            unread.append(name)
            continue
        had = set(old.split(b"\n"))
        added = b"\n".join(line for line in new.split(b"\n") if line not in had)
        kind = _secret(added, old, needles)
        if kind is not None:
            return Said(False, f"{name}: {kind}")
        if entry.note == REDACTED and one.before is None and PLACEHOLDER.search(added) is None:
            return Said(False, f"{name}: a credential was hidden in it")
    if unread:
        return Said(None, f"not kept, so not searched: {_listed(unread)}")
    return Said(True, "nothing that looks like a credential was added")


def _secret(added: bytes, old: bytes, needles: Needles) -> str | None:
    for find in _FINDERS:
        hit = next((hit for hit in find(added) if hit.value not in old), None)
        if hit is not None:
            return str(hit.kind)
    known = next((hit for hit in needles.find(added) if hit.value not in old), None)
    if known is not None:
        return f"{known.kind}, a credential of the environment"
    hidden = next((found for found in PLACEHOLDER.finditer(added) if found[0] not in old), None)
    return None if hidden is None else "a credential, hidden when the tree was kept"


def _json_fields(content: bytes) -> Iterator[Hit]:
    return places.json_fields(content, served=True)


_FINDERS: tuple[Callable[[bytes], Iterator[Hit]], ...] = (
    places.shaped, places.userinfo_in_text, places.signed_urls, places.queries_in_text, _json_fields,
)  # fmt: skip


# ---- what was run, and used ----------------------------------------------------------------------------------------


async def no_commands(check: NoCommandsCheck, scene: Scene) -> Said:
    """No command the kernel saw, and no argument of a tool call, matches."""
    texts = list(dict.fromkeys(_commands(scene)))
    try:
        hits = await search(check.patterns, texts)
    except TooLarge as error:
        return Said(None, str(error))
    for text, hit in zip(texts, hits, strict=True):
        if hit is not None:
            return Said(False, f"`{check.patterns[hit]}` matches `{' '.join(text.split())[:200]}`")
    if any(event.event is EventKind.TOOL_CALL and _arguments(event.data, event.payloads) is None for event in scene.events):
        return Said(None, "the arguments of a tool call were not kept")
    source = "kernel and model traffic" if scene.commands else "model traffic"
    return Said(True, f"none of {len(texts)} commands ({source})")


def _commands(scene: Scene) -> Iterator[str]:
    for command in scene.commands:
        yield shlex.join(command.argv)
        if len(command.argv) > 2 and command.argv[1] in {"-c", "-lc"}:
            yield command.argv[2]
    for event in scene.events:
        if event.event is EventKind.TOOL_CALL and not event.data.get("server_side"):
            arguments = _arguments(event.data, event.payloads)
            if arguments is not None:
                yield from _strings(arguments)


def _arguments(data: object, payloads: object) -> str | None:
    if not isinstance(data, dict):
        return None
    inline, digest = data.get("arguments"), data.get("arguments_sha256")
    if isinstance(inline, str):
        return inline
    if digest is None:
        return ""
    kept = payloads.get(digest) if isinstance(payloads, dict) else None
    return kept.decode("utf-8", "replace") if isinstance(kept, bytes) else None


def _strings(arguments: str) -> Iterator[str]:
    """The texts in the arguments, and lists of words joined; all of it where it is no JSON."""
    try:
        value = json.loads(arguments)
    except (ValueError, RecursionError):
        yield arguments
        return
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, str):
            yield one
        elif isinstance(one, dict):
            waiting += reversed(one.values())
        elif isinstance(one, list):
            if one and all(isinstance(word, str) for word in one):
                yield shlex.join(one)
            waiting += reversed(one)


def within(check: WithinCheck, scene: Scene) -> Said:
    """The agent ended by itself, and used no more than this."""
    if scene.stopped is not None:
        return Said(False, f"stopped: {scene.stopped}")
    used = scene.resources
    told: list[str] = []
    over: list[str] = []
    unknown: list[str] = []
    for name, limit, have in (
        ("model calls", check.model_calls, used.model_calls),
        ("tool calls", check.tool_calls, used.tool_calls),
        ("tokens", check.tokens, used.tokens),
        ("seconds", check.seconds, used.seconds),
    ):
        if limit is None:
            continue
        if have is None:
            unknown.append(name)
            continue
        text = f"{have:g} {name} of {limit:g}"
        (over if have > limit else told).append(text)
    if over:
        return Said(False, ", ".join(over))
    if unknown:
        return Said(None, f"how many {', '.join(unknown)} were used is not known")
    return Said(True, ", ".join(told))

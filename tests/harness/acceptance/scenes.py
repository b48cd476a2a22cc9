"""Small takes to be judged: a workspace before and after, and the programs that stand for test runners in it."""

from __future__ import annotations

import asyncio
import os
import stat
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from secondtake.cassettes.digest import digest_of
from secondtake.cassettes.events import Event, EventKind
from secondtake.cassettes.execs import Command
from secondtake.cassettes.takes import Checked
from secondtake.cassettes.trees import Entry, Node, Tree, tree_of
from secondtake.harness.acceptance.judging import judge
from secondtake.harness.acceptance.scene import Scene
from secondtake.harness.acceptance.schema import Bundle, read

PYTHON = sys.executable
ENVIRON = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "LANG": "C.UTF-8"}
type Files = Mapping[str, str | bytes]


def tree(files: Files, notes: Mapping[str, str] | None = None) -> Tree:
    """The tree of `files`; a value that begins with `-> ` is a link."""
    entries = []
    for path, content in files.items():
        data = content if isinstance(content, bytes) else content.encode()
        note = (notes or {}).get(path, "")
        if data.startswith(b"-> "):
            entries.append(Entry(path.encode(), Node.LINK, 0, target=data[3:]))
        else:
            entries.append(Entry(path.encode(), Node.FILE, 0o644, digest_of(data), len(data), note=note))
    return tree_of(entries)


def scene(folder: Path, before: Files, after: Files | None = None, *, notes: Mapping[str, str] | None = None, **changes: Any) -> Scene:
    """A take that made `after` of `before`, standing in `folder`/workspace."""
    final = before if after is None else after
    workspace = folder / "workspace"
    for path, content in final.items():
        data = content if isinstance(content, bytes) else content.encode()
        file = workspace / path
        file.parent.mkdir(parents=True, exist_ok=True)
        if data.startswith(b"-> "):
            file.symlink_to(os.fsdecode(data[3:]))
        else:
            file.write_bytes(data)
            if data.startswith(b"#!"):
                file.chmod(file.stat().st_mode | stat.S_IXUSR)
    workspace.mkdir(parents=True, exist_ok=True)
    kept = {digest_of(d): d for files in (before, final) for c in files.values() for d in [c if isinstance(c, bytes) else c.encode()]}

    def content_of(entry: Entry) -> bytes | None:
        return None if entry.digest is None or entry.note == "too-large" else kept[entry.digest]

    given: dict[str, Any] = {
        "workspace": workspace,
        "start": tree(before),
        "final": tree(final, notes),
        "before": content_of,
        "after": content_of,
        "environ": ENVIRON,
    }
    return Scene(**(given | changes))


def bundle(kind: str, *, section: str = "acceptance", name: str = "it", **keys: Any) -> Bundle:
    """A fixture's sections with one check."""
    return read({section: {"check": [{"name": name, "kind": kind, **keys}]}})


def judged(at: Scene, made: Bundle) -> tuple[Checked, ...]:
    """Judge, to the end."""
    return asyncio.run(judge(made.failure, made.acceptance, at))


def one(at: Scene, kind: str, **keys: Any) -> Checked:
    """Judge one check."""
    (checked,) = judged(at, bundle(kind, **keys))
    return checked


def said(at: Scene, kind: str, **keys: Any) -> tuple[bool | None, str]:
    """Judge one check: whether it holds, and the evidence."""
    checked = one(at, kind, **keys)
    return checked.held, checked.evidence


def prints(text: str, status: int = 0) -> list[str]:
    """A command that prints `text` and ends with `status`."""
    return [PYTHON, "-I", "-S", "-c", f"import sys; sys.stdout.write({text!r}); sys.exit({status})"]


def called(tool: str, arguments: str, at_us: int = 0) -> Event:
    """A tool call in the event log."""
    return Event(EventKind.TOOL_CALL, 0, at_us, 1, "m", {"tool": tool, "arguments": arguments, "arguments_sha256": "x"})


def ran(*argv: str) -> Command:
    """A command as the kernel saw it."""
    return Command(7, 1, argv, "/w", 0, 1, 0, None)

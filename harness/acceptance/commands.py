"""Running a check's command in the workspace a take left: no shell, no credentials, no network of ours, no process left behind."""

from __future__ import annotations

import asyncio
import contextlib
import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from secondtake.cassettes.kinds import value_kind
from secondtake.cassettes.secrets import environment_kind
from secondtake.cassettes.signatures import exit_class
from secondtake.harness.launch import NotStarted, Stdin, launch

if TYPE_CHECKING:
    from secondtake.harness.acceptance.scene import Scene
    from secondtake.harness.acceptance.schema import Runs

OUTPUT_BYTES = 16 * 1024 * 1024
"""What is kept of a command's output; the rest is read and dropped, so that it can end."""

CANNOT_JUDGE = 125
"""A command's own word for it, as `git bisect run` has it."""

_INTO = ("/bin/sh", "-c", 'cd -- "$1" && shift && exec "$@"', "sh")
"""Enters a folder of a workspace whose path only the seal's prefix knows."""

_QUIET = {"TERM": "dumb", "NO_COLOR": "1", "GIT_TERMINAL_PROMPT": "0", "GIT_PAGER": "cat", "PAGER": "cat"}
_DROPPED = frozenset({"FORCE_COLOR", "CLICOLOR_FORCE", "COLUMNS", "LINES", "OLDPWD", "PWD"})


@dataclass(frozen=True, slots=True)
class Ended:
    """How a command ended. `status`: as a shell gives it. `output`: both streams as they came, unless `stdout` was asked for alone."""

    status: int
    output: bytes
    timed_out: bool = False
    cut: bool = False
    """There was more output than is kept."""
    not_started: str | None = None

    @property
    def exit_class(self) -> str:
        """As it stands in a signature."""
        return "not started" if self.not_started is not None else exit_class(self.status, timed_out=self.timed_out)

    @property
    def text(self) -> str:
        """The output, for people and for parsers of lines."""
        return self.output.decode("utf-8", "replace")


def environment(scene: Scene, check: Runs) -> dict[str, str]:
    """What a check's command finds: the agent's environment without credentials, colours and our own variables, and what the check adds."""
    kept = {
        name: value
        for name, value in scene.environ.items()
        if name not in _DROPPED
        and not name.startswith("SECONDTAKE_")
        and environment_kind(name) is None
        and value_kind(value.encode("utf-8", "surrogateescape")) is None
    }
    told = {
        "SECONDTAKE_WORKSPACE": scene.inside or str(scene.workspace),
        "SECONDTAKE_TAKE": scene.take,
        "SECONDTAKE_MODEL_CALLS": str(scene.resources.model_calls),
        "SECONDTAKE_TOOL_CALLS": str(scene.resources.tool_calls),
    }
    return {**kept, **_QUIET, **told, **check.env}


async def run(scene: Scene, check: Runs, *, stdout_only: bool = False) -> Ended:
    """Run a check's command once, to its end or its time-out; whatever it started is ended too."""
    command, cwd = check.run, scene.workspace
    if check.cwd is not None:
        if scene.prefix:
            command = (*_INTO, check.cwd, *command)
        elif (inside := within(scene.workspace, check.cwd)) is not None:
            cwd = inside
        else:
            return Ended(126, b"", not_started=f"{check.cwd} leads out of the workspace")
    collected = _Collected()
    loop = asyncio.get_running_loop()
    reading, writing = os.pipe()
    with os.fdopen(reading, "rb", buffering=0) as ours, os.fdopen(writing, "wb", buffering=0) as theirs:
        transport, _ = await loop.connect_read_pipe(lambda: collected, ours)
        try:
            finished = await launch(
                (*scene.prefix, *command),
                env=environment(scene, check),
                cwd=cwd,
                stdin=Stdin.CLOSED,
                stdout=theirs,
                stderr=asyncio.subprocess.DEVNULL if stdout_only else theirs,
                timeout_s=check.timeout_s,
                forward_signals=False,
            )
        except NotStarted as error:
            return Ended(error.status, b"", not_started=str(error))
        finally:
            theirs.close()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(2):  # what was left running, and could not be ended, may hold the pipe for ever
                    await collected.ended.wait()
            transport.close()
    return Ended(finished.status, bytes(collected.data), finished.timed_out, collected.cut)


class _Collected(asyncio.Protocol):
    """Keeps what a pipe gives, up to OUTPUT_BYTES."""

    def __init__(self) -> None:
        self.data = bytearray()
        self.cut = False
        self.ended = asyncio.Event()

    def data_received(self, data: bytes) -> None:
        room = OUTPUT_BYTES - len(self.data)
        self.cut = self.cut or len(data) > room
        self.data += data[: max(room, 0)]

    def connection_lost(self, exc: Exception | None) -> None:
        self.ended.set()


def unjudged(ended: Ended, named: tuple[int, ...] = ()) -> str | None:
    """Why a command's end says nothing; None where it does. `named`: codes that the check asks for by number."""
    if ended.not_started is not None:
        return ended.not_started
    if ended.timed_out:
        return "it did not end in time"
    if ended.status in named:
        return None
    match ended.status:
        case 126 | 127:
            return f"its command could not be started (exit {ended.status}){_last(ended)}"
        case 125:
            return f"it says that it cannot judge (exit {CANNOT_JUDGE}){_last(ended)}"
        case 137:
            return "its command was killed (SIGKILL): is there memory enough?"
        case _:
            return None


def _last(ended: Ended) -> str:
    lines = ended.text.strip().rsplit("\n", 1)
    return f": {lines[-1]}" if lines[-1] else ""


# ---- files that a command writes -----------------------------------------------------------------------------------

REPORT_FILES = 2000


def within(workspace: Path, relative: str) -> Path | None:
    """`relative` in the workspace, no link followed out of it; None where it leads out. The last part may be missing."""
    root = workspace.resolve()
    path = (root / relative).resolve()
    return path if path == root or path.is_relative_to(root) else None


def found(workspace: Path, pattern: str) -> list[Path]:
    """The files in the workspace that `pattern` names, in order; links are no files."""
    if not any(sign in pattern for sign in "*?["):
        path = within(workspace, pattern)
        return [path] if path is not None and path.is_file() and not (workspace / pattern).is_symlink() else []
    hits = []
    for path in sorted(workspace.glob(pattern)):
        inside = within(workspace, str(path.relative_to(workspace)))
        if inside is not None and inside.is_file() and not path.is_symlink():
            hits.append(inside)
            if len(hits) >= REPORT_FILES:
                break
    return hits


def removed(workspace: Path, pattern: str) -> str | None:
    """Delete what `pattern` names, so that what is found later is new. Returns why it could not be; None where it is gone."""
    if within(workspace, pattern) is None:
        return f"{pattern} leads out of the workspace"
    for path in found(workspace, pattern):
        try:
            path.unlink()
        except OSError as error:
            return f"the old {path.name} cannot be deleted: {error.strerror}"
    return None


def read(path: Path, most_bytes: int) -> bytes | None:
    """The content of a regular file; None for anything else, and for more than `most_bytes`."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        return None
    with open(descriptor, "rb") as file:
        data = file.read(most_bytes + 1)
    return data if len(data) <= most_bytes else None

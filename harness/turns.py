"""The workspace of a recording, turn by turn: before the agent starts, whenever it asks its model again, and at the end.

When a model request arrives, the tools of the turn before have run: what changed since is theirs. It is looked at in a thread of its own,
after the request has gone on: the wire waits for nothing. Requests that come while it looks are looked at together.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from secondtake.cassettes import layout, stages
from secondtake.cassettes.errors import RecordedError
from secondtake.cassettes.stages import Staged, Turn
from secondtake.cassettes.trees import shown
from secondtake.harness.capturing import NotStaged, Snapshot, capture_home, refuse_root
from secondtake.harness.snapshot import LIMITS, snapshot_of, with_repositories
from secondtake.harness.walking import Limits

if TYPE_CHECKING:
    from pathlib import Path

    from secondtake.cassettes.credential_files import CredentialFile
    from secondtake.cassettes.exchange import Digest
    from secondtake.cassettes.redact import Redactor
    from secondtake.cassettes.writer import Writer
    from secondtake.harness.drivers.base import Driver
    from secondtake.harness.plan import Stage

HOME_LIMITS = Limits(file_bytes=4 * 1024 * 1024, total_bytes=32 * 1024 * 1024, files=2_000)

_BACKLOG_BYTES = 32 * 1024 * 1024
"""So much may be on its way to the disk before reading waits for it."""
_PAUSE_S = 0.005

_TAUGHT = 32
"""Credentials found in the workspace that are looked for on the wire as well, the newest: each costs searches of every text."""


class _Arrival(NamedTuple):
    step: int
    seq: int
    redactor: Redactor


@dataclass(frozen=True, slots=True)
class Watching:
    """What a recording's stage is captured with."""

    root: Path
    home: Path
    seeds: tuple[str, ...] = ()
    """Files of HOME that decide how the agent starts, relative to it."""
    limits: Limits = LIMITS


def watching(stage: Stage, driver: Driver | None, *, limit_bytes: int | None = None) -> Watching:
    """Return what to watch for a run of `driver`'s agent."""
    rules = (name.removeprefix("~/") for name in (driver.rules if driver is not None else ()) if name.startswith("~/"))
    seeds = (*(driver.seed if driver is not None else ()), *rules)
    limits = LIMITS if limit_bytes is None else replace(LIMITS, total_bytes=limit_bytes, file_bytes=min(LIMITS.file_bytes, limit_bytes))
    return Watching(stage.cwd, stage.home, tuple(dict.fromkeys(seeds)), limits)


class Watch:
    """Watches one workspace while its agent is recorded."""

    def __init__(self, plan: Watching | None, writer: Writer, redactor: Redactor, stage: Stage) -> None:
        self._plan = plan
        self._writer = writer
        self._redactor = redactor
        self._stage = stage
        self._snapshot: Snapshot | None = None
        self._staged = Staged() if plan is None else Staged(root=redactor.text(str(plan.root)))
        self._requests = 0
        self.condition = threading.Condition()
        self._arrived: _Arrival | None = None
        self._over = False
        self.looked = 0
        """The last model request after whose arrival the workspace was looked at; `condition` is told of each."""
        self._thread = threading.Thread(target=self._look, name="stage", daemon=True)

    async def begin(self) -> Staged:
        """Capture what the agent will find. Never raises for what it finds: what could not be captured is listed."""
        if self._plan is None:
            return self._staged
        redactor = self._redactor.another(learning=True)
        await asyncio.to_thread(self._begin, self._plan, redactor)
        for known in redactor.learned[-_TAUGHT:]:
            self._redactor.learn(known.kind, known.value, known.name)
        if self._snapshot is not None:
            self._thread.start()
        return self._staged

    def model_request(self, seq: int) -> None:
        """A model request arrives. Called on the wire, where nothing may wait."""
        step = self._requests
        self._requests += 1
        if self._snapshot is not None:
            arrival = _Arrival(step, seq, self._redactor.another())
            with self.condition:
                self._arrived = arrival
                self.condition.notify_all()

    async def end(self) -> Staged:
        """Capture what the agent left, once it has ended."""
        if self._snapshot is not None:
            redactor = self._redactor.another()
            await asyncio.to_thread(self._end, redactor)
        return self._staged

    def stop(self) -> None:
        """Stop watching; nothing is captured any more."""
        with self.condition:
            self._over = True
            self.condition.notify_all()

    # From here on everything runs in a thread, one at a time.

    def _paused(self) -> None:
        while self._writer.backlog_bytes > _BACKLOG_BYTES and self._writer.failed is None:
            time.sleep(_PAUSE_S)

    def _begin(self, plan: Watching, redactor: Redactor) -> None:
        begun_s = self._stage.monotonic_s()
        keep = self._writer.keep
        try:
            refuse_root(plan.root, plan.home)
            snapshot = self._of(plan.root, redactor, plan.limits, None)
            files = snapshot.take()
            whole = with_repositories(
                plan.root, files, keep, redactor, limits=plan.limits, environ=self._stage.environ, seconds=self._stage.monotonic_s
            )
            self._snapshot = snapshot
            self._staged = replace(
                self._staged,
                workspace=whole.tree.digest,
                repository=whole.repository_digest,
                not_captured=whole.not_captured,
                files=whole.cost.files,
                size_bytes=whole.cost.size_bytes,
                credentials=_listed(whole.credentials, ""),
            )
        except (NotStaged, OSError, RecordedError) as error:
            self._note(f"the workspace: {redactor.text(str(error))}")
        try:
            home = capture_home(plan.seeds, lambda only: self._of(plan.home, redactor, HOME_LIMITS, only), keep)
            if home.tree.entries:
                self._staged = replace(
                    self._staged,
                    home=home.tree.digest,
                    not_captured=(*self._staged.not_captured, *home.not_captured),
                    files=self._staged.files + home.cost.files,
                    size_bytes=self._staged.size_bytes + home.cost.size_bytes,
                    credentials=(*self._staged.credentials, *_listed(home.credentials, "~/")),
                )
        except (OSError, RecordedError) as error:
            self._note(f"HOME: {redactor.text(str(error))}")
        self._took(begun_s)

    def _of(self, root: Path, redactor: Redactor, limits: Limits, only: frozenset[bytes] | None) -> Snapshot:
        return snapshot_of(
            root,
            self._writer.keep,
            redactor,
            limits=limits,
            environ=self._stage.environ,
            clock_s=self._stage.monotonic_s,
            paused=self._paused,
            only=only,
        )

    def _look(self) -> None:
        while True:
            with self.condition:
                while self._arrived is None and not self._over:
                    self.condition.wait()
                arrival, self._arrived = self._arrived, None
            if arrival is None:
                return
            begun_s = self._stage.monotonic_s()
            tree = self._taken(arrival.redactor)
            if tree is not None and tree != self._last():
                self._staged = replace(self._staged, turns=(*self._staged.turns, Turn(arrival.step, arrival.seq, tree)))
                self._took(begun_s)
            with self.condition:
                self.looked = arrival.seq
                self.condition.notify_all()

    def _end(self, redactor: Redactor) -> None:
        self.stop()
        self._thread.join()
        begun_s = self._stage.monotonic_s()
        tree = self._taken(redactor)
        if tree is not None:
            self._staged = replace(self._staged, final=tree)
        self._took(begun_s)

    def _last(self) -> Digest | None:
        return self._staged.turns[-1].tree if self._staged.turns else self._staged.workspace

    def _taken(self, redactor: Redactor) -> Digest | None:
        assert self._snapshot is not None
        try:
            taken = self._snapshot.take(redactor)
        except (NotStaged, OSError, RecordedError) as error:
            self._note(f"the workspace, later on: {redactor.text(str(error))}")
            return None
        for line in taken.not_captured:
            self._note(line)
        return taken.tree.digest

    def _took(self, begun_s: float) -> None:
        """Add up what it cost, and leave word for a recording that dies."""
        self._staged = replace(self._staged, seconds=self._staged.seconds + self._stage.monotonic_s() - begun_s)
        self._writer.keep(stages.KIND, layout.pack(layout.ordered(self._staged.packed())))

    def _note(self, line: str) -> None:
        if line not in self._staged.not_captured:
            self._staged = replace(self._staged, not_captured=(*self._staged.not_captured, line))


def _listed(credentials: Sequence[CredentialFile], before: str) -> tuple[tuple[str, str, str, int], ...]:
    return tuple((before + shown(one.path), one.kind, one.scope, one.size_bytes) for one in credentials)


@asynccontextmanager
async def watched(plan: Watching | None, writer: Writer, redactor: Redactor, stage: Stage) -> AsyncIterator[Watch]:
    """Give a watch that has captured the beginning; without a plan one that captures nothing. However the run ends, its thread does."""
    watch = Watch(plan, writer, redactor, stage)
    await watch.begin()
    try:
        yield watch
    finally:
        watch.stop()

"""All that is done with one agent and one task, by a few threads side by side: most of it is an agent's own start.

The tests look at what came of each step. A step that failed, or an agent that cannot be installed, is told by the tests that look at it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.agents.casts import OTHER_TASK, Cast
from tests.agents.installs import installed, later
from tests.agents.runs import Line, Place, Played, Run, begun, provided
from tests.tools.scene import Ran

REPLAYS = 5


@dataclass
class Course:
    """One agent's steps. Each property waits for its step."""

    cast: Cast
    root: Path
    lines: list[Line]
    begun: Future[Run] = field(default_factory=Future)
    _recorded: Future[Ran] = field(default_factory=Future)
    _events: Future[list[dict[str, Any]]] = field(default_factory=Future)
    _replays: list[Future[Played]] = field(default_factory=lambda: [Future() for _ in range(REPLAYS)])
    _elsewhere: Future[Played] = field(default_factory=Future)
    _later: Future[Played] = field(default_factory=Future)
    _other: Future[Played] = field(default_factory=Future)

    @property
    def run(self) -> Run:
        return self.begun.result()

    @property
    def recorded(self) -> Ran:
        """The task, with the provider."""
        return self._recorded.result()

    @property
    def events(self) -> list[dict[str, Any]]:
        """What is read from the recording."""
        return self._events.result()

    @property
    def replays(self) -> list[Played]:
        """The task, without it."""
        return [future.result() for future in self._replays]

    @property
    def elsewhere(self) -> Played:
        """The same in another workspace and home."""
        return self._elsewhere.result()

    @property
    def later(self) -> Played:
        """The same in a month."""
        return self._later.result()

    @property
    def other(self) -> Played:
        """Another task."""
        return self._other.result()

    def go(self, stopped: Callable[[], bool]) -> None:
        """Do one step after the other, up to the end or the first that leaves nothing to go on with."""
        _do(self.begun, lambda: begun(self.cast, installed(self.cast.driver), self.root))
        _do(self._recorded, self._record)
        _do(self._events, lambda: self.run.events("task"))
        for future in self._replays:
            _do(future, lambda: self._counted(self._played(stopped)))
        there = Place(self.root / "elsewhere" / "on-another_disk.d", "the_project")
        _do(self._elsewhere, lambda: self._played(stopped, place=there))
        _do(self._later, lambda: self._played(stopped, extra=later()))
        _do(self._other, lambda: self._played(stopped, task=OTHER_TASK))

    def _record(self) -> Ran:
        run = self.run
        with provided(self.cast) as provider:
            ran = run.record("task", provider)
        if ran.code == 0:
            run.line.exchanges = sum(ran.result["exchanges"].values())
            self.lines.append(run.line)
        return ran

    def _played(self, stopped: Callable[[], bool], **how: Any) -> Played:
        assert self.recorded.code == 0, self.recorded.out + self.recorded.said
        assert not stopped(), "the tests have ended"
        return self.run.replay("task", **how)

    def _counted(self, played: Played) -> Played:
        self.run.count(played)
        return played


def _do[T](future: Future[T], work: Callable[[], T]) -> None:
    try:
        future.set_result(work())
    except BaseException as error:  # a skip is one too
        future.set_exception(error)


class Courses:
    """The courses of a session, under way."""

    def __init__(self, casts: Iterable[Cast], folder: Path) -> None:
        self.lines: list[Line] = []
        self._stopped = False
        self._pool = ThreadPoolExecutor(max_workers=max(2, (os.cpu_count() or 2) // 2))
        self._courses = {cast.name: Course(cast, folder / cast.name, self.lines) for cast in casts}
        for course in self._courses.values():
            self._pool.submit(course.go, lambda: self._stopped)

    def of(self, cast: Cast) -> Course:
        """The course of one agent."""
        return self._courses[cast.name]

    def stop(self) -> None:
        """Begin nothing more, and wait for what is under way."""
        self._stopped = True
        self._pool.shutdown(cancel_futures=True)

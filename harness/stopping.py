"""When an agent is ended before its own end: a model call of its was refused, not on the cassette or past a stopping rule."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from secondtake.cassettes.exchange import Channel
from secondtake.harness.results import Problem

if TYPE_CHECKING:
    from secondtake.harness.launch import Finished
    from secondtake.proxy.outcome import Missed

STOP_AFTER_S = 1.0
"""Between the first model call that misses and the end of the agent. Most agents take the 400 they get as final and
end by themselves within a second; of those measured one asks again for four minutes."""


class StopOnMiss:
    """Sets `event` some time after the first model call that missed. To be given to `Wire.on_miss`; all of it in one event loop."""

    def __init__(self, after_s: float) -> None:
        self.event = asyncio.Event()
        self._after_s = after_s
        self._timer: asyncio.TimerHandle | None = None

    def __call__(self, missed: Missed) -> None:
        """A request missed: of a model, or of something an agent can do without."""
        if missed.channel is Channel.MODEL:
            self.soon()

    def soon(self) -> None:
        """Some time from now, unless it was said before."""
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(self._after_s, self.event.set)

    def close(self) -> None:
        """The agent has ended."""
        if self._timer is not None:
            self._timer.cancel()


def notes(finished: Finished, hint: str | None = None) -> tuple[Problem, ...]:
    """What a person must know about an agent that was ended."""
    if not finished.stopped:
        return ()
    message = f"the agent was ended {STOP_AFTER_S:g} s after a model call was refused: it had not ended by itself"
    return (Problem("stopped", message, hint),)

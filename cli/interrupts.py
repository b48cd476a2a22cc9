"""SIGTERM and SIGHUP end a command as Ctrl-C does: what it has made on the way goes with it."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_ENDING = (signal.SIGTERM, signal.SIGHUP)


@contextmanager
def interrupted_by_signals() -> Iterator[None]:
    """Take SIGTERM and SIGHUP for SIGINT; for the main thread. One that is ignored (nohup) stays ignored."""

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        if callable(signal.getsignal(signal.SIGINT)):
            signal.raise_signal(signal.SIGINT)  # asyncio has a handler of its own, which lets the tasks clean up
        else:
            raise KeyboardInterrupt

    before = {number: signal.getsignal(number) for number in _ENDING}
    taken = [number for number, handler in before.items() if handler is signal.SIG_DFL]
    for number in taken:
        signal.signal(number, interrupt)
    try:
        yield
    finally:
        for number in taken:
            signal.signal(number, signal.SIG_DFL)

"""A scripted provider beside the command line, in a thread of its own, and the demo's agent for it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from secondtake.harness.demo import CAREFUL, HASTY, Running, agent_command, provider
from secondtake.harness.provider import Script, no_pace

__all__ = ["AGENT", "CAREFUL", "HASTY", "running"]

AGENT = ("--", *agent_command())


@contextmanager
def running(folder: Path, played: Script | None = None) -> Iterator[Running]:
    """The provider, answering until the end of the block. `played` replaces the demo's script."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        context = provider(folder, pace=no_pace, played=played)
        made = asyncio.run_coroutine_threadsafe(context.__aenter__(), loop).result(20)
        try:
            yield made
        finally:
            asyncio.run_coroutine_threadsafe(context.__aexit__(None, None, None), loop).result(20)
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()

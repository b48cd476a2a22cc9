"""What the keeper ends: daemons, deaf and stopped processes, and the tree of a recorder that was killed."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Iterator

import pytest

from secondtake.harness.launch import Stdin, launch
from tests.harness.processes import ENV, SH, Pipe, daemon, driven, lines_until, run


@pytest.fixture
def pipe() -> Iterator[Pipe]:
    pipe = Pipe()
    yield pipe
    pipe.close()


def test_a_daemon_that_left_its_session_is_ended_and_counted(pipe: Pipe) -> None:
    """Nothing stays behind: a double fork with setsid, the agent itself long gone."""
    finished = run(*daemon(), stdout=pipe.writer)
    assert pipe.rest() == b"started\n"
    assert (finished.status, finished.strays, finished.left) == (4, 1, 0)


def test_a_daemon_that_ignores_term_is_killed(pipe: Pipe) -> None:
    """TERM, grace, KILL."""
    finished = run(*daemon(ignore="signal.signal(signal.SIGTERM, signal.SIG_IGN)"), stdout=pipe.writer, grace_s=0.05)
    assert pipe.rest() == b"started\n"
    assert (finished.status, finished.strays, finished.left) == (4, 1, 0)


def test_a_timeout_ends_the_whole_tree(pipe: Pipe) -> None:
    """The agent and its daemon, both deaf to TERM from their first instruction on, because we are."""
    before = signal.signal(signal.SIGTERM, signal.SIG_IGN)
    try:
        finished = run(*daemon(then="signal.pause()"), stdout=pipe.writer, grace_s=0.05, timeout_s=0.3)
    finally:
        signal.signal(signal.SIGTERM, before)
    pipe.rest()
    assert (finished.status, finished.timed_out, finished.left) == (137, True, 0)


def test_a_stopped_tree_ends_too(pipe: Pipe) -> None:
    """A process under SIGSTOP gets its TERM because it is continued."""
    finished = run(SH, "-c", "kill -STOP $$", timeout_s=0.3, stdout=pipe.writer)
    assert pipe.rest() == b""
    assert (finished.status, finished.timed_out) == (143, True)


def test_two_agents_at_once_keep_their_own_orphans() -> None:
    """One agent's end does not end what the other one left in the background."""

    async def both() -> None:
        first, second = Pipe(), Pipe()
        slow = asyncio.create_task(launch(daemon(then="sys.stdin.read(); sys.exit(5)"), env=ENV, stdout=second.writer, stdin=Stdin.CLOSED))
        waiting = asyncio.create_task(launch(daemon(then="signal.pause()"), env=ENV, stdout=first.writer))
        await asyncio.to_thread(first.until, b"started")
        finished = await slow
        assert (finished.status, finished.strays) == (5, 1)
        assert await asyncio.to_thread(second.rest) == b"started\n"
        os.set_blocking(first.reader, False)
        first.close_writer()
        with pytest.raises(BlockingIOError):  # still held open: that agent and its daemon live
            os.read(first.reader, 1)
        os.set_blocking(first.reader, True)
        waiting.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await waiting
        assert await asyncio.to_thread(first.rest) == b""
        first.close()
        second.close()

    asyncio.run(both())


def test_an_agent_does_not_outlive_a_recorder_that_was_killed() -> None:
    """kill -9 of the recorder ends the agent, its daemon and the keeper: the pipe comes to its end."""
    with driven(daemon(then="signal.pause()")) as driver:
        lines_until(driver, b"started")
        driver.kill()
        assert driver.stdout is not None
        assert driver.stdout.read() == b""

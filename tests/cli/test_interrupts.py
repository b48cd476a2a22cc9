"""Signals that end a command."""

from __future__ import annotations

import asyncio
import os
import signal

import pytest

from secondtake.cli.interrupts import interrupted_by_signals


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("ignored", [False, True])
def test_what_ends_a_command_lets_it_clean_up(number: signal.Signals, ignored: bool) -> None:
    """Issue 6, B5: a take that is told to end leaves no scratch folder and no key, also where Ctrl-C is ignored (a job of `&`)."""
    cleaned = []

    async def take() -> None:
        try:
            os.kill(os.getpid(), number)
            await asyncio.Event().wait()
        finally:
            cleaned.append(True)

    before = signal.signal(signal.SIGINT, signal.SIG_IGN if ignored else signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt), interrupted_by_signals():
            asyncio.run(take())
    finally:
        signal.signal(signal.SIGINT, before)
    assert cleaned == [True]
    assert signal.getsignal(number) is signal.SIG_DFL


def test_a_signal_that_is_ignored_stays_ignored() -> None:
    """`nohup secondtake matrix … &` goes on without its terminal."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with interrupted_by_signals():
            assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
            os.kill(os.getpid(), signal.SIGHUP)
    finally:
        signal.signal(signal.SIGHUP, before)

"""Exit codes: one table (docs/exit-codes.md holds the same one, a test compares them), and which error ends in which."""

from __future__ import annotations

from enum import IntEnum
from typing import assert_never

import click

from secondtake.cassettes.errors import BadInput, RecordedError
from secondtake.harness.results import SealBroken, Verdict, WouldAct


class Exit(IntEnum):
    """Every exit code that is ours; `record`, `replay` and `retake` pass on any other from the agent."""

    CLEAN = 0
    USAGE = 64
    INTERNAL = 70
    FAILED = 102
    DIVERGED = 103
    STORE = 104
    WORKSPACE = 105
    SEAL = 106
    INFRASTRUCTURE = 107
    INTERRUPTED = 130
    OUTPUT_CLOSED = 141


MEANINGS: dict[Exit, str] = {
    Exit.CLEAN: "done, and nothing to report",
    Exit.USAGE: "the command line or a value in it cannot be used",
    Exit.INTERNAL: "a fault of secondtake itself",
    Exit.FAILED: "the take counts, and did not pass its acceptance",
    Exit.DIVERGED: "a miss or a divergence: a request was not on the cassette, or a recording holds not what it should",
    Exit.STORE: "the store: no such cassette, a name that is taken, damage, a newer format, a full disk",
    Exit.WORKSPACE: "would act on the original workspace; nothing was run",
    Exit.SEAL: "no seal where one was required, or it was broken: something went out beside the proxy",
    Exit.INFRASTRUCTURE: "the take does not count: a provider, a line or a machine failed, not the model",
    Exit.INTERRUPTED: "interrupted from the keyboard",
    Exit.OUTPUT_CLOSED: "the reader of standard output went away",
}


class Unusable(BadInput):
    """Something outside the store that the command line names cannot be used: a port, a file, a program."""


def code_for(error: BaseException) -> Exit:
    """Return the code that `error` ends a command with."""
    match error:
        case WouldAct():
            return Exit.WORKSPACE
        case SealBroken():
            return Exit.SEAL
        case BadInput() | click.UsageError() | click.BadParameter():
            return Exit.USAGE
        case RecordedError() | OSError():
            return Exit.STORE
        case click.Abort() | KeyboardInterrupt():
            return Exit.INTERRUPTED
        case _:
            return Exit.INTERNAL


def exit_of(verdict: Verdict, agent_status: int | None) -> int:
    """Return the exit code of `record` and `replay`: the agent's own when all was clean, else ours."""
    match verdict:
        case Verdict.CLEAN:
            return agent_status or 0
        case Verdict.DIVERGED:
            return Exit.DIVERGED
        case Verdict.STORE:
            return Exit.STORE
        case Verdict.FAULT:
            return Exit.INTERNAL
        case _:
            assert_never(verdict)

"""What a run ended with. Values only: commands render them, exit codes follow from `verdict`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from secondtake.cassettes.errors import RecordedError
from secondtake.cassettes.exchange import Answered, Channel


class WouldAct(RecordedError):
    """The recorded tool calls would run in a directory that is not a copy. Nothing was run."""


class Verdict(StrEnum):
    """How a run counts, worst last."""

    CLEAN = "clean"
    DIVERGED = "diverged"
    STORE = "store"
    FAULT = "fault"


@dataclass(frozen=True, slots=True)
class Problem:
    """One reason why a run is not clean, or, when it is `only_a_note`, something a person should know all the same."""

    kind: str
    """A stable word: `nothing-captured`, `record-failed`, `tls-failed`, `escape`, `unplayed`, …"""
    message: str
    hint: str | None = None
    verdict: Verdict = Verdict.CLEAN
    """What it makes of the run; CLEAN for a mere note."""


@dataclass(frozen=True, slots=True)
class Recorded:
    """A recording that ended."""

    name: str
    root: str | None
    """Merkle root, hexadecimal; None when the recording failed."""
    agent_status: int | None
    """The agent's own exit status (128 + n after signal n); None when only the proxy ran."""
    exchanges: Mapping[Channel, int]
    sent_bytes: int
    received_bytes: int
    elapsed_us: int
    problems: tuple[Problem, ...] = ()

    @property
    def total(self) -> int:
        """All exchanges of the recording."""
        return sum(self.exchanges.values())

    @property
    def verdict(self) -> Verdict:
        """The worst of the problems."""
        return worst(self.problems)


@dataclass(frozen=True, slots=True)
class Missed:
    """A request that was not on the cassette."""

    kind: str
    method: str
    url: str
    channel: Channel
    nearest_seq: int | None
    differs: tuple[str, ...]
    """Fields by which the nearest recorded exchange differs."""
    message: str


@dataclass(frozen=True, slots=True)
class Unplayed:
    """A recorded exchange that nobody asked for."""

    seq: int
    method: str
    url: str
    channel: Channel


@dataclass(frozen=True, slots=True)
class Replayed:
    """A replay that ended. The counts in `answered` add up to `requests`."""

    name: str
    agent_status: int | None
    requests: int
    answered: Mapping[Answered, int]
    misses: tuple[Missed, ...]
    unplayed: tuple[Unplayed, ...]
    elapsed_us: int
    ran_in: Path | None = None
    """The scratch copy, where the agent ran in one."""
    problems: tuple[Problem, ...] = field(default=())

    @property
    def verdict(self) -> Verdict:
        """DIVERGED on any miss, else the worst of the problems."""
        return max((Verdict.DIVERGED if self.misses else Verdict.CLEAN), worst(self.problems), key=_rank)


def worst(problems: tuple[Problem, ...]) -> Verdict:
    """Return the worst verdict among `problems`."""
    return max((problem.verdict for problem in problems), key=_rank, default=Verdict.CLEAN)


def _rank(verdict: Verdict) -> int:
    return list(Verdict).index(verdict)

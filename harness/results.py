"""What a run ended with. Values only: commands render them, exit codes follow from `verdict`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

from secondtake.cassettes.errors import RecordedError
from secondtake.cassettes.exchange import Answered, Channel

if TYPE_CHECKING:  # the command line loads this module to know its exit codes
    from secondtake.cassettes.divergence import Divergence
    from secondtake.cassettes.stages import Staged


class WouldAct(RecordedError):
    """The recorded tool calls would run in a directory that is not a copy. Nothing was run."""


class SealBroken(RecordedError):
    """No seal could be made where one is required, or one that was made does not hold."""


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
    seal: str = ""
    """The tier it ran in (`harness.seal.Tier`); empty where only the proxy ran."""
    staged: Staged | None = None
    """The workspace as it was captured, and what that took."""

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
    at_us: int = 0
    """When, since the run's start."""


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
    divergence: Divergence | None = None
    """Where it first left the recording."""
    seal: str = ""
    """The tier it ran in; empty where only the proxy ran."""

    @property
    def verdict(self) -> Verdict:
        """DIVERGED on any miss, else the worst of the problems."""
        return max((Verdict.DIVERGED if self.misses else Verdict.CLEAN), worst(self.problems), key=_rank)


@dataclass(frozen=True, slots=True)
class LiveCall:
    """One model call that left: as what it was asked, as what it went, and who is known to have answered."""

    seq: int
    step: int
    adapter: str
    requested: tuple[str, ...]
    forwarded: str
    served: tuple[str, ...]
    """The models the answer names."""
    proof: str
    """How well it is known who answered: `strong`, `medium`, `weak`, `unverified`."""
    verified: bool
    status: int | None
    mismatch: bool
    infrastructure: str | None
    """What failed that was not the model: 429, 5xx, a time-out, a cut stream."""
    incomplete: bool
    retired: bool
    """The provider does not know the pin, or no longer."""
    incompatible: str | None
    """Why the provider would not take this request for this model."""
    retry_after_s: float | None = None
    """How long the provider asked to wait, where it said."""


@dataclass(frozen=True, slots=True)
class Used:
    """What live model calls took. What an answer did not say is not taken for nothing."""

    tokens: int
    """In and out, of the answers that said."""
    uncounted: int = 0
    """Answers that did not say, or did not finish saying, how many."""
    cost: float | None = None
    """By the prices that were given; None where a price or a count is unknown."""
    unpriced: tuple[str, ...] = ()
    """Models whose calls have no known cost."""
    priced: bool = False
    """Prices were given."""


@dataclass(frozen=True, slots=True)
class Retaken:
    """A retake that ended. The counts in `answered` add up to `requests`; those that are live are `calls`."""

    name: str
    """Of the take."""
    parent: str
    root: str | None
    agent_status: int | None
    requests: int
    answered: Mapping[Answered, int]
    calls: tuple[LiveCall, ...]
    unswapped: tuple[str, ...]
    """Why model calls were not sent."""
    stopped: str | None
    """The stopping rule that was reached."""
    labels: tuple[str, ...]
    """What must be said wherever this take is compared: `unpinned`, `gateway`, …"""
    misses: tuple[Missed, ...]
    unplayed: tuple[Unplayed, ...]
    elapsed_us: int
    ran_in: Path | None = None
    problems: tuple[Problem, ...] = ()
    used: Used = Used(0)
    seal: str = ""
    """The tier it ran in; empty where only the proxy ran."""

    @property
    def mismatches(self) -> tuple[LiveCall, ...]:
        """Calls that another model answered than was asked: they make the take invalid."""
        return tuple(call for call in self.calls if call.mismatch)

    @property
    def infrastructure(self) -> tuple[LiveCall, ...]:
        """Calls that failed for no reason of the model's; counted apart."""
        return tuple(call for call in self.calls if call.infrastructure is not None)

    @property
    def verdict(self) -> Verdict:
        """DIVERGED on any miss, else the worst of the problems."""
        return max((Verdict.DIVERGED if self.misses else Verdict.CLEAN), worst(self.problems), key=_rank)


@dataclass(frozen=True, slots=True)
class Choice:
    """One decision, and the exchanges in which it was taken."""

    calls: tuple[tuple[str, str], ...]
    """(tool, arguments as canonical JSON) in order; empty where no tool was called."""
    exchanges: tuple[int, ...]
    as_recorded: bool
    """The recorded model chose the same."""


@dataclass(frozen=True, slots=True)
class Arm:
    """One model of a probe. `answered`, `refused`, `infrastructure` and `mismatches` add up to `sent`."""

    model: str
    pin_class: str
    sent: int
    answered: int
    refused: int
    """The provider would not take the request for this model: parameters, betas, a model it does not know."""
    infrastructure: int
    mismatches: int
    """Answered by another model; counted in no choice."""
    choices: tuple[Choice, ...]
    """The most frequent first."""


@dataclass(frozen=True, slots=True)
class Probed:
    """A probe that ended."""

    name: str
    """Of its cassette."""
    parent: str
    root: str | None
    seq: int
    """The recorded exchange that was asked again."""
    step: int
    requested: str | None
    """The model that was asked then."""
    recorded: tuple[tuple[str, str], ...] | None
    """What it chose then; None where it gave no answer."""
    arms: tuple[Arm, ...]
    stopped: str | None
    labels: tuple[str, ...]
    problems: tuple[Problem, ...] = ()
    used: Used = Used(0)

    @property
    def verdict(self) -> Verdict:
        """The worst of the problems."""
        return worst(self.problems)


def worst(problems: tuple[Problem, ...]) -> Verdict:
    """Return the worst verdict among `problems`."""
    return max((problem.verdict for problem in problems), key=_rank, default=Verdict.CLEAN)


def _rank(verdict: Verdict) -> int:
    return list(Verdict).index(verdict)

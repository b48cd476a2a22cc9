"""How two runs came out and what they took: acceptance, signature and control side by side; resources shown, not judged."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from secondtake.cassettes.takes import Checked, Take


@dataclass(frozen=True, slots=True)
class Account:
    """What is known of how one run ended. `take`: what a take says about itself; None for a plain recording."""

    models: tuple[str, ...]
    agent_status: int | None
    ended: str | None
    """Why the last answer was the last."""
    model_calls: int
    tool_calls: int
    tokens: int | None
    """In and out; None where an answer did not say."""
    seconds: float | None
    cost: float | None = None
    take: Take | None = None


@dataclass(frozen=True, slots=True)
class Fact:
    """One thing of both sides; None: not known, or not a take. `judged`: where they differ, the runs came out differently."""

    name: str
    a: str | None
    b: str | None
    judged: bool = False

    @property
    def differs(self) -> bool:
        return self.a != self.b


@dataclass(frozen=True, slots=True)
class CheckPair:
    """One assertion of both sides; None where a side has none of that name."""

    section: str
    name: str
    a: Checked | None
    b: Checked | None

    @property
    def differs(self) -> bool:
        """It held on one side only, or was judged on one side only."""
        return (self.a is None) != (self.b is None) or (self.a is not None and self.b is not None and self.a.held != self.b.held)


@dataclass(frozen=True, slots=True)
class Accounted:
    """The fourth layer."""

    facts: tuple[Fact, ...]
    checks: tuple[CheckPair, ...] = ()
    judged: bool = False
    """Both are takes, which were judged. Without that, only how the agents left is compared."""

    @property
    def differs(self) -> bool:
        return any(fact.judged and fact.differs for fact in self.facts) or any(check.differs for check in self.checks)


def compare(a: Account, b: Account) -> Accounted:
    """Set both accounts side by side."""
    both = a.take is not None and b.take is not None
    facts = [*_taken(a.take, b.take, judged=both)] if a.take is not None or b.take is not None else []
    facts.append(Fact("agent status", _text(a.agent_status), _text(b.agent_status), judged=True))
    facts += [
        Fact("answered by", ", ".join(a.models) or None, ", ".join(b.models) or None),
        Fact("last answer", a.ended, b.ended),
        Fact("model calls", _text(a.model_calls), _text(b.model_calls)),
        Fact("tool calls", _text(a.tool_calls), _text(b.tool_calls)),
        Fact("tokens", _text(a.tokens), _text(b.tokens)),
        Fact("seconds", _seconds(a.seconds), _seconds(b.seconds)),
        Fact("cost", _cost(a.cost), _cost(b.cost)),
    ]
    kept = tuple(fact for fact in facts if fact.a is not None or fact.b is not None)
    checks = _checks(a.take.checks, b.take.checks) if a.take is not None and b.take is not None else ()
    return Accounted(kept, checks, both)


def _taken(a: Take | None, b: Take | None, *, judged: bool) -> Iterator[Fact]:
    def fact(name: str, judged_too: bool, read: Sequence[str | None]) -> Fact:
        return Fact(name, read[0], read[1], judged and judged_too)

    takes = (a, b)
    yield fact("outcome", True, [None if one is None else one.column for one in takes])
    yield fact("signature", True, [_signature(one) for one in takes])
    yield fact("control", True, [None if one is None else one.control.value for one in takes])
    yield fact("stayed live", False, [_joined(None if one is None else one.live) for one in takes])
    yield fact("why", False, [None if one is None else one.reason or None for one in takes])
    yield fact("fixture", False, [None if one is None else f"{one.fixture} ({one.fixture_digest[:12]})" for one in takes])
    yield fact("model", False, [None if one is None else f"{one.model} ({one.pin_class})" for one in takes])
    yield fact("arm", False, [None if one is None else f"{one.arm}, repeat {one.repeat}" for one in takes])
    yield fact("stopped", True, [None if one is None else one.stopped for one in takes])
    yield fact("seal", False, [None if one is None else one.tier for one in takes])
    yield fact("refused at the seal", False, [None if one is None else str(one.refused_attempts) for one in takes])
    yield fact("clock", False, [None if one is None else one.clock for one in takes])
    yield fact("commands by", False, [None if one is None else one.commands_from for one in takes])
    yield fact("agent", False, [None if one is None else f"{one.agent} {one.agent_version or ''}".strip() for one in takes])
    yield fact("envelope", False, [None if one is None else one.envelope[:12] for one in takes])
    yield fact("envelope differs at", False, [_joined(None if one is None else one.envelope_differs) for one in takes])
    yield fact("attempts", False, [None if one is None else str(one.attempts) for one in takes])


def _signature(take: Take | None) -> str | None:
    return None if take is None or take.signature is None else f"{take.signature.id} {take.signature.text}"


def _joined(texts: Sequence[str] | None) -> str | None:
    return ", ".join(texts) or None if texts is not None else None


def _checks(a: Sequence[Checked], b: Sequence[Checked]) -> tuple[CheckPair, ...]:
    """By section and name, in A's order, then those only B has. Of one name used twice the n-th stands beside the n-th."""
    left, right = _named(a), _named(b)
    return tuple(CheckPair(key[0], key[1], left.get(key), right.get(key)) for key in dict.fromkeys([*left, *right]))


def _named(checks: Sequence[Checked]) -> dict[tuple[str, str, int], Checked]:
    made: dict[tuple[str, str, int], Checked] = {}
    for one in checks:
        number = 0
        while (one.section, one.name, number) in made:
            number += 1
        made[one.section, one.name, number] = one
    return made


def _text(number: int | None) -> str | None:
    return None if number is None else str(number)


def _seconds(seconds: float | None) -> str | None:
    return None if seconds is None else f"{seconds:.1f}"


def _cost(cost: float | None) -> str | None:
    return None if cost is None else f"{cost:.4f}"

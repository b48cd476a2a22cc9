"""What a take says about itself, as kept in its closing meta under `take`: plain values, and the way to them and back (DESIGN 6)."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Literal

from secondtake.cassettes.errors import BadInput, Corrupt, TooNew
from secondtake.cassettes.plain import Table

if TYPE_CHECKING:
    from secondtake.cassettes.adapters.base import Json

FORMAT_VERSION = 1
"""Raise when an older secondtake would misread what this one writes; a member it may ignore is no reason."""

KIND = "take"
"""`kind` in the meta of a cassette that is a take, and the member with its last word.

What its first tree holds lies in the fixture; what changed, in itself."""

type Section = Literal["failure", "acceptance"]


class Outcome(StrEnum):
    """How a take counts. The last two leave the pass rate and are counted in columns of their own."""

    PASS = "pass"  # noqa: S105  # an outcome, no password
    SAME = "same failure"
    OTHER = "other failure"
    CONTAMINATED = "contaminated"
    """A miss on a channel other than the model's was answered before the failing step: not the model's fault."""
    INFRASTRUCTURE = "infrastructure"
    """The run ended because of a 429, a 5xx, a time-out or a cut stream. A fault the agent got over is an event only."""


class Control(StrEnum):
    """How much of what could change the result was held, by what happened."""

    CONTROLLED = "controlled"
    PARTIALLY = "partially controlled"
    UNCONTROLLED = "uncontrolled"


@dataclass(frozen=True, slots=True)
class Signature:
    """The normalised identity of a failure. `id`: 12 hexadecimal digits of the parts' SHA-256; `text`: one line for people."""

    id: str
    text: str
    parts: tuple[tuple[str, str], ...]

    @classmethod
    def of(cls, parts: Sequence[tuple[str, str]]) -> Signature:
        """The signature that `parts`, in their order, make. A text of a part that is empty is left out of the line."""
        told = tuple((name, value) for name, value in parts)
        exact = json.dumps(told, ensure_ascii=True, separators=(",", ":"))
        line = "; ".join(f"{name} {value}" for name, value in told if value)
        return cls(hashlib.sha256(exact.encode()).hexdigest()[:12], line, told)


@dataclass(frozen=True, slots=True)
class Checked:
    """One assertion, judged."""

    name: str
    kind: str
    section: Section
    held: bool | None
    """None: it could not be judged, and `evidence` says why."""
    evidence: str
    """Short, redacted; whoever shows it escapes it."""
    took_us: int
    exit_class: str = ""
    """How its command ended (signatures.exit_class); empty where it ran none."""
    first: str = ""
    """The first failing test, or the first line of the error, normalised; empty where nothing failed or it ran no command."""


@dataclass(frozen=True, slots=True)
class Resources:
    """What a take used. `tokens` and `cost`: None where an answer did not say, or no price is known."""

    model_calls: int
    tool_calls: int
    tokens: int | None
    cost: float | None
    seconds: float


@dataclass(frozen=True, slots=True)
class Take:
    """One run of a recorded scene, as it is kept."""

    fixture: str
    fixture_digest: str
    model: str
    pin_class: str
    arm: str
    repeat: int
    outcome: Outcome
    signature: Signature | None
    """Of the failure; None for a take that passed."""
    checks: tuple[Checked, ...]
    control: Control
    live: tuple[str, ...]
    """What stayed live, or why it is not controlled: one phrase each."""
    tier: str
    """Of the seal."""
    refused_attempts: int
    holes: tuple[str, ...]
    clock: str
    commands_from: str
    """`kernel` or `model traffic`."""
    resources: Resources
    agent: str
    agent_version: str | None
    agent_status: int | None
    stopped: str | None
    """The stopping rule that was reached."""
    envelope: str
    """Its fingerprint."""
    envelope_differs: tuple[str, ...]
    start_tree: str
    final_tree: str
    reason: str
    """Why this outcome, in one line."""
    matrix: str = ""
    warm_up: bool = False
    unpinned: bool = False
    """A label: the model was not held by its ID."""
    mismatches: int = 0
    """Live calls that another model answered than was asked; any makes the take invalid."""
    attempts: int = 1
    """1 + how often the cell was run again after an infrastructure failure."""
    invalid: str = ""
    """Why this take says nothing of its model, whatever its outcome: another model answered, the pin is retired. Empty: it is valid."""
    proof: str = ""
    """How well it is known who answered, by the weakest of the calls: `strong`, `medium`, `weak`, `unverified`; empty without a call."""

    @property
    def counts(self) -> bool:
        """Whether it is part of the pass rate: valid, no warm-up, and neither contaminated nor ended by infrastructure."""
        return not self.invalid and not self.warm_up and self.outcome not in {Outcome.CONTAMINATED, Outcome.INFRASTRUCTURE}

    @property
    def column(self) -> str:
        """The column it is counted in: its outcome, or `invalid`."""
        return "invalid" if self.invalid else self.outcome.value


def encode(take: Take) -> dict[str, Json]:
    """`take` as plain values, for JSON and msgpack.

    Raises:
        BadInput: a number in it is not finite, or a text is too long to be read back.
    """
    signature = take.signature
    made: dict[str, Json] = {
        "format": FORMAT_VERSION,
        "fixture": take.fixture,
        "fixture_digest": take.fixture_digest,
        "model": take.model,
        "pin_class": take.pin_class,
        "arm": take.arm,
        "repeat": take.repeat,
        "outcome": take.outcome.value,
        "signature": None
        if signature is None
        else {"id": signature.id, "text": signature.text, "parts": [[name, value] for name, value in signature.parts]},
        "checks": [encode_checked(one) for one in take.checks],
        "control": take.control.value,
        "live": list(take.live),
        "tier": take.tier,
        "refused_attempts": take.refused_attempts,
        "holes": list(take.holes),
        "clock": take.clock,
        "commands_from": take.commands_from,
        "resources": {
            "model_calls": take.resources.model_calls,
            "tool_calls": take.resources.tool_calls,
            "tokens": take.resources.tokens,
            "cost": take.resources.cost,
            "seconds": take.resources.seconds,
        },
        "agent": take.agent,
        "agent_version": take.agent_version,
        "agent_status": take.agent_status,
        "stopped": take.stopped,
        "envelope": take.envelope,
        "envelope_differs": list(take.envelope_differs),
        "start_tree": take.start_tree,
        "final_tree": take.final_tree,
        "reason": take.reason,
        "matrix": take.matrix,
        "warm_up": take.warm_up,
        "unpinned": take.unpinned,
        "mismatches": take.mismatches,
        "attempts": take.attempts,
        "invalid": take.invalid,
        "proof": take.proof,
    }
    try:
        decode(made)
    except Corrupt as error:
        raise BadInput(f"a take that could not be read back: {error}") from None
    return made


def decode(kept: object) -> Take:
    """The take that `kept`, a member of a closing meta, holds. Members it does not know are passed over.

    Raises:
        TooNew: written in a later format.
        Corrupt: not such a value; the message names the member.
    """
    read = Table.of(kept, "take")
    version = read.number("format")
    if version > FORMAT_VERSION:
        raise TooNew(f"the take is in format {version}; this secondtake reads {FORMAT_VERSION}", hint="update secondtake")
    used = read.table("resources")
    return Take(
        fixture=read.text("fixture"),
        fixture_digest=read.text("fixture_digest"),
        model=read.text("model"),
        pin_class=read.text("pin_class"),
        arm=read.text("arm"),
        repeat=read.number("repeat"),
        outcome=read.one_of("outcome", Outcome),
        signature=None if read.value("signature") is None else _signature(read.table("signature")),
        checks=tuple(decode_checked(one) for one in read.tables("checks")),
        control=read.one_of("control", Control),
        live=read.texts("live"),
        tier=read.text("tier"),
        refused_attempts=read.number("refused_attempts"),
        holes=read.texts("holes"),
        clock=read.text("clock"),
        commands_from=read.text("commands_from"),
        resources=Resources(
            model_calls=used.number("model_calls"),
            tool_calls=used.number("tool_calls"),
            tokens=used.number_or_none("tokens"),
            cost=used.real_or_none("cost"),
            seconds=used.real("seconds"),
        ),
        agent=read.text("agent"),
        agent_version=read.text_or_none("agent_version"),
        agent_status=read.number_or_none("agent_status"),
        stopped=read.text_or_none("stopped"),
        envelope=read.text("envelope"),
        envelope_differs=read.texts("envelope_differs"),
        start_tree=read.text("start_tree"),
        final_tree=read.text("final_tree"),
        reason=read.text("reason"),
        matrix=read.text("matrix", ""),
        warm_up=read.truth("warm_up"),
        unpinned=read.truth("unpinned"),
        mismatches=read.number("mismatches", 0),
        attempts=read.number("attempts", 1),
        invalid=read.text("invalid", ""),
        proof=read.text("proof", ""),
    )


def of(meta: Mapping[str, object]) -> Take | None:
    """The take that a cassette's meta tells of; None for a recording, and for a take that has no last word. Raises TooNew, Corrupt."""
    said = meta.get(KIND)
    return None if said is None else decode(said)


def _signature(read: Table) -> Signature:
    parts = read.pairs("parts")
    made = Signature.of(parts)
    if made.id != read.text("id"):
        raise Corrupt("take.signature.id is not the one of its parts")
    return made


def encode_checked(one: Checked) -> dict[str, Json]:
    """One judged check as plain values."""
    return {
        "name": one.name,
        "kind": one.kind,
        "section": one.section,
        "held": one.held,
        "evidence": one.evidence,
        "took_us": one.took_us,
        "exit_class": one.exit_class,
        "first": one.first,
    }


def decode_checked(read: Table) -> Checked:
    """The counterpart of `encode_checked`. Raises Corrupt."""
    section = read.text("section")
    if section not in {"failure", "acceptance"}:
        raise Corrupt(f"{read.where}.section is unknown: {section[:80]!r}")
    return Checked(
        name=read.text("name"),
        kind=read.text("kind"),
        section="failure" if section == "failure" else "acceptance",
        held=read.truth_or_none("held"),
        evidence=read.text("evidence"),
        took_us=read.number("took_us"),
        exit_class=read.text("exit_class", ""),
        first=read.text("first", ""),
    )

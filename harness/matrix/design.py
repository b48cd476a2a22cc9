"""The design of a matrix: what is compared and how often, sealed before the first call.

The file `design.json` holds exactly the canonical bytes of the design, so that `sha256sum` gives the seal. The matrix's ID ends in the
first digits of the digest of its setting: all but how many repeats are wanted, and what changes no result (jobs, pacing, the cost of the
whole, when it was made). Each take carries that ID.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Sequence
from dataclasses import astuple, dataclass, field, replace
from enum import StrEnum

from secondtake.cassettes.canonical import Json, dump_json
from secondtake.cassettes.errors import BadInput, Corrupt, TooNew
from secondtake.cassettes.plain import Table

FORMAT_VERSION = 1
"""Raise when an older secondtake would misread what this one writes."""

DESIGN_BYTES = 4 * 1024 * 1024
"""The longest design that is read."""

REPEATS = 5
ATTEMPTS = 3
"""How often one cell is run at most, when infrastructure fails it."""

MOST_REPEATS = 1_000
MOST_ARMS = 100
LABEL_CHARACTERS = 60
"""Of an ID, before its digits: a take's name is longer than its matrix's and has its own limit."""


_OUTSIDE = frozenset({"looks", "jobs", "pacing", "max_cost", "created", "format"})
"""What is sealed with a design and is no part of its setting."""


class Axis(StrEnum):
    """What an arm may change beside the model."""

    INSTRUCTIONS = "instructions"
    PARAMETERS = "parameters"
    TOOLS = "tools"
    AGENT = "agent"


@dataclass(frozen=True, slots=True)
class Change:
    """The one thing that an arm changes beside its model."""

    axis: Axis
    label: str
    """As the row is named: `old prompt`, `temperature=0`."""
    value: Json
    """instructions: an object of file, where it is put, and its sha256; parameters: `NAME=JSON` each; tools: those that are left; agent: a
    command line as words."""


@dataclass(frozen=True, slots=True)
class Arm:
    """One row of the table: a model, and at most one thing that is changed beside it."""

    name: str
    model: str
    """`PIN`, or `REQUESTED=PIN` parted by commas where an agent asks several."""
    provider: str = ""
    """Whose limits it shares: a host. Arms of one provider are paced together."""
    pin_class: str = ""
    unpinned: bool = False
    control: bool = False
    """The model of the recording with nothing changed: it tells drift of provider or harness from the candidate."""
    change: Change | None = None


@dataclass(frozen=True, slots=True)
class Pacing:
    """How gently a provider is asked."""

    gap_s: float = 0.0
    """Between the starts of two takes at one provider."""
    back_off_s: float = 15.0
    """After the first 429 or 5xx; doubled each time it comes again, up to `longest_s`."""
    longest_s: float = 600.0


@dataclass(frozen=True, slots=True)
class Limits:
    """Of each take, enforced at the wire. None: the fixture's own."""

    calls: int | None = None
    tokens: int | None = None
    seconds: float | None = None
    cost: float | None = None


@dataclass(frozen=True, slots=True)
class Design:
    """Everything that is fixed before the first call."""

    label: str
    fixture: str
    fixture_digest: str
    arms: tuple[Arm, ...]
    """The first is the baseline."""
    looks: tuple[int, ...] = (REPEATS,)
    """Repeats per arm; each top-up adds a number. The last one holds."""
    seed: int = 0
    """Of the order of arms within a round."""
    jobs: int = 1
    attempts: int = ATTEMPTS
    warm_up: bool = True
    pacing: Pacing = field(default_factory=Pacing)
    limits: Limits = field(default_factory=Limits)
    max_cost: float | None = None
    """Of the whole matrix: no take is begun that would likely go beyond."""
    seal: str = "auto"
    options: tuple[str, ...] = ()
    """What else may change a result, the same in every arm: rules, channels that stay live, a gateway."""
    created: str = ""
    """ISO 8601; no part of the setting."""

    def __post_init__(self) -> None:
        names = [arm.name for arm in self.arms]
        if not names or len(names) > MOST_ARMS:
            raise BadInput(f"a matrix has 1 to {MOST_ARMS} arms, not {len(names)}")
        if len({name.casefold() for name in names}) != len(names):
            raise BadInput(f"two arms have one name: {', '.join(names)}", hint="name what is changed: --instructions 'old prompt=FILE'")
        if not self.looks or list(self.looks) != sorted(set(self.looks)) or self.looks[0] < 1 or self.looks[-1] > MOST_REPEATS:
            raise BadInput(f"repeats are 1 to {MOST_REPEATS} and only grow: {', '.join(map(str, self.looks))}")
        if self.jobs < 1 or self.attempts < 1:
            raise BadInput("at least one job, and one attempt for each cell")
        for number in (*astuple(self.limits), *astuple(self.pacing), self.max_cost):
            if number is not None and not (math.isfinite(number) and number >= 0):
                raise BadInput(f"a bound is a number of zero or more, not {number}")

    @property
    def repeats(self) -> int:
        """How many repeats each arm gets."""
        return self.looks[-1]

    @property
    def baseline(self) -> Arm:
        """What the others are compared with."""
        return self.arms[0]

    @property
    def id(self) -> str:
        """`LABEL-xxxxxxxxxxxx`: the digits are those of the setting's digest."""
        setting = {name: value for name, value in encode(self).items() if name not in _OUTSIDE}
        return f"{self.label[:LABEL_CHARACTERS]}-{hashlib.sha256(dump_json(setting)).hexdigest()[:12]}"

    @property
    def content(self) -> bytes:
        """The bytes that are sealed."""
        return dump_json(encode(self)) + b"\n"

    @property
    def digest(self) -> str:
        """SHA-256 of `content`, hexadecimal: the seal."""
        return hashlib.sha256(self.content).hexdigest()


def encode(design: Design) -> dict[str, Json]:
    """The design as plain values."""
    return {
        "format": FORMAT_VERSION,
        "label": design.label,
        "fixture": design.fixture,
        "fixture_digest": design.fixture_digest,
        "arms": [_arm(arm) for arm in design.arms],
        "looks": list(design.looks),
        "seed": design.seed,
        "jobs": design.jobs,
        "attempts": design.attempts,
        "warm_up": design.warm_up,
        "pacing": {
            "gap_s": _real(design.pacing.gap_s),
            "back_off_s": _real(design.pacing.back_off_s),
            "longest_s": _real(design.pacing.longest_s),
        },
        "limits": {
            "calls": design.limits.calls,
            "tokens": design.limits.tokens,
            "seconds": _real(design.limits.seconds),
            "cost": _real(design.limits.cost),
        },
        "max_cost": _real(design.max_cost),
        "seal": design.seal,
        "options": list(design.options),
        "created": design.created,
    }


def _real(value: float | None) -> float | None:
    """One spelling for one number: 60 and 60.0 are the same design."""
    return None if value is None else float(value)


def _arm(arm: Arm) -> dict[str, Json]:
    change = arm.change
    return {
        "name": arm.name,
        "model": arm.model,
        "provider": arm.provider,
        "pin_class": arm.pin_class,
        "unpinned": arm.unpinned,
        "control": arm.control,
        "change": None if change is None else {"axis": change.axis.value, "label": change.label, "value": change.value},
    }


def decode(content: bytes) -> Design:
    """Read a design file.

    Raises:
        Corrupt: it is not the canonical form of a design, so its digest seals nothing; TooNew: written in a later format.
    """
    if len(content) > DESIGN_BYTES:
        raise Corrupt(f"a design of more than {DESIGN_BYTES} bytes")
    try:
        kept = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise Corrupt(f"the design is no JSON: {error}") from None
    read = Table.of(kept, "design")
    version = read.number("format")
    if version > FORMAT_VERSION:
        raise TooNew(f"the design is in format {version}; this secondtake reads {FORMAT_VERSION}", hint="update secondtake")
    pacing, limits = read.table("pacing"), read.table("limits")
    try:
        design = Design(
            label=read.text("label"),
            fixture=read.text("fixture"),
            fixture_digest=read.text("fixture_digest"),
            arms=tuple(_read_arm(arm) for arm in read.tables("arms")),
            looks=_numbers(read.value("looks")),
            seed=read.number("seed"),
            jobs=read.number("jobs"),
            attempts=read.number("attempts"),
            warm_up=read.truth("warm_up"),
            pacing=Pacing(pacing.real("gap_s"), pacing.real("back_off_s"), pacing.real("longest_s")),
            limits=Limits(
                limits.number_or_none("calls"),
                limits.number_or_none("tokens"),
                limits.real_or_none("seconds"),
                limits.real_or_none("cost"),
            ),
            max_cost=read.real_or_none("max_cost"),
            seal=read.text("seal"),
            options=read.texts("options"),
            created=read.text("created"),
        )
    except BadInput as error:
        raise Corrupt(f"the design cannot be one: {error}") from None
    if design.content != content:
        raise Corrupt("the design was changed after it was sealed, or is not written as it is sealed")
    return design


def _read_arm(read: Table) -> Arm:
    change = None
    if read.value("change") is not None:
        kept = read.table("change")
        value: Json = kept.value("value")  # type: ignore[assignment]  # it came from JSON
        change = Change(kept.one_of("axis", Axis), kept.text("label"), value)
    return Arm(
        read.text("name"),
        read.text("model"),
        read.text("provider"),
        read.text("pin_class"),
        read.truth("unpinned"),
        read.truth("control"),
        change,
    )


def _numbers(value: object) -> tuple[int, ...]:
    if not isinstance(value, list) or not all(isinstance(one, int) and not isinstance(one, bool) for one in value):
        raise Corrupt("design.looks are no numbers")
    return tuple(value)


def arms_of(models: Sequence[Arm], changes: Sequence[Change], *, recorded: Arm | None) -> tuple[Arm, ...]:
    """Lay out the rows: the models in the order given, the control where none of them is it, then one row per change.

    A change is tried with the last model given, the candidate; its row is named `MODEL with LABEL`. `recorded` is the model of the
    recording, None where no control arm is wanted.

    Raises:
        BadInput: a model is given twice.
    """
    if len({arm.model for arm in models}) != len(models):
        raise BadInput("a --model is given twice", hint="--repeats says how often each is run")
    rows = [replace(arm, control=recorded is not None and arm.model == recorded.model) for arm in models]
    if recorded is not None and not any(arm.control for arm in rows):
        rows.append(replace(recorded, control=True))
    candidate = models[-1]
    rows += [replace(candidate, name=f"{candidate.name} with {change.label}", control=False, change=change) for change in changes]
    return tuple(rows)


def differences(old: Design, new: Design) -> tuple[str, ...]:
    """Name the parts of the setting in which two designs differ, for a person who wanted to resume one with the other."""
    before, after = encode(old), encode(new)
    return tuple(name for name in before if name not in _OUTSIDE and before[name] != after.get(name))

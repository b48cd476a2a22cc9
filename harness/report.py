"""From takes to a report: one row per arm, each number with what it rests on. Pure: the same takes give the same report.

A take is in exactly one column: passed, same failure, other failure (these three count), contaminated, infrastructure, invalid. Warm-up
takes are in none. Medians and signatures are those of the takes that count.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from secondtake.cassettes.outcomes import Headline, headline, study
from secondtake.cassettes.takes import Control, Outcome, Take
from secondtake.harness.comparison import Comparison, Tally, compare, outlook
from secondtake.harness.matrix.cells import Named, once
from secondtake.harness.matrix.design import Arm, Design
from secondtake.harness.statistics import Interval, Spread, pass_power, spread, wilson

VERSION = 1
"""Of the values below, as JSON holds them. Raise when one changes its meaning or goes away."""

QUARTILES = "linear interpolation (Hyndman and Fan, type 7)"
"""How medians and quartiles are taken."""

type Counts = tuple[tuple[str, int], ...]
"""Phrases with how often they were said, the most frequent first."""


@dataclass(frozen=True, slots=True)
class Failure:
    """One signature, and the takes that have it."""

    id: str
    text: str
    count: int
    recorded: bool
    """It is the incident's own: these takes are `same failure`."""
    takes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Rate:
    """Passes of runs, with the Wilson interval of 95 %. `value` is None without runs."""

    passed: int
    runs: int
    value: float | None
    interval: Interval

    @classmethod
    def of(cls, passed: int, runs: int) -> Rate:
        """The rate of so many passes."""
        return cls(passed, runs, passed / runs if runs else None, wilson(passed, runs))


@dataclass(frozen=True, slots=True)
class Used:
    """What the takes that count used. None: nothing counted, or no take said."""

    model_calls: Spread | None
    tool_calls: Spread | None
    tokens: Spread | None
    seconds: Spread | None
    cost: Spread | None


@dataclass(frozen=True, slots=True)
class Row:
    """One arm."""

    arm: str
    model: str
    pin_class: str
    unpinned: bool
    control: bool
    """The model of the recording with nothing changed, run again."""
    baseline: bool
    changed: str
    """What differs beside the model; empty where nothing does."""
    repeats: int
    """Cells that are settled."""
    planned: int
    rate: Rate
    strict: Rate
    """With contaminated and infrastructure takes counted as failures, each attempt as one."""
    same: int
    other: int
    contaminated: int
    infrastructure: int
    """Attempts that infrastructure ended; all but `given_up` were run again."""
    given_up: int
    invalid: int
    invalid_reasons: Counts
    used: Used
    pass_powers: tuple[float, ...]
    """pass^1, pass^2, … up to the number of takes that count."""
    failures: tuple[Failure, ...]
    label: Control | None
    """The weakest of its takes that count; None without one."""
    labels: Counts
    live: Counts
    """What stayed live, or why a take is not controlled."""
    tiers: Counts
    clocks: Counts
    agents: Counts
    envelope_differs: Counts
    holes: Counts
    refused_attempts: int
    comparison: Comparison | None
    """With the baseline; None for the baseline itself."""
    takes: tuple[Named, ...]
    """Every one but warm-ups, in order of repeat and attempt."""


@dataclass(frozen=True, slots=True)
class Report:
    """A matrix, as far as it has come."""

    matrix: str
    fixture: str
    fixture_digest: str
    sealed: str | None
    """SHA-256 of the design; None without one."""
    created: str
    looks: tuple[int, ...]
    rows: tuple[Row, ...]
    headline: str
    reproduced: int
    reproduced_of: int
    """Takes of the control arm that count."""
    study: str | None
    """The sentence that stands in every report which is no proof, and what was not held; None where the recorded failure came back and
    every take that counts was controlled."""
    label: Control | None
    live: Counts
    takes: int
    warm_ups: int
    complete: bool
    cost: float | None
    """Of every take, warm-ups included; None where one is unknown."""
    model_calls: int
    seconds: float
    outlook: str
    """What so many repeats can show at all; empty without a design or anything to compare."""
    notes: tuple[str, ...]
    version: int = VERSION


def report(takes: Iterable[Named], design: Design | None = None, *, cut: Sequence[str] = ()) -> Report:
    """Make the report of one matrix. Without a design, the arms are those of the takes and the first is the baseline.

    `cut`: takes that were begun and never closed.
    """
    kept, copies = once(takes)
    kept.sort(key=lambda one: (one.take.repeat, one.take.attempts, one.name))
    counted = [one for one in kept if not one.take.warm_up]
    arms = design.arms if design is not None else _arms(counted)
    tallies = [_tally(arm, counted) for arm in arms]
    compared = compare(tallies[1:], tallies[0]) if tallies else ()
    rows = tuple(
        _row(arm, counted, design, baseline=number == 0, comparison=compared[number - 1] if number else None)
        for number, arm in enumerate(arms)
    )
    control = [one.take for row in rows if row.control for one in row.takes]
    again = _headline(control, tested=any(row.control for row in rows))
    label = _weakest(row.label for row in rows)
    held = not again.study and label is Control.CONTROLLED
    costs = [one.take.resources.cost for one in kept]
    first = kept[0].take if kept else None
    live = _counts(phrase for row in rows for one in row.takes if one.take.counts for phrase in one.take.live)
    return Report(
        matrix=design.id if design is not None else first.matrix if first else "",
        fixture=design.fixture if design is not None else first.fixture if first else "",
        fixture_digest=design.fixture_digest if design is not None else first.fixture_digest if first else "",
        sealed=design.digest if design is not None else None,
        created=design.created if design is not None else "",
        looks=design.looks if design is not None else (),
        rows=rows,
        headline=again.text,
        reproduced=again.reproduced,
        reproduced_of=again.counted,
        study=None if held else study([one.take for row in rows for one in row.takes if one.take.counts]),
        label=label,
        live=live,
        takes=len(counted),
        warm_ups=len(kept) - len(counted),
        complete=bool(rows) and all(row.repeats >= row.planned for row in rows),
        cost=None if any(cost is None for cost in costs) else sum(cost for cost in costs if cost is not None),
        model_calls=sum(one.take.resources.model_calls for one in kept),
        seconds=sum(one.take.resources.seconds for one in kept),
        outlook=outlook(design.repeats) if design is not None and len(arms) > 1 else "",
        notes=tuple(_notes(rows, design, kept, copies, cut)),
    )


def _arms(takes: Sequence[Named]) -> tuple[Arm, ...]:
    found: dict[str, Arm] = {}
    for one in takes:
        take = one.take
        found.setdefault(take.arm, Arm(take.arm, take.model, pin_class=take.pin_class, unpinned=take.unpinned))
    return tuple(found.values())


def _tally(arm: Arm, takes: Sequence[Named]) -> Tally:
    ours = [one.take for one in takes if one.take.arm == arm.name and one.take.counts]
    return Tally(arm.name, sum(take.outcome is Outcome.PASS for take in ours), len(ours))


def _row(arm: Arm, takes: Sequence[Named], design: Design | None, *, baseline: bool, comparison: Comparison | None) -> Row:
    named = tuple(one for one in takes if one.take.arm == arm.name)
    ours = [one.take for one in named]
    counting = [take for take in ours if take.counts]
    columns = Counter(take.column for take in ours)
    passed = sum(take.outcome is Outcome.PASS for take in counting)
    valid = [take for take in ours if not take.invalid]
    settled = {take.repeat for take in ours if take.column != Outcome.INFRASTRUCTURE}
    attempts = Counter({take.repeat: take.attempts for take in sorted(ours, key=lambda take: take.attempts)})
    allowed = design.attempts if design is not None else 1
    given_up = {repeat for repeat, number in attempts.items() if repeat not in settled and number >= allowed}
    return Row(
        arm=arm.name,
        model=arm.model,
        pin_class=arm.pin_class or (ours[0].pin_class if ours else ""),
        unpinned=arm.unpinned or any(take.unpinned for take in ours),
        control=arm.control,
        baseline=baseline,
        changed=arm.change.label if arm.change is not None else "",
        repeats=len(settled | given_up),
        planned=design.repeats if design is not None else len(attempts),
        rate=Rate.of(passed, len(counting)),
        strict=Rate.of(passed, len(valid)),
        same=columns[Outcome.SAME],
        other=columns[Outcome.OTHER],
        contaminated=columns[Outcome.CONTAMINATED],
        infrastructure=columns[Outcome.INFRASTRUCTURE],
        given_up=len(given_up),
        invalid=columns["invalid"],
        invalid_reasons=_counts(take.invalid for take in ours if take.invalid),
        used=_used(counting),
        pass_powers=tuple(value for k in range(1, len(counting) + 1) if (value := pass_power(passed, len(counting), k)) is not None),
        failures=_failures([one for one in named if one.take.counts]),
        label=_weakest(take.control for take in counting),
        labels=_counts(str(take.control) for take in counting),
        live=_counts(phrase for take in counting for phrase in take.live),
        tiers=_counts(take.tier for take in ours),
        clocks=_counts(take.clock for take in ours),
        agents=_counts(" ".join(filter(None, (take.agent, take.agent_version))) for take in ours),
        envelope_differs=_counts(phrase for take in ours for phrase in take.envelope_differs),
        holes=_counts(phrase for take in ours for phrase in take.holes),
        refused_attempts=sum(take.refused_attempts for take in ours),
        comparison=comparison,
        takes=named,
    )


def _used(takes: Sequence[Take]) -> Used:
    resources = [take.resources for take in takes]
    return Used(
        spread([used.model_calls for used in resources]),
        spread([used.tool_calls for used in resources]),
        spread([used.tokens for used in resources if used.tokens is not None]),
        spread([used.seconds for used in resources]),
        spread([used.cost for used in resources if used.cost is not None]),
    )


def _failures(takes: Sequence[Named]) -> tuple[Failure, ...]:
    """Signatures of the takes that count, the most frequent first."""
    found: dict[str, list[Named]] = {}
    for one in takes:
        if one.take.outcome is not Outcome.PASS:
            signature = one.take.signature
            found.setdefault(signature.id if signature is not None else "", []).append(one)
    made = []
    for identity, ones in found.items():
        signature = ones[0].take.signature
        text = signature.text if signature is not None else "(no signature)"
        # What was cut off by a bound has another signature than the incident, although its checks say the same.
        same = any(one.take.outcome is Outcome.SAME and one.take.stopped is None for one in ones)
        made.append(Failure(identity, text, len(ones), same, tuple(one.name for one in ones)))
    return tuple(sorted(made, key=lambda failure: (-failure.count, not failure.recorded, failure.text)))


def _headline(control: Sequence[Take], *, tested: bool) -> Headline:
    """What running the original model again came to, also where it was not run, or to no avail."""
    found = headline(control)
    if not tested:
        return replace(found, text="NOT RUN AGAIN: no arm has the model of the recording")
    if not found.counted:
        return replace(found, text="NO TAKE COUNTS of the model of the recording")
    if not found.reproduced:
        return replace(found, text=f"{found.text} ({found.reproduced}/{found.counted})")
    return found


def _weakest(labels: Iterable[Control | None]) -> Control | None:
    order = list(Control)
    return max((label for label in labels if label is not None), key=order.index, default=None)


def _counts(phrases: Iterable[str]) -> Counts:
    found = Counter(phrase for phrase in phrases if phrase)
    return tuple(sorted(found.items(), key=lambda item: (-item[1], item[0])))


def _notes(rows: Sequence[Row], design: Design | None, kept: Sequence[Named], copies: Sequence[Named], cut: Sequence[str]) -> Iterable[str]:
    """What a reader must know beside the numbers."""
    if design is not None and len(design.looks) > 1:
        looks = ", then ".join(map(str, design.looks))
        yield f"Repeats were topped up after results were seen ({looks}): p values and intervals are not corrected for that."
    short = [row for row in rows if row.repeats < row.planned]
    if short:
        yield "Not finished: " + ", ".join(f"{row.arm} has {row.repeats} of {row.planned}" for row in short) + "."
    for row in rows:
        if row.given_up:
            yield f"{row.arm}: {row.given_up} of {row.planned} cells were given up; infrastructure failed every attempt."
        for column in (Outcome.CONTAMINATED, Outcome.INFRASTRUCTURE):
            for reason, number in _counts(one.take.reason for one in row.takes if one.take.column == column):
                yield f"{row.arm}: {number} {column}, {reason}."
        for reason, number in row.invalid_reasons:
            yield f"{row.arm}: {number} invalid, {reason}."
        if row.unpinned:
            yield f"{row.arm}: unpinned; what stands behind {row.model} may have changed between takes."
    digests = {one.take.fixture_digest for one in kept} - ({design.fixture_digest} if design is not None else set())
    if digests and (design is not None or len(digests) > 1):
        yield "Not all takes are of one fixture: its digest differs."
    if cut:
        yield f"{len(cut)} take{'s were' if len(cut) > 1 else ' was'} cut off before the end and run again: {', '.join(cut[:5])}."
    if copies:
        yield f"{len(copies)} copies of takes are not counted twice."

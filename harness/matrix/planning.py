"""From what was typed to a design that can be sealed: every pin judged, every file read, and its cost told before the first call."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from secondtake.cassettes.casting import Casting
from secondtake.cassettes.errors import BadInput
from secondtake.cassettes.swap import check_rules
from secondtake.harness.cast import asked_in, casting_of, stops_of
from secondtake.harness.fixture.staging import redactor_of
from secondtake.harness.matrix.cells import Cell, due
from secondtake.harness.matrix.design import ATTEMPTS, REPEATS, Arm, Axis, Change, Design, Limits, Pacing, arms_of
from secondtake.harness.matrix.estimate import Estimate, Spent, estimate, spent_in
from secondtake.harness.matrix.running import models_of, rules_of

if TYPE_CHECKING:
    from secondtake.cassettes.stops import Price
    from secondtake.harness.cast import Asking
    from secondtake.harness.fixture import Fixture
    from secondtake.harness.matrix.cells import Named
    from secondtake.harness.plan import HostRules, Recast, Stage

FILE_BYTES = 1024 * 1024
"""Of instructions."""


@dataclass(frozen=True, slots=True)
class Instructions:
    """Another file of rules: an arm of its own."""

    label: str
    file: Path
    target: str | None = None
    """Where it is put in the workspace; None: in the place of the first file of rules that is there."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What was typed."""

    models: tuple[str, ...]
    """One arm each: `PIN`, or `REQUESTED=PIN` parted by commas."""
    repeats: int = REPEATS
    jobs: int = 1
    attempts: int = ATTEMPTS
    instructions: tuple[Instructions, ...] = ()
    changes: tuple[Change, ...] = ()
    """The other axes."""
    control: bool = True
    warm_up: bool = True
    pacing: Pacing = field(default_factory=Pacing)
    max_cost: float | None = None
    seal: str = "auto"
    label: str | None = None
    seed: int | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    """A design, and what running it needs beside it."""

    design: Design
    files: Mapping[str, Mapping[str, Path]]
    """By arm: files of the workspace that stand in for others."""
    recorded: tuple[Spent, ...]
    prices: Mapping[str, Price]

    def estimate(self, takes: Sequence[Named]) -> Estimate:
        """What is left will likely cost, given the takes there are."""
        return self.of(due(self.design, takes))

    def of(self, cells: Sequence[Cell]) -> Estimate:
        """What these cells will likely cost."""
        design = self.design
        pins = {arm.name: dict(Casting.of(models_of(arm), allow_unpinned=True).pins) for arm in design.arms}
        limits = design.limits
        return estimate(
            cells, self.recorded, pins, self.prices, attempts=design.attempts, calls=limits.calls, cost_each=limits.cost
        )  # fmt: skip


def planned(stage: Stage, fixture: Fixture, wanted: Wanted, recast: Recast, wire: HostRules) -> Plan:
    """Judge what was typed against the fixture. `recast` and `wire` are what all arms share.

    Raises:
        BadInput: a pin is not held fixed, a file cannot be read, a change cannot be made, two arms have one name, a price is missing
            under a bound on cost; NotFound, Corrupt, TooNew: the fixture.
    """
    with fixture.open_cassette() as cassette:
        places, recorded = asked_in(cassette), spent_in(cassette)
    asked = [_arm(stage, recast, places, model) for model in wanted.models]
    own = _recorded_arm(stage, recast, places, recorded, [arm.model for arm in asked]) if wanted.control else None
    changes, files = _changes(fixture, wanted)
    arms = arms_of(asked, changes, recorded=own)
    _refuse_secrets(stage, wanted)
    for arm in arms:
        check_rules(rules_of(arm))
    stops = stops_of(replace(recast.bounds, cost=wanted.max_cost))
    stops.refuse_unpriced([pin for arm in arms for pin in Casting.of(models_of(arm), allow_unpinned=True).pins.values()])
    stop = fixture.stop
    design = Design(
        label=wanted.label or label_of(fixture.name),
        fixture=fixture.name,
        fixture_digest=fixture.digest,
        arms=arms,
        looks=(wanted.repeats,),
        seed=int(fixture.digest[:8], 16) if wanted.seed is None else wanted.seed,
        jobs=wanted.jobs,
        attempts=wanted.attempts,
        warm_up=wanted.warm_up,
        pacing=wanted.pacing,
        limits=Limits(stop.calls, stop.tokens, stop.seconds, stop.cost),
        max_cost=wanted.max_cost,
        seal=wanted.seal,
        options=options_of(recast, wire),
        created=stage.now().isoformat(timespec="seconds"),
    )
    by_arm = {arm.name: files[arm.change.label] for arm in arms if arm.change is not None and arm.change.axis is Axis.INSTRUCTIONS}
    return Plan(design, by_arm, recorded, stops.prices)


def options_of(recast: Recast, wire: HostRules) -> tuple[str, ...]:
    """What else may change a result, as it is typed."""
    found = [f"--rule {name}" for name in sorted(set(recast.rules))]
    found += ["--strip-reasoning"] if recast.strip_reasoning else []
    found += [f"--gateway {recast.gateway}"] if recast.gateway is not None else []
    found += [f"--live {channel}" for channel in sorted(set(wire.live))]
    found += [f"--extend {channel}" for channel in sorted(set(wire.extend))]
    found += [f"--websocket {wire.websocket}"] if wire.websocket != "refuse" else []
    return tuple(found)


def label_of(name: str) -> str:
    """A fixture's name as the beginning of a matrix's."""
    return re.sub(r"[^A-Za-z0-9._+=,@-]+", "-", name).strip("-._+=,@") or "matrix"


def _arm(stage: Stage, recast: Recast, places: Sequence[Asking], model: str) -> Arm:
    casting = casting_of(stage, recast, tuple(places), models_of(Arm(model, model)))
    weakest = max(casting.labels, key=lambda label: label.pin_class.rank)
    hosts = sorted({place.host for place in places})
    provider = recast.gateway or ", ".join(hosts)
    return Arm(model, model, provider, str(weakest.pin_class), bool(casting.unpinned))


def _recorded_arm(stage: Stage, recast: Recast, places: Sequence[Asking], recorded: Sequence[Spent], given: Sequence[str]) -> Arm | None:
    """The arm that runs the recorded model again; None where the recording asks none."""
    models = [one.model for one in recorded if one.model]
    if not models:
        return None
    model = models[0] if len(models) == 1 else ",".join(f"{one}={one}" for one in models)
    if model not in given:
        try:
            return _arm(stage, recast, places, model)
        except BadInput as error:
            raise BadInput(
                f"the recorded model cannot be run again as the control: {error}",
                hint="--no-control leaves it out; --allow-unpinned runs it, and labels it",
            ) from error
    return next(_arm(stage, recast, places, one) for one in given if one == model)


def _changes(fixture: Fixture, wanted: Wanted) -> tuple[list[Change], dict[str, dict[str, Path]]]:
    changes: list[Change] = []
    files: dict[str, dict[str, Path]] = {}
    for one in wanted.instructions:
        target = one.target or _rules_file(fixture)
        parts = PurePosixPath(target).parts
        if not parts or target.startswith("/") or ".." in parts or "\0" in target:
            raise BadInput(f"{target!a} is no path within the workspace")
        try:
            with one.file.open("rb") as file:
                content = file.read(FILE_BYTES + 1)
        except OSError as error:
            raise BadInput(f"cannot read {one.file}: {error.strerror or error}") from error
        if len(content) > FILE_BYTES:
            raise BadInput(f"{one.file} has more than {FILE_BYTES} bytes")
        digest = hashlib.sha256(content).hexdigest()
        changes.append(Change(Axis.INSTRUCTIONS, one.label, {"file": one.file.name, "target": target, "sha256": digest}))
        files[one.label] = {target: one.file.absolute()}
    return [*changes, *wanted.changes], files


def _rules_file(fixture: Fixture) -> str:
    """Which file of the workspace the agent reads its rules from, as the envelope of the recording says."""
    from secondtake.cassettes.envelope import Layer

    rules = fixture.envelope.layers[Layer.INSTRUCTIONS].get("rules")
    found = sorted(name for name in rules if not name.startswith(("~", "/"))) if isinstance(rules, dict) else []
    if not found:
        raise BadInput(
            "the recording names no file of rules in its workspace", hint="say where it is put: --instructions NAME=FILE:AGENTS.md"
        )
    return found[0]


def _refuse_secrets(stage: Stage, wanted: Wanted) -> None:
    """A design is kept as it is typed, so nothing secret may stand in it."""
    redactor = redactor_of(stage)
    words = [*wanted.models, *(one.label for one in wanted.instructions), *(one.label for one in wanted.changes)]
    for change in wanted.changes:
        words += map(str, change.value) if isinstance(change.value, list) else []
    for word in words:
        if redactor.text(word) != word:
            raise BadInput(
                "an argument holds a credential, and a design is kept as it is typed", hint="put it into a variable of the environment"
            )

"""Who plays which part: model IDs as the agent asks them, and the pins that are asked instead (A-05).

Written `PIN` for every call, or `REQUESTED=PIN` for one. The first `=` divides them; a pin for every call that holds an `=`
itself is written `*=PIN`. An ID that no entry names is refused, never guessed.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import date

from secondtake.cassettes.errors import BadInput
from secondtake.cassettes.misses import printable
from secondtake.cassettes.pins import Pin, explain, looks_like, versions

EVERY = "*"
"""Stands for every requested ID that has no entry of its own."""

MAX_ENTRIES = 256

GATEWAY = "gateway"
"""Behind a gateway its own table judges: it maps any name as it sees fit."""


class Unmapped(BadInput):
    """A requested ID has no pin."""


class Unpinned(BadInput):
    """A pin that nothing holds fixed, where `--allow-unpinned` was not given."""


@dataclass(frozen=True, slots=True)
class Casting:
    """Which pin is asked for which requested ID.

    `gateway`: the address of another endpoint of the same wire format, or None. `labels`: each pin as it was judged when the
    casting was made, by each provider that holds it fixed, or by the one that holds it best.
    """

    pins: Mapping[str, str]
    labels: tuple[Pin, ...]
    allow_unpinned: bool = False
    gateway: str | None = None

    @classmethod
    def of(
        cls,
        models: Sequence[str],
        *,
        allow_unpinned: bool = False,
        gateway: str | None = None,
        providers: Collection[str] = (),
        on: date | None = None,
    ) -> Casting:
        """Read the entries, and judge each pin.

        `providers`: whose tables judge (`pins.provider_of` of the recorded calls); without any, the table the ID looks like.
        `on`: the day on which retirement is judged. A retired pin is labelled, not refused: the take says `retired`.

        Raises:
            BadInput: no entry, one that is empty, or two for the same ID.
            Unpinned: a pin is an alias, a router or a deployment, and `allow_unpinned` is False. Names dated candidates.
        """
        pins = _entries(models)
        labels: list[Pin] = []
        for pin in dict.fromkeys(pins.values()):
            judges = (GATEWAY,) if gateway is not None else tuple(sorted(providers)) or (looks_like(pin),)
            judged = [explain(pin, provider, on=on) for provider in judges]
            best = min(judged, key=lambda one: one.pin_class.rank)
            if not best.held and not allow_unpinned:
                raise unpinned(best)
            labels += [one for one in judged if one.held] or [best]
        return cls(pins, tuple(labels), allow_unpinned, gateway)

    def pin_for(self, requested: str, provider: str) -> str:
        """Return the pin to ask instead of `requested`, as `provider` (`pins.provider_of`) understands it.

        Raises:
            Unmapped: no entry names it, and there is none for every ID.
            Unpinned: this provider does not hold the pin fixed, though another may.
        """
        pin = self.pins.get(requested, self.pins.get(EVERY))
        if pin is None:
            asked = printable(requested, 200)
            raise Unmapped(f"no pin is given for `{asked}`", hint=f"--model {asked}=PIN (given: {', '.join(self.pins)})")
        if not self.allow_unpinned:
            found = self.label(pin, provider)
            if not found.held:
                raise unpinned(found)
        return pin

    def label(self, pin: str, provider: str) -> Pin:
        """The pin as `provider` understands it; as judged with the casting where that was done."""
        judge = GATEWAY if self.gateway is not None else provider
        known = (one for one in self.labels if one.id == pin and one.provider == judge)
        return next(known, None) or explain(pin, judge)

    @property
    def unpinned(self) -> tuple[str, ...]:
        """The pins that nothing holds fixed: what labels the take."""
        held = {one.id for one in self.labels if one.held}
        return tuple(dict.fromkeys(one.id for one in self.labels if one.id not in held))

    def described(self) -> dict[str, object]:
        """What a take says of its casting (A-05, A-13): plain values, fit for msgpack and JSON."""
        return {
            "models": dict(self.pins),
            "pins": [_described(one) for one in self.labels],
            "unpinned": list(self.unpinned),
            "allow_unpinned": self.allow_unpinned,
            "gateway": self.gateway,
            "tables": versions(),
        }


def unpinned(pin: Pin) -> Unpinned:
    """The error for a pin that nothing holds fixed, with what to take instead."""
    hint = f"dated: {', '.join(pin.candidates)}" if pin.candidates else "--allow-unpinned takes it, and labels the take"
    return Unpinned(f"`{pin.id}` is no pin but {_article(pin.pin_class)} {pin.pin_class} ({pin.provider}): {pin.reason}", hint=hint)


def _article(word: str) -> str:
    return "an" if word[0] in "aeiou" else "a"


def _described(pin: Pin) -> dict[str, object]:
    return {
        "id": pin.id,
        "provider": pin.provider,
        "class": str(pin.pin_class),
        "reason": pin.reason,
        "retires": pin.retires.isoformat() if pin.retires is not None else None,
        "retired": pin.retired,
        "where": pin.where,
        "table": pin.table,
    }


def _entries(models: Sequence[str]) -> dict[str, str]:
    if not models:
        raise BadInput("no model is named", hint="--model PIN, or --model REQUESTED=PIN for each")
    if len(models) > MAX_ENTRIES:
        raise BadInput(f"{len(models)} models are named, at most {MAX_ENTRIES} are taken")
    pins: dict[str, str] = {}
    for entry in models:
        requested, mark, pin = entry.partition("=")
        if not mark:
            requested, pin = EVERY, entry
        requested, pin = requested.strip(), pin.strip()
        if not requested or not pin:
            raise BadInput(f"`{entry}` names no model", hint="--model PIN, or --model REQUESTED=PIN")
        if any(not character.isprintable() or character.isspace() for character in requested + pin):
            raise BadInput(f"`{entry!r}` holds what no model ID holds")
        if not pin.strip("."):
            raise BadInput(f"`{entry}` names no model: in a path, dots alone are another place")
        if pins.get(requested, pin) != pin:
            what = "every call" if requested == EVERY else f"`{requested}`"
            raise BadInput(f"two pins for {what}: `{pins[requested]}` and `{pin}`")
        pins[requested] = pin
    return pins

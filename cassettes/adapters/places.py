"""The model-bearing places of a body, by byte (A-03, A-04)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from secondtake.cassettes.adapters.base import Fault, Place, PlaceKind
from secondtake.cassettes.errors import RecordedError
from secondtake.cassettes.json_places import Found, Pattern, Step, strings

_PREFIXES = (b"models/", b"models\\/")


@dataclass(frozen=True, slots=True)
class Spec:
    """Where a dialect may name a model, and what for. `tool`: the kind depends on the type of the tool it stands in."""

    pattern: Pattern
    kind: PlaceKind
    tool: bool = False


GATEWAY: tuple[Spec, ...] = (
    Spec(("models", Step.EACH), PlaceKind.ROUTE),
    Spec(("route",), PlaceKind.INDIRECT),
    Spec(("agent_id",), PlaceKind.INDIRECT),
    Spec(("fallbacks",), PlaceKind.INDIRECT),
    Spec(("fallbacks", Step.EACH), PlaceKind.FALLBACK),
    Spec(("fallbacks", Step.EACH, "model"), PlaceKind.FALLBACK),
    Spec(("fallbacks", Step.EACH, Step.ANY, Step.EACH), PlaceKind.INDIRECT),
    Spec(("context_window_fallbacks", Step.EACH, Step.ANY, Step.EACH), PlaceKind.INDIRECT),
    Spec(("content_policy_fallbacks", Step.EACH, Step.ANY, Step.EACH), PlaceKind.INDIRECT),
    Spec(("plugins", Step.EACH, "model"), PlaceKind.INDIRECT),
    Spec(("tools", Step.EACH, "model"), PlaceKind.AUXILIARY, tool=True),
)
"""Routing that any endpoint may take on top of its format: a gateway can stand behind every one of them."""


def find(content: bytes, specs: Sequence[Spec]) -> tuple[tuple[Place, ...], tuple[Fault, ...]]:
    """Return each place in `content`, in its order; what cannot be scanned is a fault."""
    wanted = [spec.pattern for spec in specs]
    types = [(*spec.pattern[:-1], "type") for spec in specs if spec.tool]
    try:
        found = strings(content, wanted + types)
    except RecordedError as error:
        return (), (Fault("shape", f"model-bearing places not found: {error}"),)
    advisors = {one.parent for one in found if one.path[-1] == "type" and one.value.startswith("advisor")}
    places = []
    for one in found:
        spec = next((spec for spec in specs if _fits(spec.pattern, one.path)), None)
        if spec is not None:
            kind = PlaceKind.ADVISOR if spec.tool and one.parent in advisors else spec.kind
            places.append(_place(content, one, kind))
    return tuple(places), ()


def asked(places: Sequence[Place]) -> str | None:
    """The model asked: the last of duplicated keys, which is the one parsers take."""
    return next((place.id for place in reversed(places) if place.kind is PlaceKind.MODEL), None)


def _fits(pattern: Pattern, path: tuple[str | int, ...]) -> bool:
    if len(pattern) != len(path):
        return False
    return all(
        isinstance(step, int) if want is Step.EACH else isinstance(step, str) and (want is Step.ANY or want == step)
        for want, step in zip(pattern, path, strict=True)
    )


def _place(content: bytes, one: Found, kind: PlaceKind) -> Place:
    """A resource name (`models/ID`) is left in its form: only the ID behind the prefix is the place."""
    raw = content[one.start : one.stop]
    for prefix in _PREFIXES:
        if raw.startswith(prefix):
            return Place(one.dotted, kind, one.start + len(prefix), one.stop, one.value.removeprefix("models/"))
    return Place(one.dotted, kind, one.start, one.stop, one.value)

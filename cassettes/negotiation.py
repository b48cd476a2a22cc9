"""What a client can read: `Accept` and `Accept-Encoding` with their weights (RFC 9110 section 12.5)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import isnan

from secondtake.cassettes.exchange import Fields

_MOST_BYTES = 8192
"""A longer field is not looked at: nothing is acceptable by it."""

_NPM_SHORT = b"vnd.npm.install"
"""Registries answer the short packument under the label of the full one, so the label alone does not tell them apart."""


@dataclass(frozen=True, slots=True)
class Choice:
    """One element: a media range or a coding, lower-case, and its weight in thousandths."""

    name: bytes
    weight: int


def choices(value: bytes) -> tuple[Choice, ...]:
    """The elements of a field in order. Parameters other than `q` are dropped. A field that is too long has none."""
    return () if len(value) > _MOST_BYTES else _choices(value)


@lru_cache(maxsize=1024)
def _choices(value: bytes) -> tuple[Choice, ...]:
    found: list[Choice] = []
    for element in value.lower().split(b","):
        name, *parameters = (piece.strip() for piece in element.split(b";"))
        weight = 1000
        for parameter in parameters:
            key, mark, text = parameter.partition(b"=")
            if key.strip() == b"q" and mark:
                weight = _weight(text.strip())
        if name:
            found.append(Choice(name, weight))
    return tuple(found)


def _weight(text: bytes) -> int:
    try:
        number = float(text)
    except ValueError:
        return 0
    return 0 if isnan(number) else round(min(1.0, max(0.0, number)) * 1000)


def ranking(value: bytes) -> bytes:
    """The class of an Accept field: its media ranges by preference. Two clients that want the same things in the same order share it."""
    return value if len(value) > _MOST_BYTES else _ranking(value)


@lru_cache(maxsize=1024)
def _ranking(value: bytes) -> bytes:
    wanted = [choice for choice in choices(value) if choice.weight]
    return b",".join(choice.name for choice in sorted(wanted, key=lambda choice: (-choice.weight, choice.name)))


def field(fields: Fields, name: bytes) -> bytes | None:
    """All values of a field joined by commas, or None when it is absent. `name` is lower-case."""
    found = [value for key, value in fields if len(key) == len(name) and key.lower() == name]
    return b", ".join(found) if found else None


def accepts(wanted: bytes, media_type: bytes) -> Choice | None:
    """The most specific element of an Accept field that matches, or None. Weight 0 means refused."""
    kind = media_type.partition(b";")[0].strip().lower()
    family = kind.partition(b"/")[0] + b"/*"
    for name in (kind, family, b"*/*"):
        for choice in choices(wanted):
            if choice.name == name:
                return choice
    return None


def same_variant(recorded: bytes, live: bytes, media_type: bytes) -> bool:
    """Whether an answer of `media_type` to a request with Accept `recorded` is what a request with Accept `live` would have got.

    Either both want the same, or the live client asks for this type by name, and all it wants at least as much was wanted as much
    while recording, so that the origin could have sent it and did not. Never a type the client does not read.
    """
    if ranking(recorded) == ranking(live):
        return True
    if (_NPM_SHORT in recorded) != (_NPM_SHORT in live):
        return False
    chosen = accepts(live, media_type)
    if chosen is None or chosen.weight == 0 or chosen.name.endswith(b"/*"):
        return False
    had = accepts(recorded, media_type)
    floor = had.weight if had is not None else 1
    for choice in choices(live):
        if choice.name == chosen.name or choice.weight < chosen.weight or choice.name.endswith(b"/*"):
            continue
        offered = accepts(recorded, choice.name)
        if offered is None or offered.weight < floor or (choice.weight > chosen.weight and offered.name != choice.name):
            return False
    return True


def reads_codings(wanted: bytes | None, names: tuple[str, ...]) -> bool:
    """Whether a client with this Accept-Encoding (None: it sent none) reads a body with these codings.

    The RFC lets an origin send anything where the field is absent; a client that sends none reads none, so here it does not.
    """
    if not names:
        return True
    if wanted is None:
        return False
    listed = {choice.name.decode("latin-1"): choice.weight for choice in choices(wanted)}
    for name in names:
        plain = {"x-gzip": "gzip"}.get(name, name)
        weight = listed.get(plain, listed.get(f"x-{plain}", listed.get("*", 0)))
        if not weight:
            return False
    return True

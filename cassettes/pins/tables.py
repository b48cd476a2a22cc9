"""The pin tables: package data, one file per provider, read once and checked."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from enum import StrEnum
from functools import cache
from importlib.resources import files
from typing import Any

from secondtake.cassettes.errors import BadInput

PROVIDERS = (
    "anthropic", "openai", "gemini", "vertex", "bedrock", "azure-openai", "mistral", "xai", "gateway", "ollama", "huggingface",
)  # fmt: skip


class PinClass(StrEnum):
    """What holds a model fixed, best first (DESIGN 1)."""

    CONTENT = "content"
    """The ID is a digest of the weights, or names weights of one's own."""
    SNAPSHOT = "snapshot"
    """The vendor says that the ID never changes."""
    VERSIONED = "versioned"
    """Numbered, but no such promise was found."""
    ALIAS = "alias"
    """Moves."""
    ROUTER = "router"
    """Chooses per request."""
    DEPLOYMENT = "deployment"
    """Resolved elsewhere; needs evidence of its own."""

    @property
    def rank(self) -> int:
        """0 is best."""
        return list(PinClass).index(self)

    @property
    def held(self) -> bool:
        """Whether an experiment takes it without `--allow-unpinned`."""
        return self in (PinClass.CONTENT, PinClass.SNAPSHOT, PinClass.VERSIONED)


@dataclass(frozen=True, slots=True)
class Rule:
    """`match` is for the whole ID. A group `inner` is explained in turn, by `provider`; a group `where` says a place only."""

    match: re.Pattern[str]
    pin_class: PinClass
    reason: str
    provider: str


@dataclass(frozen=True, slots=True)
class Table:
    """One provider's rules, the pins known by name, what stands for an alias's family, and days of retirement."""

    provider: str
    version: str
    sources: tuple[str, ...]
    rules: tuple[Rule, ...]
    known: tuple[str, ...]
    stems: Mapping[str, str]
    retires: Mapping[str, date]


@cache
def table(provider: str) -> Table:
    """Return the provider's table.

    Raises:
        BadInput: there is none.
    """
    if provider not in PROVIDERS:
        raise BadInput(f"no pin table for `{provider}`", hint=f"known: {', '.join(PROVIDERS)}")
    raw: dict[str, Any] = tomllib.loads((files("secondtake.cassettes.pins") / f"{provider}.toml").read_text("utf-8"))
    rules = tuple(
        Rule(re.compile(rule["match"]), PinClass(rule["class"]), rule["reason"], rule.get("provider", provider)) for rule in raw["rules"]
    )
    return Table(provider, raw["version"], tuple(raw["sources"]), rules, tuple(raw["known"]), raw["stems"], raw["retires"])


def versions() -> dict[str, str]:
    """The version of each table, for a run's envelope (A-13)."""
    return {provider: table(provider).version for provider in PROVIDERS}

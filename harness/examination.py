"""What `doctor` finds: each tool's handshake, and what in the surroundings decides over what is captured."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from secondtake.harness.equipment import equipped
from secondtake.proxy.environment import UNVERIFIED, child_environment
from secondtake.proxy.handshakes import Result, examine

if TYPE_CHECKING:
    from secondtake.harness.plan import Stage


@dataclass(frozen=True, slots=True)
class Examined:
    """All that was found."""

    results: tuple[Result, ...]
    notes: tuple[str, ...]
    trusted: Mapping[str, int]
    """How many authorities each source brought."""


def examined(stage: Stage) -> Examined:
    """Try every tool that is there. Blocks for some seconds.

    Raises:
        RecordedError: a proxy variable names no proxy.
    """
    with equipped(stage, reading=True) as equipment:
        results = examine(
            equipment.authority,
            lambda port: child_environment(
                stage.environ, port=port, bundle=equipment.bundle, overriding=equipment.sources.configs.overriding
            ),
            bundle=equipment.bundle,
        )
        careless = [name for name in UNVERIFIED if stage.environ.get(name)]
        unverified = [f"{name} is set: tools that read it verify nothing, with or without us" for name in careless]
        notes = (*equipment.sources.warnings, *equipment.upstream.notes, *unverified)
        return Examined(tuple(results), notes, equipment.sources.counts)

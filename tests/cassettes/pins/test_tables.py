"""The pin tables as data."""

from __future__ import annotations

from pathlib import Path

import pytest

from secondtake.cassettes import pins
from secondtake.cassettes.errors import BadInput
from secondtake.cassettes.pins import PROVIDERS, PinClass, explain, table


def test_every_table_has_a_version_sources_and_a_file() -> None:
    """A-13: stamped in each run's envelope; every known ID is held, and every file is listed."""
    assert set(pins.versions()) == set(PROVIDERS)
    folder = Path(pins.__file__).parent
    assert {path.stem for path in folder.glob("*.toml")} == set(PROVIDERS)
    for provider in PROVIDERS:
        one = table(provider)
        assert one.sources
        assert all(explain(known, provider).pin_class in (PinClass.CONTENT, PinClass.SNAPSHOT) for known in one.known)
    with pytest.raises(BadInput, match="no pin table"):
        table("../pyproject")


def test_classes_are_ordered_best_first() -> None:
    """DESIGN 1: content > snapshot > versioned > alias > router > deployment."""
    assert [one.value for one in sorted(PinClass, key=lambda one: one.rank)] == [
        "content",
        "snapshot",
        "versioned",
        "alias",
        "router",
        "deployment",
    ]

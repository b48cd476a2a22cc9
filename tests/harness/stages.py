"""A world whose clock stands, for tests of runs."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from random import Random

from secondtake.cassettes.store import Store
from secondtake.harness.plan import Stage


def stage_in(folder: Path, **environ: str) -> Stage:
    """A stage with its store, home and working directory in `folder`."""
    return Stage(
        store=Store(folder / "store"),
        environ=environ,
        cwd=folder,
        home=folder,
        now=lambda: datetime(2026, 11, 30, 12, tzinfo=UTC),
        monotonic_s=lambda: 0.0,
        random=Random(1),
        again="",
        version="0",
    )

"""The agents that are known by name. One that is not works as well: `-- COMMAND` takes any."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import PurePath

from secondtake.cassettes.errors import BadInput
from secondtake.harness.drivers.aider import AIDER
from secondtake.harness.drivers.base import Driver, seeds
from secondtake.harness.drivers.claude_code import CLAUDE_CODE
from secondtake.harness.drivers.codex import CODEX
from secondtake.harness.drivers.gemini import GEMINI
from secondtake.harness.drivers.mini import MINI
from secondtake.harness.drivers.opencode import OPENCODE
from secondtake.harness.drivers.pi import PI
from secondtake.harness.drivers.qwen import QWEN

__all__ = ["AUTO", "DRIVERS", "NONE", "Driver", "driver_for", "seeds"]

DRIVERS: Mapping[str, Driver] = {driver.name: driver for driver in (AIDER, CLAUDE_CODE, CODEX, GEMINI, MINI, OPENCODE, PI, QWEN)}
"""By name."""

AUTO, NONE = "auto", "none"


def driver_for(agent: Sequence[str], name: str = AUTO) -> Driver | None:
    """Return the driver of a command line: that of its program (`auto`), the one of that name, or none.

    Raises:
        BadInput: there is no driver of that name.
    """
    if name == NONE:
        return None
    if name != AUTO:
        driver = DRIVERS.get(name)
        if driver is None:
            raise BadInput(f"no driver `{name}`", hint=f"known: {', '.join(sorted(DRIVERS))}; `{NONE}` uses none")
        return driver
    program = PurePath(agent[0]).name if agent else ""
    return next((driver for driver in DRIVERS.values() if program in driver.programs), None)

"""What is known of one coding agent: how it starts, what it must find, what it leaves out. Values only; measured where a note says so."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Driver:
    """One agent. A recording notes its name, and the switches the person had set, so that a replay sets them alike.

    Nothing here changes the command a person gives; `headless` is for those who ask how.
    """

    name: str
    """Short, lower-case; what `--driver` takes."""
    programs: tuple[str, ...]
    """Names of its program, without folder."""
    package: str
    """`npm:NAME` or `pip:NAME`: where it is installed from."""
    measured: str
    """The version all of this was seen with."""
    headless: Callable[[str], tuple[str, ...]]
    """The command line that does one task, given as text, and ends."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Set while recording and while replaying, unless the person set them."""
    as_root: Mapping[str, str] = field(default_factory=dict)
    """The same, where the user is root."""
    switches: tuple[str, ...] = ()
    """Variables that change what it asks (nonessential traffic, base URLs, models): a replay gets those of the recording, no others."""
    closed_stdin: bool = False
    """It reads standard input to its end before it starts, where that is no terminal."""
    rules: tuple[str, ...] = ()
    """Files of instructions it reads, relative to the workspace, or to HOME (`~/…`)."""
    seed: tuple[str, ...] = ()
    """What of HOME decides how it starts (first run, login, ids), relative to it."""
    exits: str = ""
    """How its shell tool states the exit code of a command; empty: not at all. Read by cassettes/exit_codes.py."""
    notes: tuple[str, ...] = ()
    """What else a person must know, one sentence each."""

    def told(self, environ: Mapping[str, str], *, root: bool) -> dict[str, str]:
        """Return what the agent's environment lacks."""
        wanted = {**self.environment, **(self.as_root if root else {})}
        return {name: value for name, value in wanted.items() if name not in environ}

    def switched(self, environ: Mapping[str, str]) -> dict[str, str]:
        """Return the switches that are set, for a recording to note."""
        return {name: environ[name] for name in self.switches if name in environ}


def seeds(driver: Driver, home: Path) -> tuple[str, ...]:
    """Return which of a driver's seed are there in `home`: another first run is another conversation."""
    return tuple(name for name in driver.seed if (home / name).exists())

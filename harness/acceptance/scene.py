"""What a take left to be judged, and what the judge says of it. Values only."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from secondtake.cassettes.adapters.base import Json
from secondtake.cassettes.plain import Table
from secondtake.cassettes.takes import Checked, Resources, decode_checked, encode_checked
from secondtake.cassettes.testcases import TESTS
from secondtake.cassettes.trees import Entry, Tree

if TYPE_CHECKING:
    from secondtake.cassettes.events import Event
    from secondtake.cassettes.execs import Command
    from secondtake.cassettes.redact import Redactor

type Content = Callable[[Entry], bytes | None]
"""The kept content of an entry of a tree; None where it was not kept."""

NOTHING_USED = Resources(0, 0, None, None, 0.0)


@dataclass(frozen=True, slots=True)
class Floor:
    """What the checks say of the untouched tree, and of one that is known to be good: the noise that a take is measured against."""

    untouched: tuple[Checked, ...]
    known_good: tuple[Checked, ...] | None = None
    """None: there was no such tree."""
    findings: Mapping[str, int] = field(default_factory=dict)
    """Check of kind `lint` to how many findings the untouched tree has."""
    passing: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """Check of kind `tests` to the tests that pass on the untouched tree."""
    problems: tuple[str, ...] = ()
    """Why these checks cannot tell a failure from a success, one line each; empty where they can."""
    notes: tuple[str, ...] = ()
    """What a person should know all the same."""


@dataclass(frozen=True, slots=True)
class Scene:
    """One take at its end, before anything else runs in its workspace. The trees were taken before and after the agent, not by a check."""

    workspace: Path
    start: Tree
    final: Tree
    before: Content
    after: Content
    environ: Mapping[str, str]
    """The agent's; credentials in it are left out for the checks' commands."""
    events: Sequence[Event] = ()
    commands: Sequence[Command] = ()
    """As the kernel saw them; empty where it could not."""
    resources: Resources = NOTHING_USED
    stopped: str | None = None
    prefix: tuple[str, ...] = ()
    """Stands before every command: the seal's. It enters the workspace itself."""
    floor: Floor | None = None
    fixture: Path | None = None
    """The fixture's folder, for files that checks compare with."""
    redactor: Redactor | None = None
    """None: one that knows the credentials in `environ`."""
    take: str = ""
    """Its name, for commands."""
    inside: str | None = None
    """The workspace's path as commands see it, where the seal puts it elsewhere."""
    unseen: str = ""
    """Why `final` is not known; what is said of trees is then not judged."""
    monotonic_s: Callable[[], float] = time.monotonic

    @property
    def roots(self) -> tuple[str, ...]:
        """Directories of this run, which are no part of a failure's identity."""
        named = (self.inside, str(self.workspace), self.environ.get("HOME"), self.environ.get("TMPDIR"))
        return tuple(dict.fromkeys(root for root in named if root and len(root) > 1))


@dataclass(frozen=True, slots=True)
class Said:
    """The verdict on one check."""

    held: bool | None
    evidence: str
    exit_class: str = ""
    first: str = ""
    findings: int | None = None
    passing: frozenset[str] | None = None


def encode_floor(floor: Floor) -> dict[str, Json]:
    """`floor` as plain values."""
    return {
        "untouched": [encode_checked(one) for one in floor.untouched],
        "known_good": None if floor.known_good is None else [encode_checked(one) for one in floor.known_good],
        "findings": dict(floor.findings),
        "passing": [{"check": name, "tests": list[Json](sorted(tests))} for name, tests in floor.passing.items()],
        "problems": list(floor.problems),
        "notes": list(floor.notes),
    }


def decode_floor(kept: object) -> Floor:
    """The counterpart of `encode_floor`. Raises Corrupt."""
    read = Table.of(kept, "floor")
    findings = read.table("findings")
    return Floor(
        untouched=tuple(map(decode_checked, read.tables("untouched"))),
        known_good=None if read.value("known_good") is None else tuple(map(decode_checked, read.tables("known_good"))),
        findings={name: findings.number(name) for name in findings.names()},
        passing={table.text("check"): frozenset(table.texts("tests", most=TESTS)) for table in read.tables("passing")},
        problems=read.texts("problems"),
        notes=read.texts("notes"),
    )

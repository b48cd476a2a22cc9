"""What an agent fetches for itself in the background, cut off wherever its run ends: how much of it is asked differs from run to run.

Such a request is told from the same one of a tool (`npm install` in the agent's shell) by what its client says of itself. What was
recorded of a burst is played like anything else; what was not is told 404 and counted as `local`, if the recording has any of it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from secondtake.cassettes.exchange import Fields, Request


@dataclass(frozen=True, slots=True)
class Burst:
    """One kind: every named field must be there and match wholly. Names lower-case."""

    name: str
    fields: tuple[tuple[bytes, re.Pattern[bytes]], ...]
    source: str


BURSTS = (
    Burst(
        "embedded-installer",
        ((b"user-agent", re.compile(rb"npm/undefined .*")), (b"pacote-req-type", re.compile(rb"packument|tarball"))),
        "opencode 1.18: npm's installer as a library, which knows no version of npm; AGENTS 3: 29 to 33 requests in equal runs",
    ),
)


def burst_of(request: Request) -> Burst | None:
    """The kind of burst a request belongs to; None for almost every request."""
    if request.method != "GET":
        return None
    return next((burst for burst in BURSTS if all(_has(request.fields, name, value) for name, value in burst.fields)), None)


def _has(fields: Fields, name: bytes, pattern: re.Pattern[bytes]) -> bool:
    return any(found.lower() == name and pattern.fullmatch(value) is not None for found, value in fields)

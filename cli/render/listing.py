"""What is in a store as rows: what each cassette is, how a take ended, and the takes of a matrix as one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from secondtake.cassettes import takes
from secondtake.cassettes.errors import RecordedError
from secondtake.cli.render.words import count, size

if TYPE_CHECKING:
    from secondtake.cassettes.store import Summary
    from secondtake.cassettes.takes import Take

HEADINGS = ("name", "kind", "model", "outcome", "state", ">exchanges", ">on disk", "recorded")
RECORDING = "recording"


@dataclass(frozen=True, slots=True)
class Listed:
    """One cassette in a list."""

    summary: Summary
    take: Take | None
    """None where it is none, was cut, or its last word cannot be read."""

    @property
    def kind(self) -> str:
        """`recording`, `take` or `probe`."""
        said = self.summary.meta.get("kind")
        return said if isinstance(said, str) and said else RECORDING

    @property
    def matrix(self) -> str:
        """The matrix it belongs to, or nothing."""
        return self.take.matrix if self.take is not None else ""

    @property
    def model(self) -> str:
        """Who played in a take."""
        return self.take.model if self.take is not None else ""

    @property
    def outcome(self) -> str:
        """How a take counts."""
        return self.take.column if self.take is not None else ""


def listed(summaries: Sequence[Summary]) -> tuple[Listed, ...]:
    """Read what each says of itself, the newest last."""
    ordered = sorted(summaries, key=lambda summary: (str(summary.created or ""), summary.name))
    return tuple(Listed(summary, _take(summary)) for summary in ordered)


def _take(summary: Summary) -> Take | None:
    try:
        return takes.of(summary.meta)
    except RecordedError:
        return None


def rows(found: Sequence[Listed], *, each: bool) -> list[list[str]]:
    """The cells of HEADINGS. `each`: one row for every take; else those of a matrix are one, where the first of them stands."""
    by_matrix: dict[str, list[Listed]] = {}
    for one in found:
        by_matrix.setdefault(one.matrix, []).append(one)
    made: list[list[str]] = []
    told: set[str] = set()
    for one in found:
        if each or not one.matrix:
            made.append(_row(one))
        elif one.matrix not in told:
            told.add(one.matrix)
            made.append(_matrix(one.matrix, by_matrix[one.matrix]))
    return made


def _row(one: Listed) -> list[str]:
    summary = one.summary
    exchanges, on_disk = f"{summary.exchanges:,}", size(summary.bytes_on_disk)
    return [summary.name, one.kind, one.model, one.outcome, str(summary.state), exchanges, on_disk, str(summary.created or "unknown")]


def _matrix(name: str, of: Sequence[Listed]) -> list[str]:
    """All takes of a matrix. Warm-ups are among them, and are not counted in its outcomes."""
    counted = Counter(one.outcome for one in of if one.take is not None and not one.take.warm_up)
    models = dict.fromkeys(one.model for one in of)
    states = ", ".join(dict.fromkeys(str(one.summary.state) for one in of))
    outcome = f"{count(len(of), 'take')}: {', '.join(f'{number} {what}' for what, number in counted.most_common())}"
    exchanges, on_disk = sum(one.summary.exchanges for one in of), sum(one.summary.bytes_on_disk for one in of)
    created = str(of[0].summary.created or "unknown")
    return [name, "matrix", count(len(models), "model"), outcome.rstrip(": "), states, f"{exchanges:,}", size(on_disk), created]


def fields(one: Listed) -> dict[str, object]:
    """One cassette as an object."""
    summary, take = one.summary, one.take
    return {
        "name": summary.name,
        "kind": one.kind,
        "state": str(summary.state),
        "exchanges": summary.exchanges,
        "bytes_on_disk": summary.bytes_on_disk,
        "created": summary.created,
        "root": summary.root,
        "fixture": None if take is None else take.fixture,
        "model": None if take is None else take.model,
        "outcome": None if take is None else take.column,
        "matrix": one.matrix or None,
        "trouble": summary.trouble,
    }

"""Two runs of the store compared, and the runs of two arms: opens what is compared, reads what was kept beside the exchanges."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING

from secondtake.cassettes import execs, trees
from secondtake.cassettes.diff import arms, commands, decisions, outcome, tree
from secondtake.cassettes.diff.decisions import Course
from secondtake.cassettes.diff.layers import Diff, Side
from secondtake.cassettes.diff.sameness import Sameness
from secondtake.cassettes.errors import BadInput, NotFound, TooLarge
from secondtake.cassettes.events import contents, events
from secondtake.cassettes.exchange import Digest
from secondtake.cassettes.stages import staged
from secondtake.cassettes.takes import Take
from secondtake.cassettes.takes import decode as decode_take

if TYPE_CHECKING:
    from collections.abc import Iterator

    from secondtake.cassettes.cassette import Cassette
    from secondtake.cassettes.events import Event
    from secondtake.cassettes.store import Store
    from secondtake.cassettes.trees import Entry, Tree

EXEC = "exec"
"""The kind of the artifact that holds a kernel's command log."""


@dataclass(frozen=True, slots=True)
class _Run:
    """One side, read. `kernel` is None where no command log was kept."""

    side: Side
    course: Course
    traffic: commands.Log
    kernel: commands.Log | None
    stood: tree.Stood
    account: outcome.Account


def compared(store: Store, a: str, b: str) -> Diff:
    """Compare two recordings or takes, each by name, unique beginning, `@last` or the path of an exported file.

    Raises:
        NotFound, BadInput, Corrupt, TooNew: one of them is not there, or cannot be read.
    """
    with ExitStack() as opened:
        both = [opened.enter_context(store.open(name)) for name in (a, b)]
        one, other = map(_read, both)
        logs = (one.traffic, other.traffic) if one.kernel is None or other.kernel is None else (one.kernel, other.kernel)
        return Diff(
            one.side,
            other.side,
            decisions.compare(one.course, other.course),
            commands.compare(*logs),
            tree.compare(one.stood, other.stood),
            outcome.compare(one.account, other.account),
        )


def _read(cassette: Cassette) -> _Run:
    same = _sameness(cassette)
    course = decisions.course(_events(cassette), same)
    log = next((one for one in reversed(cassette.artifacts) if one.kind == EXEC), None)
    kernel = None
    if log is not None:
        kernel = commands.by_kernel(execs.decode(cassette.artifact(log.digest)), execs.claims(_events(cassette)), same)
    take = _take(cassette)
    kind = cassette.meta.get("kind")
    side = Side(
        cassette.name,
        "take" if take is not None else kind if isinstance(kind, str) else "recording",
        str(cassette.state),
        cassette.root,
        course.models,
    )
    return _Run(side, course, commands.by_traffic(course), kernel, _stood(cassette, take), _account(cassette, course, take))


def _events(cassette: Cassette) -> Iterator[Event]:
    return events((cassette.exchange(seq) for seq in sorted(row.seq for row in cassette.rows)), contents(cassette))


def _sameness(cassette: Cassette) -> Sameness:
    """The rules for a run, by what it says of itself: where it stood, its proxy and its trust bundle."""
    stage = staged(cassette)
    workspace = (stage.root if stage is not None else "") or _text(cassette.meta, "cwd")
    others = {_text(cassette.meta, "bundle"): "bundle", _text(cassette.meta, "proxy"): "proxy"}
    return Sameness(workspace.rstrip("/"), {value: name for value, name in others.items() if value})


def _text(meta: Mapping[str, object], key: str) -> str:
    value = meta.get(key)
    return value if isinstance(value, str) else ""


def _take(cassette: Cassette) -> Take | None:
    """What a take says about itself. Raises Corrupt, TooNew."""
    said = cassette.meta.get("take")
    return None if said is None else decode_take(said)


def _stood(cassette: Cassette, take: Take | None) -> tree.Stood:
    """The workspace before and after, by the recording's stage, else by what the take names. Raises Corrupt."""
    stage = staged(cassette)
    named = (None, None) if stage is None else (stage.workspace, stage.final)
    told = ("", "") if take is None else (take.start_tree, take.final_tree)
    held = {one.digest for one in cassette.artifacts}
    start, final = (
        _tree(cassette, digest if digest is not None else Digest(other)) if digest is not None or other in held else None
        for digest, other in zip(named, told, strict=True)
    )
    return tree.Stood(start, final, _content(cassette))


def _tree(cassette: Cassette, digest: Digest) -> Tree:
    return trees.decode(cassette.artifact(digest))


def _content(cassette: Cassette) -> Callable[[Entry], bytes | None]:
    def content(entry: Entry) -> bytes | None:
        if entry.digest is None:
            return None
        try:
            return cassette.artifact(entry.digest)
        except (NotFound, TooLarge):
            return None

    return content


def _account(cassette: Cassette, course: Course, take: Take | None) -> outcome.Account:
    calls = sum(len(decision.calls) for decision in course.decisions)
    if take is not None:
        used = take.resources
        numbers = (used.model_calls, used.tool_calls, used.tokens, used.seconds, used.cost)
        return outcome.Account(course.models, take.agent_status, course.ended, *numbers, take)
    status, elapsed, cost = (cassette.meta.get(key) for key in ("agent_status", "elapsed_us", "cost"))
    return outcome.Account(
        course.models,
        status if isinstance(status, int) else None,
        course.ended,
        course.asked,
        calls,
        None if course.uncounted else course.tokens,
        elapsed / 1_000_000 if isinstance(elapsed, int) else None,
        cost if isinstance(cost, float) else None,
    )


def parted(store: Store, a: Sequence[str], b: Sequence[str], *, labels: tuple[str, str] = ("A", "B")) -> arms.Parted:
    """Find the first decision that separates the runs `a` from the runs `b`.

    Raises:
        NotFound, BadInput, Corrupt, TooNew: one of them is not there, or cannot be read; a side is empty.
    """
    if not a or not b:
        raise BadInput("an arm without a run cannot be compared", hint="secondtake diff --arms A1 A2 --against B1 B2")
    return arms.compare(_arm(store, labels[0], a), _arm(store, labels[1], b))


def _arm(store: Store, label: str, names: Sequence[str]) -> arms.Arm:
    read: dict[str, Course] = {}
    for name in names:
        with store.open(name) as cassette:
            if cassette.name in read:
                raise BadInput(f"{cassette.name} is given twice in one arm")
            read[cassette.name] = decisions.course(_events(cassette), _sameness(cassette))
    return arms.Arm(label, tuple(read), tuple(read.values()))


def matrix_parted(store: Store, matrix: str, chosen: Sequence[str] = ()) -> arms.Parted:
    """Find the first decision that separates two arms of a matrix: those `chosen`, or the only two it has.

    Warm-ups, and takes that do not count, are left out.

    Raises:
        NotFound: no such matrix, or no take of an arm; BadInput: it has not two arms, and two were not chosen; Corrupt, TooNew.
    """
    from secondtake.harness.matrix.state import Matrices, takes_of

    full = Matrices(store.root).resolve(matrix)
    takes, _ = takes_of(store, full)
    by_arm: dict[str, list[str]] = {}
    for one in takes:
        if one.take.counts:
            by_arm.setdefault(one.take.arm, []).append(one.name)
    wanted = tuple(chosen) or tuple(by_arm)
    known = ", ".join(by_arm) or "none"
    if len(wanted) != 2:
        raise BadInput(f"two arms are compared; takes that count are of: {known}", hint=f"secondtake diff --arms {full} --arm A --arm B")
    missing = next((arm for arm in wanted if arm not in by_arm), None)
    if missing is not None:
        raise NotFound(f"matrix `{full}` has no take that counts of the arm `{missing}`; it has: {known}")
    return parted(store, by_arm[wanted[0]], by_arm[wanted[1]], labels=(wanted[0], wanted[1]))

"""What a take left behind: its trees, its commands and its events; and what all of it comes to.

The trees are taken before and after the agent, from the scratch copy. Content that did not change is not kept again: it is in
the fixture, which the take names by its digest.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from secondtake.cassettes import execs
from secondtake.cassettes.artifacts import BLOB, TREE
from secondtake.cassettes.digest import digest_of
from secondtake.cassettes.envelope import UNKNOWN, Difference, Layer, compare
from secondtake.cassettes.envelope import Source as FieldSource
from secondtake.cassettes.errors import NotFound
from secondtake.cassettes.events import Event, EventKind, contents, events
from secondtake.cassettes.exchange import Channel, Digest, Ending
from secondtake.cassettes.outcomes import Conditions, Missed, Ran, answered_live, control, count, effects
from secondtake.cassettes.run_events import EXEC
from secondtake.cassettes.stages import Staged
from secondtake.cassettes.takes import Checked, Resources, Take
from secondtake.cassettes.trees import changes, shown, tree_of
from secondtake.cassettes.trees import encode as encode_tree
from secondtake.harness.acceptance.judging import judge
from secondtake.harness.acceptance.scene import Floor, Scene
from secondtake.harness.capturing import Captured, NotStaged, Snapshot
from secondtake.harness.repository import ignored_folders
from secondtake.harness.tracing import Source, Traced
from secondtake.harness.walking import IGNORED, Limits

if TYPE_CHECKING:
    from secondtake.cassettes.cassette import Cassette
    from secondtake.cassettes.envelope import Envelope
    from secondtake.cassettes.redact import Redactor
    from secondtake.cassettes.trees import Entry, Tree
    from secondtake.harness.fixture import Fixture
    from secondtake.harness.performing import Acting, Performed
    from secondtake.harness.results import Retaken
    from secondtake.harness.retaking import Retaking
    from secondtake.harness.scenery import Scenery
    from secondtake.harness.tracing import Tracer
    from secondtake.proxy.outcome import Outcome as Seen

LIMITS = Limits()
UNTRACED = Traced((), Source.TRAFFIC, "tracing is off")
PROOFS = ("unverified", "weak", "medium", "strong")


class Watched:
    """The scratch workspace of one take, captured before and after. What it began with is kept only where it changed."""

    def __init__(self, scene: Scenery, fixture: Fixture, taking: Retaking, redactor: Redactor) -> None:
        self._fixture = fixture
        self._taking = taking
        self._keeping = False
        self._began_with: set[Digest] = set()
        self.after: dict[Digest, bytes] = {}
        """Content that was not there before. What is kept can be read from the store only once it is written, which nobody waits for."""
        environ = taking.stage.environ
        self._snapshot = Snapshot(
            scene.work,
            self._keep,
            redactor,
            limits=LIMITS,
            clock_s=taking.stage.monotonic_s,
            ignored=lambda: ignored_folders(scene.work, environ),
        )
        self.start = self._snapshot.take()

    @property
    def left_out(self) -> frozenset[bytes]:
        """Folders that git ignores, and that are not in the last tree since there were too many files."""
        return self._snapshot.left_out

    def _keep(self, kind: str, content: bytes) -> Digest:
        if kind == TREE:
            return self._taking.writer.keep(kind, content)
        name = digest_of(content)
        if not self._keeping:
            self._began_with.add(name)
        elif name not in self._began_with:
            self._taking.writer.keep(kind, content)
            self.after[name] = content
        return name

    def ended(self, redactor: Redactor) -> Captured:
        """The workspace as the agent left it; of each file that changed, both contents are kept. Raises NotStaged, OSError."""
        self._keeping = True
        final = self._snapshot.take(redactor)
        with self._fixture.open_stage() as kept:
            for change in changes(self.start.tree, final.tree):
                if change.before is not None and (content := content_in(kept, change.before)) is not None:
                    self._taking.writer.keep(BLOB, content)
        return final


def without(tree: Tree, folders: frozenset[bytes]) -> Tree:
    """The tree without what is in `folders`: what was not looked at again is not gone."""
    if not folders:
        return tree
    return tree_of(one for one in tree.entries if not any(one.path == folder or one.path.startswith(folder + b"/") for folder in folders))


def content_in(cassette: Cassette, entry: Entry) -> bytes | None:
    """What a cassette keeps of an entry's content."""
    if entry.digest is None:
        return None
    try:
        return cassette.artifact(entry.digest)
    except NotFound:
        return None


@dataclass(frozen=True, slots=True)
class Collected:
    """One take's, before it is judged."""

    start: Tree
    final: Tree
    """That of the start where `unseen` says why there is none."""
    stage: Staged
    traced: Traced
    log: tuple[Event, ...]
    live: Mapping[str, int]
    """Requests of channels other than the model's that were answered live."""
    after: Mapping[Digest, bytes]
    """Content that files have now and none had before, by digest."""
    waited_us: int = 0
    """How long the last model call had been without the end of its answer, when the agent ended."""
    unseen: str = ""
    """Why the workspace could not be captured at the end: what the agent left is judged by commands only."""


def collect(taking: Retaking, watched: Watched, redactor: Redactor, tracer: Tracer | None) -> Collected:
    """Read what the agent left. The proxy has stopped, nothing else acts in the workspace."""
    final, unseen = watched.start, ""
    try:
        final = watched.ended(redactor)
    except (NotStaged, OSError) as error:
        unseen = f"the workspace as the agent left it is not known: {error}"
    traced = tracer.result() if tracer is not None else UNTRACED
    if traced.source is Source.KERNEL:
        taking.writer.keep(EXEC, execs.encode(execs.redacted(traced.commands, redactor.text)))
    stage = Staged(
        workspace=digest_of(encode_tree(watched.start.tree)),
        final=None if unseen else digest_of(encode_tree(final.tree)),
        not_captured=(unseen,) if unseen else final.not_captured,
        files=watched.start.cost.files,
        size_bytes=watched.start.cost.size_bytes,
        seconds=watched.start.cost.seconds + final.cost.seconds,
    )
    with taking.stage.store.open(taking.writer.name) as kept:
        exchanges = [kept.exchange(seq) for seq in sorted(row.seq for row in kept.rows)]
        log = tuple(events(iter(exchanges), contents(kept)))
        live = answered_live(exchanges)
        last = next((one for one in reversed(exchanges) if one.channel is Channel.MODEL), None)
        waited_us = 0 if last is None or last.ended is Ending.COMPLETE else last.ended_us - last.started_us
    start = watched.start.tree if unseen else without(watched.start.tree, watched.left_out)
    return Collected(start, final.tree, stage, traced, log, live, watched.after, waited_us, unseen)


def resources(seen: Retaken, collected: Collected) -> Resources:
    """What a take used."""
    used = seen.used
    called = sum(event.event is EventKind.TOOL_CALL for event in collected.log)
    tokens = None if used.uncounted else used.tokens
    return Resources(len(seen.calls), called, tokens, used.cost, seen.elapsed_us / 1_000_000)


async def judged(
    fixture: Fixture, acting: Acting, scene: Scenery, collected: Collected, seen: Retaken, floor: Floor | None
) -> tuple[Checked, ...]:
    """Judge the workspace where it stands, on the agent's own stage; its commands find no provider, and no network."""
    inside = scene.cwd_on(acting)
    with fixture.open_stage() as kept:
        return await judge(
            fixture.failure,
            fixture.acceptance,
            Scene(
                workspace=scene.work,
                start=collected.start,
                final=collected.final,
                unseen=collected.unseen,
                before=lambda entry: content_in(kept, entry),
                after=lambda entry: _after(kept, collected, entry),
                environ=acting.environment({}),
                events=collected.log,
                commands=collected.traced.commands,
                resources=resources(seen, collected),
                stopped=seen.stopped,
                prefix=acting.prefix,
                floor=floor,
                fixture=fixture.root,
                redactor=acting.equipment.redactor,
                take=seen.name,
                inside=None if inside == scene.work else str(inside),
                monotonic_s=acting.equipment.stage.monotonic_s,
            ),
        )


def _after(kept: Cassette, collected: Collected, entry: Entry) -> bytes | None:
    found = collected.after.get(entry.digest) if entry.digest is not None else None
    return content_in(kept, entry) if found is None else found


_OTHERWISE = frozenset({Layer.INSTRUCTIONS, Layer.MODEL})
"""Layers that another model or other instructions change, and are meant to."""


def surroundings(recorded: Envelope, now: Envelope, *, meant: frozenset[str] = frozenset()) -> tuple[Difference, ...]:
    """What surrounds a take otherwise than the recording, or cannot be compared. `meant`: the `LAYER.FIELD`s it was to change."""
    return tuple(
        one
        for one in compare(recorded, now, source=FieldSource.MACHINE)
        if one.layer not in _OTHERWISE and not one.expected and one.name not in meant
    )


LEFT_OUT = frozenset({IGNORED, "cannot be read", "too deep"})
"""Reasons for which something is not in a tree at all."""


def incomplete(start: Tree, not_captured: Iterable[str]) -> tuple[str, ...]:
    """What of the recorded workspace is not as it was in a take: files without content or with placeholders in it, what is not there."""
    lines = [line.rpartition(": ") for line in not_captured]
    gone = [path for path, _, reason in lines if reason in LEFT_OUT]
    return (*(shown(entry.path) for entry in start.entries if entry.note), *gone)


def take_of(
    fixture: Fixture,
    cell: Cell,
    performed: Performed,
    outcome: Seen,
    seen: Retaken,
    collected: Collected,
    checks: tuple[Checked, ...],
    envelope: Envelope,
) -> Take:
    """Put together what a take says about itself."""
    signature = fixture.failure.signature
    counted = count(
        Ran(
            checks=checks,
            calls=seen.calls,
            misses=[Missed(miss.channel, miss.at_us, miss.url) for miss in seen.misses],
            events=collected.log,
            incident=signature.value() if signature is not None else None,
            stopped=seen.stopped,
            unsent=seen.unswapped,
            agent_status=performed.finished.status,
            waited=performed.finished.timed_out and 2 * collected.waited_us > seen.elapsed_us,
        )
    )
    differs = surroundings(fixture.envelope, envelope, meant=cell.meant)
    named = [one.name for one in differs if one.comparable]
    # A member that one side does not know (a program too slow to say its version) is let pass; a whole field is not.
    unsure = [one.name for one in differs if UNKNOWN in (one.recorded, one.now)]
    label, phrases = control(
        Conditions(
            pin_classes=cell.pin_classes,
            tier=str(performed.tier),
            live=collected.live,
            misses=Counter(str(miss.channel) for miss in seen.misses if miss.channel is not Channel.MODEL),
            tool_effects=effects(collected.log),
            envelope_differs=named,
            envelope_unknown=unsure,
            incomplete=incomplete(collected.start, fixture.stage.not_captured),
            passed_through=outcome.passed_through,
            holes=performed.holes,
        )
    )
    return Take(
        fixture=fixture.name,
        fixture_digest=fixture.digest,
        model=cell.model,
        pin_class=", ".join(sorted(set(cell.pin_classes.values()))),
        arm=cell.arm or cell.model,
        repeat=cell.repeat,
        outcome=counted.outcome,
        signature=counted.signature,
        checks=checks,
        control=label,
        live=phrases,
        tier=str(performed.tier),
        refused_attempts=len(performed.attempts),
        holes=performed.holes,
        clock=cell.clock,
        commands_from=str(collected.traced.source),
        resources=resources(seen, collected),
        agent=cell.agent,
        agent_version=cell.agent_version,
        agent_status=performed.finished.status,
        stopped=seen.stopped,
        envelope=envelope.fingerprint,
        envelope_differs=tuple(named),
        start_tree=collected.stage.workspace or "",
        final_tree=collected.stage.final or "",
        reason=counted.reason,
        matrix=cell.matrix,
        warm_up=cell.warm_up,
        unpinned=any(label.startswith("unpinned") for label in seen.labels),
        mismatches=len(seen.mismatches),
        attempts=cell.attempts,
        invalid=counted.invalid,
        proof=min((call.proof for call in seen.calls if call.infrastructure is None), key=PROOFS.index, default=""),
    )


@dataclass(frozen=True, slots=True)
class Cell:
    """What of a take was decided before it began."""

    model: str
    pin_classes: Mapping[str, str]
    arm: str
    repeat: int
    matrix: str
    warm_up: bool
    attempts: int
    clock: str
    agent: str
    agent_version: str | None
    meant: frozenset[str] = frozenset()
    """Fields of the envelope that this take was to change, as `LAYER.FIELD`."""

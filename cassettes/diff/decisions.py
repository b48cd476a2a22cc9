"""What the model decided, turn by turn, read from the events of a run, and where two runs decided differently.

A decision is the set of tools a turn calls, with their arguments as `sameness` reads them; a turn that calls none "said something",
and what it said is never compared. Calls that offer the model no tools (titles, routers) are no decisions where others of the run do
offer some. Attempts that failed are faults, counted by kind, not decisions. Their order: `order.py`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from secondtake.cassettes.adapters.base import Json
from secondtake.cassettes.adapters.reading import count, digest, mapping, sequence, string
from secondtake.cassettes.diff.alignment import Mark, align
from secondtake.cassettes.diff.arguments import Changed, differ
from secondtake.cassettes.diff.order import ordered
from secondtake.cassettes.diff.sameness import PATHS, Sameness, parsed
from secondtake.cassettes.events import Event, EventKind

SHOWN_CHARACTERS = 160
"""Of a call on one line."""


@dataclass(frozen=True, slots=True)
class Result:
    """What came back for a call. `output` names the text without paths, identifiers and durations."""

    exit_code: int | None
    is_error: bool | None
    output: str


@dataclass(frozen=True, slots=True)
class Call:
    """One tool call. `arguments`: as they are compared. Equal calls may have had other results."""

    tool: str
    arguments: str
    result: Result | None = field(default=None, compare=False)

    def __str__(self) -> str:
        """On one line: the tool, and what it is told."""
        value = parsed(self.arguments)
        line = self.tool
        if isinstance(value, dict):
            ordered = sorted(value.items(), key=lambda item: item[0].lower() not in PATHS)
            said = [f"{name}={_plain(inner)}" for name, inner in ordered]
            only = next(iter(value.values())) if len(value) == 1 else None
            line += f": {only}" if isinstance(only, str) else f" {' '.join(said)}" if said else ""
        elif self.arguments:
            line += f": {self.arguments}"
        return cut(line)


@dataclass(frozen=True, slots=True)
class Decision:
    """One turn of the model. `number` counts from 1; `calls` is sorted: calls made at once have no order."""

    number: int
    exchange: int
    calls: tuple[Call, ...]
    stop: str | None = None

    @property
    def key(self) -> str:
        """Equal for equal decisions."""
        return "\x1e".join(f"{call.tool}\x1f{call.arguments}" for call in self.calls)

    @property
    def mark(self) -> Mark:
        return Mark(self.key, tuple(call.tool for call in self.calls) or ("",))

    def __str__(self) -> str:
        return "; ".join(map(str, self.calls)) or SAID


SAID = "(said something, called nothing)"


@dataclass(frozen=True, slots=True)
class Fault:
    """Something beside the decisions: `failed call`, `retry`, `broken stream`, `miss`, `unread`, `signal`. `after`: decisions before."""

    kind: str
    text: str
    after: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Course:
    """What one run decided. `aside`: answers to calls that offered no tools, not compared. `ended`: why all ended."""

    decisions: tuple[Decision, ...]
    faults: tuple[Fault, ...] = ()
    ended: str | None = None
    aside: int = 0
    models: tuple[str, ...] = ()
    """Who answered, in the order they first did; as asked where no answer names one."""
    asked: int = 0
    """Model calls, failed ones among them."""
    tokens: int = 0
    """In and out, of the answers that said."""
    uncounted: int = 0
    """Answers that did not say how many."""


class How(StrEnum):
    """How two decisions that stand side by side compare."""

    SAME = "same"
    ARGUMENTS = "other arguments"
    OTHER = "other decision"
    ONLY_A = "only A"
    ONLY_B = "only B"


@dataclass(frozen=True, slots=True)
class Step:
    """One line of the comparison. `only_a`, `only_b`: calls of a decision that differs which the other one has not, by tool."""

    how: How
    a: Decision | None
    b: Decision | None
    changed: tuple[Changed, ...] = ()
    only_a: tuple[Call, ...] = ()
    only_b: tuple[Call, ...] = ()
    stops: tuple[str | None, str | None] | None = None
    """Why the model stopped, where it was the same decision and another reason."""
    other_result: bool = False
    """The same decision, and its tools gave something else back. No difference of decisions, but it may be why later ones differ."""


@dataclass(frozen=True, slots=True)
class Decided:
    """The first layer."""

    a: Course
    b: Course
    steps: tuple[Step, ...]
    only_a: tuple[tuple[Fault, int], ...] = ()
    """Faults that A had more often, and how much more often."""
    only_b: tuple[tuple[Fault, int], ...] = ()
    bounded: bool = False

    @property
    def common(self) -> int:
        """How many decisions both begin with."""
        return next((number for number, step in enumerate(self.steps) if step.how is not How.SAME), len(self.steps))

    @property
    def parting(self) -> tuple[Decision | None, Decision | None] | None:
        """The first decision that separates both: what A did then and what B did; None for a side that had ended. None: they never part."""
        if self.same_path:
            return None
        at = self.common
        return _at(self.a, at), _at(self.b, at)

    @property
    def saw_otherwise(self) -> Step | None:
        """The first decision before that one after which both saw something else."""
        return next((step for step in self.steps[: self.common] if step.other_result), None)

    @property
    def same_path(self) -> bool:
        """Every decision is the same."""
        return self.common == len(self.steps)

    @property
    def differs(self) -> bool:
        """A decision, a stop reason, the end, or what went wrong on the way."""
        stops = any(step.stops is not None for step in self.steps)
        return not self.same_path or stops or bool(self.only_a or self.only_b) or self.a.ended != self.b.ended

    def counts(self) -> dict[How, int]:
        """How many steps there are of each kind."""
        counted = Counter(step.how for step in self.steps)
        return {how: counted[how] for how in How}


def _at(course: Course, place: int) -> Decision | None:
    return course.decisions[place] if place < len(course.decisions) else None


@dataclass(slots=True)
class _Turn:
    seq: int
    offers: bool
    conversation: str
    stop: str | None
    calls: list[tuple[str, str, str]] = field(default_factory=list)
    """Call ID, tool, arguments as compared."""
    results: dict[int, Result] = field(default_factory=dict)


@dataclass(slots=True)
class _Reading:
    """What is read from events, one after the other."""

    same: Sameness
    turns: list[_Turn] = field(default_factory=list)
    last: dict[int, _Turn] = field(default_factory=dict)
    """By exchange; a socket's exchange has many."""
    asked: dict[int, tuple[bool, bool, str]] = field(default_factory=dict)
    faults: list[tuple[int, str, str]] = field(default_factory=list)
    models: dict[str, None] = field(default_factory=dict)
    calls: int = 0
    tokens: int = 0
    uncounted: int = 0
    ended: str | None = None

    def take(self, event: Event) -> None:
        data, seq = event.data, event.exchange or 0
        match event.event:
            case EventKind.MODEL_REQUEST:
                self.asked[seq] = data.get("kind") == "completion", bool(data.get("tools")), string(data.get("conversation"))
            case EventKind.MODEL_RESPONSE:
                self._answered(event, seq)
            case EventKind.TOOL_CALL:
                self._called(event, seq)
            case EventKind.TOOL_RESULT:
                self._returned(event)
            case EventKind.RETRY:
                self.faults.append((seq, "retry", f"attempt {data.get('attempt')} after {data.get('after')}"))
            case EventKind.STREAM_ERROR:
                self.faults.append((seq, "broken stream", f"{data.get('reason')} ({data.get('ended')})"))
            case EventKind.MISS:
                url = self.same.text(str(data.get("url")))
                self.faults.append((seq, "miss", f"{data.get('kind') or 'miss'}: {data.get('method')} {url}"))
            case EventKind.UNREAD:
                self.faults.append((seq, "unread", self.same.text(f"{data.get('reason')}: {data.get('url')}")))
            case EventKind.SIGNAL:
                self.faults.append((seq, "signal", self.same.text(f"{data.get('signal')}: {data.get('detail')}")))
            case EventKind.STOP:
                self.ended = string(data.get("reason")) or None

    def _answered(self, event: Event, seq: int) -> None:
        completion, offers, conversation = self.asked.get(seq, (True, True, ""))
        self.calls += completion
        if event.data.get("outcome") != "answered":
            error = mapping(event.data.get("error"))
            text = f"status {event.data.get('status')}, {event.data.get('outcome')}"
            self.faults.append((seq, "failed call", f"{text}, {error['type']}" if "type" in error else text))
        elif completion:
            self._used(mapping(event.data.get("usage")))
            turn = _Turn(seq, offers, conversation, string(event.data.get("stop")) or None)
            self.turns.append(turn)
            self.last[seq] = turn
            served = [string(name) for name in sequence(event.data.get("served"))] or [event.model or "?"]
            self.models |= dict.fromkeys(served)

    def _used(self, usage: Mapping[str, Json]) -> None:
        counts = [count(usage.get("input")), count(usage.get("output"))]
        self.tokens += sum(number for number in counts if number is not None)
        self.uncounted += None in counts or bool(usage.get("partial"))

    def _called(self, event: Event, seq: int) -> None:
        turn = self.last.get(seq)
        if turn is not None:
            tool = string(event.data.get("tool"))
            arguments = string(event.data.get("arguments")) or _payload(event, "arguments_sha256")
            turn.calls.append((string(event.data.get("call_id")), tool, self.same.arguments(tool, arguments)))

    def _returned(self, event: Event) -> None:
        called = event.data.get("call_exchange")
        turn = self.last.get(called) if isinstance(called, int) else None
        if turn is None:
            return
        name, tool = string(event.data.get("call_id")), string(event.data.get("tool"))
        free = [number for number in range(len(turn.calls)) if number not in turn.results]
        matching = [number for number in free if name and turn.calls[number][0] == name]
        matching += [number for number in free if turn.calls[number][1] == tool]
        if matching:
            code, failed = event.data.get("exit_code"), event.data.get("is_error")
            output = digest(self.same.output(_payload(event, "stdout_sha256")))
            turn.results[matching[0]] = Result(
                code if isinstance(code, int) else None, failed if isinstance(failed, bool) else None, output
            )


def course(found: Iterable[Event], same: Sameness) -> Course:
    """Read the decisions of one run from its events."""
    reading = _Reading(same)
    for event in found:
        reading.take(event)
    turns = sorted(reading.turns, key=lambda turn: turn.seq)
    offered = any(turn.offers for turn in turns)
    counted = ordered(
        [turn for turn in turns if turn.offers or not offered],
        lambda turn: turn.conversation,
        lambda turn: tuple(sorted(f"{tool}\x1f{arguments}" for _, tool, arguments in turn.calls)),
    )
    decisions = []
    for number, turn in enumerate(counted, 1):
        calls = [Call(tool, arguments, turn.results.get(place)) for place, (_, tool, arguments) in enumerate(turn.calls)]
        calls.sort(key=lambda call: (call.tool, call.arguments))
        decisions.append(Decision(number, turn.seq, tuple(calls), turn.stop))
    before = [turn.seq for turn in counted]
    faults = [Fault(kind, text, sum(seq < at for seq in before)) for at, kind, text in sorted(reading.faults)]
    aside = len(turns) - len(counted)
    used = (reading.calls, reading.tokens, reading.uncounted)
    return Course(tuple(decisions), tuple(faults), reading.ended, aside, tuple(reading.models), *used)


def compare(a: Course, b: Course) -> Decided:
    """Set the decisions of two runs side by side."""
    aligned = align([one.mark for one in a.decisions], [one.mark for one in b.decisions])
    steps = []
    for pair in aligned.pairs:
        one = None if pair.a is None else a.decisions[pair.a]
        other = None if pair.b is None else b.decisions[pair.b]
        steps.append(_step(one, other))
    had, has = Counter(a.faults), Counter(b.faults)
    return Decided(a, b, tuple(steps), _more(had, has), _more(has, had), aligned.bounded)


def _more(one: Counter[Fault], other: Counter[Fault]) -> tuple[tuple[Fault, int], ...]:
    return tuple((fault, number) for fault, number in (one - other).items())


def _step(a: Decision | None, b: Decision | None) -> Step:
    if a is None:
        return Step(How.ONLY_B, a, b)
    if b is None:
        return Step(How.ONLY_A, a, b)
    if a.key == b.key:
        stops = None if a.stop == b.stop else (a.stop, b.stop)
        results = [(one.result, other.result) for one, other in zip(a.calls, b.calls, strict=True)]
        return Step(How.SAME, a, b, stops=stops, other_result=any(one and other and one != other for one, other in results))
    left, right = _without(a.calls, b.calls), _without(b.calls, a.calls)
    changed = []
    for call in list(left):
        opposite = next((one for one in right if one.tool == call.tool), None)
        if opposite is not None:
            changed.append(differ(call.tool, call.arguments, opposite.arguments))
            left.remove(call)
            right.remove(opposite)
    how = How.ARGUMENTS if changed and not left and not right else How.OTHER
    return Step(how, a, b, tuple(changed), tuple(left), tuple(right))


def _without(calls: Sequence[Call], others: Sequence[Call]) -> list[Call]:
    """Calls that `others` has not, each as often as it has it not."""
    missing = Counter(calls) - Counter(others)
    made = []
    for call in calls:
        if missing[call] > 0:
            missing[call] -= 1
            made.append(call)
    return made


def cut(text: str, most: int = SHOWN_CHARACTERS) -> str:
    """Text on one line of at most `most` characters."""
    line = re.sub(r"\s+", " ", text[: most * 4]).strip()
    return line if len(line) <= most else line[: most - 1] + "…"


def _plain(value: Json) -> str:
    return cut(value, 60) if isinstance(value, str) else cut(str(value), 60)


def _payload(event: Event, key: str) -> str:
    name = event.data.get(key)
    data = event.payloads.get(name) if isinstance(name, str) else None
    return "" if data is None else data.decode("utf-8", "surrogatepass")

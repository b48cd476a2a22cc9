"""How a take counts, and how much was held: from what happened to an outcome, a control label and a headline. Pure (DESIGN 6).

A take is judged by what ended it first (infrastructure), then by what it was asked (acceptance), then by what it could not know
(contamination). A take that says nothing of its model, because another one answered or none could be asked, is invalid beside its
outcome: it was not failed by the model.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Protocol

from secondtake.cassettes.events import Event, EventKind
from secondtake.cassettes.exchange import Answered, Channel, Exchange
from secondtake.cassettes.misses import printable
from secondtake.cassettes.signatures import signature
from secondtake.cassettes.takes import Checked, Control, Outcome, Signature, Take
from secondtake.cassettes.testcases import words

if TYPE_CHECKING:
    from secondtake.cassettes.adapters.base import Json

COMPARISON = "Comparison study, not proof of a model regression"
REASON_CHARACTERS = 300
LEFT = "the agent left"
"""How a verdict begins where the agent, not the provider, ended a call (verdicts.py)."""


class Call(Protocol):
    """What is asked of a live model call; `harness.results.LiveCall` is one."""

    @property
    def seq(self) -> int: ...
    @property
    def forwarded(self) -> str: ...
    @property
    def served(self) -> tuple[str, ...]: ...
    @property
    def mismatch(self) -> bool: ...
    @property
    def infrastructure(self) -> str | None: ...
    @property
    def retired(self) -> bool: ...
    @property
    def incompatible(self) -> str | None: ...


@dataclass(frozen=True, slots=True)
class Missed:
    """A request that was not on the cassette, and was refused. `at_us`: since the recording began."""

    channel: Channel
    at_us: int
    url: str = ""


@dataclass(frozen=True, slots=True)
class Ran:
    """What happened in one take, as far as its outcome depends on it."""

    checks: Sequence[Checked]
    calls: Sequence[Call] = ()
    """Model calls that left, in any order."""
    misses: Sequence[Missed] = ()
    events: Sequence[Event] = ()
    incident: Signature | None = None
    """The fixture's. A part of it that is empty is not compared."""
    stopped: str | None = None
    unsent: Sequence[str] = ()
    """Why model calls were not sent, apart from a stopping rule."""
    agent_status: int | None = 0
    failing_us: int | None = None
    """When the failing step began, where it is known (blame); None: the last tool call's."""
    waited: bool = False
    """The agent was ended when its time was over, most of which it had waited for one answer of the model's."""


@dataclass(frozen=True, slots=True)
class Counted:
    """How a take counts, and why, in one line. `invalid`: why it says nothing of its model, else empty."""

    outcome: Outcome
    reason: str
    signature: Signature | None
    invalid: str = ""


def count(ran: Ran) -> Counted:
    """Decide how a take counts."""
    invalid = _invalid(ran)
    found = signature(ran.checks, ran.events, stopped=ran.stopped)
    fault = ended_by(ran)
    if fault is not None:
        return Counted(Outcome.INFRASTRUCTURE, _line(f"the run ended because of the infrastructure: {fault}"), found, invalid)
    asked = [check for check in ran.checks if check.section == "acceptance"]
    if found is None and asked:
        every = "the check holds" if len(asked) == 1 else f"all {len(asked)} checks hold"
        return Counted(Outcome.PASS, every, None, invalid)
    early = [miss for miss in contaminating(ran.misses) if miss.at_us <= failing_us(ran)]
    if early:
        more = f", and {len(early) - 1} more" if len(early) > 1 else ""
        where = f" ({early[0].url})" if early[0].url else ""
        reason = f"{early[0].channel} was asked for what the cassette does not have{where}{more}, before the step that failed"
        return Counted(Outcome.CONTAMINATED, _line(reason), found, invalid)
    if found is None:
        return Counted(Outcome.OTHER, "the fixture has no acceptance check, so nothing can pass", None, invalid)
    failed = next(check for check in asked if check.held is not True)
    told = f"`{failed.name}` {'does not hold' if failed.held is False else 'could not be judged'}: {failed.evidence}"
    other = _unlike(ran, found)
    if other is None:
        return Counted(Outcome.SAME, _line(f"{_cut_short(ran)}as in the incident, {told}"), found, invalid)
    return Counted(Outcome.OTHER, _line(f"{_cut_short(ran)}{told}; {other}"), found, invalid)


def _cut_short(ran: Ran) -> str:
    """That the agent did not come to an end of its own, or to a bad one; empty where it did."""
    if ran.stopped is not None:
        return f"stopped by {ran.stopped}; "
    return "" if ran.agent_status in {0, None} or ran.unsent else f"the agent ended with {ran.agent_status}; "


def _line(text: str) -> str:
    return printable(text, REASON_CHARACTERS)


def same(incident: Signature, found: Signature) -> bool:
    """Whether `found` is the incident's failure: each part that the incident names is the same."""
    have = dict(found.parts)
    named = [(name, value) for name, value in incident.parts if value]
    return bool(named) and all(_alike(name, value, have.get(name, "")) for name, value in named)


def _alike(part: str, wanted: str, found: str) -> bool:
    """Whether one part is the incident's. A test may be named as another of its programs names it, or without its beginning."""
    if wanted == found:
        return True
    if part != "first" or not any(sign in found for sign in ("::", " > ")):
        return False
    asked = words(wanted)
    return words(found)[-len(asked) :] == asked


def _unlike(ran: Ran, found: Signature) -> str | None:
    """Why a failure is not the incident's; None where it is."""
    conditions = [check for check in ran.checks if check.section == "failure"]
    if ran.incident is None and not conditions:
        return "the fixture does not say what the incident's failure was"
    absent = next((check for check in conditions if check.held is not True), None)
    if absent is not None:
        return f"the incident's `{absent.name}` {'is not there' if absent.held is False else 'could not be judged'}: {absent.evidence}"
    if ran.incident is None or same(ran.incident, found):
        return None
    have = dict(found.parts)
    parts = [(name, value, have.get(name, "")) for name, value in ran.incident.parts if value]
    unlike = [f"{name} {found or 'none'}, not {wanted}" for name, wanted, found in parts if not _alike(name, wanted, found)]
    return "; ".join(unlike) or "the incident's signature is empty"


# ---- what ended the run --------------------------------------------------------------------------------------------


def ended_by(ran: Ran) -> str | None:
    """The infrastructure fault that ended the run; None where the agent went on after it, or a stopping rule ended it, or there was none.

    The last call of the conversation with tools decides, as in the event log: a title that failed ends nothing.
    """
    if ran.waited:
        return "no answer to a model call within the time of the take"
    if ran.stopped is not None or not ran.calls:
        return None
    last = last_call(ran)
    fault = last.infrastructure
    return None if fault is None or fault.startswith(LEFT) else fault


def last_call(ran: Ran) -> Call:
    """The live call that the log's `stop` names, else the latest."""
    stop = next((event for event in reversed(ran.events) if event.event is EventKind.STOP), None)
    named = None if stop is None else stop.data.get("last_exchange")
    latest = max(ran.calls, key=lambda call: call.seq)
    return next((call for call in sorted(ran.calls, key=lambda call: -call.seq) if call.seq == named), latest)


def _invalid(ran: Ran) -> str:
    wrong = [call for call in ran.calls if call.mismatch]
    if wrong:
        who = ", ".join(sorted({f"{', '.join(call.served) or 'another model'} for {call.forwarded}" for call in wrong}))
        return _line(f"mismatch: another model answered than was asked ({who}), in {_calls(len(wrong))}")
    if ran.unsent:  # also where others were: the model in the part did not have all of it, and the agent may have been ended for it
        return _line(f"not sent: {ran.unsent[0]}")
    answered = [call for call in ran.calls if not call.retired and call.incompatible is None and call.infrastructure is None]
    if answered or (ran.calls and ended_by(ran) is not None):
        return ""
    if gone := next((call for call in ran.calls if call.retired), None):
        return _line(f"retired: the provider does not know {gone.forwarded}, or no longer")
    if refused := next((call for call in ran.calls if call.incompatible is not None), None):
        return _line(f"refused: the provider would not take a call for {refused.forwarded}: {refused.incompatible}")
    if not ran.calls and not ran.waited:
        ended = "" if ran.agent_status in {0, None} else f"; the agent ended with {ran.agent_status}"
        return f"not asked: no model call left{ended}"
    return ""


def _calls(number: int) -> str:
    return "1 call" if number == 1 else f"{number} calls"


# ---- contamination -------------------------------------------------------------------------------------------------

_HARMLESS = frozenset({Channel.MODEL, Channel.TELEMETRY})
"""A model call that misses is the run's own; what an agent reports about itself changes nothing of what it does."""


def contaminating(misses: Iterable[Missed]) -> list[Missed]:
    """The misses that may have changed what the agent did, in order of time."""
    return sorted((miss for miss in misses if miss.channel not in _HARMLESS), key=lambda miss: miss.at_us)


def failing_us(ran: Ran) -> int:
    """When the step that failed ended, at the latest: where it is not known, when the result of the last tool call was sent back, since
    nothing changes the workspace after that; the end of the log where no tool was called."""
    if ran.failing_us is not None:
        return ran.failing_us
    results = [event.offset_us for event in ran.events if event.event is EventKind.TOOL_RESULT]
    called = [event.offset_us for event in ran.events if event.event is EventKind.TOOL_CALL and not event.data.get("server_side")]
    last = max((event.offset_us for event in ran.events), default=1 << 62)
    if not called:
        return last
    after = [offset for offset in results if offset >= max(called)]
    return max(after) if after else 1 << 62  # its result was never sent: it may have been at work until the end


# ---- control -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Conditions:
    """What was held and what was not, by what happened."""

    pin_classes: Mapping[str, str]
    """Pin to its class."""
    tier: str
    live: Mapping[str, int] = field(default_factory=dict)
    """Channels other than the model's that were answered live, and how many of their requests."""
    misses: Mapping[str, int] = field(default_factory=dict)
    tool_effects: Mapping[str, int] = field(default_factory=dict)
    """Tools that the provider ran itself, and how often."""
    envelope_differs: Sequence[str] = ()
    envelope_unknown: Sequence[str] = ()
    """Fields of which the recording or the take does not know what the other knows."""
    incomplete: Sequence[str] = ()
    """Files and folders of the workspace that could not be put back as they were."""
    passed_through: Mapping[str, int] = field(default_factory=dict)
    """Hosts that were tunnelled unread, and their connections."""
    bypasses: Sequence[str] = ()
    """Attempts to reach something beside the proxy that were not refused."""
    holes: Sequence[str] = ()
    """What the seal's tier leaves open."""
    unverified: int = 0
    """Live calls of which it is not known who answered."""


_FIRM = frozenset({"sealed", "sealed-root"})
_HELD = frozenset({"content", "snapshot"})
_TIERS = {
    "fenced": "seal fenced: TCP is confined, UDP is not",
    "observed": "seal observed: a bypass would have been seen, none was",
}


def control(conditions: Conditions) -> tuple[Control, tuple[str, ...]]:
    """The label, and one phrase for each thing that was not held: channels with their counts first."""
    open_ended = [f"{_of(host, number, 'connection')} tunnelled unread" for host, number in sorted(conditions.passed_through.items())]
    open_ended += [f"bypass not refused: {printable(attempt, 120)}" for attempt in conditions.bypasses]
    if conditions.tier not in _FIRM and conditions.tier not in _TIERS:
        open_ended.append(f"seal {conditions.tier or 'none'}: a bypass cannot be excluded")
    partly = [f"{_of(channel, number, 'request')} answered live" for channel, number in sorted(conditions.live.items()) if number]
    partly += [
        f"{_of(channel, number, 'request')} missed"
        for channel, number in sorted(conditions.misses.items())
        if number and channel not in _HARMLESS
    ]
    partly += [f"{_of(tool, number, 'call')} run by the provider" for tool, number in sorted(conditions.tool_effects.items()) if number]
    loose = sorted({(kind, pin) for pin, kind in conditions.pin_classes.items() if kind not in _HELD})
    partly += [f"model {printable(pin, 120)} is held by {kind or 'nothing'} only" for kind, pin in loose]
    if not conditions.pin_classes:
        partly.append("model not pinned")
    if conditions.unverified:
        partly.append(f"who answered is not known of {_calls(conditions.unverified)}")
    partly += [f"envelope differs: {printable(what, 120)}" for what in conditions.envelope_differs]
    if unsure := conditions.envelope_unknown:
        more = f" and {len(unsure) - 3} more" if len(unsure) > 3 else ""
        partly.append(f"envelope not known to be equal: {printable(', '.join(unsure[:3]), 120)}{more}")
    if gone := conditions.incomplete:
        more = f" and {len(gone) - 3} more" if len(gone) > 3 else ""
        partly.append(f"workspace not whole: {printable(', '.join(gone[:3]), 200)}{more}")
    if conditions.tier in _TIERS:
        partly.append(_TIERS[conditions.tier])
    if open_ended:
        return Control.UNCONTROLLED, (*open_ended, *partly)
    return (Control.PARTIALLY if partly else Control.CONTROLLED), tuple(partly)


def labelled(label: Control, phrases: Sequence[str]) -> str:
    """The label as it is shown: `partially controlled: web (2 requests) answered live`."""
    return f"{label}: {'; '.join(phrases)}" if phrases and label is not Control.CONTROLLED else str(label)


def _of(name: str, number: int, unit: str) -> str:
    return f"{printable(name, 120)} ({number} {unit}{'' if number == 1 else 's'})"


def answered_live(exchanges: Iterable[Exchange]) -> dict[str, int]:
    """How many requests of each channel but the model's were answered live; what was answered here does not count, whatever it was."""
    return dict(Counter(one.channel.value for one in exchanges if one.answered is Answered.LIVE and one.channel is not Channel.MODEL))


def effects(events: Sequence[Event]) -> dict[str, int]:
    """The tools that the provider ran itself, and how often."""
    found: Counter[str] = Counter()
    for event in events:
        data: Mapping[str, Json] = event.data
        if event.event is EventKind.TOOL_CALL and data.get("server_side"):
            found[str(data.get("tool"))] += 1
    signalled = Counter(
        str(event.data.get("detail"))
        for event in events
        if event.event is EventKind.SIGNAL and event.data.get("signal") == "provider_side_effect"
    )
    return dict(found | signalled)


# ---- the headline --------------------------------------------------------------------------------------------------


class Reproduction(StrEnum):
    """What running the original pin again came to."""

    REPRODUCED = "REPRODUCED"
    NOT = "NOT REPRODUCED"
    DIFFERENT = "DIFFERENT FAILURE"


@dataclass(frozen=True, slots=True)
class Headline:
    """`text`: as it is shown. `study`: what every report must say beside it; empty where it reproduced under control."""

    reproduction: Reproduction
    reproduced: int
    counted: int
    text: str
    study: str


def headline(takes: Sequence[Take]) -> Headline:
    """The headline of the original pin's takes. Those that do not count are left out; what counts is by `Take.counts`."""
    counting = [take for take in takes if take.counts]
    again = [take for take in counting if take.outcome is Outcome.SAME]
    if again:
        what = Reproduction.REPRODUCED
        seen = {take.signature.id for take in again if take.signature is not None}  # parts that the fixture does not name may differ
        alike = "same signature" if len(seen) <= 1 else f"same failure, {len(seen)} signatures"
        text = f"REPRODUCED {len(again)}/{len(counting)} ({alike})"
    elif any(take.outcome is Outcome.OTHER for take in counting):
        what, text = Reproduction.DIFFERENT, str(Reproduction.DIFFERENT)
    else:
        what, text = Reproduction.NOT, str(Reproduction.NOT)
    held = what is Reproduction.REPRODUCED and all(take.control is Control.CONTROLLED for take in counting)
    return Headline(what, len(again), len(counting), text, "" if held else study(takes))


def study(takes: Sequence[Take]) -> str:
    """`Comparison study, …`, and what stayed live in any of `takes`."""
    phrases = list(dict.fromkeys(phrase for take in takes for phrase in take.live))
    shown = "; ".join(phrases[:6]) + (f"; and {len(phrases) - 6} more" if len(phrases) > 6 else "")
    return f"{COMPARISON}. Not held: {shown}." if phrases else f"{COMPARISON}."

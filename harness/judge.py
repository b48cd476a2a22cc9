"""From what the wire saw to what a person must know: why a run is not clean, and what was not captured. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from secondtake.cassettes.exchange import Answered, Channel, Ending
from secondtake.harness.results import Problem, Verdict
from secondtake.proxy.tools import guess, trust_hint

if TYPE_CHECKING:
    from secondtake.cassettes.integrity import Mismatch
    from secondtake.harness.results import LiveCall
    from secondtake.proxy.outcome import Outcome

AGENTS = frozenset({"claude", "codex", "gemini", "opencode", "qwen", "pi", "mini-swe-agent", "aider"})
"""Tools of `TOOL_VARIABLES` that are coding agents: a recording of one without a single model call is not what was wanted (T-O2)."""


def record_problems(outcome: Outcome, agent: Sequence[str], bundle: Path) -> tuple[Problem, ...]:
    """Judge a recording. `agent` is the command line, empty where only the proxy ran."""
    found = [*_failed(outcome), *_tls(outcome, agent, bundle), *_wire(outcome)]
    if not outcome.requests:
        found.append(_nothing_captured(outcome, agent))
    elif not outcome.channels[Channel.MODEL] and _is_agent(agent):
        found.append(
            Problem(
                "no-model-call",
                f"no model call of `{agent[0]}` was captured, only {outcome.requests} other requests",
                "does it use a base URL on loopback, or a provider that --passthrough tunnels? `secondtake doctor` tries each tool",
                Verdict.DIVERGED,
            )
        )
    found += [Problem("not-kept", what, None, Verdict.DIVERGED) for what in dict.fromkeys(outcome.unkept)]
    cut = {str(how): number for how, number in outcome.endings.items() if how is not Ending.COMPLETE}
    if cut:
        found.append(Problem("cut-short", f"kept as they were cut short: {_listed(cut)}"))
    return (*found, *_not_captured(outcome), *_notes(outcome))


def unlike_announced(found: Sequence[Mismatch]) -> tuple[Problem, ...]:
    """Files that an index's own digests speak against (T-N7): a tool would refuse them, now and in every replay."""
    return tuple(
        Problem(
            "unlike-announced",
            f"exchange {one.file} is not the file that exchange {one.page} announced: {one.kept[:12]}…, not {one.announced[:12]}…",
            "a cache, a mirror or the index itself is wrong; record again without it",
            Verdict.DIVERGED,
        )
        for one in found
    )


def replay_problems(outcome: Outcome, agent: Sequence[str], bundle: Path, *, recorded: int) -> tuple[Problem, ...]:
    """Judge a replay of a cassette of `recorded` exchanges. Misses are counted elsewhere."""
    found = _played(outcome, agent, bundle, recorded=recorded)
    if outcome.answered[Answered.LIVE]:
        found.append(Problem("live", f"{outcome.answered[Answered.LIVE]} requests were answered live", None, Verdict.DIVERGED))
    if placed := outcome.answered[Answered.POSITIONAL]:
        message = f"answered by position, not by what was asked: {placed} model calls"
        found.append(Problem("positional", message, "`secondtake calibrate` says what differs", Verdict.DIVERGED))
    return (*found, *_notes(outcome))


def retake_problems(
    outcome: Outcome, agent: Sequence[str], bundle: Path, calls: Sequence[LiveCall], unswapped: Sequence[str], stopped: str | None
) -> tuple[Problem, ...]:
    """Judge a retake. Misses are counted elsewhere; what another model was asked and did is no problem of the run's."""
    found = [*_failed(outcome), *_played(outcome, agent, bundle, recorded=1)]
    wrong = [call for call in calls if call.mismatch]
    if wrong:
        who = ", ".join(sorted({f"{', '.join(call.served)} for {call.forwarded}" for call in wrong}))
        message = f"the take is invalid: another model answered than was asked ({who}), in {_steps(wrong)}"
        hint = "a fallback, a router or an advisor of the provider's; `--rule drop-fallbacks` takes them out of the request"
        found.append(Problem("mismatch", message, hint, Verdict.DIVERGED))
    cut = outcome.live[Channel.MODEL] - len(calls)
    if cut > 0:  # on a socket there are more calls than requests
        found.append(Problem("cut-short", f"cut short by the agent's leaving, before it could be told who answered: {cut} model calls"))
    if beside := {str(channel): number for channel, number in outcome.live.items() if channel is not Channel.MODEL}:
        found.append(Problem("live", f"answered live, as was asked: {_listed(beside)}"))
    found += [Problem("not-swapped", f"a model call was not sent: {why}", None, Verdict.DIVERGED) for why in dict.fromkeys(unswapped)]
    if not calls and not unswapped and stopped is None and outcome.requests:
        found.append(Problem("no-model-call", "no model call left", "the agent asked no model, or all of it was played", Verdict.DIVERGED))
    if stopped is not None:
        found.append(Problem("stopped", f"stopped: {stopped}"))
    failed = [call for call in calls if call.infrastructure is not None]
    if failed:
        how = _listed(Counter(call.infrastructure or "" for call in failed))
        found.append(Problem("infrastructure", f"not the model's doing, counted apart: {how}, in {_steps(failed)}"))
    found += _unreachable(outcome)
    if gone := [call for call in calls if call.retired]:
        pins = ", ".join(dict.fromkeys(call.forwarded for call in gone))
        found.append(Problem("retired", f"the provider does not know {pins}, or no longer, in {_steps(gone)}", "`secondtake pin ID`"))
    for why in dict.fromkeys(call.incompatible for call in calls if call.incompatible is not None):
        unauthorised = why[:3] in {"401", "403"}
        hint = "--credential-env VAR puts a credential on model calls" if unauthorised else "`--rule NAME` drops what a model refuses"
        found.append(Problem("incompatible", f"the provider would not take a call: {why}", hint))
    return (*found, *_notes(outcome))


def _steps(calls: Sequence[LiveCall]) -> str:
    steps = [str(call.step) for call in calls]
    more = f" and {len(steps) - 10} more" if len(steps) > 10 else ""
    return f"model call {', '.join(steps[:10])}{more}"


def _played(outcome: Outcome, agent: Sequence[str], bundle: Path, *, recorded: int) -> list[Problem]:
    """What is wrong with any run that is answered from a cassette."""
    found = [*_tls(outcome, agent, bundle), *_wire(outcome)]
    hint = "`secondtake verify` names every fault"
    found += [Problem("damaged", f"the cassette is damaged: {damage}", hint, Verdict.STORE) for damage in outcome.damaged]
    if recorded and not outcome.requests:
        found.append(_nothing_captured(outcome, agent))
    if number := outcome.refused["names-disagree"]:
        message = f"refused, because CONNECT, SNI and Host name different hosts: {number}"
        found.append(Problem("names-disagree", message, None, Verdict.DIVERGED))
    counted = sum(outcome.answered.values())
    if counted != outcome.requests:
        found.append(Problem("miscounted", f"{outcome.requests} requests were seen and {counted} answers counted", None, Verdict.FAULT))
    return found


def _failed(outcome: Outcome) -> list[Problem]:
    if outcome.failed is None:
        return []
    return [
        Problem(
            "record-failed",
            f"the recording failed ({outcome.failed.reason}): {outcome.failed}; the agent's traffic went on",
            outcome.failed.hint or "make room, or give another --store, and record again",
            Verdict.STORE,
        )
    ]


def _tls(outcome: Outcome, agent: Sequence[str], bundle: Path) -> list[Problem]:
    """One line for each host and client that would not trust us, with the variable that this client reads."""
    program = Path(agent[0]).name if agent else ""
    found = [
        Problem(
            "tls-failed",
            f"a client would not shake hands for {host}: {client or 'unknown client'}",
            trust_hint(host, guess(client, program), bundle),
            Verdict.DIVERGED,
        )
        for host, client in dict.fromkeys((failure.host, failure.client) for failure in outcome.tls_failures)
    ]
    for host, client in dict.fromkeys((failure.host, failure.client) for failure in outcome.silent):
        if (host, client) in outcome.trusting:
            continue
        tool = guess(client, program)
        late = tool is not None and tool.late
        message = f"a client shook hands for {host} and left without a request: {client or 'unknown client'}"
        kind, verdict = ("tls-failed", Verdict.DIVERGED) if late else ("silent", Verdict.CLEAN)
        found.append(Problem(kind, message, trust_hint(host, tool, bundle), verdict))
    return found


def _wire(outcome: Outcome) -> list[Problem]:
    found = []
    if outcome.not_http:
        hosts = ", ".join(sorted({host or "a bare connection" for host, _ in outcome.not_http}))
        hint = "--passthrough HOST tunnels a host unread"
        found.append(Problem("not-http", f"closed, because they spoke no HTTP: {hosts}", hint, Verdict.DIVERGED))
    if outcome.blocked:
        where = ", ".join(sorted(set(outcome.blocked)))
        found.append(Problem("blocked", f"connections that nobody granted were not opened: {where}", None, Verdict.DIVERGED))
    found.extend(Problem("crashed", f"a fault of secondtake ended a connection: {crash}", None, Verdict.FAULT) for crash in outcome.crashed)
    return found


def _not_captured(outcome: Outcome) -> list[Problem]:
    """What went by without being kept, or was kept as our own answer: said, but as asked."""
    found = []
    if outcome.passed_through:
        found.append(Problem("passed-through", f"not captured, tunnelled unread: {_listed(outcome.passed_through)}"))
    found += _unreachable(outcome)
    for reason, number in sorted(outcome.refused.items()):
        if reason != "miss":
            found.append(Problem("refused", f"answered here, not sent: {number} ({reason})"))
    return found


def _unreachable(outcome: Outcome) -> list[Problem]:
    return [Problem("unreachable", f"no answer from {url}: {why}") for url, why in dict.fromkeys(outcome.unreachable)]


def _notes(outcome: Outcome) -> list[Problem]:
    found = [Problem("note", note) for note in dict.fromkeys(outcome.notes)]
    if outcome.strangers:
        found.append(Problem("strangers", f"{outcome.strangers} connections of another user were refused"))
    return found


def _nothing_captured(outcome: Outcome, agent: Sequence[str]) -> Problem:
    """The likely cause of an empty recording or an idle replay (T-O2)."""
    tool = guess(Path(agent[0]).name) if agent else None
    if outcome.tls_failures or outcome.silent:
        cause, hint = "no client trusted our certificate", None
    elif outcome.passed_through:
        cause, hint = "all of it was tunnelled unread", "leave out --passthrough"
    elif not agent:
        cause, hint = "no client came", 'point one at the proxy with `eval "$(secondtake env)"`'
    elif tool is not None and not tool.proxied:
        cause, hint = f"{tool.name} {tool.note}", "secondtake doctor"
    else:
        cause = f"`{Path(agent[0]).name}` made no request, or ignores the proxy variables, or spoke only to loopback"
        hint = "`secondtake doctor` tries each tool; --loopback is for servers on this machine"
    return Problem("nothing-captured", f"nothing came through the proxy: {cause}", hint, Verdict.DIVERGED)


def _is_agent(agent: Sequence[str]) -> bool:
    tool = guess(Path(agent[0]).name) if agent else None
    return tool is not None and tool.name in AGENTS


def _listed(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{number} {name}" for name, number in sorted(counts.items()))

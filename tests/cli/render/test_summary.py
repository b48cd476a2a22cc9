"""What is said after a run."""

from __future__ import annotations

from secondtake.cassettes.exchange import Answered, Channel
from secondtake.cli.render.summary import announced_lines, recorded_fields, recorded_lines, replayed_fields, replayed_lines
from secondtake.harness.results import Missed, Problem, Recorded, Replayed, Unplayed, Verdict

NOTE = Problem("passed-through", "not captured, tunnelled unread: 3 pinned.example")
FAULT = Problem("record-failed", "the recording failed (ENOSPC)\nerror: forged", "make room", Verdict.STORE)


def recorded(*problems: Problem) -> Recorded:
    """A recording of three exchanges."""
    return Recorded("x", "ab" * 32, 0, {Channel.MODEL: 2, Channel.INDEX: 1}, 10, 2048, 1_500_000, problems)


def test_a_clean_recording_says_what_to_do_next() -> None:
    """Exchanges by channel, the most first, bytes, root, next."""
    assert list(recorded_lines(recorded(), again=" --store d")) == [
        "",
        "recorded x: 3 exchanges in 1.5 s",
        "  model            2",
        "  index            1",
        "  sent 10 B, received 2.0 KiB",
        f"  root {'ab' * 32}",
        "",
        "next: secondtake show x --store d",
    ]


def test_notes_and_problems_are_told_apart_on_one_line_each() -> None:
    """What was not captured is always said; a problem carries its hint; no text forges a line."""
    lines = list(recorded_lines(recorded(NOTE, FAULT), again=""))
    assert "note: not captured, tunnelled unread: 3 pinned.example" in lines
    assert "not clean: the recording failed (ENOSPC)\\nerror: forged" in lines
    assert "  hint: make room" in lines
    assert not [line for line in lines if line.startswith("next")]
    assert recorded_fields(recorded(NOTE, FAULT))["verdict"] == "store"


def test_counts_of_a_replay_add_up_and_long_lists_are_counted() -> None:
    """T-Q3; ten misses are shown, the rest is counted, all are in --json."""
    misses = tuple(Missed("variant", "GET", f"https://web.example/{n}", Channel.WEB, n, ("query q",), "m") for n in range(25))
    left = tuple(Unplayed(n, "GET", f"https://web.example/{n}", Channel.WEB) for n in range(12))
    result = Replayed("x", 1, 27, {Answered.EXACT: 2, Answered.MISS: 25}, misses, left, 1)
    lines = list(replayed_lines(result))
    assert lines[2:4] == ["  exact            2", "  miss            25"]
    assert "  closest: exchange 0; differs in query q" in lines
    assert "  … and 15 more misses" in lines
    assert "not asked for this time: 12 recorded exchanges" in lines
    assert "  … and 2 more exchanges" in lines
    fields = replayed_fields(result)
    assert len(fields["misses"]) == 25  # type: ignore[arg-type]
    assert sum(fields["answered"].values()) == fields["requests"] == 27  # type: ignore[attr-defined]


def test_tool_calls_are_announced_escaped() -> None:
    """C5: a recorded tool call is untrusted text."""
    assert list(announced_lines(("7 run {\x1b[2J}",)))[1] == "  7 run {\\x1b[2J}"

"""What the agent saw and did, as a story."""

from __future__ import annotations

from secondtake.cassettes.adapters import CallKind, ModelAnswer, ModelRequest, Reasoning, Role, Text, ToolCall, ToolResult, Turn
from secondtake.cli.render.timeline import timeline
from secondtake.harness.toolcalls import ModelCall
from tests.cli.scenes import sample

EXCHANGE = sample()[0][0]
TASK = Turn(Role.USER, (Text("fix\n it"),))
CALLED = Turn(Role.ASSISTANT, (Reasoning("x"), Text("I look."), ToolCall("1", "run", '{"command":"\x1b[2J"}')))
RESULT = Turn(Role.TOOL, (ToolResult("1", "run", "line\n" * 20, is_error=True),))


def call(*turns: Turn, answer: Turn | None = None) -> ModelCall:
    """A model call with this history."""
    answered = None if answer is None else ModelAnswer("anthropic", answer)
    return ModelCall(EXCHANGE, ModelRequest("anthropic", CallKind.COMPLETION, "m", turns=turns), answered)


def test_each_turn_is_told_once() -> None:
    """The history in a request was told with the calls before."""
    told = list(timeline([call(TASK, answer=CALLED), call(TASK, CALLED, RESULT, answer=Turn(Role.ASSISTANT, (Text("Done."),)))]))
    assert [line.split()[2] for line in told if line[9:11] == "  " and line.strip()[0].isdigit()] == [
        "user",
        "model",
        "model",
        "calls",
        "failed",
        "model",
    ]
    assert sum("fix it" in line for line in told) == 1


def test_long_results_are_cut_and_counted_and_all_of_it_is_escaped() -> None:
    """C5: tool calls and results are untrusted text."""
    told = list(timeline([call(TASK, CALLED, RESULT), call(TASK, answer=CALLED)]))
    assert sum(line.endswith("| line") for line in told) == 8
    assert any("… 12 more lines" in line for line in told)
    assert any('run {"command":"\\x1b[2J"}' in line for line in told)
    assert not any("\x1b" in line for line in told)

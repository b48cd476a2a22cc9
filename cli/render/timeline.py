"""What the agent saw and did, as a story: what the model said, which tools ran, what came back."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from secondtake.cassettes.adapters import Reasoning, Role, Text, ToolCall, ToolResult, Turn
from secondtake.cli.render.escape import visible, visible_line
from secondtake.cli.render.words import duration

if TYPE_CHECKING:
    from secondtake.harness.toolcalls import ModelCall

SHOWN_LINES = 8
"""Of a tool's result or a written file; the rest is counted."""

SHOWN_CHARACTERS = 160


def timeline(calls: Sequence[ModelCall]) -> Iterator[str]:
    """Yield the lines of a story. Of each call only what is new in it: its history was in the calls before."""
    for call in calls:
        at = duration(call.exchange.started_us)
        for turn in _fresh(call.request.turns):
            yield from _turn(turn, at)
        if call.answer is not None:
            yield from _turn(call.answer.turn, duration(call.exchange.ended_us))


def _fresh(turns: Sequence[Turn]) -> Sequence[Turn]:
    """The turns after the model's last one."""
    last = max((number for number, turn in enumerate(turns) if turn.role is Role.ASSISTANT), default=-1)
    return turns[last + 1 :]


def _turn(turn: Turn, at: str) -> Iterator[str]:
    for part in turn.parts:
        match part:
            case Text(text):
                yield f"{at:>9}  {'model' if turn.role is Role.ASSISTANT else str(turn.role):<6} {_one_line(text)}"
            case Reasoning():
                yield f"{at:>9}  model  (thinks)"
            case ToolCall():
                yield f"{at:>9}  calls  {_one_line(f'{part.name} {part.arguments}')}"
            case ToolResult():
                yield f"{at:>9}  {'failed' if part.is_error else 'result'}"
                yield from _block(part.text)
            case _:
                yield f"{at:>9}  {turn.role:<6} (something only the provider can read)"


def _one_line(text: str) -> str:
    line = visible_line(" ".join(text.split()))
    return line if len(line) <= SHOWN_CHARACTERS else line[: SHOWN_CHARACTERS - 1] + "…"


def _block(text: str) -> Iterator[str]:
    lines = visible(text).rstrip("\n").split("\n")
    for line in lines[:SHOWN_LINES]:
        yield f"{'':>9}  | {line[:SHOWN_CHARACTERS]}"
    if len(lines) > SHOWN_LINES:
        yield f"{'':>9}  | … {len(lines) - SHOWN_LINES} more lines"

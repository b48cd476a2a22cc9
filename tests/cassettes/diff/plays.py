"""Runs to compare, written as a conversation in the Messages format: what the model did turn by turn, and what its tools gave back."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from secondtake.cassettes.diff.decisions import Course, course
from secondtake.cassettes.diff.sameness import Sameness
from secondtake.cassettes.events import contents, events
from secondtake.cassettes.exchange import Answer, Body, Channel, Digest, Ending, Exchange, Request
from secondtake.cassettes.memory import MemoryCassette

HOST = "api.provider.example"


@dataclass(frozen=True)
class Act:
    """One tool call and its result."""

    tool: str
    arguments: Mapping[str, Any]
    result: str = ""
    error: bool = False


@dataclass(frozen=True)
class Turn:
    """One turn: its text and its calls. `status` other than 200 is an attempt that failed; `stop` of the wire format."""

    acts: tuple[Act, ...] = ()
    text: str = ""
    status: int = 200
    stop: str = ""
    tools: tuple[str, ...] = ("run", "edit")
    usage: Mapping[str, int] = field(default_factory=lambda: {"input_tokens": 10, "output_tokens": 2})


def run(command: str, result: str = "", **more: Any) -> Turn:
    """A turn that runs one command."""
    return Turn((Act("run", {"command": command, **more}, result),))


def edit(path: str, **more: Any) -> Turn:
    """A turn that edits one file."""
    return Turn((Act("edit", {"path": path, **more}, "done"),))


def say(text: str, **more: Any) -> Turn:
    """A turn that only says something."""
    return Turn(text=text, **more)


def body(data: bytes) -> Body:
    return Body(Digest(hashlib.sha256(data).hexdigest()), len(data)) if data else Body()


def exchanges(turns: Sequence[Turn], *, model: str = "hasty-20260101", task: str = "fix it") -> list[tuple[Exchange, list[bytes]]]:
    """The model calls of a run. Call IDs differ from turn to turn as a provider's do."""
    messages: list[dict[str, Any]] = [{"role": "user", "content": task}]
    made: list[tuple[Exchange, list[bytes]]] = []
    for number, turn in enumerate(turns, 1):
        offered = [{"name": name, "input_schema": {}} for name in turn.tools]
        sent = json.dumps({"model": model, "max_tokens": 64, "messages": messages, "tools": offered}).encode()
        said: list[dict[str, Any]] = [{"type": "text", "text": turn.text}] if turn.text else []
        names = [f"toolu_{hashlib.md5(f'{model} {number} {place}'.encode()).hexdigest()[:12]}" for place in range(len(turn.acts))]
        said += [
            {"type": "tool_use", "id": name, "name": act.tool, "input": act.arguments} for name, act in zip(names, turn.acts, strict=True)
        ]
        stop = turn.stop or ("tool_use" if turn.acts else "end_turn")
        answer: dict[str, Any] = {"id": f"msg_{number}", "type": "message", "role": "assistant", "model": model, "content": said}
        answer |= {"stop_reason": stop, "usage": dict(turn.usage)}
        if turn.status != 200:
            answer = {"type": "error", "error": {"type": "overloaded_error", "message": "busy"}}
        received = json.dumps(answer).encode()
        request = Request("POST", "https", HOST, 443, b"/v1/messages", body=body(sent))
        response = Answer(turn.status, fields=((b"content-type", b"application/json"),), body=body(received))
        at = number * 1_000_000
        made.append((Exchange(number, Channel.MODEL, at, request, response, Ending.COMPLETE, at + 500_000), [sent, received]))
        if turn.status == 200:
            messages.append({"role": "assistant", "content": said or [{"type": "text", "text": "-"}]})
            results = [
                {"type": "tool_result", "tool_use_id": name, "content": act.result, "is_error": act.error}
                for name, act in zip(names, turn.acts, strict=True)
            ]
            messages.append({"role": "user", "content": results or "go on"})
    return made


def cassette(turns: Sequence[Turn], **more: Any) -> MemoryCassette:
    made = exchanges(turns, **more)
    return MemoryCassette((one for one, _ in made), {Digest(hashlib.sha256(data).hexdigest()): data for _, all_ in made for data in all_})


def played(*turns: Turn, workspace: str = "", **more: Any) -> Course:
    """The decisions of a run of these turns."""
    kept = cassette(turns, **more)
    return course(events(kept.exchanges.values(), contents(kept)), Sameness(workspace))

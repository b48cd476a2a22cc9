"""An answer while it is being read: blocks that grow, and what has been said about it. Shared by all dialects."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field, replace
from enum import StrEnum

from secondtake.cassettes.adapters.base import (
    Fault,
    Json,
    ModelAnswer,
    Opaque,
    Part,
    ProviderError,
    Reasoning,
    Role,
    Served,
    Signal,
    Stop,
    Text,
    ToolCall,
    ToolResult,
    Turn,
    Usage,
)
from secondtake.cassettes.adapters.reading import canonical, loads

MAX_NOTES = 1000
"""Served models, signals and faults kept of one answer, each; a hostile stream could repeat them for ever."""


class BlockKind(StrEnum):
    TEXT = "text"
    REASONING = "reasoning"
    CALL = "call"
    RESULT = "result"
    OPAQUE = "opaque"


@dataclass(slots=True)
class Block:
    """One part of the answer's turn. `pieces` are joined when it is asked for."""

    kind: BlockKind
    name: str = ""
    id: str = ""
    form: str = "json"
    bound: bool = False
    server_side: bool = False
    pieces: list[str] = field(default_factory=list)
    given: Json = None
    """Arguments that came parsed, not as text."""

    def part(self) -> Part:
        text = "".join(self.pieces)
        match self.kind:
            case BlockKind.TEXT:
                return Text(text)
            case BlockKind.REASONING:
                return Reasoning(text, self.bound)
            case BlockKind.CALL:
                made = call_from_value(self.id, self.name, self.given) if not text else call_from_text(self.id, self.name, text, self.form)
                return replace(made, server_side=self.server_side)
            case BlockKind.RESULT:
                return ToolResult(self.id, self.name, text)
            case BlockKind.OPAQUE:
                return Opaque(self.name)


@dataclass(slots=True)
class Draft:
    """What is known of an answer so far. Dialects write into it; `answer` makes the value."""

    blocks: dict[Hashable, Block] = field(default_factory=dict)
    stop: Stop | None = None
    stop_wire: str | None = None
    usage: Usage = field(default_factory=Usage)
    final_usage: bool = False
    served: list[Served] = field(default_factory=list)
    id: str | None = None
    error: ProviderError | None = None
    signals: list[Signal] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    complete: bool = False

    def block(self, key: Hashable, kind: BlockKind, name: str = "", identity: str = "") -> Block:
        """The block of that key, made when new."""
        found = self.blocks.get(key)
        if found is None:
            found = self.blocks[key] = Block(kind, name, identity)
        return found

    def add(self, kind: BlockKind, name: str = "", identity: str = "") -> Block:
        """A further block."""
        return self.block(("added", len(self.blocks)), kind, name, identity)

    def saw(self, model: Json, where: str, role: str = "answer") -> None:
        """Note a model the answer names, once per place."""
        if isinstance(model, str) and model:
            served = Served(model, where, role)
            if served not in self.served and len(self.served) < MAX_NOTES:
                self.served.append(served)

    def signal(self, kind: str, detail: str) -> None:
        noted = Signal(kind, detail[:1000])
        if len(self.signals) < MAX_NOTES and noted not in self.signals[-8:]:
            self.signals.append(noted)

    def fault(self, fault: Fault) -> None:
        if len(self.faults) < MAX_NOTES:
            self.faults.append(fault)

    def answer(self, adapter: str, more: Iterable[Fault] = ()) -> ModelAnswer:
        """The answer so far. Usage is partial until the provider's last count and the end have been seen."""
        parts = tuple(block.part() for block in self.blocks.values() if block.kind is not BlockKind.TEXT or block.pieces)
        calls = any(isinstance(part, ToolCall) and not part.server_side for part in parts)
        stop = Stop.TOOL_CALLS if calls and self.stop is Stop.END else self.stop
        broken = (part.name for part in parts if isinstance(part, ToolCall) and not part.well_formed)
        bad = [Fault("arguments", f"the arguments of `{name}` are not JSON") for name in broken]
        return ModelAnswer(
            adapter=adapter,
            turn=Turn(Role.ASSISTANT, parts),
            stop=stop,
            stop_wire=self.stop_wire,
            usage=replace(self.usage, partial=not (self.final_usage and self.complete)),
            served=tuple(self.served),
            id=self.id,
            error=self.error,
            complete=self.complete and self.error is None,
            signals=tuple(self.signals),
            faults=(*self.faults, *more, *bad),
        )


def call_from_text(identity: str, name: str, text: str, form: str = "json") -> ToolCall:
    """A call whose arguments came as text. No text is no arguments: `{}`."""
    if form == "text":
        return ToolCall(identity, name, text, form)
    if not text.strip():
        return ToolCall(identity, name, "{}")
    value = loads(text)
    made = value if isinstance(value, Fault) else canonical(value)
    return ToolCall(identity, name, text, well_formed=False) if isinstance(made, Fault) else ToolCall(identity, name, made)


def call_from_value(identity: str, name: str, value: Json) -> ToolCall:
    """A call whose arguments came as JSON."""
    made = canonical({} if value is None else value)
    return ToolCall(identity, name, "", well_formed=False) if isinstance(made, Fault) else ToolCall(identity, name, made)


def join(turns: Iterable[Turn]) -> tuple[Turn, ...]:
    """Neighbouring turns of the assistant, and of tools, become one; results take their tool's name from the call they answer.

    Some formats send one item per part, others one message per turn; what was said is the same.
    """
    joined: list[tuple[Role, list[Part]]] = []
    names: dict[str, str] = {}
    for turn in turns:
        if not turn.parts:
            continue
        parts: list[Part] = []
        for part in turn.parts:
            if isinstance(part, ToolCall) and part.id:
                names[part.id] = part.name
            unnamed = isinstance(part, ToolResult) and not part.name and part.call_id in names
            parts.append(replace(part, name=names[part.call_id]) if isinstance(part, ToolResult) and unnamed else part)
        if joined and joined[-1][0] is turn.role and turn.role in (Role.ASSISTANT, Role.TOOL):
            joined[-1][1].extend(parts)
        else:
            joined.append((turn.role, parts))
    return tuple(Turn(role, tuple(parts)) for role, parts in joined)

"""What a scripted provider says: values, and the TOML file they are read from.

A script is a list of scenes. A scene is chosen by the model asked for and the first user text, its turn by the number of assistant
turns already in the conversation: nothing is remembered between requests, so a restart of the provider changes no answer. The one
exception is `Reply.first`, which counts identical requests in memory.
"""

from __future__ import annotations

import fnmatch
import itertools
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import cast

from secondtake.cassettes.errors import BadInput


class Stop(StrEnum):
    """Why the model stopped, in words of no provider. `TURN` is chosen for text, `TOOLS` for tool calls."""

    TURN = "turn"
    TOOLS = "tools"
    LENGTH = "length"
    REFUSAL = "refusal"


class HowCut(StrEnum):
    """`CLOSE` flushes what was sent and ends the connection; `RESET` sends RST, which may destroy what the client has not yet read."""

    CLOSE = "close"
    RESET = "reset"


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One tool call of the model. Several in one turn are parallel calls.

    `text` makes it a call whose argument is plain text, in the format that has such calls (Responses: `custom_tool_call`); the others send
    it as the argument `input`. `namespace` is that of Responses.
    """

    name: str
    arguments: Mapping[str, object] = field(default_factory=dict)
    text: str | None = None
    namespace: str = ""

    def __post_init__(self) -> None:
        if self.text is not None and not self.arguments:
            object.__setattr__(self, "arguments", {"input": self.text})


@dataclass(frozen=True, slots=True)
class Failure:
    """An error answer in the provider's own shape. `kind` is the provider's word for it; empty: the usual one for that status."""

    status: int
    message: str = "scripted failure"
    kind: str = ""
    retry_after_s: int | None = None


@dataclass(frozen=True, slots=True)
class CutOff:
    """The connection ends after `after` events of the stream (after half of the body where the answer is not streamed)."""

    after: int
    how: HowCut = HowCut.CLOSE


@dataclass(frozen=True, slots=True)
class ErrorEvent:
    """After `after` events the stream says `failure` as an error event, and ends. An answer that is not streamed is the failure itself."""

    after: int
    failure: Failure


@dataclass(frozen=True, slots=True)
class Reply:
    """One turn of the model: text, then tool calls.

    `pieces` is the number of stream deltas the text is cut into; 0 cuts it about every sixteen characters.
    `first` are failures that the first requests of this turn get, one each; the next identical request gets the reply.
    """

    text: str = ""
    tools: tuple[ToolCall, ...] = ()
    stop: Stop | None = None
    pieces: int = 0
    broken: CutOff | ErrorEvent | None = None
    first: tuple[Failure, ...] = ()

    @property
    def stopped(self) -> Stop:
        """`stop`, or what follows from the content."""
        if self.stop is not None:
            return self.stop
        return Stop.TOOLS if self.tools else Stop.TURN

    def text_pieces(self) -> list[str]:
        """The text as the stream's deltas, none of them empty unless `pieces` asks for more than there are characters."""
        if not self.text:
            return []
        if self.pieces:
            size, extra = divmod(len(self.text), self.pieces)
            cuts = [0]
            for n in range(self.pieces):
                cuts.append(cuts[-1] + size + (1 if n < extra else 0))
            return [self.text[a:b] for a, b in itertools.pairwise(cuts)]
        return cut(self.text, 16)


Turn = Reply | Failure


@dataclass(frozen=True, slots=True)
class Scene:
    """The turns for one kind of conversation. `model` is a pattern (`fnmatch`), `task` a part of the first user text ("" is any).

    `served` is the model ID the answers name; empty: the one asked for. `delay_ms` is the wait before each stream event.
    """

    turns: tuple[Turn, ...]
    model: str = "*"
    task: str = ""
    served: str = ""
    delay_ms: float = 0.0


@dataclass(frozen=True, slots=True)
class Script:
    """All a scripted provider knows. The first scene that fits is played."""

    scenes: tuple[Scene, ...] = ()

    def scene(self, model: str, task: str) -> Scene | None:
        """The scene for this conversation; None where the model is unknown."""
        for scene in self.scenes:
            if fnmatch.fnmatchcase(model, scene.model) and scene.task in task:
                return scene
        return None

    def models(self) -> tuple[str, ...]:
        """The model IDs that can be listed: every scene's that is not a pattern, each once, in order."""
        return tuple(dict.fromkeys(s.model for s in self.scenes if not set(s.model) & set("*?[")))


def cut(text: str, size: int) -> list[str]:
    """`text` in pieces of `size` characters, the last one shorter."""
    return [text[at : at + size] for at in range(0, len(text), size)]


def read_script(text: str) -> Script:
    """A script from TOML (docs/scripted-provider.md shows one).

    Raises:
        BadInput: the text is not TOML, or a key is unknown, missing or of the wrong type; the message names its place.
    """
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise BadInput(f"the script is not TOML: {error}") from error
    top = _table(document, "script", {"scene"})
    return Script(tuple(_scene(s, f"scene {n}") for n, s in enumerate(_list(top.get("scene", []), "scene"), 1)))


def _scene(value: object, place: str) -> Scene:
    table = _table(value, place, {"model", "task", "served", "delay_ms", "turn"})
    turns = tuple(_turn(t, f"{place}, turn {n}") for n, t in enumerate(_list(table.get("turn", []), place), 1))
    return Scene(
        turns,
        model=_text(table, "model", place, "*"),
        task=_text(table, "task", place, ""),
        served=_text(table, "served", place, ""),
        delay_ms=_number(table, "delay_ms", place, 0.0),
    )


def _turn(value: object, place: str) -> Turn:
    table = _table(value, place, {"text", "tool", "stop", "pieces", "cut_after", "cut", "error_after", "error", "first", "failure"})
    if "failure" in table:
        if len(table) > 1:
            raise BadInput(f"{place}: `failure` stands alone; `first` puts failures before a reply")
        return _failure(table["failure"], f"{place}, failure")
    broken: CutOff | ErrorEvent | None = None
    if "cut_after" in table:
        broken = CutOff(_count(table, "cut_after", place), HowCut(_choice(table, "cut", place, HowCut, HowCut.CLOSE)))
    elif "error_after" in table:
        broken = ErrorEvent(_count(table, "error_after", place), _failure(table.get("error", {"status": 529}), f"{place}, error"))
    stop = _choice(table, "stop", place, Stop, "")
    return Reply(
        text=_text(table, "text", place, ""),
        tools=tuple(_tool(t, f"{place}, tool {n}") for n, t in enumerate(_list(table.get("tool", []), place), 1)),
        stop=Stop(stop) if stop else None,
        pieces=_count(table, "pieces", place),
        broken=broken,
        first=tuple(_failure(f, f"{place}, first {n}") for n, f in enumerate(_list(table.get("first", []), place), 1)),
    )


def _tool(value: object, place: str) -> ToolCall:
    table = _table(value, place, {"name", "arguments", "input", "namespace"})
    if not _text(table, "name", place, ""):
        raise BadInput(f"{place}: `name` is missing")
    arguments = table.get("arguments", {})
    if not isinstance(arguments, dict):
        raise BadInput(f"{place}: `arguments` must be a table")
    text = _text(table, "input", place, "") if "input" in table else None
    if text is not None and arguments:
        raise BadInput(f"{place}: `input` is the text of a call that has no `arguments`")
    return ToolCall(_text(table, "name", place, ""), arguments, text, _text(table, "namespace", place, ""))


def _failure(value: object, place: str) -> Failure:
    table = _table(value, place, {"status", "message", "kind", "retry_after_s"})
    status = _count(table, "status", place)
    if not 400 <= status <= 599:
        raise BadInput(f"{place}: `status` must be 400 to 599, not {status}")
    wait = _count(table, "retry_after_s", place) if "retry_after_s" in table else None
    return Failure(status, _text(table, "message", place, "scripted failure"), _text(table, "kind", place, ""), wait)


def _table(value: object, place: str, known: set[str]) -> Mapping[str, object]:
    if not isinstance(value, dict):
        raise BadInput(f"{place}: must be a table")
    if unknown := sorted(set(value) - known):
        raise BadInput(f"{place}: unknown key `{unknown[0]}`", hint=f"known here: {', '.join(sorted(known))}")
    return cast(Mapping[str, object], value)


def _list(value: object, place: str) -> Sequence[object]:
    if not isinstance(value, list):
        raise BadInput(f"{place}: must be an array of tables")
    return value


def _text(table: Mapping[str, object], key: str, place: str, default: str) -> str:
    value = table.get(key, default)
    if not isinstance(value, str):
        raise BadInput(f"{place}: `{key}` must be a string")
    return value


def _number(table: Mapping[str, object], key: str, place: str, default: float) -> float:
    value = table.get(key, default)
    if isinstance(value, bool) or not isinstance(value, int | float) or value < 0:
        raise BadInput(f"{place}: `{key}` must be a number, 0 or more")
    return float(value)


def _count(table: Mapping[str, object], key: str, place: str) -> int:
    value = table.get(key, 0)
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise BadInput(f"{place}: `{key}` must be a whole number, 0 or more")
    return value


def _choice(table: Mapping[str, object], key: str, place: str, words: type[StrEnum], default: str) -> str:
    value = _text(table, key, place, default)
    if value and value not in {str(w) for w in words}:
        raise BadInput(f"{place}: `{key}` must be one of {', '.join(words)}, not `{value}`")
    return value

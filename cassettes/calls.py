"""Matching tool results to the calls they answer, across the requests of a recording.

Every request repeats the history of its conversation, so a result is new only the first time it is seen. IDs match where
they are there and tell apart; local servers use the same ID in every turn, and Gemini gives none at all (its CLI makes some
up later), so the n-th result of an ID answers its n-th call, and a nameless call is known by its tool's name and place.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from secondtake.cassettes.adapters import ModelAnswer, ModelRequest, Role, ToolCall, ToolResult
from secondtake.cassettes.adapters.reading import digest


@dataclass(frozen=True, slots=True)
class Found:
    """A result seen for the first time. `called_in`, `called_us`: the exchange whose answer called, and when it ended; None where
    that answer was not seen. `name`: the tool's, as the call gave it."""

    result: ToolResult
    name: str
    called_in: int | None
    called_us: int | None


@dataclass(frozen=True, slots=True)
class _Seen:
    name: str
    seq: int
    ended_us: int


class Calls:
    """What has been called and answered so far. Grows with the number of calls."""

    def __init__(self) -> None:
        self._called: dict[tuple[str, str], list[_Seen]] = {}
        self._anywhere: dict[str, _Seen] = {}
        self._told: set[tuple[str, str, int]] = set()
        self._told_anywhere: set[tuple[str, str]] = set()
        self._continued: dict[str, str] = {}
        self._counted: dict[tuple[str, str], int] = {}
        self._known: set[str] = set()

    def conversation(self, asked: ModelRequest) -> str:
        """Name the conversation of a request: by the answer it goes on from, else by how it began."""
        if asked.continues is not None and asked.continues in self._continued:
            return self._continued[asked.continues]
        first = next((turn for turn in asked.turns if turn.role is not Role.SYSTEM), None)
        return digest(repr((asked.adapter, asked.continues, first)))

    def results(self, asked: ModelRequest, conversation: str) -> Iterator[Found]:
        """Yield each tool result of the request that no request before it held, in its order."""
        known = conversation in self._known
        self._known.add(conversation)
        results: Counter[str] = Counter()
        nameless: Counter[str] = Counter()
        stands_for: dict[tuple[str, int], tuple[str, int]] = {}
        seen_calls: Counter[str] = Counter()
        for turn in asked.turns:
            for part in turn.parts:
                if isinstance(part, ToolCall) and not part.server_side:
                    key = _key(part.id, part.name)
                    if (conversation, key) not in self._called:
                        stands_for[key, seen_calls[key]] = (_key("", part.name), nameless[part.name])
                        nameless[part.name] += 1
                    seen_calls[key] += 1
                elif isinstance(part, ToolResult) and turn.role is Role.TOOL:
                    key = _key(part.call_id, part.name)
                    number = results[key] + (self._counted.get((conversation, key), 0) if asked.continues is not None else 0)
                    results[key] += 1
                    found = self._find(part, conversation, key, number, stands_for.get((key, number)))
                    if self._is_new(part, conversation, key, number, known=known):
                        yield found
        if asked.continues is not None:
            for key, number in results.items():
                self._counted[conversation, key] = self._counted.get((conversation, key), 0) + number

    def answered(self, asked: ModelRequest, answer: ModelAnswer, conversation: str, seq: int, ended_us: int) -> None:
        """Note the calls of an answer."""
        if answer.id is not None:
            self._continued[answer.id] = conversation
        for call in answer.calls:
            if not call.server_side:
                seen = _Seen(call.name, seq, ended_us)
                self._called.setdefault((conversation, _key(call.id, call.name)), []).append(seen)
                if call.id:
                    self._anywhere[call.id] = seen

    def _find(self, result: ToolResult, conversation: str, key: str, number: int, nameless: tuple[str, int] | None) -> Found:
        calls = self._called.get((conversation, key), [])
        if not calls and nameless is not None:
            calls, number = self._called.get((conversation, nameless[0]), []), nameless[1]
        seen = calls[min(number, len(calls) - 1)] if calls else self._anywhere.get(result.call_id)
        if seen is None:
            return Found(result, result.name, None, None)
        return Found(result, result.name or seen.name, seen.seq, seen.ended_us)

    def _is_new(self, result: ToolResult, conversation: str, key: str, number: int, *, known: bool) -> bool:
        """A conversation not seen before may be an old one made shorter: what it repeats was told already."""
        place, text = (conversation, key, number), (result.call_id, digest(result.text))
        repeats = place in self._told or (not known and result.call_id != "" and text in self._told_anywhere)
        self._told.add(place)
        self._told_anywhere.add(text)
        return not repeats


def _key(identity: str, name: str) -> str:
    return f"id:{identity}" if identity else f"name:{name}"

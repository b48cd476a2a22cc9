"""A history that the provider held under an ID, as the items it stands for (PROVIDERS A3: fork by rebuilding the full input).

A Responses call may send only what is new and name the answer it goes on from. That answer is the recorded run's; a live
provider does not know it. So the inputs and outputs of the recorded chain are put before the new input, oldest first, each
input by the bytes the agent sent, and the name is cut.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass

from secondtake.cassettes.adapters.base import Json
from secondtake.cassettes.adapters.draft import Draft
from secondtake.cassettes.adapters.framing import BodyReader, framing
from secondtake.cassettes.adapters.reading import loads, mapping, sequence, string
from secondtake.cassettes.errors import BadInput
from secondtake.cassettes.exchange import Fields
from secondtake.cassettes.json_cuts import cut
from secondtake.cassettes.json_places import Step, items, splice

REBUILD = "rebuild-history"
"""The rule's name."""

MAX_CALLS = 10_000
"""Recorded calls in one chain."""


@dataclass(frozen=True, slots=True)
class Recorded:
    """A recorded call: its request's decoded body, and the items its answer put out, each as JSON text."""

    content: bytes
    output: tuple[bytes, ...]


def rebuild(content: bytes, earlier: Callable[[str], Recorded | None], live: Callable[[str], bool]) -> tuple[bytes, list[str]]:
    """Return a decoded request body with its history in full where it names a recorded answer, and what was done.

    `live`: whether an ID is of this take: the provider holds that itself. A body that names no answer, or one that is not
    known, stays as it is.

    Raises:
        BadInput: the chain goes round, or is too long.
        NotJson, TooLarge: a body cannot be walked.
    """
    named = _named(content)
    if named is None or live(named):
        return content, []
    parts: list[list[bytes]] = [_input(content)]
    seen: set[str] = set()
    identity: str | None = named
    while identity is not None:
        if identity in seen or len(seen) >= MAX_CALLS:
            raise BadInput(f"the answers before `{named}` go round, or are more than {MAX_CALLS}")
        seen.add(identity)
        found = earlier(identity)
        if found is None:
            return content, []
        parts += [list(found.output), _input(found.content)]
        identity = _named(found.content)
    history = [item for part in reversed(parts) for item in part]
    given = items(content, [("input",)])
    text = b"[" + b",".join(history) + b"]"
    if given:
        content = splice(content, [(item.value_start, item.stop, text) for item in given])
        content, _ = cut(content, [("previous_response_id",)], lambda _, __: True)
    else:
        places = items(content, [("previous_response_id",)])
        content = splice(content, [(item.start, item.stop, b'"input":' + text) for item in places[:1]])
        content, _ = cut(content, [("previous_response_id",)], lambda _, __: True)
    return content, [f"request_patched: {REBUILD}: `previous_response_id` ({len(history)} items of {len(seen)} recorded calls)"]


def _named(content: bytes) -> str | None:
    found = items(content, [("previous_response_id",)])
    values = [loads(content[item.value_start : item.stop]) for item in found]
    return next((value for value in reversed(values) if isinstance(value, str) and value), None)


def _input(content: bytes) -> list[bytes]:
    """The items of the last `input`, each by its bytes; a text is a message of the user's."""
    given = items(content, [("input",)])
    if not given:
        return []
    last = given[-1]
    value = content[last.value_start : last.stop]
    if value[:1] == b'"':
        return [b'{"role":"user","content":' + value + b"}"]
    wrapped = b'{"input":' + value + b"}"
    return [wrapped[item.value_start : item.stop] for item in items(wrapped, [("input", Step.EACH)])]


def recorded(asked: bytes, status: int, fields: Fields, answered: bytes) -> tuple[str, Recorded] | None:
    """A recorded Responses call by the ID of its answer, for `earlier`; None where the answer has no ID. Both bodies are decoded."""
    outputs = _read(status, fields, answered)
    return None if outputs.id is None else (outputs.id, Recorded(asked, outputs.items()))


def output_of(status: int, fields: Fields, content: bytes) -> tuple[bytes, ...]:
    """The items a recorded Responses answer put out, from a whole body or a stream; `content` has no content codings."""
    return _read(status, fields, content).items()


def _read(status: int, fields: Fields, content: bytes) -> _Outputs:
    outputs = _Outputs()
    reader = BodyReader("openai-responses", outputs, framing(fields), status)
    reader.receive(content)
    reader.receive(b"")
    return outputs


class _Outputs:
    """Collects output items; those of the final event count, where it has any."""

    def __init__(self) -> None:
        self.draft = Draft()
        self.id: str | None = None
        self._done: dict[int, Json] = {}
        self._final: list[Json] = []

    def whole(self, body: Json) -> None:
        self._take(body)

    def event(self, name: str, data: Json) -> None:
        event = mapping(data)
        kind = string(event.get("type")) or name
        if kind == "response.output_item.done":
            index = event.get("output_index")
            self._done[index if isinstance(index, int) else len(self._done)] = event.get("item")
        elif kind in ("response.completed", "response.incomplete"):
            self._take(event.get("response"))

    def end(self) -> None:
        """Nothing is known only at the end."""

    def _take(self, response: Json) -> None:
        self.id = string(mapping(response).get("id")) or self.id
        self._final = sequence(mapping(response).get("output"))

    def items(self) -> tuple[bytes, ...]:
        listed = self._final or [self._done[index] for index in sorted(self._done)]
        return tuple(json.dumps(item, separators=(",", ":")).encode("ascii") for item in listed if isinstance(item, dict))

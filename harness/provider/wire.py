"""What each wire format has to say of itself, and the values its functions exchange. Pure: bytes in, values and bytes out."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from secondtake.harness.provider.script import Failure, Reply

Json = Mapping[str, object]

CREATED_S = 1_767_225_600
"""The `created` of every answer, in Unix seconds: a constant, so that an answer depends on its request only."""

CREATED_TEXT = "2026-01-01T00:00:00Z"


@dataclass(frozen=True, slots=True)
class Call:
    """A model call as the provider reads it.

    `task` is the first user text, `turn` the number of assistant turns so far, `size_bytes` the length of the request's body,
    from which token counts are made up. `stream_usage` is Chat Completions' `stream_options.include_usage`.
    """

    model: str
    task: str
    turn: int
    stream: bool
    size_bytes: int
    stream_usage: bool = False

    def identity(self, what: str, number: int = 0, length: int = 24) -> str:
        """Hex digits that are the same for the same conversation, turn and `what`."""
        seed = json.dumps([self.model, self.task, self.turn, what, number]).encode()
        return hashlib.sha256(seed).hexdigest()[:length]

    @property
    def input_tokens(self) -> int:
        """Four bytes to a token, at least one: near enough for a script, and the same each time."""
        return max(1, self.size_bytes // 4)


def output_tokens(reply: Reply) -> int:
    """Like `Call.input_tokens`, for what is said."""
    said = len(reply.text.encode()) + sum(len(compact(t.arguments)) + len(t.name) for t in reply.tools)
    return max(1, said // 4)


class BadCall(Exception):
    """The body is not a call of this format; the message is the provider's complaint, answered with 400."""


class Wire(Protocol):
    """One provider's wire format. `model` is the ID the answer names. Every function is pure and deterministic."""

    stream_type: str
    """Content type of the streamed answer."""

    def read(self, body: Json, model: str, stream: bool, size_bytes: int) -> Call:
        """The call in `body`. `model` and `stream` come from the path where the format puts them there.

        Raises:
            BadCall: what the provider would answer 400 to.
        """

    def whole(self, call: Call, reply: Reply, model: str) -> Json:
        """The answer that is not streamed."""

    def events(self, call: Call, reply: Reply, model: str) -> Sequence[bytes]:
        """The stream, one element per event, framing included; joined they are the whole body."""

    def error(self, call: Call | None, failure: Failure) -> Json:
        """An error answer's body."""

    def error_event(self, call: Call, failure: Failure, after: int) -> bytes:
        """The error as an event in a stream that has said `after` events."""

    def counted(self, call: Call) -> Json:
        """The answer to a count of the input's tokens."""

    def fields(self, call: Call | None) -> Mapping[str, str]:
        """Header fields this provider adds to every answer."""

    def failed_fields(self, call: Call | None, failure: Failure) -> Mapping[str, str]:
        """The same for an error answer."""
        return self.fields(call)


def compact(value: object) -> str:
    """JSON without white space, as providers send it."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def arguments_text(value: object) -> str:
    """A tool call's arguments as the JSON text models write: with spaces."""
    return json.dumps(value, ensure_ascii=False)


def items(value: object) -> list[Json]:
    """The objects of a JSON array; what is no array or no object is left out."""
    return [i for i in value if isinstance(i, dict)] if isinstance(value, list) else []


def text_of(content: object) -> str:
    """The text of a message's content: a string, or the `text` of its blocks joined by line ends."""
    if isinstance(content, str):
        return content
    return "\n".join(t for block in items(content) if isinstance(t := block.get("text"), str))


def required_text(body: Json, key: str) -> str:
    """A string that must be there.

    Raises:
        BadCall: it is not, or it holds half a surrogate pair, which no answer could repeat.
    """
    value = body.get(key)
    if not isinstance(value, str) or not value or any("\ud800" <= c <= "\udfff" for c in value):
        raise BadCall(f"{key}: Field required")
    return value


def groups(roles: Sequence[bool]) -> int:
    """How many runs of True there are: consecutive assistant entries are one turn."""
    return sum(1 for n, mine in enumerate(roles) if mine and (n == 0 or not roles[n - 1]))

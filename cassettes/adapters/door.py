"""What other modules call, by an adapter's name."""

from __future__ import annotations

from collections.abc import Mapping

from secondtake.cassettes import json_places
from secondtake.cassettes.adapters.base import Adapter, AnswerReader, Escape, ModelAnswer, ModelRequest, Place, PlaceKind, Refusal
from secondtake.cassettes.adapters.errors import openai
from secondtake.cassettes.adapters.paths import escaped
from secondtake.cassettes.adapters.registry import ADAPTERS
from secondtake.cassettes.errors import BadInput
from secondtake.cassettes.exchange import Answer, Fields, Request

_FIXED = (PlaceKind.INDIRECT, PlaceKind.AUXILIARY)


def refusal(adapter: str | None, kind: str, message: str) -> Refusal:
    """An error answer in the provider's shape: 400, `x-should-retry: false`. An unknown adapter gets OpenAI's shape."""
    found = ADAPTERS.get(adapter or "")
    return openai(kind, message) if found is None else found.refuse(kind, message)


def read_request(adapter: str, request: Request, content: bytes) -> ModelRequest:
    """Read a request; `content` is the body without content codings.

    Raises:
        BadInput: no adapter of that name. What cannot be read in the body is a fault of the value.
    """
    return _adapter(adapter).read_request(request, content)


def reader(adapter: str, request: Request, status: int, fields: Fields) -> AnswerReader:
    """Return a reader for the answer to `request` whose head is `status` and `fields`.

    Raises:
        BadInput: no adapter of that name.
    """
    return _adapter(adapter).reader(request, status, fields)


def read_answer(adapter: str, request: Request, answer: Answer, content: bytes) -> ModelAnswer:
    """Read a whole answer; `content` is its body without content codings, as far as it came."""
    found = reader(adapter, request, answer.status, answer.fields)
    found.receive(content)
    found.receive(b"")
    return found.answer()


def has_tool_calls(adapter: str, request: Request, answer: Answer, content: bytes) -> bool:
    """Whether the answer asks the agent to run a tool (tools the provider runs itself do not count)."""
    return any(not call.server_side for call in read_answer(adapter, request, answer, content).calls)


def splice(content: bytes, changes: Mapping[Place, str]) -> bytes:
    """Return the decoded body with the ID at each place replaced; all other bytes stay. Places in the path are left out.

    Raises:
        BadInput: a place that a swap must not touch, or one that does not fit these bytes.
    """
    return _splice(content, changes, Escape.JSON)


def splice_path(path: bytes, changes: Mapping[Place, str]) -> bytes:
    """Return the request target with the ID at each place in it replaced. Places in the body are left out. Raises as `splice`."""
    return _splice(path, changes, Escape.PATH)


def _splice(content: bytes, changes: Mapping[Place, str], escape: Escape) -> bytes:
    ranges = []
    for place, new in changes.items():
        if place.kind in _FIXED:
            raise BadInput(f"`{place.path}` is {place.kind}: a swap cannot rewrite it")
        if place.escape is not escape:
            continue
        old = content[place.start : place.stop]
        ranges.append((place.start, place.stop, json_places.quoted(new) if escape is Escape.JSON else escaped(new, old)))
    return json_places.splice(content, ranges)


def _adapter(name: str) -> Adapter:
    try:
        return ADAPTERS[name]
    except KeyError:
        raise BadInput(f"no adapter is called `{name}`", hint=f"known: {', '.join(ADAPTERS)}") from None

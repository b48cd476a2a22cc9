"""Ollama's own format: requests, and answers of one JSON object per line (PROVIDERS A2)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from secondtake.cassettes.adapters import places
from secondtake.cassettes.adapters.base import (
    CallKind,
    Fault,
    Json,
    Media,
    ModelRequest,
    Part,
    PlaceKind,
    Reasoning,
    Role,
    Stop,
    Text,
    Tool,
    ToolResult,
    Turn,
    Usage,
)
from secondtake.cassettes.adapters.draft import BlockKind, Draft, call_from_value, join
from secondtake.cassettes.adapters.reading import canonical, count, digest, loads, mapping, sequence, string

_SPECS = (places.Spec(("model",), PlaceKind.MODEL), *places.GATEWAY)
_PARAMETERS = {"num_predict": "max_tokens", "think": "reasoning"}
_READ_ELSEWHERE = frozenset({"model", "messages", "prompt", "system", "tools", "stream", "options", "images"})
_ROLES = {"assistant": Role.ASSISTANT, "tool": Role.TOOL, "system": Role.SYSTEM}
_STOPS = {"stop": Stop.END, "length": Stop.LENGTH, "load": Stop.OTHER, "unload": Stop.OTHER}


def read_request(adapter: str, content: bytes, kind: CallKind) -> ModelRequest:
    """Read a request body; what cannot be read is a fault of the value."""
    value = loads(content)
    if isinstance(value, Fault) or not isinstance(value, dict):
        return ModelRequest(adapter, kind, None, faults=(value if isinstance(value, Fault) else Fault("shape", "no JSON object"),))
    found, faults = places.find(content, _SPECS)
    model = places.asked(found)
    turns = list(_turns(value))
    leading = next((i for i, turn in enumerate(turns) if turn.role is not Role.SYSTEM), len(turns))
    read = {_PARAMETERS.get(key, key): inner for key, inner in value.items() if key not in _READ_ELSEWHERE}
    read |= {_PARAMETERS.get(key, key): inner for key, inner in mapping(value.get("options")).items()}
    return ModelRequest(
        adapter=adapter,
        kind=kind,
        model=model,
        places=found,
        system=tuple("".join(part.text for part in turn.parts if isinstance(part, Text)) for turn in turns[:leading]),
        turns=join(turns[leading:]),
        tools=tuple(_tools(value)),
        parameters=read,
        stream=value.get("stream") is not False,
        faults=faults if model is not None else (*faults, Fault("no-model", "no `model` in the body")),
    )


def _turns(body: Mapping[str, Json]) -> Iterator[Turn]:
    if isinstance(body.get("system"), str):
        yield Turn(Role.SYSTEM, (Text(string(body.get("system"))),))
    if isinstance(body.get("prompt"), str):
        yield Turn(Role.USER, (Text(string(body.get("prompt"))),))
    for entry in sequence(body.get("messages")):
        message = mapping(entry)
        role = _ROLES.get(string(message.get("role")), Role.USER)
        text = string(message.get("content"))
        if role is Role.TOOL:
            yield Turn(role, (ToolResult(string(message.get("tool_call_id")), string(message.get("tool_name")), text),))
            continue
        parts: list[Part] = []
        if message.get("thinking"):
            parts.append(Reasoning(string(message.get("thinking"))))
        if text:
            parts.append(Text(text))
        parts += [Media("image", digest(string(image))) for image in sequence(message.get("images"))]
        for inner in sequence(message.get("tool_calls")):
            call = mapping(inner)
            function = mapping(call.get("function"))
            parts.append(call_from_value(string(call.get("id")), string(function.get("name")), function.get("arguments")))
        yield Turn(role, tuple(parts))


def _tools(body: Mapping[str, Json]) -> Iterator[Tool]:
    for entry in sequence(body.get("tools")):
        function = mapping(mapping(entry).get("function"))
        schema = canonical(function.get("parameters", {}))
        yield Tool(string(function.get("name")), string(function.get("description")), schema if isinstance(schema, str) else "{}")


class Assembly:
    """One answer: one object, or one per line, the last with `done`."""

    def __init__(self) -> None:
        self.draft = Draft()

    def whole(self, body: Json) -> None:
        self.event("", body)

    def event(self, name: str, data: Json) -> None:
        chunk = mapping(data)
        self.draft.saw(chunk.get("model"), "model")
        self.draft.saw(chunk.get("remote_model"), "remote_model", "router")
        message = mapping(chunk.get("message"))
        thought = string(message.get("thinking")) or string(chunk.get("thinking"))
        if thought:
            self.draft.block("reasoning", BlockKind.REASONING).pieces.append(thought)
        text = string(message.get("content")) or string(chunk.get("response"))
        if text:
            self.draft.block("text", BlockKind.TEXT).pieces.append(text)
        for inner in sequence(message.get("tool_calls")):
            call = mapping(inner)
            function = mapping(call.get("function"))
            block = self.draft.add(BlockKind.CALL, string(function.get("name")), string(call.get("id")))
            block.given = function.get("arguments")
        if chunk.get("done") is True:
            self._done(chunk)

    def end(self) -> None:
        """Nothing is known only at the end."""

    def _done(self, chunk: Mapping[str, Json]) -> None:
        reason = string(chunk.get("done_reason")) or "stop"
        self.draft.stop_wire, self.draft.stop = reason, _STOPS.get(reason, Stop.OTHER)
        self.draft.usage = Usage(input=count(chunk.get("prompt_eval_count")), output=count(chunk.get("eval_count")))
        self.draft.complete = self.draft.final_usage = True

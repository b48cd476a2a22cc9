"""The requests of OpenAI Responses, Codex' lite form included (PROVIDERS A2)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from secondtake.cassettes.adapters import places
from secondtake.cassettes.adapters.base import (
    CallKind,
    Fault,
    Held,
    HeldKind,
    Json,
    ModelRequest,
    PlaceKind,
    Role,
    Tool,
    Turn,
)
from secondtake.cassettes.adapters.dialects.items import item_turns, parts_of
from secondtake.cassettes.adapters.draft import join
from secondtake.cassettes.adapters.reading import canonical, loads, mapping, sequence, string, string_or_none

_SPECS = (
    places.Spec(("model",), PlaceKind.MODEL),
    places.Spec(("response", "model"), PlaceKind.MODEL),
    places.Spec(("prompt", "id"), PlaceKind.INDIRECT),
    places.Spec(("moderation", "model"), PlaceKind.AUXILIARY),
    *places.GATEWAY,
)

_PARAMETERS = {"max_output_tokens": "max_tokens"}
_READ_ELSEWHERE = frozenset({"model", "input", "instructions", "tools", "stream", "fallbacks", "models", "response"})
_CLIENT_TOOLS = ("function", "custom", "local_shell", "shell", "apply_patch", "computer", "computer_use_preview", "namespace")


def read_request(adapter: str, content: bytes, kind: CallKind) -> ModelRequest:
    """Read a request body or a `response.create` frame; what cannot be read is a fault of the value."""
    value = loads(content)
    if isinstance(value, Fault) or not isinstance(value, dict):
        return ModelRequest(adapter, kind, None, faults=(value if isinstance(value, Fault) else Fault("shape", "no JSON object"),))
    body = mapping(value.get("response")) or value
    found, faults = places.find(content, _SPECS)
    model = places.asked(found)
    if model is None:
        faults = (*faults, Fault("no-model", "no `model` in the body"))
    instructions = body.get("instructions")
    return ModelRequest(
        adapter=adapter,
        kind=kind,
        model=model,
        places=found,
        system=(instructions,) if isinstance(instructions, str) else (),
        turns=join(_turns(body)),
        tools=tuple(_tools(body)),
        parameters=_parameters(body),
        stream=body.get("stream") is True or value.get("type") == "response.create",
        held=tuple(_held(body)),
        continues=string_or_none(body.get("previous_response_id")),
        faults=faults,
    )


def _turns(body: Mapping[str, Json]) -> Iterator[Turn]:
    given = body.get("input")
    if isinstance(given, str):
        yield Turn(Role.USER, tuple(parts_of(given)))
    for entry in sequence(given):
        yield from item_turns(mapping(entry))


def _tools(body: Mapping[str, Json]) -> Iterator[Tool]:
    """Those of `tools`, and those that come as the first input item (`additional_tools`)."""
    entries = list(sequence(body.get("tools")))
    for item in sequence(body.get("input")):
        if mapping(item).get("type") == "additional_tools":
            entries += sequence(mapping(item).get("tools"))
    for entry in entries:
        tool = mapping(entry)
        if tool.get("type") == "namespace":
            yield from (_tool(mapping(inner)) for inner in sequence(tool.get("tools")))
        else:
            yield _tool(tool)


def _tool(tool: Mapping[str, Json]) -> Tool:
    kind = string(tool.get("type"))
    schema = canonical(tool.get("parameters", tool.get("format", {})))
    return Tool(
        name=string(tool.get("name")) or string(tool.get("server_label")) or kind,
        description=string(tool.get("description")),
        schema=schema if isinstance(schema, str) else "{}",
        server_side=kind not in _CLIENT_TOOLS or (kind == "shell" and "container" in str(mapping(tool.get("environment")).get("type"))),
    )


def _parameters(body: Mapping[str, Json]) -> dict[str, Json]:
    read = {_PARAMETERS.get(key, key): value for key, value in body.items() if key not in _READ_ELSEWHERE}
    choice = body.get("tool_choice")
    if choice == "required":
        read["tool_choice"] = "any"
    elif isinstance(choice, dict) and isinstance(choice.get("name"), str):
        read["tool_choice"] = f"tool:{choice['name']}"
    return read


def _held(body: Mapping[str, Json]) -> Iterator[Held]:
    if isinstance(body.get("previous_response_id"), str):
        yield Held(HeldKind.STATE, "previous_response_id", string(body.get("previous_response_id")))
    conversation = body.get("conversation")
    if conversation:
        yield Held(HeldKind.STATE, "conversation", string(conversation) or string(mapping(conversation).get("id")))
    prompt = mapping(body.get("prompt"))
    if prompt:
        yield Held(HeldKind.STATE, "prompt.id", string(prompt.get("id")))
    for i, entry in enumerate(sequence(body.get("tools"))):
        stores = sequence(mapping(entry).get("vector_store_ids"))
        for store in stores:
            yield Held(HeldKind.FILE, f"tools[{i}].vector_store_ids", string(store))
        container = mapping(entry).get("container")
        if isinstance(container, str):
            yield Held(HeldKind.FILE, f"tools[{i}].container", container)
    for i, entry in enumerate(sequence(body.get("input"))):
        yield from _held_item(mapping(entry), f"input[{i}]")


def _held_item(item: Mapping[str, Json], path: str) -> Iterator[Held]:
    if isinstance(item.get("encrypted_content"), str):
        yield Held(HeldKind.ENCRYPTED, f"{path}.encrypted_content")
    if item.get("type") == "item_reference":
        yield Held(HeldKind.STATE, f"{path}.id", string(item.get("id")))
    for j, inner in enumerate(sequence(item.get("content"))):
        if isinstance(mapping(inner).get("file_id"), str):
            yield Held(HeldKind.FILE, f"{path}.content[{j}].file_id", string(mapping(inner).get("file_id")))

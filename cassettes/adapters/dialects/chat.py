"""OpenAI Chat Completions and its relatives: requests, whole answers and streams (PROVIDERS A2)."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping

from secondtake.cassettes.adapters import places
from secondtake.cassettes.adapters.base import (
    CallKind,
    Fault,
    Held,
    HeldKind,
    Json,
    Media,
    ModelRequest,
    Opaque,
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
from secondtake.cassettes.adapters.draft import BlockKind, Draft, call_from_text, join
from secondtake.cassettes.adapters.reading import canonical, count, digest, field_value, loads, mapping, sequence, string, string_or_none
from secondtake.cassettes.exchange import Fields

_SPECS = (
    places.Spec(("model",), PlaceKind.MODEL),
    places.Spec(("moderation", "model"), PlaceKind.AUXILIARY),
    *places.GATEWAY,
)

_PARAMETERS = {"max_completion_tokens": "max_tokens", "reasoning_effort": "reasoning"}
_READ_ELSEWHERE = frozenset({"model", "messages", "prompt", "tools", "functions", "stream", "fallbacks", "models", "inputs"})

_ROLES = {
    "system": Role.SYSTEM, "developer": Role.SYSTEM, "assistant": Role.ASSISTANT, "tool": Role.TOOL, "function": Role.TOOL,
}  # fmt: skip
_STOPS = {
    "stop": Stop.END, "length": Stop.LENGTH, "tool_calls": Stop.TOOL_CALLS, "function_call": Stop.TOOL_CALLS,
    "content_filter": Stop.FILTERED, "model_length": Stop.CONTEXT, "error": Stop.OTHER,
}  # fmt: skip


def read_request(adapter: str, content: bytes, kind: CallKind) -> ModelRequest:
    """Read a request body; what cannot be read is a fault of the value."""
    value = loads(content)
    if isinstance(value, Fault) or not isinstance(value, dict):
        return ModelRequest(adapter, kind, None, faults=(value if isinstance(value, Fault) else Fault("shape", "no JSON object"),))
    found, faults = places.find(content, _SPECS)
    model = places.asked(found)
    turns = list(_turns(value))
    leading = next((i for i, turn in enumerate(turns) if turn.role is not Role.SYSTEM), len(turns))
    if model is None:
        faults = (*faults, Fault("no-model", "no `model` in the body"))
    if "inputs" in value:
        faults = (*faults, Fault("unknown-dialect", "a conversation kept by the provider is not read"))
    return ModelRequest(
        adapter=adapter,
        kind=kind,
        model=model,
        places=found,
        system=tuple("".join(part.text for part in turn.parts if isinstance(part, Text)) for turn in turns[:leading]),
        turns=join(turns[leading:]),
        tools=tuple(_tools(value)),
        parameters=_parameters(value),
        stream=value.get("stream") is True,
        held=tuple(_held(value)),
        faults=faults,
    )


def _turns(body: Mapping[str, Json]) -> Iterator[Turn]:
    legacy = body.get("prompt")
    if isinstance(legacy, str):
        yield Turn(Role.USER, (Text(legacy),))
    for entry in sequence(body.get("messages")):
        message = mapping(entry)
        role = _ROLES.get(string(message.get("role")), Role.USER)
        if role is Role.TOOL:
            call_id, name = string(message.get("tool_call_id")), string(message.get("name"))
            yield Turn(role, (ToolResult(call_id, name, "".join(_texts(message.get("content")))),))
            continue
        parts: list[Part] = []
        hidden = string(message.get("reasoning_content")) or string(message.get("reasoning"))
        if hidden or message.get("reasoning_details"):
            parts.append(Reasoning(hidden, _bound(message)))
        parts += _parts(message.get("content"))
        if isinstance(message.get("refusal"), str):
            parts.append(Text(string(message.get("refusal"))))
        for inner in sequence(message.get("tool_calls")):
            parts.append(_call(mapping(inner)))
        old = mapping(message.get("function_call"))
        if old:
            parts.append(call_from_text("", string(old.get("name")), string(old.get("arguments"))))
        yield Turn(role, tuple(parts))


def _bound(message: Mapping[str, Json]) -> bool:
    return any(mapping(detail).get("signature") or mapping(detail).get("data") for detail in sequence(message.get("reasoning_details")))


def _call(call: Mapping[str, Json]) -> Part:
    identity = string(call.get("id"))
    custom = mapping(call.get("custom"))
    if custom:
        return call_from_text(identity, string(custom.get("name")), string(custom.get("input")), "text")
    function = mapping(call.get("function"))
    return call_from_text(identity, string(function.get("name")), _arguments(function.get("arguments")))


def _arguments(value: Json) -> str:
    """Text by the book; some servers send the object itself."""
    if isinstance(value, str):
        return value
    made = canonical(value) if isinstance(value, dict) else ""
    return made if isinstance(made, str) else ""


def _texts(value: Json) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    for block in sequence(value):
        if "text" in mapping(block):
            yield string(mapping(block).get("text"))


def _parts(value: Json) -> Iterator[Part]:
    if isinstance(value, str):
        yield Text(value)
    for entry in sequence(value):
        block = mapping(entry)
        kind = string(block.get("type"))
        match kind:
            case "text" | "output_text" | "input_text":
                yield Text(string(block.get("text")))
            case "refusal":
                yield Text(string(block.get("refusal")))
            case "image_url" | "input_audio" | "file":
                inner = mapping(block.get(kind))
                data = string(inner.get("url")) or string(inner.get("data")) or string(inner.get("file_data"))
                yield Media({"image_url": "image", "input_audio": "audio"}.get(kind, "document"), digest(data) if data else None)
            case _:
                yield Opaque(kind)


def _tools(body: Mapping[str, Json]) -> Iterator[Tool]:
    entries = [*sequence(body.get("tools")), *({"type": "function", "function": old} for old in sequence(body.get("functions")))]
    for entry in entries:
        tool = mapping(entry)
        kind = string(tool.get("type"))
        inner = mapping(tool.get("function")) or mapping(tool.get("custom"))
        schema = canonical(inner.get("parameters", inner.get("format", {})))
        yield Tool(
            name=string(inner.get("name")) or kind,
            description=string(inner.get("description")),
            schema=schema if isinstance(schema, str) else "{}",
            server_side=kind not in ("function", "custom"),
        )
    if "web_search_options" in body:
        yield Tool("web_search", server_side=True)


def _parameters(body: Mapping[str, Json]) -> dict[str, Json]:
    read = {_PARAMETERS.get(key, key): value for key, value in body.items() if key not in _READ_ELSEWHERE}
    stop = body.get("stop")
    if isinstance(stop, str):
        read["stop"] = [stop]
    choice = body.get("tool_choice")
    if choice == "required":
        read["tool_choice"] = "any"
    elif isinstance(choice, dict):
        named = mapping(choice.get("function")) or mapping(choice.get("custom"))
        read["tool_choice"] = f"tool:{string(named.get('name'))}" if named else choice
    return read


def _held(body: Mapping[str, Json]) -> Iterator[Held]:
    for i, entry in enumerate(sequence(body.get("messages"))):
        message = mapping(entry)
        if _bound(message):
            yield Held(HeldKind.ENCRYPTED, f"messages[{i}].reasoning_details")
        if mapping(message.get("audio")).get("id"):
            yield Held(HeldKind.STATE, f"messages[{i}].audio.id", string(mapping(message.get("audio")).get("id")))
        for j, inner in enumerate(sequence(message.get("content"))):
            file_id = string(mapping(mapping(inner).get("file")).get("file_id"))
            if file_id:
                yield Held(HeldKind.FILE, f"messages[{i}].content[{j}].file.file_id", file_id)
    for name in ("conversation_id", "agent_id"):
        if isinstance(body.get(name), str):
            yield Held(HeldKind.STATE, name, string(body.get(name)))


class Assembly:
    """One answer: a completion, or its chunks. With `n` > 1 only the first choice is read; the rest is a fault.

    `fields`: the answer's head, where a gateway says who served.
    """

    def __init__(self, fields: Fields = ()) -> None:
        self.draft = Draft()
        self._positions: dict[Hashable, Hashable] = {}
        for name in (b"x-litellm-model-id", b"x-litellm-model-group", b"x-litellm-attempted-fallbacks"):
            value = field_value(fields, name)
            if value is not None:
                self.draft.signal("gateway", f"{name.decode()}: {value.decode('latin-1')}")

    def whole(self, body: Json) -> None:
        completion = mapping(body)
        self._head(completion)
        choices = sequence(completion.get("choices"))
        for entry in choices:
            choice = mapping(entry)
            if self._other(choice):
                continue
            self._grow(mapping(choice.get("message")))
            if isinstance(choice.get("text"), str):
                self.draft.block("text", BlockKind.TEXT).pieces.append(string(choice.get("text")))
            self._stopped(choice)
        self.draft.final_usage = "usage" in completion
        self.draft.complete = bool(choices)
        if not choices and self.draft.error is None:
            self.draft.fault(Fault("shape", "the answer has no choices"))

    def event(self, name: str, data: Json) -> None:
        if name == "[DONE]":
            self.draft.complete = True
            return
        chunk = mapping(data)
        if chunk.get("object") == "chat.completion" or any("message" in mapping(c) for c in sequence(chunk.get("choices"))):
            self.whole(data)
            return
        self._head(chunk)
        for entry in sequence(chunk.get("choices")):
            choice = mapping(entry)
            if self._other(choice):
                continue
            self._grow(mapping(choice.get("delta")))
            if isinstance(choice.get("text"), str):
                self.draft.block("text", BlockKind.TEXT).pieces.append(string(choice.get("text")))
            self._stopped(choice)

    def end(self) -> None:
        """Nothing is known only at the end."""

    def _other(self, choice: Mapping[str, Json]) -> bool:
        if choice.get("index", 0) in (0, None):
            return False
        if not any(fault.kind == "shape" for fault in self.draft.faults):
            self.draft.fault(Fault("shape", "more than one choice; the first is read"))
        return True

    def _head(self, chunk: Mapping[str, Json]) -> None:
        self.draft.id = string_or_none(chunk.get("id")) or self.draft.id
        self.draft.saw(chunk.get("model"), "model")
        usage = mapping(chunk.get("usage"))
        if usage:
            self._use(usage)
        for key, kind in (("system_fingerprint", "fingerprint"), ("service_tier", "service_tier"), ("provider", "gateway")):
            if isinstance(chunk.get(key), str):
                self.draft.signal(kind, string(chunk.get(key)))

    def _grow(self, delta: Mapping[str, Json]) -> None:
        hidden = string(delta.get("reasoning_content")) or string(delta.get("reasoning"))
        if hidden or _bound(delta):
            block = self.draft.block("reasoning", BlockKind.REASONING)
            block.pieces.append(hidden)
            block.bound = block.bound or _bound(delta)
        for text in (*_texts(delta.get("content")), string(delta.get("refusal"))):
            if text:
                self.draft.block("text", BlockKind.TEXT).pieces.append(text)
        for order, entry in enumerate(sequence(delta.get("tool_calls"))):
            self._call(mapping(entry), order)
        old = mapping(delta.get("function_call"))
        if old:
            block = self.draft.block("function", BlockKind.CALL)
            block.name = block.name or string(old.get("name"))
            block.pieces.append(string(old.get("arguments")))

    def _call(self, call: Mapping[str, Json], order: int) -> None:
        """Fragments belong together by `index`; where a server leaves it out, by `id`, and a fragment with neither by its order."""
        index, identity = call.get("index"), string(call.get("id"))
        key: Hashable = ("call", index) if isinstance(index, int) else ("call", "id", identity) if identity else ("call", order)
        key = self._positions.get(key, key)
        known = self.draft.blocks.get(key)
        if known is not None and identity and known.id and known.id != identity:
            self._positions[("call", index)] = key = ("call", "id", identity)  # a server that gives every call the same index
        block = self.draft.block(key, BlockKind.CALL)
        block.id = block.id or identity
        custom = mapping(call.get("custom"))
        function = custom or mapping(call.get("function"))
        block.form = "text" if custom else block.form
        block.name = block.name or string(function.get("name"))
        block.pieces.append(string(function.get("input")) if custom else _arguments(function.get("arguments")))

    def _stopped(self, choice: Mapping[str, Json]) -> None:
        reason = choice.get("finish_reason")
        if isinstance(reason, str):
            self.draft.stop_wire = string(choice.get("native_finish_reason")) or reason
            self.draft.stop = _STOPS.get(reason, Stop.OTHER)

    def _use(self, usage: Mapping[str, Json]) -> None:
        asked, made = mapping(usage.get("prompt_tokens_details")), mapping(usage.get("completion_tokens_details"))
        self.draft.usage = Usage(
            input=count(usage.get("prompt_tokens")),
            output=count(usage.get("completion_tokens")),
            cache_read=count(asked.get("cached_tokens")),
            cache_write=count(asked.get("cache_write_tokens")),
            reasoning=count(made.get("reasoning_tokens")),
        )
        self.draft.final_usage = True

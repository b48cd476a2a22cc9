"""Bedrock Converse: requests, whole answers and streams (PROVIDERS A2)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

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
    Place,
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
from secondtake.cassettes.adapters.reading import canonical, count, digest, loads, mapping, sequence, string, string_or_none
from secondtake.cassettes.json_places import Step

_SPECS = (
    places.Spec(("modelId",), PlaceKind.MODEL),
    places.Spec(("additionalModelRequestFields", "fallbacks", Step.EACH, "model"), PlaceKind.FALLBACK),
    places.Spec(("additionalModelRequestFields", "fallbacks"), PlaceKind.INDIRECT),
    places.Spec(("additionalModelRequestFields", "tools", Step.EACH, "model"), PlaceKind.AUXILIARY, tool=True),
)

_PARAMETERS = {"maxTokens": "max_tokens", "topP": "top_p", "stopSequences": "stop"}
_READ_ELSEWHERE = frozenset({"messages", "system", "toolConfig", "inferenceConfig", "modelId"})
_STOPS = {
    "end_turn": Stop.END, "tool_use": Stop.TOOL_CALLS, "max_tokens": Stop.LENGTH, "stop_sequence": Stop.SEQUENCE,
    "guardrail_intervened": Stop.FILTERED, "content_filtered": Stop.FILTERED, "malformed_tool_use": Stop.MALFORMED,
    "malformed_model_output": Stop.MALFORMED, "model_context_window_exceeded": Stop.CONTEXT,
}  # fmt: skip


def read_request(adapter: str, content: bytes, kind: CallKind) -> ModelRequest:
    """Read a request body, which names no model: the path does. What cannot be read is a fault of the value."""
    value = loads(content)
    if isinstance(value, Fault) or not isinstance(value, dict):
        return ModelRequest(adapter, kind, None, faults=(value if isinstance(value, Fault) else Fault("shape", "no JSON object"),))
    found, faults = places.find(content, _SPECS)
    return _read(adapter, value, kind, found, faults)


def read_count(adapter: str, content: bytes) -> ModelRequest:
    """Read the body of `count-tokens`, whose prompt is wrapped."""
    value = loads(content)
    inner = mapping(mapping(None if isinstance(value, Fault) else value).get("input"))
    faults = (value,) if isinstance(value, Fault) else () if "converse" in inner else (Fault("unknown-dialect", "a prompt in base64"),)
    return _read(adapter, mapping(inner.get("converse")), CallKind.COUNT, (), faults)


def _read(adapter: str, body: Mapping[str, Json], kind: CallKind, found: tuple[Place, ...], faults: tuple[Fault, ...]) -> ModelRequest:
    return ModelRequest(
        adapter=adapter,
        kind=kind,
        model=places.asked(found),
        places=found,
        system=tuple(string(mapping(block).get("text")) for block in sequence(body.get("system")) if "text" in mapping(block)),
        turns=join(_turns(body)),
        tools=tuple(_tools(mapping(body.get("toolConfig")))),
        parameters=_parameters(body),
        held=tuple(_held(body)),
        faults=faults,
    )


def _turns(body: Mapping[str, Json]) -> Iterator[Turn]:
    for entry in sequence(body.get("messages")):
        message = mapping(entry)
        role = Role.ASSISTANT if message.get("role") == "assistant" else Role.USER
        spoken: list[Part] = []
        for inner in sequence(message.get("content")):
            part = _part(mapping(inner))
            if part is None:
                continue
            if isinstance(part, ToolResult) and role is Role.USER:
                if spoken:
                    yield Turn(role, tuple(spoken))
                    spoken = []
                yield Turn(Role.TOOL, (part,))
            else:
                spoken.append(part)
        yield Turn(role, tuple(spoken))


def _part(block: Mapping[str, Json]) -> Part | None:
    """One content block; None for a cache point, which says nothing."""
    kind = next(iter(block), "empty")
    inner = mapping(block.get(kind))
    match kind:
        case "text":
            return Text(string(block.get("text")))
        case "toolUse":
            return call_from_value(string(inner.get("toolUseId")), string(inner.get("name")), inner.get("input"))
        case "toolResult":
            status = inner.get("status")
            texts = "".join(_result_text(mapping(entry)) for entry in sequence(inner.get("content")))
            return ToolResult(string(inner.get("toolUseId")), "", texts, status == "error" if isinstance(status, str) else None)
        case "reasoningContent":
            shown = mapping(inner.get("reasoningText"))
            return Reasoning(string(shown.get("text")), "signature" in shown or "redactedContent" in inner)
        case "image" | "document" | "video":
            data = mapping(inner.get("source")).get("bytes")
            return Media(kind, digest(data) if isinstance(data, str) else None)
        case "cachePoint":
            return None
        case _:
            return Opaque(kind)


def _result_text(entry: Mapping[str, Json]) -> str:
    if "json" in entry:
        made = canonical(entry["json"])
        return made if isinstance(made, str) else ""
    return string(entry.get("text"))


def _tools(config: Mapping[str, Json]) -> Iterator[Tool]:
    for entry in sequence(config.get("tools")):
        tool = mapping(entry)
        spec = mapping(tool.get("toolSpec"))
        if spec:
            schema = canonical(mapping(spec.get("inputSchema")).get("json", {}))
            yield Tool(string(spec.get("name")), string(spec.get("description")), schema if isinstance(schema, str) else "{}")
        elif "systemTool" in tool:
            yield Tool(string(mapping(tool.get("systemTool")).get("name")), server_side=True)


def _parameters(body: Mapping[str, Json]) -> dict[str, Json]:
    read = {key: value for key, value in body.items() if key not in _READ_ELSEWHERE}
    for key, value in mapping(body.get("inferenceConfig")).items():
        read[_PARAMETERS.get(key, key)] = value
    choice = mapping(mapping(body.get("toolConfig")).get("toolChoice"))
    if choice:
        kind = next(iter(choice))
        read["tool_choice"] = f"tool:{string(mapping(choice[kind]).get('name'))}" if kind == "tool" else kind
    return read


def _held(body: Mapping[str, Json]) -> Iterator[Held]:
    for i, entry in enumerate(sequence(body.get("messages"))):
        for j, inner in enumerate(sequence(mapping(entry).get("content"))):
            thought = mapping(mapping(inner).get("reasoningContent"))
            path = f"messages[{i}].content[{j}]"
            if "redactedContent" in thought:
                yield Held(HeldKind.ENCRYPTED, path)
            elif "signature" in mapping(thought.get("reasoningText")):
                yield Held(HeldKind.SIGNATURE, path)


class Assembly:
    """One answer: a ConverseResponse, or the events of a ConverseStream."""

    def __init__(self) -> None:
        self.draft = Draft()

    def whole(self, body: Json) -> None:
        answer = mapping(body)
        if "inputTokens" in answer:
            self.draft.usage = Usage(input=count(answer.get("inputTokens")))
            self.draft.complete = self.draft.final_usage = True
            return
        message = mapping(mapping(answer.get("output")).get("message"))
        for index, entry in enumerate(sequence(message.get("content"))):
            self._block(index, mapping(entry))
        self._stopped(answer)
        self._metadata(answer)
        self.draft.complete = bool(message)
        if not message and self.draft.error is None:
            self.draft.fault(Fault("shape", "the answer has no message"))

    def event(self, name: str, data: Json) -> None:
        event = mapping(data)
        at = event.get("contentBlockIndex")
        index = at if isinstance(at, int) else -1
        match name:
            case "contentBlockStart":
                start = mapping(mapping(event.get("start")).get("toolUse"))
                if start:
                    self.draft.block(index, BlockKind.CALL, string(start.get("name")), string(start.get("toolUseId")))
            case "contentBlockDelta":
                self._delta(index, mapping(event.get("delta")))
            case "messageStop":
                self._stopped(event)
                self.draft.complete = True
            case "metadata":
                self._metadata(event)

    def end(self) -> None:
        """Nothing is known only at the end."""

    def _block(self, index: int, raw: Mapping[str, Json]) -> None:
        part = _part(raw)
        match part:
            case Text(text):
                self.draft.block(index, BlockKind.TEXT).pieces.append(text)
            case Reasoning(text, bound):
                block = self.draft.block(index, BlockKind.REASONING)
                block.pieces.append(text)
                block.bound = bound
            case _ if "toolUse" in raw:
                call = mapping(raw["toolUse"])
                self.draft.block(index, BlockKind.CALL, string(call.get("name")), string(call.get("toolUseId"))).given = call.get("input")
            case _ if part is not None:
                self.draft.block(index, BlockKind.OPAQUE, next(iter(raw), "empty"))

    def _delta(self, index: int, delta: Mapping[str, Json]) -> None:
        if "text" in delta:
            self.draft.block(index, BlockKind.TEXT).pieces.append(string(delta.get("text")))
        elif "toolUse" in delta:
            self.draft.block(index, BlockKind.CALL).pieces.append(string(mapping(delta.get("toolUse")).get("input")))
        elif "reasoningContent" in delta:
            thought = mapping(delta.get("reasoningContent"))
            block = self.draft.block(index, BlockKind.REASONING)
            block.pieces.append(string(thought.get("text")))
            block.bound = block.bound or "signature" in thought or "redactedContent" in thought

    def _stopped(self, event: Mapping[str, Json]) -> None:
        reason = string_or_none(event.get("stopReason"))
        if reason is not None:
            self.draft.stop_wire, self.draft.stop = reason, _STOPS.get(reason, Stop.OTHER)

    def _metadata(self, event: Mapping[str, Json]) -> None:
        router = mapping(mapping(event.get("trace")).get("promptRouter"))
        self.draft.saw(router.get("invokedModelId"), "trace.promptRouter.invokedModelId", "router")
        usage = mapping(event.get("usage"))
        if not usage:
            return
        read, written = count(usage.get("cacheReadInputTokens")), count(usage.get("cacheWriteInputTokens"))
        fresh = count(usage.get("inputTokens"))
        self.draft.usage = Usage(
            input=None if fresh is None else fresh + (read or 0) + (written or 0),
            output=count(usage.get("outputTokens")),
            cache_read=read,
            cache_write=written,
        )
        self.draft.final_usage = True

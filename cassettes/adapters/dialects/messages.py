"""Anthropic Messages: requests, whole answers and streams (PROVIDERS A2)."""

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
from secondtake.cassettes.adapters.draft import Block, BlockKind, Draft, call_from_value, join
from secondtake.cassettes.adapters.reading import canonical, count, digest, loads, mapping, sequence, string, string_or_none
from secondtake.cassettes.json_places import Step

_SPECS = (
    places.Spec(("model",), PlaceKind.MODEL),
    places.Spec(("requests", Step.EACH, "params", "model"), PlaceKind.MODEL),
    *places.GATEWAY,
)

_PARAMETERS = {"stop_sequences": "stop", "thinking": "reasoning"}
_READ_ELSEWHERE = frozenset({"model", "messages", "system", "tools", "stream", "fallbacks", "models"})
_SERVER_TOOLS = ("web_search", "web_fetch", "code_execution", "tool_search", "advisor", "mcp_toolset")
"""Fronts of the types of tools Anthropic runs itself."""

_STOPS = {
    "end_turn": Stop.END, "max_tokens": Stop.LENGTH, "stop_sequence": Stop.SEQUENCE, "tool_use": Stop.TOOL_CALLS,
    "pause_turn": Stop.PAUSED, "compaction": Stop.COMPACTED, "refusal": Stop.REFUSED,
    "model_context_window_exceeded": Stop.CONTEXT,
}  # fmt: skip


def read_request(adapter: str, content: bytes, kind: CallKind) -> ModelRequest:
    """Read a request body; what cannot be read is a fault of the value."""
    value = loads(content)
    if isinstance(value, Fault) or not isinstance(value, dict):
        return ModelRequest(adapter, kind, None, faults=(value if isinstance(value, Fault) else Fault("shape", "no JSON object"),))
    found, faults = places.find(content, _SPECS)
    model = places.asked(found)
    turns = list(_turns(value))
    return ModelRequest(
        adapter=adapter,
        kind=kind,
        model=model,
        places=found,
        system=tuple(_texts(value.get("system"))),
        turns=join(turns),
        tools=tuple(_tools(value)),
        parameters=_parameters(value),
        stream=value.get("stream") is True,
        held=tuple(_held(value)),
        continues=string_or_none(mapping(mapping(value.get("thread")).get("continue")).get("previous_message_id")),
        faults=faults if model is not None else (*faults, Fault("no-model", "no `model` in the body")),
    )


def _texts(value: Json) -> Iterator[str]:
    """A string, or the text of each text block."""
    if isinstance(value, str):
        yield value
    for block in sequence(value):
        if mapping(block).get("type") == "text":
            yield string(mapping(block).get("text"))


def _turns(body: Mapping[str, Json]) -> Iterator[Turn]:
    legacy = body.get("prompt")
    if isinstance(legacy, str):
        yield Turn(Role.USER, (Text(legacy),))
    for entry in sequence(body.get("messages")):
        message = mapping(entry)
        role = {"assistant": Role.ASSISTANT, "system": Role.SYSTEM}.get(string(message.get("role")), Role.USER)
        content = message.get("content")
        if isinstance(content, str):
            yield Turn(role, (Text(content),))
            continue
        spoken: list[Part] = []
        for block in sequence(content):
            part = _part(mapping(block))
            if isinstance(part, ToolResult) and role is not Role.ASSISTANT:
                if spoken:
                    yield Turn(role, tuple(spoken))
                    spoken = []
                yield Turn(Role.TOOL, (part,))
            else:
                spoken.append(part)
        yield Turn(role, tuple(spoken))


def _part(block: Mapping[str, Json]) -> Part:
    kind = string(block.get("type"))
    match kind:
        case "text":
            return Text(string(block.get("text")))
        case "thinking":
            return Reasoning(string(block.get("thinking")), bool(block.get("signature")))
        case "redacted_thinking":
            return Reasoning("", bound=True)
        case "tool_use":
            return call_from_value(string(block.get("id")), string(block.get("name")), block.get("input"))
        case "tool_result":
            is_error = block.get("is_error")
            return ToolResult(
                string(block.get("tool_use_id")),
                "",
                "".join(_texts(block.get("content"))),
                is_error if isinstance(is_error, bool) else None,
            )
        case "image" | "document":
            data = mapping(block.get("source")).get("data")
            return Media(kind, digest(data) if isinstance(data, str) else None)
        case _ if kind.endswith("_tool_result"):
            made = canonical(block.get("content"))
            return ToolResult(string(block.get("tool_use_id")), kind.removesuffix("_tool_result"), made if isinstance(made, str) else "")
        case "server_tool_use" | "mcp_tool_use":
            return _server_call(block)
        case _:
            return Opaque(kind)


def _server_call(block: Mapping[str, Json]) -> Part:
    started = Block(BlockKind.CALL, string(block.get("name")), string(block.get("id")), server_side=True, given=block.get("input"))
    return started.part()


def _tools(body: Mapping[str, Json]) -> Iterator[Tool]:
    for entry in sequence(body.get("tools")):
        tool = mapping(entry)
        kind = string(tool.get("type"))
        schema = canonical(tool.get("input_schema", {}))
        yield Tool(
            name=string(tool.get("name")) or kind,
            description=string(tool.get("description")),
            schema=schema if isinstance(schema, str) else "{}",
            server_side=kind.startswith(_SERVER_TOOLS),
        )
    for entry in sequence(body.get("mcp_servers")):
        yield Tool(name=string(mapping(entry).get("name")), description="MCP server, called by the provider", server_side=True)


def _parameters(body: Mapping[str, Json]) -> dict[str, Json]:
    read = {_PARAMETERS.get(key, key): value for key, value in body.items() if key not in _READ_ELSEWHERE}
    choice = mapping(body.get("tool_choice"))
    if choice:
        kind = string(choice.get("type"))
        read["tool_choice"] = f"tool:{string(choice.get('name'))}" if kind == "tool" else kind
        if choice.get("disable_parallel_tool_use") is True:
            read["parallel_tool_calls"] = False
    return read


def _held(body: Mapping[str, Json]) -> Iterator[Held]:
    thread = mapping(mapping(body.get("thread")).get("continue"))
    if thread:
        yield Held(HeldKind.STATE, "thread.continue.previous_message_id", string(thread.get("previous_message_id")))
    container = body.get("container")
    if container:
        yield Held(HeldKind.FILE, "container", string(container) or string(mapping(container).get("id")))
    for i, entry in enumerate(sequence(body.get("messages"))):
        for j, inner in enumerate(sequence(mapping(entry).get("content"))):
            block = mapping(inner)
            path = f"messages[{i}].content[{j}]"
            match block.get("type"):
                case "thinking" if block.get("signature"):
                    yield Held(HeldKind.SIGNATURE, path)
                case "redacted_thinking" | "compaction":
                    yield Held(HeldKind.ENCRYPTED, path)
                case "image" | "document" | "container_upload":
                    file_id = string(mapping(block.get("source")).get("file_id")) or string(block.get("file_id"))
                    if file_id:
                        yield Held(HeldKind.FILE, path, file_id)


class Assembly:
    """One answer: a Message, or its stream."""

    def __init__(self) -> None:
        self.draft = Draft()

    def whole(self, body: Json) -> None:
        message = mapping(body)
        if message.get("type") == "completion" or isinstance(message.get("completion"), str):
            self.draft.add(BlockKind.TEXT).pieces.append(string(message.get("completion")))
            self._stopped(message.get("stop_reason"))
            self.draft.complete = True
            return
        if "input_tokens" in message:
            self.draft.usage = Usage(input=count(message.get("input_tokens")))
            self.draft.complete = self.draft.final_usage = True
            return
        self._head(message)
        for index, entry in enumerate(sequence(message.get("content"))):
            self._start(index, mapping(entry))
        self._stopped(message.get("stop_reason"))
        self.draft.final_usage = "usage" in message
        self.draft.complete = message.get("type") == "message" or "content" in message
        if not self.draft.complete and self.draft.error is None:
            self.draft.fault(Fault("shape", "the answer is no message"))

    def event(self, name: str, data: Json) -> None:
        event = mapping(data)
        match string(event.get("type")) or name:
            case "message_start":
                self._head(mapping(event.get("message")))
                for index, entry in enumerate(sequence(mapping(event.get("message")).get("content"))):
                    self._start(index, mapping(entry))
            case "content_block_start":
                self._start(_index(event), mapping(event.get("content_block")))
            case "content_block_delta":
                self._delta(_index(event), mapping(event.get("delta")))
            case "message_delta":
                self._stopped(mapping(event.get("delta")).get("stop_reason"))
                self._use(mapping(event.get("usage")))
                self.draft.final_usage = "usage" in event
                self._reported(event)
            case "message_stop":
                self.draft.complete = True
            case "message" | "completion":
                self.whole(data)

    def end(self) -> None:
        """Nothing is known only at the end."""

    def _head(self, message: Mapping[str, Json]) -> None:
        self.draft.id = string_or_none(message.get("id")) or self.draft.id
        self.draft.saw(message.get("model"), "model")
        self._use(mapping(message.get("usage")))
        self._reported(message)

    def _reported(self, message: Mapping[str, Json]) -> None:
        for entry in sequence(message.get("input_transformations")):
            self.draft.signal("input_transformation", string(mapping(entry).get("reason")) or "unnamed")
        reason = mapping(message.get("diagnostics")).get("cache_miss_reason")
        if reason is not None:
            self.draft.signal("cache_miss", string(reason) or string(mapping(reason).get("type")))

    def _start(self, index: int, block: Mapping[str, Json]) -> None:
        kind = string(block.get("type"))
        match kind:
            case "text":
                self.draft.block(index, BlockKind.TEXT).pieces.append(string(block.get("text")))
            case "thinking":
                made = self.draft.block(index, BlockKind.REASONING)
                made.pieces.append(string(block.get("thinking")))
                made.bound = made.bound or bool(block.get("signature"))
            case "redacted_thinking":
                self.draft.block(index, BlockKind.REASONING).bound = True
            case "tool_use" | "server_tool_use" | "mcp_tool_use":
                made = self.draft.block(index, BlockKind.CALL, string(block.get("name")), string(block.get("id")))
                made.given = block.get("input")
                made.server_side = kind != "tool_use"
                if made.server_side:
                    self.draft.signal("provider_side_effect", made.name)
            case "fallback":
                self._fallback(index, block)
            case _ if kind.endswith("_tool_result"):
                content = canonical(block.get("content"))
                result = self.draft.block(index, BlockKind.RESULT, kind.removesuffix("_tool_result"), string(block.get("tool_use_id")))
                result.pieces.append(content if isinstance(content, str) else "")
            case _:
                self.draft.block(index, BlockKind.OPAQUE, kind)

    def _fallback(self, index: int, block: Mapping[str, Json]) -> None:
        """Another model took over; `from` echoes what was asked, `to` is who goes on."""
        to, came_from = mapping(block.get("to")), mapping(block.get("from"))
        self.draft.block(index, BlockKind.OPAQUE, "fallback")
        self.draft.saw(to.get("model"), "content[].fallback.to", "fallback")
        self.draft.signal("fallback", f"{string(came_from.get('model'))} -> {string(to.get('model'))}")

    def _delta(self, index: int, delta: Mapping[str, Json]) -> None:
        match delta.get("type"):
            case "text_delta":
                self.draft.block(index, BlockKind.TEXT).pieces.append(string(delta.get("text")))
            case "input_json_delta":
                self.draft.block(index, BlockKind.CALL).pieces.append(string(delta.get("partial_json")))
            case "thinking_delta":
                self.draft.block(index, BlockKind.REASONING).pieces.append(string(delta.get("thinking")))
            case "signature_delta":
                self.draft.block(index, BlockKind.REASONING).bound = True

    def _stopped(self, reason: Json) -> None:
        if isinstance(reason, str):
            self.draft.stop_wire = reason
            self.draft.stop = _STOPS.get(reason, Stop.OTHER)

    def _use(self, usage: Mapping[str, Json]) -> None:
        """Counts are cumulative; a later event may give fewer of them. What was cached is not in `input_tokens`."""
        if not usage:
            return
        old = self.draft.usage
        read = count(usage.get("cache_read_input_tokens"))
        written = count(usage.get("cache_creation_input_tokens"))
        fresh = count(usage.get("input_tokens"))
        thought = count(mapping(usage.get("output_tokens_details")).get("thinking_tokens"))
        output = count(usage.get("output_tokens"))
        self.draft.usage = Usage(
            input=old.input if fresh is None else fresh + (read or 0) + (written or 0),
            output=old.output if output is None else output,
            cache_read=old.cache_read if read is None else read,
            cache_write=old.cache_write if written is None else written,
            reasoning=old.reasoning if thought is None else thought,
        )
        for entry in sequence(usage.get("iterations")):
            step = mapping(entry)
            kind = string(step.get("type"))
            role = "advisor" if kind.startswith("advisor") else "fallback" if kind.startswith("fallback") else "answer"
            self.draft.saw(step.get("model"), f"usage.iterations[].{kind}", role)
        for name in ("service_tier", "inference_geo", "speed"):
            if isinstance(usage.get(name), str):
                self.draft.signal(name, string(usage.get(name)))


def _index(event: Mapping[str, Json]) -> int:
    index = event.get("index")
    return index if isinstance(index, int) else -1

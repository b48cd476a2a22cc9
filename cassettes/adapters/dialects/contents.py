"""Gemini `generateContent`: requests, whole answers and streams; also inside Code Assist's wrapping (PROVIDERS A2)."""

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
    places.Spec(("generateContentRequest", "model"), PlaceKind.MODEL),
    places.Spec(("request", "model"), PlaceKind.MODEL),
    places.Spec(("requests", Step.EACH, "model"), PlaceKind.MODEL),
    places.Spec(("agent",), PlaceKind.INDIRECT),
    *places.GATEWAY,
)

_PARAMETERS = {
    "maxOutputTokens": "max_tokens", "max_output_tokens": "max_tokens", "topP": "top_p", "topK": "top_k", "stopSequences": "stop",
    "stop_sequences": "stop", "thinkingConfig": "reasoning", "thinking_config": "reasoning",
}  # fmt: skip
_READ_ELSEWHERE = frozenset(
    {
        "model", "contents", "systemInstruction", "system_instruction", "tools", "toolConfig", "tool_config", "generationConfig",
        "generation_config", "cachedContent", "cached_content",
    }
)  # fmt: skip
_STOPS = {
    "STOP": Stop.END, "MAX_TOKENS": Stop.LENGTH, "SAFETY": Stop.FILTERED, "RECITATION": Stop.FILTERED, "BLOCKLIST": Stop.FILTERED,
    "PROHIBITED_CONTENT": Stop.FILTERED, "SPII": Stop.FILTERED, "IMAGE_SAFETY": Stop.FILTERED, "LANGUAGE": Stop.FILTERED,
    "MALFORMED_FUNCTION_CALL": Stop.MALFORMED, "UNEXPECTED_TOOL_CALL": Stop.MALFORMED, "CONTINUATION": Stop.PAUSED,
}  # fmt: skip


def read_request(adapter: str, content: bytes, kind: CallKind, *, stream: bool = False) -> ModelRequest:
    """Read a request body; what cannot be read is a fault of the value."""
    value = loads(content)
    if isinstance(value, Fault) or not isinstance(value, dict):
        return ModelRequest(adapter, kind, None, faults=(value if isinstance(value, Fault) else Fault("shape", "no JSON object"),))
    body = mapping(value.get("request")) or mapping(value.get("generateContentRequest")) or value
    found, faults = places.find(content, _SPECS)
    model = places.asked(found)
    if model is None:
        faults = (*faults, Fault("no-model", "no `model` in the body"))
    if "input" in body and "contents" not in body:
        faults = (*faults, Fault("unknown-dialect", "an interaction, whose history the provider keeps, is not read"))
    return ModelRequest(
        adapter=adapter,
        kind=kind,
        model=model,
        places=found,
        system=tuple(_system(_pick(body, "systemInstruction", "system_instruction"))),
        turns=join(_turns(body)),
        tools=tuple(_tools(body)),
        parameters=_parameters(body),
        stream=stream,
        held=tuple(_held(body)),
        continues=string_or_none(body.get("previous_interaction_id")),
        faults=faults,
    )


def _pick(body: Mapping[str, Json], camel: str, snake: str) -> Json:
    return body.get(camel, body.get(snake))


def _listed(value: Json) -> list[Json]:
    """A list, or the one object that stands for it."""
    return [value] if isinstance(value, dict) else sequence(value)


def _system(value: Json) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    for entry in _listed(mapping(value).get("parts")):
        yield string(mapping(entry).get("text"))


def _turns(body: Mapping[str, Json]) -> Iterator[Turn]:
    for entry in _listed(body.get("contents")):
        content = mapping(entry)
        role = {"model": Role.ASSISTANT, "system": Role.SYSTEM}.get(string(content.get("role")), Role.USER)
        spoken: list[Part] = []
        for inner in _listed(content.get("parts")):
            part = _part(mapping(inner))
            if isinstance(part, ToolResult) and role is not Role.ASSISTANT:
                if spoken:
                    yield Turn(role, tuple(spoken))
                    spoken = []
                yield Turn(Role.TOOL, (part,))
            else:
                spoken.append(part)
        yield Turn(role, tuple(spoken))


def _part(part: Mapping[str, Json]) -> Part:
    call = mapping(_pick(part, "functionCall", "function_call"))
    if call:
        return call_from_value(string(call.get("id")), string(call.get("name")), call.get("args"))
    answered = mapping(_pick(part, "functionResponse", "function_response"))
    if answered:
        return _result(answered)
    if "text" in part:
        bound = isinstance(_pick(part, "thoughtSignature", "thought_signature"), str)
        text = string(part.get("text"))
        return Reasoning(text, bound) if part.get("thought") is True else Text(text)
    for name, snake in (("inlineData", "inline_data"), ("fileData", "file_data")):
        media = mapping(_pick(part, name, snake))
        if media:
            kind = string(_pick(media, "mimeType", "mime_type")).partition("/")[0]
            data = media.get("data")
            return Media(kind if kind in ("image", "audio", "video") else "document", digest(data) if isinstance(data, str) else None)
    if "executableCode" in part:
        return Block(BlockKind.CALL, "code_execution", server_side=True, given=part["executableCode"]).part()
    if "codeExecutionResult" in part:
        return ToolResult("", "code_execution", string(mapping(part["codeExecutionResult"]).get("output")))
    return Opaque(next(iter(part), "empty"))


def _result(answered: Mapping[str, Json]) -> ToolResult:
    """The text is `output` or `result` where that is all there is; `error` says that the tool failed; else the object as JSON."""
    response = mapping(answered.get("response"))
    identity, name = string(answered.get("id")), string(answered.get("name"))
    if len(response) == 1:
        ((key, value),) = response.items()
        if isinstance(value, str) and key in ("output", "result", "content", "error"):
            return ToolResult(identity, name, value, True if key == "error" else None)
    made = canonical(dict(response))
    return ToolResult(identity, name, made if isinstance(made, str) else "")


def _tools(body: Mapping[str, Json]) -> Iterator[Tool]:
    for entry in _listed(body.get("tools")):
        tool = mapping(entry)
        for key, value in tool.items():
            if key not in ("functionDeclarations", "function_declarations"):
                yield Tool(key, server_side=True)
                continue
            for inner in sequence(value):
                declared = mapping(inner)
                schema = canonical(declared.get("parameters", _pick(declared, "parametersJsonSchema", "parameters_json_schema") or {}))
                yield Tool(string(declared.get("name")), string(declared.get("description")), schema if isinstance(schema, str) else "{}")


def _parameters(body: Mapping[str, Json]) -> dict[str, Json]:
    read = {key: value for key, value in body.items() if key not in _READ_ELSEWHERE}
    for key, value in mapping(_pick(body, "generationConfig", "generation_config")).items():
        read[_PARAMETERS.get(key, key)] = value
    calling = mapping(_pick(mapping(_pick(body, "toolConfig", "tool_config")), "functionCallingConfig", "function_calling_config"))
    if calling:
        names = sequence(_pick(calling, "allowedFunctionNames", "allowed_function_names"))
        mode = string(calling.get("mode")).lower()
        read["tool_choice"] = f"tool:{string(names[0])}" if mode == "any" and len(names) == 1 else mode
    return read


def _held(body: Mapping[str, Json]) -> Iterator[Held]:
    cached = _pick(body, "cachedContent", "cached_content")
    if isinstance(cached, str):
        yield Held(HeldKind.FILE, "cachedContent", cached)
    if isinstance(body.get("previous_interaction_id"), str):
        yield Held(HeldKind.STATE, "previous_interaction_id", string(body.get("previous_interaction_id")))
    for i, entry in enumerate(_listed(body.get("contents"))):
        for j, inner in enumerate(_listed(mapping(entry).get("parts"))):
            part = mapping(inner)
            path = f"contents[{i}].parts[{j}]"
            if isinstance(_pick(part, "thoughtSignature", "thought_signature"), str):
                yield Held(HeldKind.SIGNATURE, path)
            uri = string(_pick(mapping(_pick(part, "fileData", "file_data")), "fileUri", "file_uri"))
            if uri:
                yield Held(HeldKind.FILE, path, uri)


class Assembly:
    """One answer: a GenerateContentResponse, or a stream of them. The format has no end of its own: a finish reason is it."""

    def __init__(self) -> None:
        self.draft = Draft()
        self._last: Block | None = None
        self._call_number = 0

    def whole(self, body: Json) -> None:
        self.event("", body)
        if not self.draft.complete and self.draft.error is None:
            known = any(key in mapping(body) for key in ("candidates", "response", "promptFeedback", "usageMetadata"))
            self.draft.fault(Fault("shape", "the answer has no finish reason" if known else "the answer has no candidates"))

    def event(self, name: str, data: Json) -> None:
        outer = mapping(data)
        chunk = mapping(outer.get("response")) or outer
        if "totalTokens" in chunk:
            self.draft.usage = Usage(input=count(chunk.get("totalTokens")))
            self.draft.complete = self.draft.final_usage = True
            return
        self.draft.id = string_or_none(chunk.get("responseId")) or self.draft.id
        self.draft.saw(chunk.get("modelVersion"), "modelVersion")
        retires = mapping(chunk.get("modelStatus")).get("retirementTime")
        if isinstance(retires, str):
            self.draft.signal("retires", retires)
        self._use(mapping(chunk.get("usageMetadata")))
        blocked = mapping(chunk.get("promptFeedback")).get("blockReason")
        if isinstance(blocked, str):
            self._stopped(blocked, Stop.FILTERED)
        for entry in sequence(chunk.get("candidates")):
            candidate = mapping(entry)
            if candidate.get("index", 0) not in (0, None):
                continue
            for inner in _listed(mapping(candidate.get("content")).get("parts")):
                self._grow(mapping(inner))
            reason = candidate.get("finishReason")
            if isinstance(reason, str) and reason != "FINISH_REASON_UNSPECIFIED":
                self._stopped(reason, _STOPS.get(reason, Stop.OTHER))
            if "groundingMetadata" in candidate:
                self.draft.signal("provider_side_effect", "googleSearch")

    def end(self) -> None:
        """Nothing is known only at the end."""

    def _stopped(self, reason: str, stop: Stop) -> None:
        self.draft.stop_wire, self.draft.stop = reason, stop
        self.draft.complete = True

    def _grow(self, raw: Mapping[str, Json]) -> None:
        """Text goes on from the last text; every call is a block of its own."""
        part = _part(raw)
        match part:
            case Text(text):
                self._continue(BlockKind.TEXT).pieces.append(text)
            case Reasoning(text, bound):
                block = self._continue(BlockKind.REASONING)
                block.pieces.append(text)
                block.bound = block.bound or bound
            case _ if "functionCall" in raw:
                self._call(mapping(raw["functionCall"]))
            case _ if "executableCode" in raw:
                self._last = self.draft.add(BlockKind.CALL, "code_execution")
                self._last.given, self._last.server_side = raw["executableCode"], True
                self.draft.signal("provider_side_effect", "code_execution")
            case ToolResult():
                self._last = self.draft.add(BlockKind.RESULT, part.name, part.call_id)
                self._last.pieces.append(part.text)
            case _:
                self._last = self.draft.add(BlockKind.OPAQUE, part.kind if isinstance(part, Opaque) else "media")

    def _call(self, call: Mapping[str, Json]) -> None:
        if "partialArgs" in call or call.get("willContinue") is True:
            self.draft.fault(Fault("unknown-dialect", "arguments of a call that come in parts are not read"))
        self._last = self.draft.add(BlockKind.CALL, string(call.get("name")), string(call.get("id")))
        self._last.given = call.get("args")

    def _continue(self, kind: BlockKind) -> Block:
        if self._last is None or self._last.kind is not kind:
            self._last = self.draft.add(kind)
        return self._last

    def _use(self, usage: Mapping[str, Json]) -> None:
        """Counts of a chunk stand for the answer so far."""
        if not usage:
            return
        made, thought = count(usage.get("candidatesTokenCount")), count(usage.get("thoughtsTokenCount"))
        asked, tool = count(usage.get("promptTokenCount")), count(usage.get("toolUsePromptTokenCount"))
        self.draft.usage = Usage(
            input=None if asked is None else asked + (tool or 0),
            output=None if made is None and thought is None else (made or 0) + (thought or 0),
            cache_read=count(usage.get("cachedContentTokenCount")),
            reasoning=thought,
        )
        self.draft.final_usage = True

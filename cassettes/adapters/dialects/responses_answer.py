"""The answers of OpenAI Responses: the response object, and the stream that builds it up."""

from __future__ import annotations

from collections.abc import Mapping

from secondtake.cassettes.adapters.base import Fault, Json, Stop, Usage
from secondtake.cassettes.adapters.dialects import items
from secondtake.cassettes.adapters.draft import BlockKind, Draft
from secondtake.cassettes.adapters.errors import provider_error
from secondtake.cassettes.adapters.reading import count, mapping, sequence, string, string_or_none

_TERMINAL = ("response.completed", "response.failed", "response.incomplete", "response.cancelled")
_INCOMPLETE = {"max_output_tokens": Stop.LENGTH, "content_filter": Stop.FILTERED, "max_tool_calls": Stop.OTHER}
_PENDING = ("queued", "in_progress")


class Assembly:
    """One answer: a Response, or its stream. Blocks are keyed by `output_index`, then by content index."""

    def __init__(self) -> None:
        self.draft = Draft()

    def whole(self, body: Json) -> None:
        response = mapping(body)
        if response.get("object") == "response.input_tokens":
            self.draft.usage = Usage(input=count(response.get("input_tokens")))
            self.draft.complete = self.draft.final_usage = True
            return
        if not isinstance(response.get("output"), list):
            if self.draft.error is None:
                kind = "unknown-dialect" if "answers" in response else "shape"
                self.draft.fault(Fault(kind, "the answer is no response"))
            return
        self._head(response)
        for index, entry in enumerate(sequence(response.get("output"))):
            self._item(index, mapping(entry))
        if response.get("status") in _PENDING:
            self.draft.stop, self.draft.stop_wire = Stop.PENDING, string(response.get("status"))
        else:
            self.draft.complete = True

    def event(self, name: str, data: Json) -> None:
        event = mapping(data)
        kind = string(event.get("type")) or name
        output = event.get("output_index")
        index = output if isinstance(output, int) else -1
        match kind:
            case "response.created" | "response.in_progress" | "response.queued":
                self._head(mapping(event.get("response")))
            case "response.output_item.added" | "response.output_item.done":
                self._item(index, mapping(event.get("item")))
            case "response.output_text.delta" | "response.refusal.delta":
                self._text(index, event, string(event.get("delta")))
            case "response.function_call_arguments.delta" | "response.custom_tool_call_input.delta":
                self.draft.block(index, BlockKind.CALL).pieces.append(string(event.get("delta")))
            case "response.function_call_arguments.done":
                self._replace(index, string(event.get("arguments")))
            case "response.custom_tool_call_input.done":
                self._replace(index, string(event.get("input")))
            case "response.reasoning_summary_text.delta" | "response.reasoning_text.delta":
                self.draft.block(index, BlockKind.REASONING).pieces.append(string(event.get("delta")))
            case "error":
                self.draft.error = provider_error(data, 200, in_stream=True, type_name=string(event.get("code")))
            case _ if kind in _TERMINAL:
                self._end(mapping(event.get("response")))

    def end(self) -> None:
        """Nothing is known only at the end."""

    def _end(self, response: Mapping[str, Json]) -> None:
        self._head(response)
        for index, entry in enumerate(sequence(response.get("output"))):
            self._item(index, mapping(entry))
        self.draft.complete = True

    def _head(self, response: Mapping[str, Json]) -> None:
        draft = self.draft
        draft.id = string_or_none(response.get("id")) or draft.id
        draft.saw(response.get("model"), "model")
        for entry in sequence(response.get("input_transformations")):
            draft.signal("input_transformation", string(mapping(entry).get("reason")) or "unnamed")
        if isinstance(response.get("service_tier"), str) and response.get("service_tier") != "auto":
            draft.signal("service_tier", string(response.get("service_tier")))
        status = string(response.get("status"))
        reason = string(mapping(response.get("incomplete_details")).get("reason"))
        match status:
            case "completed":
                draft.stop, draft.stop_wire = Stop.END, status
            case "incomplete":
                draft.stop, draft.stop_wire = _INCOMPLETE.get(reason, Stop.OTHER), reason or status
            case "cancelled":
                draft.stop, draft.stop_wire = Stop.CANCELLED, status
            case "failed":
                draft.stop_wire = status
                draft.error = provider_error({"error": response.get("error") or {}}, 200, in_stream=True)
        self._use(mapping(response.get("usage")))

    def _use(self, usage: Mapping[str, Json]) -> None:
        if not usage:
            return
        asked, made = mapping(usage.get("input_tokens_details")), mapping(usage.get("output_tokens_details"))
        if asked.get("cache_miss_reason") is not None:
            self.draft.signal("cache_miss", string(asked.get("cache_miss_reason")))
        self.draft.usage = Usage(
            input=count(usage.get("input_tokens")),
            output=count(usage.get("output_tokens")),
            cache_read=count(asked.get("cached_tokens")),
            cache_write=count(asked.get("cache_write_tokens")),
            reasoning=count(made.get("reasoning_tokens")),
        )
        self.draft.final_usage = True

    def _item(self, index: int, item: Mapping[str, Json]) -> None:
        """An item as added, done or in the final response; what it holds replaces what its deltas gave."""
        kind = string(item.get("type"))
        match kind:
            case "message":
                for at, entry in enumerate(sequence(item.get("content"))):
                    text = string(mapping(entry).get("text")) or string(mapping(entry).get("refusal"))
                    if text:
                        self.draft.block((index, at), BlockKind.TEXT).pieces[:] = [text]
            case "function_call" | "custom_tool_call":
                self._called(index, item, string(item.get("arguments")) or string(item.get("input")), custom=kind == "custom_tool_call")
            case "reasoning":
                block = self.draft.block(index, BlockKind.REASONING)
                block.bound = block.bound or isinstance(item.get("encrypted_content"), str)
                text = items.reasoning_text(item)
                if text:
                    block.pieces[:] = [text]
            case _ if items.local_name(kind) is not None:
                block = self.draft.block(index, BlockKind.CALL, items.local_name(kind) or kind)
                block.id = string(item.get("call_id")) or string(item.get("id")) or block.id
                block.given = items.local_arguments(item)
            case _ if items.is_server_side(kind):
                name = string(item.get("name")) or kind.removesuffix("_call")
                block = self.draft.block(index, BlockKind.CALL, name, string(item.get("id")))
                block.server_side = True
                block.pieces[:] = [string(item.get("arguments"))]
                self.draft.signal("provider_side_effect", name)
            case _:
                self.draft.block(index, BlockKind.OPAQUE, kind)

    def _called(self, index: int, item: Mapping[str, Json], text: str, *, custom: bool) -> None:
        block = self.draft.block(index, BlockKind.CALL)
        block.name = string(item.get("name")) or block.name
        block.id = string(item.get("call_id")) or block.id
        block.form = "text" if custom else "json"
        if text:
            block.pieces[:] = [text]

    def _text(self, index: int, event: Mapping[str, Json], delta: str) -> None:
        at = event.get("content_index")
        self.draft.block((index, at if isinstance(at, int) else 0), BlockKind.TEXT).pieces.append(delta)

    def _replace(self, index: int, text: str) -> None:
        if text:
            self.draft.block(index, BlockKind.CALL).pieces[:] = [text]

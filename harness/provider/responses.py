"""OpenAI Responses: `POST …/responses`, streamed and not, as the official SDK's types describe it. No WebSocket, no stored state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import override

from secondtake.harness.provider.chat import Chat
from secondtake.harness.provider.script import Failure, Reply, Stop, ToolCall, cut
from secondtake.harness.provider.wire import (
    CREATED_S,
    BadCall,
    Call,
    Json,
    Wire,
    arguments_text,
    compact,
    groups,
    items,
    output_tokens,
    required_text,
    text_of,
)

ANSWERS = {"function_call_output", "custom_tool_call_output", "local_shell_call_output", "shell_call_output", "apply_patch_call_output"}


class Responses(Wire):
    """The Responses format."""

    stream_type = "text/event-stream; charset=utf-8"

    @override
    def read(self, body: Json, model: str, stream: bool, size_bytes: int) -> Call:
        if body.get("previous_response_id") is not None or body.get("conversation") is not None:
            raise BadCall("this provider keeps no state: send the whole input")
        given = body.get("input")
        if isinstance(given, str):
            given = [{"role": "user", "content": given}]
        entries = items(given)
        if not entries:
            raise BadCall("Missing required parameter: 'input'.")
        return Call(
            model=required_text(body, "model"),
            task=_task(entries),
            turn=groups([_by_the_model(i) for i in entries]),
            stream=body.get("stream") is True,
            size_bytes=size_bytes,
        )

    @override
    def whole(self, call: Call, reply: Reply, model: str) -> Json:
        cut_short = reply.stopped is Stop.LENGTH
        output: list[Json] = [_message(call, reply.text, "completed")] if reply.text else []
        output += [_called(call, n, tool, _argument(tool), "completed") for n, tool in enumerate(reply.tools)]
        done = dict(_response(call, model, "incomplete" if cut_short else "completed", output))
        if cut_short:
            done["incomplete_details"] = {"reason": "max_output_tokens"}
        said = output_tokens(reply)
        done["usage"] = {
            "input_tokens": call.input_tokens,
            "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
            "output_tokens": said,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": call.input_tokens + said,
        }
        return done

    @override
    def events(self, call: Call, reply: Reply, model: str) -> Sequence[bytes]:
        events: list[bytes] = []

        def say(kind: str, **body: object) -> None:
            events.append(_event(kind, len(events), **body))

        say("response.created", response=_response(call, model, "in_progress", []))
        say("response.in_progress", response=_response(call, model, "in_progress", []))
        index = 0
        if reply.text:
            place = {"item_id": _message_id(call), "output_index": index, "content_index": 0}
            say("response.output_item.added", output_index=index, item=_message(call, None, "in_progress"))
            say("response.content_part.added", **place, part=_part(""))
            for piece in reply.text_pieces():
                say("response.output_text.delta", **place, delta=piece, logprobs=[])
            say("response.output_text.done", **place, text=reply.text, logprobs=[])
            say("response.content_part.done", **place, part=_part(reply.text))
            say("response.output_item.done", output_index=index, item=_message(call, reply.text, "completed"))
            index += 1
        for n, tool in enumerate(reply.tools):
            written = _argument(tool)
            item = _called(call, n, tool, written, "completed")
            where = {"item_id": item["id"], "output_index": index}
            say("response.output_item.added", output_index=index, item=_called(call, n, tool, "", "in_progress"))
            kind = "response.function_call_arguments" if tool.text is None else "response.custom_tool_call_input"
            for piece in cut(written, 24):
                say(f"{kind}.delta", **where, delta=piece)
            done: Json = {"name": tool.name, "arguments": written} if tool.text is None else {"input": written}
            say(f"{kind}.done", **where, **done)
            say("response.output_item.done", output_index=index, item=item)
            index += 1
        whole = self.whole(call, reply, model)
        say(f"response.{whole['status']}", response=whole)
        return events

    @override
    def error(self, call: Call | None, failure: Failure) -> Json:
        return Chat().error(call, failure)

    @override
    def error_event(self, call: Call, failure: Failure, after: int) -> bytes:
        code = failure.kind or ("rate_limit_exceeded" if failure.status == 429 else "server_error")
        return _event("error", after, code=code, message=failure.message, param=None)

    @override
    def counted(self, call: Call) -> Json:
        return Chat().counted(call)

    @override
    def fields(self, call: Call | None) -> Mapping[str, str]:
        return Chat().fields(call)


def _task(entries: Sequence[Json]) -> str:
    """What the conversation is about: the message of another agent that it begins with, or its first user text."""
    for entry in entries:
        if _by_the_model(entry):
            break
        if entry.get("type") == "agent_message":
            parts = [part.get("encrypted_content") or part.get("text") for part in items(entry.get("content"))]
            return "\n".join(part for part in parts if isinstance(part, str))
    return next((text_of(i.get("content")) for i in entries if i.get("role") == "user"), "")


def _by_the_model(item: Json) -> bool:
    if "role" in item:
        return item.get("role") == "assistant"
    kind = item.get("type")
    return isinstance(kind, str) and kind not in ANSWERS and (kind.endswith("_call") or kind == "reasoning")


def _response(call: Call, model: str, status: str, output: Sequence[Json]) -> Json:
    return {
        "id": f"resp_{call.identity('response', length=48)}",
        "object": "response",
        "created_at": CREATED_S,
        "status": status,
        "background": False,
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "max_output_tokens": None,
        "model": model,
        "output": list(output),
        "parallel_tool_calls": True,
        "previous_response_id": None,
        "reasoning": {"effort": None, "summary": None},
        "service_tier": "default",
        "store": False,
        "temperature": None,
        "text": {"format": {"type": "text"}},
        "tool_choice": "auto",
        "tools": [],
        "top_p": None,
        "truncation": "disabled",
        "usage": None,
        "user": None,
        "metadata": {},
    }


def _message_id(call: Call) -> str:
    return f"msg_{call.identity('message', length=48)}"


def _part(text: str) -> Json:
    return {"type": "output_text", "annotations": [], "logprobs": [], "text": text}


def _message(call: Call, text: str | None, status: str) -> Json:
    content = [] if text is None else [_part(text)]
    return {"id": _message_id(call), "type": "message", "status": status, "role": "assistant", "content": content}


def _argument(tool: ToolCall) -> str:
    return arguments_text(tool.arguments) if tool.text is None else tool.text


def _called(call: Call, number: int, tool: ToolCall, argument: str, status: str) -> Json:
    """One call; `argument` is what was written of its argument so far."""
    prefix, kind, name = ("fc", "function_call", "arguments") if tool.text is None else ("ctc", "custom_tool_call", "input")
    return {
        "id": f"{prefix}_{call.identity('function', number, 48)}",
        "type": kind,
        "status": status,
        name: argument,
        "call_id": f"call_{call.identity('tool', number)}",
        "name": tool.name,
        **({"namespace": tool.namespace} if tool.namespace else {}),
    }


def _event(kind: str, number: int, **body: object) -> bytes:
    return f"event: {kind}\ndata: {compact({'type': kind, 'sequence_number': number, **body})}\n\n".encode()

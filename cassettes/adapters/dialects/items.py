"""The items of OpenAI Responses, which stand in requests and in answers alike."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from secondtake.cassettes.adapters.base import Json, Media, Opaque, Part, Reasoning, Role, Text, ToolResult, Turn
from secondtake.cassettes.adapters.draft import Block, BlockKind, call_from_text, call_from_value
from secondtake.cassettes.adapters.reading import canonical, digest, mapping, sequence, string

_ROLES = {"assistant": Role.ASSISTANT, "system": Role.SYSTEM, "developer": Role.SYSTEM, "tool": Role.TOOL}

_SERVER_CALLS = (
    "web_search_call", "file_search_call", "code_interpreter_call", "image_generation_call", "mcp_call", "mcp_list_tools",
    "tool_search_call", "program",
)  # fmt: skip
_LOCAL_CALLS = {"local_shell_call": "local_shell", "shell_call": "shell", "apply_patch_call": "apply_patch", "computer_call": "computer"}
_ARGUMENTS = ("action", "operation", "actions")


def is_server_side(kind: str) -> bool:
    """Whether an item of this type is work the provider did itself, unseen on the wire (A-14)."""
    return kind in _SERVER_CALLS


def item_turns(item: Mapping[str, Json]) -> Iterator[Turn]:
    """The turn one input item makes; neighbours are joined later."""
    kind = string(item.get("type"))
    match kind:
        case "" | "message" | "agent_message":
            yield Turn(_ROLES.get(string(item.get("role")), Role.USER), tuple(parts_of(item.get("content"))))
        case "additional_tools" | "item_reference":
            return
        case _ if kind.endswith("_output"):
            yield Turn(Role.TOOL, (result(item),))
        case "mcp_approval_response":
            yield Turn(Role.USER, (Opaque(kind),))
        case _:
            yield Turn(Role.ASSISTANT, (part(item),))


def part(item: Mapping[str, Json]) -> Part:
    """An item that is one part of an assistant's turn."""
    kind = string(item.get("type"))
    match kind:
        case "function_call":
            return call_from_text(string(item.get("call_id")), string(item.get("name")), string(item.get("arguments")))
        case "custom_tool_call":
            return call_from_text(string(item.get("call_id")), string(item.get("name")), string(item.get("input")), "text")
        case "reasoning":
            return Reasoning(reasoning_text(item), isinstance(item.get("encrypted_content"), str))
        case _ if kind in _LOCAL_CALLS:
            return call_from_value(string(item.get("call_id")) or string(item.get("id")), _LOCAL_CALLS[kind], local_arguments(item))
        case _ if is_server_side(kind):
            name = string(item.get("name")) or kind.removesuffix("_call")
            return Block(BlockKind.CALL, name, string(item.get("id")), server_side=True, pieces=[string(item.get("arguments"))]).part()
        case _:
            return Opaque(kind)


def local_arguments(item: Mapping[str, Json]) -> Json:
    """What a call to one of OpenAI's client-run tools asks for."""
    return next((item[key] for key in _ARGUMENTS if key in item), {})


def local_name(kind: str) -> str | None:
    """The tool's name for an item of one of OpenAI's client-run tools, else None."""
    return _LOCAL_CALLS.get(kind)


def result(item: Mapping[str, Json]) -> ToolResult:
    """A tool's output, a string or a list of parts; what is neither stands as canonical JSON."""
    output = item.get("output")
    if isinstance(output, str):
        text = output
    elif isinstance(output, list):
        texts = [_output_text(mapping(entry)) for entry in output]
        text = "".join(texts)
    else:
        made = canonical(output)
        text = made if isinstance(made, str) else ""
    name = string(item.get("type")).removesuffix("_call_output")
    local = name in ("local_shell", "shell", "apply_patch", "computer")
    return ToolResult(string(item.get("call_id")) or string(item.get("id")), name if local else "", text)


def _output_text(entry: Mapping[str, Json]) -> str:
    return string(entry.get("text")) or (string(entry.get("stdout")) + string(entry.get("stderr")))


def reasoning_text(item: Mapping[str, Json]) -> str:
    return "".join(string(mapping(entry).get("text")) for key in ("summary", "content") for entry in sequence(item.get(key)))


def parts_of(content: Json) -> Iterator[Part]:
    """The parts of a message's content."""
    if isinstance(content, str):
        yield Text(content)
    for entry in sequence(content):
        block = mapping(entry)
        kind = string(block.get("type"))
        match kind:
            case "input_text" | "output_text" | "text":
                yield Text(string(block.get("text")))
            case "refusal":
                yield Text(string(block.get("refusal")))
            case "input_image" | "input_file" | "input_audio":
                data = string(block.get("image_url")) or string(block.get("file_data"))
                data = data or string(mapping(block.get("input_audio")).get("data"))
                yield Media({"input_image": "image", "input_audio": "audio"}.get(kind, "document"), digest(data) if data else None)
            case _:
                yield Opaque(kind)

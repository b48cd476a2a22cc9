"""Responses against its documented shape."""

from __future__ import annotations

import json

from secondtake.harness.provider.script import Reply, ToolCall
from tests.harness.provider.streams import CALL, REPLY, WIRES, events


def test_responses_stream_is_numbered_and_ends_with_the_whole_answer() -> None:
    """Item by item, deltas between added and done, the whole response in the terminal event."""
    seen = events(WIRES["responses"], REPLY)
    assert [d["sequence_number"] for _, d in seen] == list(range(len(seen)))
    assert all(n == d["type"] for n, d in seen)
    assert [n for n, _ in seen[:2]] == ["response.created", "response.in_progress"]
    assert seen[0][1]["response"]["model"] == "model-1"
    name, last = seen[-1]
    assert name == "response.completed"
    assert last["response"] == json.loads(json.dumps(WIRES["responses"].whole(CALL, REPLY, "model-1")))
    done = [d["item"] for n, d in seen if n == "response.output_item.done"]
    assert done == last["response"]["output"]
    assert "".join(d["delta"] for n, d in seen if n == "response.output_text.delta") == REPLY.text
    for index in (1, 2):
        deltas = "".join(d["delta"] for n, d in seen if n == "response.function_call_arguments.delta" and d["output_index"] == index)
        assert deltas == last["response"]["output"][index]["arguments"]


def test_a_call_whose_argument_is_text_is_a_custom_tool_call() -> None:
    """AGENTS 3, Codex: patches, and the scripts of the lite models, are no JSON."""
    reply = Reply(tools=(ToolCall("exec", text='text(await tools.exec_command({cmd: "ls"}))', namespace="functions"), ToolCall("run")))
    seen = events(WIRES["responses"], reply)
    custom, function = seen[-1][1]["response"]["output"]
    assert (custom["type"], custom["name"], custom["namespace"], custom["input"]) == (
        "custom_tool_call", "exec", "functions", reply.tools[0].text,
    )  # fmt: skip
    assert (function["type"], function["arguments"]) == ("function_call", "{}")
    assert "namespace" not in function
    pieces = [d["delta"] for n, d in seen if n == "response.custom_tool_call_input.delta"]
    assert "".join(pieces) == next(d["input"] for n, d in seen if n == "response.custom_tool_call_input.done") == custom["input"]
    assert ToolCall("exec", text="ls").arguments == {"input": "ls"}  # in the formats that have none

"""What is particular to the dialect `lines`: read as its provider means it."""

from __future__ import annotations

import json

from secondtake.cassettes.adapters import Reasoning, Role, Stop, Text, Turn
from tests.cassettes.adapters.talk import ask, hear


def test_generate_thinking_and_a_cloud_model_are_read() -> None:
    """PROVIDERS A2: `remote_model` says who answered elsewhere."""
    lines = [
        {"model": "a", "thinking": "hm", "done": False},
        {"model": "a", "remote_model": "b", "response": "x", "done": True, "done_reason": "length"},
    ]
    answer = hear("ollama", b"\n".join(json.dumps(line).encode() for line in lines), "/api/generate")
    assert answer.turn.parts == (Reasoning("hm"), Text("x"))
    assert (answer.stop, [one.model for one in answer.served]) == (Stop.LENGTH, ["a", "b"])
    asked = ask("ollama", {"model": "a", "prompt": "p", "system": "s"}, "/api/generate")
    assert (asked.system, asked.turns, asked.stream) == (("s",), (Turn(Role.USER, (Text("p"),)),), True)

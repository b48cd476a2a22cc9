"""What a Bedrock `invoke` gives back."""

from __future__ import annotations

from tests.cassettes.adapters.talk import ask, hear


def test_a_vendor_of_which_nothing_is_known_is_said() -> None:
    """docs/adapters.md: the model is in the path all the same."""
    asked = ask("bedrock", {"inputText": "x", "textGenerationConfig": {}}, "/model/amazon.titan-x/invoke")
    assert (asked.model, [fault.kind for fault in asked.faults]) == ("amazon.titan-x", ["unknown-dialect"])
    answer = hear("bedrock", {"results": []}, "/model/amazon.titan-x/invoke")
    assert [fault.kind for fault in answer.faults] == ["unknown-dialect"]
    chat = hear("bedrock", {"choices": [{"message": {"content": "x"}, "finish_reason": "stop"}]}, "/model/x.y/invoke")
    assert (chat.text, chat.complete) == ("x", True)

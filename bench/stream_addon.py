"""For `mitmdump -s`: pass every answer on as it comes."""

from typing import Any


def responseheaders(flow: Any) -> None:
    """Called by mitmproxy when the head of an answer is there."""
    flow.response.stream = True

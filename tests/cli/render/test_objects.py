"""What --json prints."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from secondtake.cli.render.objects import JSON_VERSION, as_line


@given(st.text(), st.binary())
def test_any_text_and_bytes_make_one_line_of_plain_ascii(text: str, data: bytes) -> None:
    """C-14: recorded text in JSON cannot reach a terminal raw, and cannot forge a second line."""
    line = as_line({"text": text, "data": data})
    assert line.isascii()
    assert line.isprintable()
    read = json.loads(line)
    assert read["version"] == JSON_VERSION
    assert read["text"].encode("utf-8", "surrogatepass") == text.encode("utf-8", "surrogatepass")

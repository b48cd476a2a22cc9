"""Content without one layer of escapes, and the way back."""

import json
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from secondtake.cassettes.views import locate, unescaped, unquoted, views


def test_escapes_are_undone_and_ranges_come_back() -> None:
    """C4: detect on decoded views, map back to byte ranges."""
    content = b'{"k":"sk\\u002dant\\/x\\n"}'
    view = unescaped(content)
    assert view is not None
    assert view.content == b'{"k":"sk-ant/x\n"}'
    start = view.content.index(b"sk-ant/x")
    begin, end = view.locate(start, start + 8)
    assert content[begin:end] == b"sk\\u002dant\\/x"


def test_surrogate_pairs_are_one_character() -> None:
    """JSON of another writer (RFC 8259 section 7)."""
    view = unescaped(b"\\ud83d\\ude00!")
    assert view is not None
    assert view.content == "😀!".encode()


@pytest.mark.parametrize("layers", [1, 2, 3])
def test_a_hidden_letter_is_found_under_up_to_three_layers(layers: int) -> None:
    """C4: JSON inside JSON, as in the arguments of a tool call."""
    content = '"sk\\u002dant"'
    for _ in range(layers - 1):
        content = json.dumps({"arguments": content})
    assert any(b"sk-ant" in chain[-1].content for chain in views(content.encode()))


def test_ordinary_escapes_ask_for_no_view() -> None:
    """C-10: most bodies are full of \\n; undoing them costs and finds nothing."""
    assert list(views(b'{"a":"line\\nline \\"q\\" \\u001b[0m"}')) == []


@given(
    st.text(st.characters(exclude_categories=["Cs"]), max_size=20),
    st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20),
)
def test_a_range_in_a_view_maps_to_the_bytes_that_wrote_it(before: str, secret: str) -> None:
    """The range found is the range replaced, no byte more."""
    head, body = json.dumps(before)[1:-1].encode(), json.dumps(secret)[1:-1].encode()
    view = unescaped(head + body + b"!")
    if view is None:
        return
    start = len(before.encode())
    assert view.locate(start, start + len(secret.encode())) == (len(head), len(head) + len(body))


@given(st.binary(min_size=1, max_size=40))
def test_percent_escapes_are_undone(value: bytes) -> None:
    """URL-encoded values."""
    content = b"u=" + quote(value, safe="").encode()
    view = unquoted(content)
    assert (view.content if view else content) == b"u=" + value


def test_a_chain_of_views_maps_through_all_layers() -> None:
    """A URL in JSON in JSON."""
    content = b"\\\\u0025\\\\u0032D"
    chains = list(views(b"\\u0041" + content))
    last = [chain for chain in chains if b"A-" in chain[-1].content]
    assert last
    assert locate(last[0], 1, 2) == (6, 6 + len(content))

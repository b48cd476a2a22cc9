"""JSON texts out of a stream: an array's elements, or lines."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from secondtake.cassettes import json_stream
from secondtake.cassettes.json_stream import ArrayReader, Element, LinesReader
from secondtake.cassettes.sse import Broken, Ended, NeedData


def drain(reader: ArrayReader | LinesReader, content: bytes, step: int) -> list[Element | Broken]:
    out: list[Element | Broken] = []
    pieces = [content[i : i + step] for i in range(0, len(content), step)]
    for piece in [*pieces, b""]:
        reader.receive(piece)
        while not isinstance(event := reader.next_event(), NeedData | Ended):
            out.append(event)
            if isinstance(event, Broken):
                return out
    return out


json_objects = st.dictionaries(
    st.text(max_size=5), st.recursive(st.text(max_size=8) | st.integers(), lambda x: st.lists(x, max_size=3)), max_size=3
)


@given(st.lists(json_objects, max_size=5), st.integers(1, 11), st.sampled_from([None, 1]))
def test_the_elements_of_an_array_come_out_whole_however_it_is_cut(values: list[object], step: int, indent: int | None) -> None:
    """A-08: brackets, quotes and backslashes inside strings included."""
    reader = ArrayReader()
    events = drain(reader, json.dumps(values, indent=indent, ensure_ascii=False).encode(), step)
    assert [json.loads(event.data) for event in events if isinstance(event, Element)] == values
    assert reader.closed


@given(st.lists(json_objects, max_size=5), st.integers(1, 11))
def test_lines_come_out_whole_however_they_are_cut(values: list[object], step: int) -> None:
    """A-08."""
    content = b"\r\n\n".join(json.dumps(value).encode() for value in values)
    events = drain(LinesReader(), content, step)
    assert [json.loads(event.data) for event in events if isinstance(event, Element)] == values


@pytest.mark.parametrize(("content", "elements"), [(b'[{"a":1},{"b', 1), (b'[{"a":1}', 1), (b"[", 0), (b'[{"a\\', 0), (b"", 0)])
def test_an_array_that_is_cut_is_not_closed(content: bytes, elements: int) -> None:
    """A-09."""
    reader = ArrayReader()
    events = drain(reader, content, 3)
    assert len([event for event in events if isinstance(event, Element) and not event.cut]) == elements
    assert not reader.closed


@pytest.mark.parametrize("content", [b"{}", b"[1]", b"[[]]", b"x", b'["a"]'])
def test_what_is_no_array_of_objects_is_a_fault(content: bytes) -> None:
    """A-08."""
    events = drain(ArrayReader(), content, 2)
    assert [event.kind for event in events if isinstance(event, Broken)] == ["not-json"]


def test_an_element_or_line_over_the_limit_breaks_the_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    """B-11."""
    monkeypatch.setattr(json_stream, "SSE_EVENT_BYTES", 32)
    for reader in (ArrayReader(), LinesReader()):
        (broken,) = drain(reader, b'[{"a":"' + b"x" * 64, 8)
        assert isinstance(broken, Broken)
        assert broken.kind == "too-large"

"""Programs with labels."""

from __future__ import annotations

import struct

import pytest

from secondtake.harness.seal.bpf import IF_EQUAL, LOAD, RETURN, Line, assemble


def test_a_jump_counts_the_instructions_between() -> None:
    """Documentation/networking/filter.rst: offsets are relative to the next instruction; labels take no room."""
    program = assemble([(LOAD, 4), (IF_EQUAL, 7, "far"), "near", (RETURN, 0), "far", (RETURN, 1)])
    assert [struct.unpack_from("=HBBI", program, at) for at in range(0, len(program), 8)] == [
        (LOAD, 0, 0, 4), (IF_EQUAL, 1, 0, 7), (RETURN, 0, 0, 0), (RETURN, 0, 0, 1),
    ]  # fmt: skip


@pytest.mark.parametrize("lines", [[(IF_EQUAL, 0, "nowhere")], ["up", (IF_EQUAL, 0, "up")]])
def test_a_jump_upwards_or_to_nowhere_is_refused(lines: list[Line]) -> None:
    """The kernel would refuse it, less clearly."""
    with pytest.raises((KeyError, struct.error)):
        assemble(lines)

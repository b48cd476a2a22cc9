"""Classic BPF programs, written with labels. Standard library only, loaded before the agent.

The instruction set is that of the kernel's Documentation/networking/filter.rst.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

LOAD, LOAD_HALF, LOAD_BYTE = 0x20, 0x28, 0x30
LOAD_HALF_AT_X, LOAD_BYTE_AT_X = 0x48, 0x50
HEADER_LENGTH_TO_X = 0xB1
AND, SHIFT_RIGHT = 0x54, 0x74
IF_EQUAL, IF_AT_LEAST = 0x15, 0x35
RETURN = 0x06

type Line = str | tuple[int, int] | tuple[int, int, str]
"""A label, an instruction with its number, or a jump to a label that stands further down; where it does not hold, the next line follows."""


def assemble(lines: Sequence[Line]) -> bytes:
    """Return the program as the kernel takes it: eight bytes an instruction.

    Raises:
        KeyError: there is no such label.
        struct.error: it is more than 255 instructions away, or stands further up.
    """
    at: dict[str, int] = {}
    count = 0
    for line in lines:
        if isinstance(line, str):
            at[line] = count
        else:
            count += 1
    program, here = b"", 0
    for line in lines:
        if isinstance(line, str):
            continue
        jump = at[line[2]] - here - 1 if len(line) == 3 else 0
        program += struct.pack("=HBBI", line[0], jump, 0, line[1])
        here += 1
    return program

"""`application/vnd.amazon.eventstream` from bytes, as they come: prelude, headers, payload, two checksums. Does no I/O.

A message is 4 bytes total length, 4 bytes header length, CRC-32 of those eight, the headers, the payload, CRC-32 of all
before it; numbers are big-endian (Smithy, "Amazon Event Stream Specification"). Lengths are bounded before anything is
kept; the bounds are those botocore enforces.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Mapping
from dataclasses import dataclass

from secondtake.cassettes.limits import EVENTSTREAM_HEADER_BYTES, EVENTSTREAM_PAYLOAD_BYTES
from secondtake.cassettes.sse import Broken, Ended, NeedData

_PRELUDE = struct.Struct(">III")
_CRC = struct.Struct(">I")
_OVERHEAD = _PRELUDE.size + _CRC.size
_FIXED = {0: 0, 1: 0, 2: 1, 3: 2, 4: 4, 5: 8, 8: 8, 9: 16}
"""Bytes of a header value by its type; 6 (bytes) and 7 (string) carry their length."""


@dataclass(frozen=True, slots=True)
class Message:
    """One message. `headers` holds string headers only; those of other types are read past, no reader here needs them."""

    headers: Mapping[str, str]
    payload: bytes


class EventStreamReader:
    """Reads one stream; the same manners as `SSEReader`."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._begin = 0
        self._ended = False
        self._broken: Broken | None = None

    def receive(self, data: bytes) -> None:
        """Take the next bytes; b"" says that the stream has ended."""
        if self._ended or self._broken is not None:
            return
        if data:
            self._buffer += data
        else:
            self._ended = True

    def next_event(self) -> Message | NeedData | Ended | Broken:
        """Return the next message, or why there is none."""
        if self._broken is not None:
            return self._broken
        have = len(self._buffer) - self._begin
        if have < _PRELUDE.size:
            return self._short(have)
        total, header_bytes, check = _PRELUDE.unpack_from(self._buffer, self._begin)
        if zlib.crc32(self._part(0, 8)) != check:
            return self._break_off("checksum", "the prelude's checksum does not match")
        payload_bytes = total - header_bytes - _OVERHEAD
        if payload_bytes < 0:
            return self._break_off("framing", f"a message of {total} bytes cannot hold {header_bytes} bytes of headers")
        if header_bytes > EVENTSTREAM_HEADER_BYTES or payload_bytes > EVENTSTREAM_PAYLOAD_BYTES:
            return self._break_off("too-large", f"a message with {header_bytes} bytes of headers and {payload_bytes} of payload")
        if have < total:
            return self._short(have)
        return self._message(total, header_bytes)

    def _message(self, total: int, header_bytes: int) -> Message | Broken:
        (check,) = _CRC.unpack_from(self._buffer, self._begin + total - _CRC.size)
        if zlib.crc32(self._part(0, total - _CRC.size)) != check:
            return self._break_off("checksum", "the message's checksum does not match")
        start = _PRELUDE.size
        headers = _headers(self._part(start, start + header_bytes))
        if headers is None:
            return self._break_off("framing", "the headers of a message cannot be read")
        payload = self._part(start + header_bytes, total - _CRC.size)
        self._begin += total
        if self._begin > 64 * 1024:
            del self._buffer[: self._begin]
            self._begin = 0
        return Message(headers, payload)

    def _part(self, start: int, stop: int) -> bytes:
        return bytes(self._buffer[self._begin + start : self._begin + stop])

    def _short(self, have: int) -> NeedData | Ended | Broken:
        if not self._ended:
            return NeedData()
        if have:
            return self._break_off("framing", f"the stream ended {have} bytes into a message")
        return Ended()

    def _break_off(self, kind: str, message: str) -> Broken:
        self._broken = Broken(kind, message)
        self._buffer.clear()
        return self._broken


def encode(headers: Mapping[str, str], payload: bytes) -> bytes:
    """Make one message with string headers. For refusals, the scripted provider and tests; mirrors the reader."""
    block = b"".join(
        bytes([len(name.encode())]) + name.encode() + b"\x07" + struct.pack(">H", len(value.encode())) + value.encode()
        for name, value in headers.items()
    )
    lengths = struct.pack(">II", len(block) + len(payload) + _OVERHEAD, len(block))
    message = lengths + _CRC.pack(zlib.crc32(lengths)) + block + payload
    return message + _CRC.pack(zlib.crc32(message))


def _headers(block: bytes) -> dict[str, str] | None:
    headers: dict[str, str] = {}
    at = 0
    while at < len(block):
        name_end = at + 1 + block[at]
        if name_end >= len(block):
            return None
        name = block[at + 1 : name_end].decode("utf-8", "replace")
        kind = block[name_end]
        at = name_end + 1
        if kind in (6, 7):
            if at + 2 > len(block):
                return None
            size = int.from_bytes(block[at : at + 2], "big")
            at += 2
        elif kind in _FIXED:
            size = _FIXED[kind]
        else:
            return None
        if at + size > len(block):
            return None
        if kind == 7:
            headers[name] = block[at : at + size].decode("utf-8", "replace")
        at += size
    return headers

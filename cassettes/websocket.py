"""WebSocket messages from bytes and to bytes (RFC 6455). Does no I/O.

Reading is wsproto's: masks, lengths, fragments with control frames between them, UTF-8, close codes. What is added are bounds, whole
messages, and the exact payload. No extension is understood: none is ever agreed on through us (see `without_extensions`).
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum

from wsproto.frame_protocol import CloseReason, FrameProtocol, ParseFailed
from wsproto.frame_protocol import Opcode as WireOpcode

from secondtake.cassettes import limits
from secondtake.cassettes.errors import BadInput
from secondtake.cassettes.exchange import Fields

NO_STATUS = 1005
POLICY_VIOLATION = 1008
"""Close codes of RFC 6455 7.4.1."""

REASON_BYTES = 123
"""A close frame's reason: what a control frame holds, without the code."""

_EXTENSIONS = b"sec-websocket-extensions"
_KEY = b"sec-websocket-key"
_ACCEPT = b"sec-websocket-accept"
_GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"


class Opcode(IntEnum):
    """What a message is. A continuation is never seen: fragments are joined."""

    TEXT = 1
    BINARY = 2
    CLOSE = 8
    PING = 9
    PONG = 10

    @property
    def is_data(self) -> bool:
        return self in (Opcode.TEXT, Opcode.BINARY)


class Unreadable(BadInput):
    """The bytes are not WebSocket frames, or are too many for one message. `code` is what a close frame would say."""

    def __init__(self, message: str, code: int) -> None:
        super().__init__(message)
        self.code = code


@dataclass(frozen=True, slots=True)
class Message:
    """One message, or one control frame. `data` is its payload as on the wire, unmasked; a close's code is its first two bytes."""

    opcode: Opcode
    data: bytes

    @property
    def code(self) -> int:
        """The code of a close; 1005 where it gives none."""
        return int.from_bytes(self.data[:2], "big") if len(self.data) >= 2 else NO_STATUS

    @property
    def reason(self) -> str:
        """The reason of a close."""
        return self.data[2:].decode("utf-8", "replace")


def close(code: int, reason: str = "") -> Message:
    """A close frame; the reason is cut to what fits."""
    if code == NO_STATUS:
        return Message(Opcode.CLOSE, b"")
    text = reason.encode("utf-8", "replace")[:REASON_BYTES].decode("utf-8", "ignore")
    return Message(Opcode.CLOSE, code.to_bytes(2, "big") + text.encode())


class Reader:
    """One direction of a socket. `masked`: these are a client's frames. Nothing is read after a close frame, or what is none."""

    def __init__(self, *, masked: bool, most_bytes: int = limits.SOCKET_MESSAGE_BYTES) -> None:
        self._frames = FrameProtocol(client=not masked, extensions=[])
        self._most_bytes = most_bytes
        self._parts: list[bytes] = []
        self._size = 0
        self._opcode: WireOpcode | None = None
        self.closed = False

    @property
    def unfinished(self) -> Message | None:
        """The part that has come of a message that has not ended."""
        return Message(Opcode(self._opcode), b"".join(self._parts)) if self._opcode is not None and self._size else None

    def feed(self, data: bytes) -> Iterator[Message]:
        """Yield the messages that are whole now.

        Raises:
            Unreadable: from here on nothing of this direction can be read.
        """
        if self.closed:
            return
        self._frames.receive_bytes(data)
        try:
            for frame in self._frames.received_frames():
                match frame.opcode:
                    case WireOpcode.CLOSE:
                        assert isinstance(frame.payload, tuple)
                        self.closed = True
                        yield close(*frame.payload)
                        return
                    case WireOpcode.PING | WireOpcode.PONG:
                        yield Message(Opcode(frame.opcode), _octets(frame.payload))
                    case _:
                        self._take(frame.opcode, _octets(frame.payload))
                        if frame.message_finished:
                            whole, self._parts, self._size, self._opcode = b"".join(self._parts), [], 0, None
                            yield Message(Opcode(frame.opcode), whole)
        except ParseFailed as error:
            self.closed = True
            raise Unreadable(str(error), int(error.code)) from None

    def _take(self, opcode: WireOpcode, part: bytes) -> None:
        self._opcode = opcode
        self._size += len(part)
        if self._size > self._most_bytes:
            self._parts, self._size, self._opcode, self.closed = [], 0, None, True
            raise Unreadable(f"a message of more than {self._most_bytes} bytes", int(CloseReason.MESSAGE_TOO_BIG))
        if part:
            self._parts.append(part)


def _octets(payload: bytes | str | tuple[int, str]) -> bytes:
    assert not isinstance(payload, tuple)
    return payload.encode() if isinstance(payload, str) else bytes(payload)


def frame(message: Message, *, mask: bytes | None = None) -> bytes:
    """One message as one frame. `mask`: four random bytes, where a client sends it."""
    size = len(message.data)
    bit = 0x80 if mask is not None else 0
    head = bytes((0x80 | message.opcode,))
    if size <= 125:
        head += bytes((bit | size,))
    elif size <= 0xFFFF:
        head += bytes((bit | 126,)) + size.to_bytes(2, "big")
    else:
        head += bytes((bit | 127,)) + size.to_bytes(8, "big")
    if mask is None:
        return head + message.data
    return head + mask + _masked(message.data, mask)


def _masked(data: bytes, mask: bytes) -> bytes:
    size = len(data)
    pad = (mask * (size // 4 + 1))[:size]
    return (int.from_bytes(data, "big") ^ int.from_bytes(pad, "big")).to_bytes(size, "big")


# --- the handshake


def without_extensions(fields: Fields) -> Fields:
    """An upgrade that offers no extension: what is agreed on is compressed with a memory of all before it, and could not be kept apart."""
    return tuple(field for field in fields if field[0].lower() != _EXTENSIONS)


def accepted(answer: Fields, request: Fields) -> Fields:
    """The fields of a recorded 101 for a client with a key of its own (RFC 6455 4.2.2)."""
    key = next((value for name, value in request if name.lower() == _KEY), b"").strip()
    proof = base64.b64encode(hashlib.sha1(key + _GUID, usedforsecurity=False).digest())
    return tuple((name, proof if name.lower() == _ACCEPT else value) for name, value in without_extensions(answer))

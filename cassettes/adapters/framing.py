"""From body bytes to the events a dialect assembles: one JSON text, SSE, an array in pieces, AWS event stream, JSON lines."""

from __future__ import annotations

import base64
import binascii
from enum import StrEnum
from typing import Protocol

from secondtake.cassettes.adapters.base import Fault, Json, ModelAnswer
from secondtake.cassettes.adapters.draft import Draft
from secondtake.cassettes.adapters.errors import provider_error
from secondtake.cassettes.adapters.reading import field_value, loads, mapping
from secondtake.cassettes.eventstream import EventStreamReader, Message
from secondtake.cassettes.exchange import Fields
from secondtake.cassettes.json_stream import ArrayReader, Element, LinesReader
from secondtake.cassettes.limits import ANSWER_BYTES
from secondtake.cassettes.sse import Broken, Ended, NeedData, SSEEvent, SSEReader


class Framing(StrEnum):
    """How a body holds its JSON. UNKNOWN is settled by the first byte: what gateways write as content type is no guide."""

    UNKNOWN = "unknown"
    WHOLE = "whole"
    SSE = "sse"
    ARRAY = "array"
    EVENTSTREAM = "eventstream"
    LINES = "lines"


class Assembly(Protocol):
    """One answer in one dialect. Takes any JSON; what it cannot use is a fault in the draft."""

    draft: Draft

    def whole(self, body: Json) -> None:
        """Read a whole answer."""
        ...

    def event(self, name: str, data: Json) -> None:
        """Read one event of a stream."""
        ...

    def end(self) -> None:
        """The body has ended."""
        ...


def framing(fields: Fields) -> Framing:
    """How a body with these fields is framed, as far as its head can be trusted."""
    kind = (field_value(fields, b"content-type") or b"").lower()
    if b"vnd.amazon.eventstream" in kind:
        return Framing.EVENTSTREAM
    if b"ndjson" in kind or b"jsonl" in kind:
        return Framing.LINES
    return Framing.UNKNOWN


class BodyReader:
    """An `AnswerReader` for one dialect. Bounded: after ANSWER_BYTES it reads no further and says so.

    `error_name` is the name of an error answer where the head has it and the body does not.
    """

    def __init__(self, adapter: str, assembly: Assembly, framing: Framing, status: int, *, error_name: str = "") -> None:
        self._adapter = adapter
        self._error_name = error_name
        self._assembly = assembly
        self._framing = framing
        self._status = status
        self._taken = 0
        self._ended = False
        self._over = False
        self._first = bytearray()
        self._reader: SSEReader | EventStreamReader | ArrayReader | LinesReader | None = None
        if framing not in (Framing.UNKNOWN, Framing.WHOLE):
            self._reader = _reader(framing)

    @property
    def complete(self) -> bool:
        return self._assembly.draft.complete

    def receive(self, data: bytes) -> None:
        if self._ended:
            return
        self._taken += len(data)
        if self._taken > ANSWER_BYTES and not self._over:
            self._over = True
            self._assembly.draft.fault(Fault("too-large", f"an answer of more than {ANSWER_BYTES} bytes is read no further"))
        if data and not self._over:
            self._feed(data)
        if not data:
            self._ended = True
            self._finish()

    def answer(self) -> ModelAnswer:
        return self._assembly.draft.answer(self._adapter)

    def _feed(self, data: bytes) -> None:
        if self._framing is Framing.UNKNOWN:
            self._first += data
            settled = _settle(bytes(self._first[:64]))
            if settled is None:
                return
            self._framing = settled
            data, self._first = bytes(self._first), bytearray()
            if settled is not Framing.WHOLE:
                self._reader = _reader(settled)
        if self._reader is None:
            self._first += data
            return
        self._reader.receive(data)
        self._drain()

    def _finish(self) -> None:
        if self._reader is not None:
            self._reader.receive(b"")
            self._drain()
        elif self._over:
            pass
        elif self._first.strip() or self._status < 300:
            self._whole(bytes(self._first))
        elif self._status >= 400:
            self._assembly.draft.error = provider_error(None, self._status, type_name=self._error_name)
        self._first.clear()
        self._assembly.end()

    def _whole(self, content: bytes) -> None:
        value = loads(content)
        draft = self._assembly.draft
        if self._status >= 400:
            draft.error = provider_error(None if isinstance(value, Fault) else value, self._status, type_name=self._error_name)
        elif isinstance(value, Fault):
            draft.fault(value)
        elif "error" in mapping(value) and mapping(value)["error"] is not None:
            draft.error = provider_error(value, self._status)
            self._assembly.whole(value)
        else:
            self._assembly.whole(value)

    def _drain(self) -> None:
        assert self._reader is not None
        draft = self._assembly.draft
        while True:
            event = self._reader.next_event()
            match event:
                case SSEEvent():
                    self._sse(event)
                case Message():
                    self._message(event)
                case Element():
                    self._json("", event.data, cut=event.cut)
                case Broken():
                    if not draft.faults or draft.faults[-1].message != event.message:
                        draft.fault(Fault(event.kind, event.message))
                    return
                case NeedData():
                    return
                case Ended():
                    if isinstance(self._reader, ArrayReader) and not self._reader.closed:
                        draft.complete = False
                    return

    def _sse(self, event: SSEEvent) -> None:
        if event.data.strip() == b"[DONE]":
            self._assembly.event("[DONE]", None)
        else:
            self._json(event.name, event.data, cut=event.cut)

    def _json(self, name: str, data: bytes, *, cut: bool = False) -> None:
        value = loads(data)
        draft = self._assembly.draft
        if isinstance(value, Fault):
            draft.fault(Fault("framing", "the stream ended inside an event") if cut else value)
            return
        if self._status >= 400:
            draft.error = provider_error(value, self._status)
            return
        failed = mapping(value).get("error")
        if failed is not None and name in ("", "message", "error") and "response" not in mapping(value):
            draft.error = provider_error(value, self._status, in_stream=True)
        self._assembly.event(name, value)

    def _message(self, message: Message) -> None:
        kind = message.headers.get(":message-type", "event")
        draft = self._assembly.draft
        if kind != "event":
            name = message.headers.get(":exception-type") or message.headers.get(":error-code") or kind
            value = loads(message.payload) if message.payload else None
            text = message.headers.get(":error-message")
            body: Json = {"type": name, "message": text} if text else None if isinstance(value, Fault) else value
            draft.error = provider_error(body, self._status, in_stream=True, type_name=name)
            return
        name = message.headers.get(":event-type", "")
        value = loads(message.payload) if message.payload else {}
        if isinstance(value, Fault):
            draft.fault(value)
        elif name == "chunk":
            self._chunk(value)
        else:
            self._assembly.event(name, value)

    def _chunk(self, value: Json) -> None:
        """`invoke-with-response-stream` wraps each event of the vendor's own stream in base64."""
        wrapped = mapping(value).get("bytes")
        try:
            data = base64.b64decode(wrapped if isinstance(wrapped, str) else "", validate=True)
        except (binascii.Error, ValueError):
            self._assembly.draft.fault(Fault("framing", "a chunk is not base64"))
            return
        self._json("", data)


def _settle(first: bytes) -> Framing | None:
    text = first.removeprefix(b"\xef\xbb\xbf").lstrip()
    if not text or b"\xef\xbb\xbf".startswith(first):
        return None
    if text[:1] == b"{":
        return Framing.WHOLE
    if text[:1] == b"[":
        return Framing.ARRAY
    return Framing.SSE if text[:1] in b":deir" else Framing.WHOLE


def _reader(framing: Framing) -> SSEReader | EventStreamReader | ArrayReader | LinesReader:
    match framing:
        case Framing.SSE:
            return SSEReader()
        case Framing.EVENTSTREAM:
            return EventStreamReader()
        case Framing.ARRAY:
            return ArrayReader()
        case _:
            return LinesReader()

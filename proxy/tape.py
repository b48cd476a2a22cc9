"""A `Recording` with a clock and a writer: what a stream tells what it sees, and waits for when it commits."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from secondtake.cassettes import limits
from secondtake.cassettes.content import Opaque, codings, decode
from secondtake.cassettes.errors import NotStored, TooLarge
from secondtake.cassettes.exchange import Answer, Channel, Ending, Fields, Interim, Request
from secondtake.cassettes.recorder import Recording
from secondtake.cassettes.records import End, Record
from secondtake.proxy.commands import Await

if TYPE_CHECKING:
    from secondtake.proxy.stream import Commands


class Tape:
    """One exchange being written."""

    def __init__(
        self,
        recording: Recording,
        request: Request,
        channel: Channel,
        *,
        now_us: Callable[[], int],
        started_us: int,
        write: Callable[[tuple[Record, ...]], None],
        commit: Callable[[End], asyncio.Future[NotStored | None]],
        classify: Callable[[Request, bytes | None], tuple[Channel, str | None]],
        done: Callable[[Tape, Ending], None],
    ) -> None:
        self._recording = recording
        self._request = request
        self._channel = channel
        self._now_us = now_us
        self._started_us = started_us
        self._write = write
        self._commit = commit
        self._classify = classify
        self._body: bytearray | None = bytearray() if request.method == "POST" else None
        """What tells a POST's channel: its body, up to a bound, until the request is whole."""
        self._done = done
        self.ended: Ending | None = None

    @property
    def offset_us(self) -> int:
        """Now, since the exchange began."""
        return self._now_us() - self._started_us

    def head(self) -> None:
        """The request's head."""
        self._keep(self._recording.request_head(self._request, self._channel))

    def request_piece(self, data: bytes) -> None:
        if self._body is not None:
            self._body += data
            if len(self._body) > limits.BODY_IN_MEMORY_BYTES:
                self._body = None
        self._keep(self._recording.request_piece(data, self.offset_us))

    def request_end(self, trailers: Fields = ()) -> None:
        """The request is whole: its body may say more of its channel than its head did."""
        if self._body is not None:
            channel, adapter = self._classify(self._request, _plain(bytes(self._body), self._request.fields))
            self._body = None
            if adapter is not None or channel is not self._channel:
                self._recording.reclassify(channel, adapter)
        self._keep(self._recording.request_end(trailers, self.offset_us))

    def interim(self, interim: Interim) -> None:
        self._keep(self._recording.interim(interim))

    def response_head(self, answer: Answer) -> None:
        self._keep(self._recording.response_head(answer))

    def response_piece(self, data: bytes) -> None:
        self._keep(self._recording.response_piece(data, self.offset_us))

    def response_trailers(self, trailers: Fields) -> None:
        self._keep(self._recording.response_trailers(trailers))

    def forwarded(self, rule: str) -> None:
        self._recording.forwarded(rule)

    def note(self, text: str) -> None:
        self._recording.note(text)

    def end(self, how: Ending, *, note: str | None = None) -> Commands:
        """End and commit; goes on when the exchange is durable, or when the recording has failed."""
        end = self._finish(how, note)
        if end is not None:
            yield Await(lambda: self._commit(end))

    def cut(self, how: Ending, note: str) -> asyncio.Future[NotStored | None] | None:
        """End without a stream that could wait: its connection is gone already."""
        end = self._finish(how, note)
        return self._commit(end) if end is not None else None

    def _finish(self, how: Ending, note: str | None) -> End | None:
        if self.ended is not None:
            return None
        self.ended = how
        if note:
            self._recording.note(note)
        *before, last = self._recording.end(how, self.offset_us)
        assert isinstance(last, End)
        self._keep(tuple(before))
        self._done(self, how)
        return last

    def _keep(self, records: tuple[Record, ...]) -> None:
        if records:
            self._write(records)


def _plain(content: bytes, fields: Fields) -> bytes | None:
    """A body without its content codings, None where they cannot be undone within bounds."""
    names = codings(fields)
    if not names:
        return content
    try:
        found = decode(content, names)
    except TooLarge:
        return None
    return None if isinstance(found, Opaque) else found

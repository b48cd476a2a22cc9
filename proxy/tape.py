"""A `Recording` with a clock and a writer: what a stream tells what it sees, and waits for when it commits."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from secondtake.cassettes import limits
from secondtake.cassettes.channels import classify
from secondtake.cassettes.content import plain
from secondtake.cassettes.errors import NotStored
from secondtake.cassettes.exchange import Answer, Answered, Channel, Ending, Fields, Interim, Redaction, Request
from secondtake.cassettes.match import request_keys
from secondtake.cassettes.mcp_streams import STOPPED
from secondtake.cassettes.normalise import NO_ALIASES, Aliases
from secondtake.cassettes.recorder import Recording
from secondtake.cassettes.records import End, Record
from secondtake.cassettes.redact import Redactor
from secondtake.cassettes.writer import Writer
from secondtake.proxy.commands import Await
from secondtake.proxy.outcome import Outcome

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
        self.seq = recording.seq
        self.continued = False
        """The client was given leave to send what it asked leave for."""

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
            channel, adapter = self._classify(self._request, plain(bytes(self._body), self._request.fields))
            self._body = None
            if adapter is not None or channel is not self._channel:
                self._recording.reclassify(channel, adapter)
        self._keep(self._recording.request_end(trailers, self.offset_us))

    def collected(self, content: bytes, adapter: str | None = None, *, whole: bool = True) -> None:
        """The request at once, where it was read before it was decided about: all of it, unless not `whole`."""
        if content:
            self.request_piece(content)
        if whole:
            self.request_end()
        else:
            self.partial()
        if adapter is not None:
            self._recording.reclassify(Channel.MODEL, adapter)

    def interim(self, interim: Interim) -> None:
        self.continued = self.continued or interim.status == 100
        self._keep(self._recording.interim(interim))

    def response_head(self, answer: Answer) -> None:
        self._keep(self._recording.response_head(answer))

    def response_piece(self, data: bytes, offset_us: int | None = None) -> None:
        """`offset_us` is given where the piece is played, and its recorded moment is what is kept."""
        self._keep(self._recording.response_piece(data, self.offset_us if offset_us is None else offset_us))

    def response_trailers(self, trailers: Fields) -> None:
        self._keep(self._recording.response_trailers(trailers))

    def answered(self, how: Answered) -> None:
        """How it was answered, where that is not live."""
        self._recording.answered(how)

    def detail(self, name: str, value: object) -> None:
        """A value for `Exchange.details`; nothing of the wire's bytes."""
        self._recording.detail(name, value)

    def redacted(self, redactions: tuple[Redaction, ...]) -> None:
        """What was hidden already in the piece that comes next."""
        self._recording.redacted(redactions)

    def reads_as(self, adapter: str) -> None:
        """The wire format of a model's socket, known from what is said on it."""
        self._recording.reclassify(Channel.MODEL, adapter)

    def partial(self) -> None:
        """No more of the request will come: it was answered before it was whole."""
        self._recording.partial()

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


BACKLOG_BYTES = 64 * 1024 * 1024
"""With more than this queued for the disk, nothing is read until the writer has caught up."""


class Tapes:
    """Every exchange of one recording, and what is still open of them."""

    def __init__(
        self, writer: Writer, redactor: Redactor, now_us: Callable[[], int], outcome: Outcome, aliases: Aliases = NO_ALIASES
    ) -> None:
        self._writer = writer
        self._redactor = redactor
        self._now_us = now_us
        self._outcome = outcome
        self._keys = partial(request_keys, aliases=aliases)
        self._sequence = 0
        self._open: set[Tape] = set()
        self._idle = asyncio.Event()

    def begin(self, request: Request, channel: Channel, beside: set[Tape]) -> Tape:
        """Begin to write one exchange. It stands in `beside`, the set of its connection, until it has ended."""
        self._sequence += 1
        started = self._now_us()

        def done(tape: Tape, how: Ending) -> None:
            beside.discard(tape)
            self._open.discard(tape)
            if not self._open:
                self._idle.set()
            self._outcome.endings[how] += 1

        tape = Tape(
            Recording(self._sequence, started, self._redactor, keys=self._keys),
            request,
            channel,
            now_us=self._now_us,
            started_us=started,
            write=self._write,
            commit=self._commit,
            classify=classify,
            done=done,
        )
        tape.head()
        beside.add(tape)
        self._open.add(tape)
        return tape

    async def room(self) -> None:
        """Wait while the writer is far behind: sockets are not read meanwhile, so that what is queued for the disk is bounded."""
        writer = self._writer
        if writer.backlog_bytes <= BACKLOG_BYTES:
            return
        while writer.backlog_bytes > BACKLOG_BYTES // 2 and self._outcome.failed is None:  # noqa: ASYNC110 - a thread empties it
            await asyncio.sleep(0.005)

    async def drained(self, grace_s: float) -> None:
        """Let what is being recorded end by itself for so long, then end it."""
        if self._open:
            self._idle.clear()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._idle.wait(), grace_s)
        waiting = [future for tape in list(self._open) if (future := tape.cut(Ending.RESET, STOPPED)) is not None]
        if waiting:
            await asyncio.gather(*waiting)

    def _write(self, records: tuple[Record, ...]) -> None:
        if self._outcome.failed is None:
            self._writer.write(records)

    def _commit(self, end: End) -> asyncio.Future[NotStored | None]:
        """A future that is done when the exchange is durable, or cannot be any more: the agent's traffic goes on."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[NotStored | None] = loop.create_future()

        def settle(error: NotStored | None) -> None:
            if error is not None and self._outcome.failed is None:
                self._outcome.failed = error
            if not future.done():
                future.set_result(error)

        def done(error: NotStored | None) -> None:
            loop.call_soon_threadsafe(settle, error)

        self._writer.commit(end, done)
        return future

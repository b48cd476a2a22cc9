"""What a recorded model asks the agent to do, read from the cassette: the reason why a replay is not run just anywhere."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from secondtake.cassettes import adapters
from secondtake.cassettes.content import Opaque, codings, decode
from secondtake.cassettes.errors import RecordedError, TooLarge
from secondtake.cassettes.events import contents
from secondtake.cassettes.exchange import Body, Channel, Exchange, Fields
from secondtake.cassettes.frames import listed
from secondtake.cassettes.lanes import calls
from secondtake.cassettes.limits import BODY_IN_MEMORY_BYTES

if TYPE_CHECKING:
    from secondtake.cassettes.adapters import ModelAnswer, ModelRequest
    from secondtake.cassettes.memory import Recorded

UNREADABLE = "(a model answer that cannot be read; it may call tools)"


@dataclass(frozen=True, slots=True)
class Asked:
    """One tool call in a recorded answer. `name` is `UNREADABLE` where an answer could not be read."""

    seq: int
    name: str
    arguments: str = ""

    def __str__(self) -> str:
        """For people: `7 run {"command":"make"}`."""
        return f"{self.seq} {self.name} {self.arguments}".rstrip()


@dataclass(frozen=True, slots=True)
class ModelCall:
    """One recorded model call, read. `answer` is None where nothing readable came back."""

    exchange: Exchange
    request: ModelRequest
    answer: ModelAnswer | None


def tool_calls(cassette: Recorded) -> Iterator[Asked]:
    """Yield every tool call the recorded model asks the agent for, in order of request.

    Calls that the provider runs itself are left out. An answer that cannot be read counts as one: refusing too much hurts nobody.

    Raises:
        Corrupt: recorded bytes are damaged.
    """
    for exchange in model_exchanges(cassette):
        if exchange.answer is None or exchange.answer.status >= 400:
            continue
        if listed(exchange.details):
            for said in socket_calls(cassette, exchange):
                yield from _asked(said)
            continue
        call = read_call(cassette, exchange)
        if call is None or call.answer is None:
            yield Asked(exchange.seq, UNREADABLE)
            continue
        yield from _asked(call)


def _asked(call: ModelCall) -> Iterator[Asked]:
    if call.answer is not None:
        for part in call.answer.calls:
            if not part.server_side:
                yield Asked(call.exchange.seq, part.name, part.arguments)


def socket_calls(cassette: Recorded, exchange: Exchange) -> Iterator[ModelCall]:
    """Yield the calls of a model's WebSocket whose messages were kept. Those no adapter knows are left out."""
    for part, sent, received in calls(exchange, contents(cassette)):
        adapter = exchange.adapter or (adapters.recognise(part.request, sent) if sent is not None else None)
        if adapter is None or sent is None:
            continue
        answer = None
        if part.answer is not None and received is not None:
            answer = adapters.read_answer(adapter, part.request, part.answer, received)
        yield ModelCall(part, adapters.read_request(adapter, part.request, sent), answer)


def model_exchanges(cassette: Recorded) -> Iterator[Exchange]:
    """Yield the model exchanges of a cassette, in order of request."""
    for seq in sorted(row.seq for row in cassette.rows if row.channel is Channel.MODEL):
        yield cassette.exchange(seq)


def read_call(cassette: Recorded, exchange: Exchange) -> ModelCall | None:
    """Read a model exchange; None where no adapter knows it, its request cannot be decoded, or it is a socket (`socket_calls`)."""
    if listed(exchange.details):
        return None
    sent = content_of(cassette, exchange.request.body, exchange.request.fields, decoded=kept_decoded(exchange, "request"))
    if sent is None:
        return None
    adapter = exchange.adapter or adapters.recognise(exchange.request, sent)
    if adapter is None:
        return None
    try:
        request = adapters.read_request(adapter, exchange.request, sent)
    except RecordedError:
        return None
    if exchange.answer is None:
        return ModelCall(exchange, request, None)
    received = content_of(cassette, exchange.answer.body, exchange.answer.fields, decoded=kept_decoded(exchange, "response"))
    answer = None if received is None else adapters.read_answer(adapter, exchange.request, exchange.answer, received)
    return ModelCall(exchange, request, answer)


def content_of(cassette: Recorded, body: Body, fields: Fields, *, decoded: bool) -> bytes | None:
    """Return a body without content codings; None where it is too large or cannot be decoded."""
    if body.size_bytes > BODY_IN_MEMORY_BYTES:
        return None
    whole = cassette.body(body).read(0, body.size_bytes)
    if decoded:
        return whole
    try:
        content = decode(whole, codings(fields))
    except TooLarge:
        return None
    return None if isinstance(content, Opaque) else content


def kept_decoded(exchange: Exchange, side: str) -> bool:
    """Say whether the body of `side` is kept without its content codings, because a secret stood under them (recorder.py)."""
    return exchange.details.get(f"{side}_kept") == "decoded"

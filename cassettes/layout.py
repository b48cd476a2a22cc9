"""How an exchange, a head and what a recording says about itself become bytes: msgpack maps, one encoding for one value.

The bytes of an exchange are what the Merkle tree is over, so they are canonical: keys in a fixed order, defaults left out, integers in
their shortest form, `details` sorted. Byte by byte: docs/format.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import cast

import msgpack

from secondtake.cassettes import varint
from secondtake.cassettes.digest import named, raw
from secondtake.cassettes.errors import BadInput, Corrupt, RecordedError
from secondtake.cassettes.exchange import (
    EMPTY,
    Answer,
    Answered,
    Body,
    Channel,
    Digest,
    Ending,
    Exchange,
    Fields,
    Interim,
    Keys,
    Named,
    Piece,
    Redaction,
    Request,
    Side,
)
from secondtake.cassettes.limits import MSGPACK_DEPTH, PIECES
from secondtake.cassettes.records import Head

type Packed = dict[str, object]

LATER = "\x00later"
"""Where `Exchange.details` keeps fields that a later minor version wrote, so that copying the exchange keeps them."""


def pack(value: object) -> bytes:
    """One value as msgpack. Raises BadInput for what msgpack cannot say."""
    try:
        return cast(bytes, msgpack.packb(value, use_bin_type=True, unicode_errors="surrogatepass"))
    except (TypeError, ValueError, OverflowError) as error:
        raise BadInput(f"a value cannot be kept: {error}") from error


def unpack(data: bytes) -> object:
    """One msgpack value. Its lengths are bounded by its own size, its depth by MSGPACK_DEPTH. Raises Corrupt."""
    try:
        value: object = msgpack.unpackb(data, raw=False, strict_map_key=True, unicode_errors="surrogatepass", max_ext_len=0)
    except Exception as error:  # msgpack raises a dozen kinds, StackError and UnicodeDecodeError among them (SECURITY B3)
        raise Corrupt(f"a record cannot be unpacked: {type(error).__name__}: {error}") from error
    return value


def ordered(value: object, depth: int = 0) -> object:
    """`value` with every mapping in key order and tuples as lists. Raises BadInput when too deep or not msgpack's."""
    if depth > MSGPACK_DEPTH:
        raise BadInput(f"a value is nested deeper than {MSGPACK_DEPTH}")
    match value:
        case Mapping():
            keyed = [(str(key), ordered(item, depth + 1)) for key, item in value.items()]
            return dict(sorted(keyed, key=lambda pair: pair[0]))
        case list() | tuple():
            return [ordered(item, depth + 1) for item in value]
        case None | bool() | int() | float() | str() | bytes():
            return value
        case _:
            raise BadInput(f"a value of type {type(value).__name__} cannot be kept")


# Packing: each function leaves out what has its default.


def _put(into: Packed, key: str, value: object, default: object) -> None:
    if value != default:
        into[key] = value


def _fields(fields: Fields) -> list[bytes]:
    return [part for pair in fields for part in pair]


def pack_pieces(pieces: tuple[Piece, ...]) -> bytes:
    """Sizes and offset steps as varints: about three bytes for a server-sent event."""
    out = bytearray()
    before = 0
    for piece in pieces:
        varint.put(out, piece.size_bytes)
        varint.put_signed(out, piece.offset_us - before)
        before = piece.offset_us
    return bytes(out)


def _body(body: Body) -> list[object] | None:
    if body == Body():
        return None
    made: list[object] = [None if body.digest == EMPTY else raw(body.digest), body.size_bytes]
    if body.pieces:
        made.append(pack_pieces(body.pieces))
    return made


def _request(request: Request) -> Packed:
    made: Packed = {
        "method": request.method,
        "scheme": request.scheme,
        "host": request.host,
        "port": request.port,
        "path": request.path,
    }
    _put(made, "protocol", request.protocol, "HTTP/1.1")
    _put(made, "fields", _fields(request.fields), [])
    _put(made, "body", _body(request.body), None)
    _put(made, "trailers", _fields(request.trailers), [])
    named_as = request.named
    _put(made, "named", [named_as.connect, named_as.sni, named_as.host], [None, None, None])
    return made


def _answer(answer: Answer) -> Packed:
    made: Packed = {"status": answer.status}
    _put(made, "reason", answer.reason, b"")
    _put(made, "protocol", answer.protocol, "HTTP/1.1")
    _put(made, "fields", _fields(answer.fields), [])
    _put(made, "interim", [[i.status, i.reason, _fields(i.fields), i.offset_us] for i in answer.interim], [])
    _put(made, "body", _body(answer.body), None)
    _put(made, "trailers", _fields(answer.trailers), [])
    _put(made, "offset", answer.offset_us, 0)
    _put(made, "synthetic", answer.synthetic, False)
    return made


def pack_exchange(exchange: Exchange) -> bytes:
    """The canonical record of an exchange: the leaf of the tree."""
    made: Packed = {"seq": exchange.seq, "channel": str(exchange.channel), "started": exchange.started_us}
    made["request"] = _request(exchange.request)
    _put(made, "answer", None if exchange.answer is None else _answer(exchange.answer), None)
    made["ended"] = str(exchange.ended)
    made["ended_at"] = exchange.ended_us
    keys = exchange.keys
    _put(made, "keys", None if keys is None else [keys.exact, keys.normal, keys.rules], None)
    _put(made, "forwarded", list(exchange.forwarded), [])
    _put(made, "redactions", [[str(r.side), r.place, r.start, r.stop, r.kind, r.fingerprint] for r in exchange.redactions], [])
    _put(made, "notes", list(exchange.notes), [])
    _put(made, "answered", str(exchange.answered), str(Answered.LIVE))
    _put(made, "adapter", exchange.adapter, None)
    details = dict(exchange.details)
    later = details.pop(LATER, None)
    _put(made, "details", ordered(details), {})
    if isinstance(later, Mapping):
        made |= {str(key): ordered(later[key]) for key in sorted(later, key=str)}
    return pack(made)


def pack_head(head: Head) -> bytes:
    """A head: what is known of an exchange when its request begins."""
    made: Packed = {"seq": head.seq, "channel": str(head.channel), "started": head.started_us, "request": _request(head.request)}
    return pack(made)


# Unpacking: every value is checked for its type; the errors say which.


def take[T](made: Mapping[str, object], key: str, kind: type[T] | tuple[type[T], ...], default: T | None = None) -> T:
    """The value under `key`, which must be of `kind`; `default` where it is missing. Raises Corrupt."""
    value = made.get(key, default)
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is int):
        raise Corrupt(f"a record's `{key}` is {type(value).__name__}")
    return value


def mapping(value: object) -> Mapping[str, object]:
    """`value` as a map. Raises Corrupt."""
    if not isinstance(value, dict):
        raise Corrupt("a record is not a map")
    return value


def each[T](value: object, kind: type[T]) -> list[T]:
    """`value` as a list of `kind`. Raises Corrupt."""
    if not isinstance(value, list) or not all(isinstance(item, kind) for item in value):
        raise Corrupt(f"a record holds something else than a list of {kind.__name__}")
    return value


def _choice[E: StrEnum](kind: type[E], value: object) -> E:
    try:
        return kind(cast(str, value))
    except ValueError as error:
        raise Corrupt(f"a record's {kind.__name__.lower()} is {value!r}", hint="update secondtake") from error


def _as_fields(value: object) -> Fields:
    flat = each(value, bytes)
    if len(flat) % 2:
        raise Corrupt("a record has a field without a value")
    return tuple(zip(flat[::2], flat[1::2], strict=True))


def unpack_pieces(packed: bytes) -> tuple[Piece, ...]:
    """The counterpart of `pack_pieces`. Raises Corrupt."""
    numbers = varint.all_of(packed, 2 * PIECES)
    if len(numbers) % 2:
        raise Corrupt("a body's pieces are cut short")
    pieces: list[Piece] = []
    offset = 0
    for size, step in zip(numbers[::2], numbers[1::2], strict=True):
        offset += varint.signed(step)
        pieces.append(Piece(size, offset))
    return tuple(pieces)


def _as_body(value: object) -> Body:
    match value:
        case None:
            return Body()
        case [None | bytes() as digest, int() as size, *rest] if len(rest) <= 1:
            pieces = rest[0] if rest else b""
            if size < 0 or not isinstance(pieces, bytes):
                raise Corrupt("a record's body is not a body")
            return Body(EMPTY if digest is None else _digest(digest), size, unpack_pieces(pieces))
        case _:
            raise Corrupt("a record's body is not a body")


def _digest(data: bytes) -> Digest:
    try:
        return named(data)
    except BadInput as error:
        raise Corrupt(str(error)) from error


def _as_request(value: object) -> Request:
    made = mapping(value)
    match made.get("named", [None, None, None]):
        case [None | str() as connect, None | str() as sni, None | str() as host]:
            pass
        case _:
            raise Corrupt("a record's `named` is not three names")
    return Request(
        method=take(made, "method", str),
        scheme=take(made, "scheme", str),
        host=take(made, "host", str),
        port=take(made, "port", int),
        path=take(made, "path", bytes),
        protocol=take(made, "protocol", str, "HTTP/1.1"),
        fields=_as_fields(made.get("fields", [])),
        body=_as_body(made.get("body")),
        trailers=_as_fields(made.get("trailers", [])),
        named=Named(connect, sni, host),
    )


def _as_interim(value: object) -> Interim:
    match value:
        case [int() as status, bytes() as reason, fields, int() as offset]:
            return Interim(status, reason, _as_fields(fields), offset)
        case _:
            raise Corrupt("a record's interim head is not one")


def _as_answer(value: object) -> Answer:
    made = mapping(value)
    return Answer(
        status=take(made, "status", int),
        reason=take(made, "reason", bytes, b""),
        protocol=take(made, "protocol", str, "HTTP/1.1"),
        fields=_as_fields(made.get("fields", [])),
        interim=tuple(_as_interim(item) for item in each(made.get("interim", []), object)),
        body=_as_body(made.get("body")),
        trailers=_as_fields(made.get("trailers", [])),
        offset_us=take(made, "offset", int, 0),
        synthetic=take(made, "synthetic", bool, False),
    )


def _as_keys(value: object) -> Keys | None:
    match value:
        case None:
            return None
        case [bytes() as exact, bytes() as normal, str() as rules]:
            return Keys(exact, normal, rules)
        case _:
            raise Corrupt("a record's keys are not keys")


def _as_redaction(value: object) -> Redaction:
    match value:
        case [str() as side, str() as place, int() as start, int() as stop, str() as kind, None | str() as fingerprint]:
            return Redaction(_choice(Side, side), place, start, stop, kind, fingerprint)
        case _:
            raise Corrupt("a record's redaction is not one")


_KNOWN = frozenset(
    {
        "seq",
        "channel",
        "started",
        "request",
        "answer",
        "ended",
        "ended_at",
        "keys",
        "forwarded",
        "redactions",
        "notes",
        "answered",
        "adapter",
        "details",
    }
)


def _guarded[T](make: Callable[[], T]) -> T:
    try:
        return make()
    except RecordedError:
        raise
    except Exception as error:  # whatever hostile bytes bring about is damage, not a crash (B4.7)
        raise Corrupt(f"a record cannot be read: {type(error).__name__}: {error}") from error


def unpack_exchange(record: bytes) -> Exchange:
    """The counterpart of `pack_exchange`. Raises Corrupt."""
    return _guarded(lambda: _as_exchange(mapping(unpack(record))))


def _as_exchange(made: Mapping[str, object]) -> Exchange:
    details = mapping(made.get("details", {}))
    later = {key: value for key, value in made.items() if key not in _KNOWN}
    answer = made.get("answer")
    adapter = made.get("adapter")
    if not (adapter is None or isinstance(adapter, str)):
        raise Corrupt("a record's `adapter` is not text")
    return Exchange(
        seq=take(made, "seq", int),
        channel=_choice(Channel, made.get("channel")),
        started_us=take(made, "started", int),
        request=_as_request(made.get("request")),
        answer=None if answer is None else _as_answer(answer),
        ended=_choice(Ending, made.get("ended")),
        ended_us=take(made, "ended_at", int),
        keys=_as_keys(made.get("keys")),
        forwarded=tuple(each(made.get("forwarded", []), str)),
        redactions=tuple(_as_redaction(item) for item in each(made.get("redactions", []), object)),
        notes=tuple(each(made.get("notes", []), str)),
        answered=_choice(Answered, made.get("answered", Answered.LIVE)),
        adapter=adapter,
        details={**details, LATER: later} if later else details,
    )


def seq_of(record: bytes) -> int:
    """Which exchange a head, or an exchange's record, is of. Raises Corrupt."""
    return take(mapping(unpack(record)), "seq", int)


def unpack_head(record: bytes) -> Head:
    """The counterpart of `pack_head`. Raises Corrupt."""

    def make() -> Head:
        made = mapping(unpack(record))
        channel = _choice(Channel, made.get("channel"))
        return Head(take(made, "seq", int), take(made, "started", int), channel, _as_request(made.get("request")))

    return _guarded(make)

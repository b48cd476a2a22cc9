"""The index of a cassette: one row per exchange in columns, and where each body stands. A cache: the journal alone makes it, byte for byte.

Columns of fixed width are read without being unpacked, so that opening costs the same for a thousand rows as for ten.
"""

from __future__ import annotations

import struct
import zlib
from array import array
from collections.abc import Iterator, Sequence
from typing import NamedTuple, cast, overload

from secondtake.cassettes import artifacts, layout
from secondtake.cassettes.digest import DIGEST_BYTES, named, raw
from secondtake.cassettes.errors import BadInput, Corrupt
from secondtake.cassettes.exchange import EMPTY, Channel, Digest, Ending, Exchange, Keys
from secondtake.cassettes.journal import Place

MAGIC = b"\x89tidx\r\n\n"
VERSION = 1
_PREFACE = struct.Struct("<8sII")

PLAIN_OBJECT = Place(0, 0)
"""The body is a file of its own."""
PACKED_OBJECT = Place(1, 0)
"""The body is a file of its own, compressed."""
NOWHERE = Place(2, 0)
"""No bytes were kept under that digest."""


class Row(NamedTuple):
    """What there is to know of an exchange without reading it. A named tuple: a player makes thousands at its start."""

    seq: int
    channel: Channel
    method: str
    scheme: str
    host: str
    port: int
    path: bytes
    status: int | None
    ended: Ending
    keys: Keys | None
    request_digest: Digest
    request_size: int
    response_digest: Digest
    response_size: int
    started_us: int
    synthetic: bool


_NUMBERS = {
    "seq": "Q",
    "started": "q",
    "channel": "B",
    "method": "I",
    "scheme": "I",
    "host": "I",
    "port": "I",
    "path_end": "Q",
    "status": "i",
    "ended": "B",
    "rules": "I",
    "request": "I",
    "request_size": "Q",
    "response": "I",
    "response_size": "Q",
    "synthetic": "B",
    "offset": "Q",
    "length": "I",
    "body_offset": "Q",
    "body_length": "I",
}
"""Column and element type; little-endian on disk."""

_PER_BODY = ("body_offset", "body_length")
_CHANNELS = tuple(Channel)
_ENDINGS = tuple(Ending)
_KEY_BYTES = 16


class IndexBuilder:
    """Collects rows in journal order. About 200 bytes an exchange."""

    def __init__(self) -> None:
        self._columns = {name: array(code) for name, code in _NUMBERS.items()}
        self._paths = bytearray()
        self._exact = bytearray()
        self._normal = bytearray()
        self._words: dict[str, int] = {}
        self._bodies: dict[bytes, int] = {}
        self._places: list[Place] = []
        self.artifacts = artifacts.Table()

    def __len__(self) -> int:
        return len(self._columns["seq"])

    def _word(self, word: str) -> int:
        return self._words.setdefault(word, len(self._words))

    def _body(self, digest: Digest, place: Place) -> int:
        name = raw(digest)
        number = self._bodies.setdefault(name, len(self._bodies))
        if number == len(self._places):
            self._places.append(place)
        elif self._places[number] == NOWHERE:
            self._places[number] = place
        return number

    def place_of(self, digest: Digest) -> Place | None:
        """Where a body kept earlier stands."""
        number = self._bodies.get(raw(digest))
        return None if number is None or self._places[number] == NOWHERE else self._places[number]

    def add(self, exchange: Exchange, at: Place, request_at: Place, response_at: Place) -> None:
        """Add one row. `at` is the frame of its record; the others are where its bodies stand."""
        request, answer, columns = exchange.request, exchange.answer, self._columns
        columns["seq"].append(exchange.seq)
        columns["started"].append(exchange.started_us)
        columns["channel"].append(_CHANNELS.index(exchange.channel))
        columns["method"].append(self._word(request.method))
        columns["scheme"].append(self._word(request.scheme))
        columns["host"].append(self._word(request.host))
        columns["port"].append(request.port)
        self._paths += request.path
        columns["path_end"].append(len(self._paths))
        columns["status"].append(-1 if answer is None else answer.status)
        columns["ended"].append(_ENDINGS.index(exchange.ended))
        keys = exchange.keys
        if keys is None or len(keys.exact) != _KEY_BYTES or len(keys.normal) != _KEY_BYTES:
            # Keys of another length stay in the record; the row says there are none, and a player computes them anew.
            columns["rules"].append(0)
            self._exact += bytes(_KEY_BYTES)
            self._normal += bytes(_KEY_BYTES)
        else:
            columns["rules"].append(1 + self._word(keys.rules))
            self._exact += keys.exact
            self._normal += keys.normal
        columns["request"].append(self._body(request.body.digest, request_at))
        columns["request_size"].append(request.body.size_bytes)
        body = None if answer is None else answer.body
        columns["response"].append(self._body(EMPTY if body is None else body.digest, response_at))
        columns["response_size"].append(0 if body is None else body.size_bytes)
        columns["synthetic"].append(answer is not None and answer.synthetic)
        columns["offset"].append(at.offset)
        columns["length"].append(at.length)

    def index(self) -> Index:
        """The rows so far. Bodies are put in order of their digest, so that one is found by bisection."""
        order = sorted(self._bodies)
        renumber = {self._bodies[name]: position for position, name in enumerate(order)}
        columns = {name: array(column.typecode, column) for name, column in self._columns.items()}
        for side in ("request", "response"):
            columns[side] = array("I", (renumber[number] for number in columns[side]))
        places = [self._places[self._bodies[name]] for name in order]
        columns["body_offset"] = array("Q", (place.offset for place in places))
        columns["body_length"] = array("I", (place.length for place in places))
        texts = {"paths": bytes(self._paths), "exact": bytes(self._exact), "normal": bytes(self._normal), "bodies": b"".join(order)}
        return Index({name: memoryview(column) for name, column in columns.items()}, texts, tuple(self._words), self.artifacts)


class Index:
    """Rows and bodies of a cassette, held as columns."""

    def __init__(
        self, columns: dict[str, memoryview], texts: dict[str, bytes], words: tuple[str, ...], kept: artifacts.Table | None = None
    ) -> None:
        self._columns = columns
        self._texts = texts
        self._words = words
        self.artifacts = artifacts.Table() if kept is None else kept
        self._hex = ""
        self._numbers: dict[int, int] | None = None

    def __len__(self) -> int:
        return len(self._columns["seq"])

    @property
    def body_count(self) -> int:
        """How many different bodies."""
        return len(self._columns["body_offset"])

    def row(self, number: int) -> Row:
        """The row at `number`, in journal order."""
        return next(self.rows(number, number + 1))

    def rows(self, start: int, stop: int) -> Iterator[Row]:
        """The rows from `start` to before `stop`: as `row` for each, column by column and so several times as quickly."""
        if not self._hex:
            self._hex = self._texts["bodies"].hex()
        words, texts, names = self._words, self._texts, self._hex
        part = {name: column[start:stop].tolist() for name, column in self._columns.items() if name not in _PER_BODY}
        first = self._columns["path_end"][start - 1] if start else 0
        exact, normal, width = texts["exact"], texts["normal"], _KEY_BYTES
        return map(
            Row._make,
            zip(
                part["seq"],
                [_CHANNELS[one] for one in part["channel"]],
                [words[one] for one in part["method"]],
                [words[one] for one in part["scheme"]],
                [words[one] for one in part["host"]],
                part["port"],
                [texts["paths"][begin:end] for begin, end in zip([first, *part["path_end"]], part["path_end"], strict=False)],
                [None if one < 0 else one for one in part["status"]],
                [_ENDINGS[one] for one in part["ended"]],
                [
                    Keys(exact[at : at + width], normal[at : at + width], words[rules - 1]) if rules else None
                    for at, rules in zip(range(start * width, stop * width, width), part["rules"], strict=True)
                ],
                [Digest(names[one * 64 : one * 64 + 64]) for one in part["request"]],
                part["request_size"],
                [Digest(names[one * 64 : one * 64 + 64]) for one in part["response"]],
                part["response_size"],
                part["started"],
                map(bool, part["synthetic"]),
                strict=True,
            ),
        )

    def frame(self, number: int) -> Place:
        """Where the record of the row at `number` stands."""
        return Place(self._columns["offset"][number], self._columns["length"][number])

    def number_of(self, seq: int) -> int | None:
        """Which row an exchange is; the first, should a damaged journal hold two."""
        if self._numbers is None:
            seqs = self._columns["seq"]
            self._numbers = {seqs[number]: number for number in range(len(seqs) - 1, -1, -1)}
        return self._numbers.get(seq)

    def body(self, digest: Digest) -> Place | None:
        """Where a body stands; None when this cassette never held it."""
        try:
            name = raw(digest)
        except BadInput:
            return None
        names, low, high = self._texts["bodies"], 0, self.body_count
        while low < high:
            middle = (low + high) // 2
            if names[middle * DIGEST_BYTES : (middle + 1) * DIGEST_BYTES] < name:
                low = middle + 1
            else:
                high = middle
        if names[low * DIGEST_BYTES : (low + 1) * DIGEST_BYTES] != name:
            return None
        return Place(self._columns["body_offset"][low], self._columns["body_length"][low])

    def bodies(self) -> Iterator[tuple[Digest, Place]]:
        """Every body with its place, in order of digest."""
        names = self._texts["bodies"]
        for position in range(self.body_count):
            place = Place(self._columns["body_offset"][position], self._columns["body_length"][position])
            yield named(names[position * DIGEST_BYTES : (position + 1) * DIGEST_BYTES]), place

    def pack(self, journal_bytes: int, close: Place, checksum: int) -> bytes:
        """The index file of a journal that has `journal_bytes` and ends with the frame at `close`, which has `checksum`."""
        columns = {name: _little(column) for name, column in self._columns.items()}
        made: dict[str, object] = {
            "journal": [journal_bytes, close.offset, close.length, checksum],
            "columns": columns,
            "texts": self._texts,
            "words": list(self._words),
        }
        if len(self.artifacts):
            made["artifacts"] = self.artifacts.packed()
        content = layout.pack(made)
        return _PREFACE.pack(MAGIC, VERSION, zlib.crc32(content)) + content


def _little(column: memoryview) -> bytes:
    made = array(column.format, column)
    if _BIG_ENDIAN:
        made.byteswap()
    return made.tobytes()


_BIG_ENDIAN = array("H", [1]).tobytes() == b"\x00\x01"


def unpack(data: bytes) -> tuple[Index, tuple[int, Place, int]]:
    """The counterpart of `Index.pack`: the index, and (journal size, closing frame, its checksum). Raises Corrupt."""
    if len(data) < _PREFACE.size:
        raise Corrupt("the index is cut short")
    magic, version, checksum = _PREFACE.unpack_from(data)
    content = data[_PREFACE.size :]
    if magic != MAGIC or version != VERSION or zlib.crc32(content) != checksum:
        raise Corrupt("the index is damaged, or of another version")
    made = layout.mapping(layout.unpack(content))
    match made.get("journal"):
        case [int() as size, int() as offset, int() as length, int() as close_checksum]:
            pass
        case _:
            raise Corrupt("the index names no journal")
    packed, texts = layout.mapping(made.get("columns")), layout.mapping(made.get("texts"))
    columns = {name: _column(layout.take(packed, name, bytes), code) for name, code in _NUMBERS.items()}
    held = {name: layout.take(texts, name, bytes) for name in ("paths", "exact", "normal", "bodies")}
    index = Index(columns, held, tuple(layout.each(made.get("words"), str)), artifacts.from_index(made.get("artifacts")))
    _check(columns, held, index)
    return index, (size, Place(offset, length), close_checksum)


def _column(data: bytes, code: str) -> memoryview:
    if len(data) % array(code).itemsize:
        raise Corrupt("a column of the index is cut short")
    if not _BIG_ENDIAN:
        return cast(memoryview, memoryview(data).cast(code))  # type: ignore[call-overload]  # mypy wants a literal format
    made = array(code)
    made.frombytes(data)
    made.byteswap()
    return memoryview(made)


def _check(columns: dict[str, memoryview], texts: dict[str, bytes], index: Index) -> None:
    """Columns fit each other, so that reading a row cannot go astray. Raises Corrupt."""
    rows = len(index)
    fits = all(len(column) == (index.body_count if name in _PER_BODY else rows) for name, column in columns.items())
    fits = fits and len(texts["exact"]) == len(texts["normal"]) == rows * _KEY_BYTES
    fits = fits and len(texts["bodies"]) == index.body_count * DIGEST_BYTES
    if fits and rows:
        words = len(index._words)
        fits = (
            max(columns["request"]) < index.body_count
            and max(columns["response"]) < index.body_count
            and max(columns["method"]) < words
            and max(columns["scheme"]) < words
            and max(columns["host"]) < words
            and max(columns["rules"]) <= words
            and max(columns["channel"]) < len(_CHANNELS)
            and max(columns["ended"]) < len(_ENDINGS)
            and columns["path_end"][-1] == len(texts["paths"])
        )
    if not fits:
        raise Corrupt("the index does not fit together")


_ROWS_AT_ONCE = 1024


class Rows(Sequence[Row]):
    """Rows of an index, made when asked for."""

    def __init__(self, index: Index) -> None:
        self._index = index

    def __len__(self) -> int:
        return len(self._index)

    @overload
    def __getitem__(self, number: int) -> Row: ...
    @overload
    def __getitem__(self, number: slice) -> list[Row]: ...
    def __getitem__(self, number: int | slice) -> Row | list[Row]:
        if isinstance(number, slice):
            return [self._index.row(one) for one in range(*number.indices(len(self)))]
        if not -len(self) <= number < len(self):
            raise IndexError(number)
        return self._index.row(number % len(self))

    def __iter__(self) -> Iterator[Row]:
        for start in range(0, len(self), _ROWS_AT_ONCE):
            yield from self._index.rows(start, min(start + _ROWS_AT_ONCE, len(self)))

"""What a recording keeps beside its exchanges: trees, files of a workspace, repositories, the envelope, command logs.

An artifact is bytes under their digest, with the name of a kind. Here are its record in the journal and the table of them in the index;
docs/format.md has both byte by byte.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from typing import NamedTuple, overload

from secondtake.cassettes import layout
from secondtake.cassettes.digest import DIGEST_BYTES, named, raw
from secondtake.cassettes.errors import BadInput, Corrupt
from secondtake.cassettes.exchange import Digest
from secondtake.cassettes.journal import Place
from secondtake.cassettes.limits import ARTIFACT_KIND_BYTES

TREE = "tree"
ENVELOPE = "envelope"
STAGE = "stage"
BLOB = "blob"
REPOSITORY = "repository"


class Artifact(NamedTuple):
    """One artifact of a cassette, without its bytes."""

    kind: str
    digest: Digest
    size_bytes: int


class Record(NamedTuple):
    """An artifact's frame taken apart: its content, or where that stands."""

    artifact: Artifact
    content: bytes | None
    content_at: Place
    """A body frame, or a file of its own; without meaning where `content` is."""


INSIDE = Place(2, 0)
"""The content stands in the record itself."""


def check_kind(kind: str) -> str:
    """Raises BadInput for what is no name of a kind."""
    if not (0 < len(kind) <= ARTIFACT_KIND_BYTES and kind.isascii() and all(c.isalnum() or c in "-." for c in kind)):
        raise BadInput(f"no artifact can be of kind {kind[:80]!r}")
    return kind


def pack_inside(kind: str, digest: Digest, content: bytes) -> bytes:
    """The record of an artifact that holds its content."""
    return layout.pack([kind, raw(digest), content])


def pack_reference(kind: str, digest: Digest, size_bytes: int, at: Place) -> bytes:
    """The record of an artifact whose content stands at `at`."""
    return layout.pack([kind, raw(digest), None, list(at), size_bytes])


def unpack(payload: bytes) -> Record:
    """Raises Corrupt."""
    match layout.unpack(payload):
        case [str() as kind, bytes() as digest, bytes() as content, *_]:
            made = Record(Artifact(kind, _digest(digest), len(content)), content, INSIDE)
        case [str() as kind, bytes() as digest, None, [int() as offset, int() as length], int() as size, *_] if size >= 0:
            made = Record(Artifact(kind, _digest(digest), size), None, Place(offset, length))
        case _:
            raise Corrupt("an artifact's record is not one")
    try:
        check_kind(kind)
    except BadInput as error:
        raise Corrupt(str(error)) from error
    return made


def _digest(data: bytes) -> Digest:
    try:
        return named(data)
    except BadInput as error:
        raise Corrupt(str(error)) from error


_ROW = struct.Struct(f"<{DIGEST_BYTES}sQIQIQH")
"""Digest, frame (offset, length), content (offset, length), size, number of the kind; of each artifact in the index."""


class Placed(NamedTuple):
    """An artifact and where it stands."""

    artifact: Artifact
    at: Place
    content_at: Place


class Table(Sequence[Placed]):
    """The artifacts of a cassette in the order of its journal, read when asked for: a workspace has thousands of files."""

    def __init__(self, kinds: Sequence[str] = (), rows: bytes | bytearray = b"") -> None:
        """Raises Corrupt when `rows`, taken from an index, cannot be rows."""
        if len(rows) % _ROW.size:
            raise Corrupt("the index's table of artifacts is cut short")
        self._kinds = list(kinds)
        self._rows = bytearray(rows)
        self._numbers: dict[bytes, int] | None = None

    def add(self, record: Record, at: Place) -> None:
        """Note an artifact whose frame stands at `at`. The first of one digest counts. Raises Corrupt: an impossible place."""
        artifact = record.artifact
        if artifact.kind not in self._kinds:
            self._kinds.append(artifact.kind)
        numbers = self._by_digest()
        name = raw(artifact.digest)
        if name in numbers:
            return
        number = self._kinds.index(artifact.kind)
        try:
            self._rows += _ROW.pack(name, *at, *record.content_at, artifact.size_bytes, number)
        except struct.error as error:
            raise Corrupt(f"an artifact's place cannot be: {error}") from error
        numbers[name] = len(numbers)

    def _by_digest(self) -> dict[bytes, int]:
        if self._numbers is None:
            self._numbers = {}
            for number in range(len(self)):
                at = number * _ROW.size
                self._numbers.setdefault(bytes(self._rows[at : at + DIGEST_BYTES]), number)
        return self._numbers

    def find(self, digest: Digest) -> Placed | None:
        """The artifact of that digest. Raises BadInput for what is no digest."""
        number = self._by_digest().get(raw(digest))
        return None if number is None else self[number]

    def __len__(self) -> int:
        return len(self._rows) // _ROW.size

    @overload
    def __getitem__(self, number: int) -> Placed: ...
    @overload
    def __getitem__(self, number: slice) -> list[Placed]: ...
    def __getitem__(self, number: int | slice) -> Placed | list[Placed]:
        if isinstance(number, slice):
            return [self[one] for one in range(*number.indices(len(self)))]
        if not -len(self) <= number < len(self):
            raise IndexError(number)
        digest, *places, size, kind = _ROW.unpack_from(self._rows, number % len(self) * _ROW.size)
        if kind >= len(self._kinds):
            raise Corrupt("the index's table of artifacts names a kind that is not there")
        return Placed(Artifact(self._kinds[kind], named(digest), size), Place(places[0], places[1]), Place(places[2], places[3]))

    def __iter__(self) -> Iterator[Placed]:
        return (self[number] for number in range(len(self)))

    def packed(self) -> dict[str, object]:
        """What stands in an index file under `artifacts`."""
        return {"kinds": list(self._kinds), "rows": bytes(self._rows)}


def from_index(value: object) -> Table:
    """The counterpart of `Table.packed`; of None, the empty table: no artifact was kept. Raises Corrupt."""
    if value is None:
        return Table()
    made = layout.mapping(value)
    return Table(layout.each(made.get("kinds"), str), layout.take(made, "rows", bytes))

"""Body frames in memory, as a journal would hold them; and deltas as format 1.0 wrote them."""

from __future__ import annotations

from secondtake.cassettes import codec, journal, splices
from secondtake.cassettes.bodies import BodyEncoder
from secondtake.cassettes.codec import BodyDecoder, Encoded, Encoding
from secondtake.cassettes.digest import digest_of
from secondtake.cassettes.errors import Corrupt
from secondtake.cassettes.exchange import Digest
from secondtake.cassettes.journal import HEADER_BYTES, Place


class Tape:
    """Body frames one after the other."""

    def __init__(self) -> None:
        self.encoder = BodyEncoder()
        self.frames: dict[int, bytes] = {}
        self.size = 16

    def put(self, encoded: Encoded) -> Place:
        frame = journal.frame(journal.Kind.BODY, 0, self.size, codec.pack(encoded))
        place = Place(self.size, len(frame))
        self.frames[self.size] = frame
        self.size += len(frame)
        return place

    def keep(self, data: bytes, conversation: str = "c") -> Place | None:
        made = self.encoder.encode(digest_of(data), data, conversation)
        if made is None:
            return None
        place = self.put(made[0])
        if made[1] is not None:
            self.encoder.remember(made[1], place, conversation)
        return place

    def keep_delta(self, data: bytes, base: bytes, at: Place, root: bytes) -> Place:
        """`data` as splices of `base`, which stands at `at` in a chain that begins with `root`."""
        made = splices.between(base, data)
        literal = splices.literals(data, made)
        packed = journal.dictionary_compressor(root).compress(literal) if literal else b""
        return self.put(Encoded(digest_of(data), len(data), Encoding.DELTA, packed, at, made))

    def body_at(self, place: Place) -> bytes:
        frame = self.frames.get(place.offset)
        if frame is None:
            raise Corrupt("no frame stands there")
        return frame[HEADER_BYTES:]

    def piece(self, offset: int, length: int) -> tuple[bytes, int]:
        return self.frames.get(offset, b""), offset

    def encoding(self, place: Place) -> Encoding:
        return codec.unpack(self.body_at(place)).encoding

    def read(self, place: Place, digest: Digest) -> bytes:
        return BodyDecoder(self).decode(place, digest)

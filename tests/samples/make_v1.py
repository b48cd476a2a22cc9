"""Makes tests/samples/v1/: a tiny store in format version 1. Run once, when the version was new; the files are kept for ever.

PYTHONPATH=.src:. python tests/samples/make_v1.py FOLDER
"""

from __future__ import annotations

import sys
from pathlib import Path

from secondtake.cassettes.exchange import Exchange, Side
from secondtake.cassettes.limits import OBJECT_BYTES
from secondtake.cassettes.records import Chunk
from secondtake.cassettes.store import Store
from tests.cassettes.scenes import Scene, commit, exchange, head, noise, prose, record, record_large, scene

WHAT: Scene = scene(5)
LARGE = noise(OBJECT_BYTES, 1)
PACKED = prose(100_000, 2) * 4


def large(seq: int, data: bytes) -> Exchange:
    """The exchange that `record_large` records."""
    return exchange(seq, b"", data, path=b"/files/large.whl")


def make(folder: Path) -> None:
    """A closed cassette with deltas and both kinds of object, one that died, and that one exported."""
    store = Store(folder)
    store.key(lambda size: bytes(range(size)))
    writer = store.create("closed", meta={"created": "2024-01-01T00:00:00Z"})
    record(writer, WHAT)
    record_large(writer, 100, LARGE)
    record_large(writer, 101, PACKED)
    writer.close(meta={"ended": "2024-01-01T00:01:00Z"})
    writer = store.create("died", meta={"created": "2024-01-02T00:00:00Z"})
    record(writer, WHAT[:2])
    writer.write([head(WHAT[2][0]), Chunk(2, Side.RESPONSE, b"partial")])
    commit(writer, exchange(9), {})
    writer.abandon()
    store.export("died", folder / "exported.take")


if __name__ == "__main__":
    make(Path(sys.argv[1]))

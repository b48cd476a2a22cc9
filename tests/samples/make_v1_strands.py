"""Makes tests/samples/v1-strands.take: a recording in format version 1.1. Run once, when strands were new; the file is kept for ever.

PYTHONPATH=.src:. python tests/samples/make_v1_strands.py FILE
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from secondtake.cassettes.store import Store
from tests.cassettes.scenes import Scene, record, scene

WHAT: Scene = scene(6)


def make(file: Path) -> None:
    """Requests and answers in strands of their own."""
    with tempfile.TemporaryDirectory() as folder:
        store = Store(Path(folder))
        writer = store.create("strands", meta={"created": "2024-02-01T00:00:00Z"})
        record(writer, WHAT)
        writer.close(meta={"ended": "2024-02-01T00:01:00Z"})
        store.export("strands", file)


if __name__ == "__main__":
    make(Path(sys.argv[1]))

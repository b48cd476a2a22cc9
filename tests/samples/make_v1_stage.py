"""Makes tests/samples/v1-stage.take: a recording with its stage, in format version 1. Run once, when artifacts were new; kept for ever.

PYTHONPATH=.src:. python tests/samples/make_v1_stage.py FILE
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from secondtake.cassettes.store import Store
from secondtake.harness.snapshot import capture
from tests.cassettes.scenes import record, scene
from tests.harness.workspaces import awkward, redactor, write


def make(file: Path) -> None:
    """The workspace of issue 5, changed after the second model call."""
    with tempfile.TemporaryDirectory() as folder:
        work = awkward(Path(folder))
        write(work, {".env": "API_KEY=not-kept-at-all\n"})
        store = Store(Path(folder) / "store")
        writer = store.create("one", meta={"created": "2024-01-01T00:00:00Z"})
        before = capture(work, writer.keep, redactor())
        record(writer, scene(2))
        write(work, {"new.txt": "changed"})
        after = capture(work, writer.keep, redactor())
        stage = {
            "workspace": before.tree.digest,
            "repository": before.repository_digest,
            "turns": [[2, 2, after.tree.digest]],
            "final": after.tree.digest,
            "root": "/repo/work",
            "credentials": [[".env", "dotenv", "API_KEY", 24]],
        }
        writer.close(meta={"stage": stage})
        store.export("one", file)
        print(before.fingerprint, after.tree.digest)  # what the test knows


if __name__ == "__main__":
    make(Path(sys.argv[1]))

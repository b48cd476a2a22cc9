"""Children that record until they are killed, for test_writer. Reads a store and a name per line; forks; says the child's number."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from secondtake.cassettes.exchange import Side
from secondtake.cassettes.limits import OBJECT_BYTES
from secondtake.cassettes.records import Chunk, End
from secondtake.cassettes.store import Store
from tests.cassettes import scenes
from tests.cassettes.scenes import head, noise, scene

WHAT = scene(40)
LARGE = [noise(OBJECT_BYTES + number, number) for number in range(4)]


def record(root: str, name: str, acknowledged: int) -> None:
    """Record for ever; each durable exchange is reported as four bytes, as soon as the writer says so."""

    def report(seq: int) -> None:
        os.write(acknowledged, seq.to_bytes(4, "little"))

    writer = Store(Path(root)).create(name, meta={"name": name})
    seq = 0
    while True:
        for number, (scripted, given) in enumerate(WHAT):
            one, bodies = scenes.numbered(scripted, seq), given
            writer.write([head(one)])
            if number % 10 == 9:
                large = scenes.exchange(seq, b"", LARGE[number // 10])
                writer.write([Chunk(seq, Side.RESPONSE, LARGE[number // 10])])
                one, bodies = large, {}
            writer.commit(End(one, bodies), lambda error, seq=seq: report(seq) if error is None else None)  # type: ignore[misc]
            seq += 1
        while writer.backlog_bytes > 4_000_000:
            os.sched_yield()


def main() -> None:
    """One child per line of standard input, until it ends."""
    acknowledged = int(sys.argv[1])
    for line in sys.stdin:
        root, name = line.split()
        child = os.fork()
        if child == 0:
            try:
                record(root, name, acknowledged)
            finally:
                os._exit(1)
        print(child, flush=True)
        os.waitpid(child, 0)
        print("dead", flush=True)


if __name__ == "__main__":
    main()

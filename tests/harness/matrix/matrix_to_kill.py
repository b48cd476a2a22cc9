"""Matrices that run until they are killed, for test_state. Reads a store per line; forks; says the child's number.

Each step of each take is written to the given descriptor, so that the test can kill after any of them: one byte for the step, one for the
cell.
"""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

from secondtake.cassettes.store import Store
from secondtake.harness.matrix.cells import Cell, rounds
from secondtake.harness.matrix.schedule import run_cells
from secondtake.harness.matrix.state import Matrices, takes_of
from tests.harness.matrix.scenes import FakeClock, FakeRunner, design

STEPS = {"begin": b"b", "made": b"m", "closing": b"c", "closed": b"d"}
MADE = design()
NUMBERS = {cell.key: number for number, cell in enumerate(rounds(MADE))}


def run(root: Path, report: int) -> None:
    """Begin the matrix, or go on with it."""

    def tell(step: str, cell: Cell) -> None:
        os.write(report, STEPS[step] + bytes((NUMBERS[cell.key] * 4 + cell.attempt,)))

    store, matrices = Store(root), Matrices(root)
    with matrices.held(MADE.id):
        held = matrices.looked_up(MADE, resume=MADE.id in matrices.ids())
        matrices.seal(held)
        takes, _ = takes_of(store, held.id)
        names = {summary.name for summary in store.list()}
        asyncio.run(run_cells(held, takes, FakeRunner(store, tell), FakeClock(), taken=names.__contains__))


def main() -> None:
    """One child per line of standard input, until it ends."""
    report = int(sys.argv[1])
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            try:
                run(Path(line.strip()), report)
                os._exit(0)
            finally:
                os._exit(1)
        print(child, flush=True)
        _, status = os.waitpid(child, 0)
        print(status, flush=True)


if __name__ == "__main__":
    main()

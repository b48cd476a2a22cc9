"""Where a matrix stands survives every kill."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from secondtake.cassettes.errors import Corrupt, Locked, NameTaken, NotFound
from secondtake.cassettes.store import Store
from secondtake.cassettes.takes import Outcome, encode
from secondtake.harness.matrix.cells import Named, due, rounds
from secondtake.harness.matrix.design import Design, Pacing
from secondtake.harness.matrix.state import Matrices, takes_of
from tests.harness.matrix.scenes import design, outcome_of, take, take_of

ROOT = Path(__file__).parents[3]


def begin(matrices: Matrices, made: Design, *, resume: bool) -> Design:
    found = matrices.looked_up(made, resume=resume)
    matrices.seal(found)
    return found


def content_of(matrices: Path, matrix: str) -> bytes:
    return (matrices / "matrices" / matrix / "design.json").read_bytes()


def test_a_design_is_sealed_once(tmp_path: Path) -> None:
    """Issue 6: sealed before the first call; it exists after that, and is gone on with only when asked."""
    matrices, made = Matrices(tmp_path), design()
    with pytest.raises(NotFound, match="no matrix of this design"):
        begin(matrices, made, resume=True)
    assert begin(matrices, made, resume=False) == made
    assert content_of(tmp_path, made.id) == made.content
    with pytest.raises(NameTaken, match="exists"):
        begin(matrices, made, resume=False)
    assert begin(matrices, made, resume=True) == made
    assert (matrices.ids(), matrices.read(made.id), matrices.resolve("round")) == ([made.id], made, made.id)


def test_more_repeats_are_a_further_look_at_the_same_matrix(tmp_path: Path) -> None:
    """DESIGN 6: `--repeats 20` tops up; that somebody looked before stays in the design."""
    matrices = Matrices(tmp_path)
    begin(matrices, design(), resume=False)
    held = begin(matrices, design(looks=(9,), jobs=1, pacing=Pacing(3), max_cost=2), resume=True)
    assert (held.looks, held.jobs, held.pacing, held.max_cost) == ((4, 9), 1, Pacing(3), 2)
    assert matrices.read(held.id).looks == (4, 9)
    assert begin(matrices, design(looks=(2,)), resume=True).looks == (4, 9)


def test_a_design_that_differs_is_named_by_what_differs(tmp_path: Path) -> None:
    """A person who resumes with another fixture wants to know what changed."""
    matrices = Matrices(tmp_path)
    begin(matrices, design(), resume=False)
    with pytest.raises(NotFound, match=f"`{design().id}` differs in fixture_digest, seed"):
        begin(matrices, design(fixture_digest="0" * 64, seed=1), resume=True)
    with pytest.raises(NotFound, match="closest"):
        matrices.resolve("roundign")
    with pytest.raises(NotFound):
        matrices.read("nothing")


def test_a_design_that_was_touched_is_damage(tmp_path: Path) -> None:
    """The seal is checked whenever it is read; a design under another's name is none."""
    matrices, made = Matrices(tmp_path), design()
    begin(matrices, made, resume=False)
    path = tmp_path / "matrices" / made.id / "design.json"
    path.write_bytes(made.content.replace(b'"seed":7', b'"seed":8'))
    with pytest.raises(Corrupt, match="is that of"):
        matrices.read(made.id)
    path.write_bytes(made.content[:-9])
    with pytest.raises(Corrupt):
        begin(matrices, made, resume=True)


def test_one_process_runs_a_matrix(tmp_path: Path) -> None:
    """Two would run every cell twice."""
    matrices = Matrices(tmp_path)
    with matrices.held("m"), pytest.raises(Locked, match="is being run"), Matrices(tmp_path).held("m"):
        raise AssertionError
    with matrices.held("m"):
        pass
    assert matrices.ids() == []


def test_takes_are_found_by_what_they_say(tmp_path: Path) -> None:
    """Whatever their name; those of others, and those that never closed, are told apart."""
    store, made = Store(tmp_path), design()
    cell = rounds(made)[4]
    for name, meta in (
        ("odd", {"take": encode(take_of(cell, Outcome.PASS))}),
        ("another", {"take": encode(take(matrix="another-000"))}),
        ("plain", {}),
        ("strange", {"take": {"format": 1}}),
    ):
        store.create(name, meta={}).close(meta=meta)
    store.create(f"{made.id}-2-3", meta={}).abandon()
    assert takes_of(store, made.id) == ((Named("odd", take_of(cell, Outcome.PASS)),), (f"{made.id}-2-3",))
    store.create(f"{made.id}-2-4", meta={}).close(meta={"take": {"format": 1}})
    with pytest.raises(Corrupt):
        takes_of(store, made.id)


@dataclass(slots=True)
class Children:
    """The process that forks runs to be killed."""

    process: subprocess.Popen[str]
    reports: int

    def run(self, root: Path, steps: int) -> tuple[bytes, bool]:
        """Run until so many steps were told, then kill; return the steps, and whether it ended by itself."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(f"{root}\n")
        self.process.stdin.flush()
        child = int(self.process.stdout.readline())
        told = b""
        ended = os.pidfd_open(child)
        try:
            os.set_blocking(self.reports, False)
            while len(told) < 2 * steps and not _readable(ended):
                told += _read(self.reports, ended)
            signal.pidfd_send_signal(ended, signal.SIGKILL)
        except ProcessLookupError:
            pass
        finally:
            os.close(ended)
        status = int(self.process.stdout.readline())
        while more := _read(self.reports, None):
            told += more
        return told, status == 0


def _readable(fd: int) -> bool:
    return bool(select.select([fd], [], [], 0)[0])


def _read(fd: int, until: int | None) -> bytes:
    if until is not None:
        select.select([fd, until], [], [])
    try:
        return os.read(fd, 65536)
    except BlockingIOError:
        return b""


@pytest.fixture(scope="module")
def children() -> Iterator[Children]:
    reports, told = os.pipe()
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.harness.matrix.matrix_to_kill", str(told)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        pass_fds=(told,),
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": f"{ROOT / '.src'}:{ROOT}"},
    )
    os.close(told)
    yield Children(process, reports)
    assert process.stdin is not None
    process.stdin.close()
    assert process.wait() == 0
    assert process.stdout is not None
    process.stdout.close()
    os.close(reports)


def results(root: Path) -> list[tuple[object, ...]]:
    kept, _ = takes_of(Store(root), design().id)
    return sorted((*one.key, one.take.attempts, one.take.outcome, one.take.resources.model_calls) for one in kept)


@pytest.mark.parametrize("steps", [1, 2, 3, 4, 5, 7, 10, 13, 19, 31])
def test_a_matrix_killed_at_any_instant_ends_with_the_same_takes(children: Children, tmp_path: Path, steps: int) -> None:
    """Issue 6: nothing is run twice, nothing is lost; killed again and again, after every so many steps."""
    root = tmp_path / "store"
    told, kills = b"", 0
    while True:
        more, whole = children.run(root, steps if kills < 12 else 10_000)
        told += more
        if whole:
            break
        kills += 1
    closed = Counter(told[at + 1] for at in range(0, len(told), 2) if told[at : at + 1] == b"d")
    begun = Counter(told[at + 1] for at in range(0, len(told), 2) if told[at : at + 1] == b"b")
    order: dict[int, str] = {}
    for at in range(0, len(told), 2):
        step, number = told[at : at + 1].decode(), told[at + 1]
        assert order.get(number) != "d", "a cell was begun again after its take was closed"
        order[number] = step
    assert kills >= 1
    assert max(closed.values()) == 1
    assert sum(begun.values()) <= sum(closed.values()) + 3 * kills
    takes, _ = takes_of(Store(root), design().id)
    assert due(design(), takes) == ()
    assert results(root) == expected()


def expected() -> list[tuple[object, ...]]:
    """What an undisturbed run ends with."""
    made = []
    for cell in rounds(design()):
        attempt = 1
        while True:
            one = take_of(replace(cell, attempt=attempt), outcome_of(replace(cell, attempt=attempt)))
            made.append((one.arm, one.repeat, one.warm_up, one.attempts, one.outcome, one.resources.model_calls))
            if one.outcome is not Outcome.INFRASTRUCTURE:
                break
            attempt += 1
    return sorted(made)

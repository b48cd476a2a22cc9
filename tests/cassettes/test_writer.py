"""The writer: what is acknowledged is durable, and waits for nobody."""

from __future__ import annotations

import os
import random
import select
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from secondtake.cassettes.cassette import State
from secondtake.cassettes.exchange import Ending, Side
from secondtake.cassettes.files import DiskFiles
from secondtake.cassettes.limits import OBJECT_BYTES
from secondtake.cassettes.records import Chunk, End
from secondtake.cassettes.store import Store
from tests.cassettes import recorder_to_kill, scenes
from tests.cassettes.scenes import assert_holds, commit, exchange, head, noise, prose, read_body, record, record_large, scene

ROOT = Path(__file__).parents[2]
ROUNDS = 200


@pytest.fixture
def memory_path(tmp_path: Path) -> Iterator[Path]:
    """A folder in memory where there is one: a killed process loses nothing of the page cache, so the disk would only add waiting."""
    shared = Path("/dev/shm")
    if not shared.is_dir():
        yield tmp_path
        return
    with tempfile.TemporaryDirectory(dir=shared) as folder:
        yield Path(folder)


@pytest.mark.anomaly
def test_a_kill_at_any_instant_loses_nothing_acknowledged(memory_path: Path) -> None:
    """B-02, T-L1: kill -9 at 200 random instants; every acknowledged exchange is whole, opening needs no repair."""
    rng = random.Random(1)
    reader, writer = os.pipe()
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / ".src"), str(ROOT)])}
    command = [sys.executable, str(Path(recorder_to_kill.__file__)), str(writer)]
    keeper = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, pass_fds=[writer], env=environment)
    assert keeper.stdin is not None
    assert keeper.stdout is not None
    os.close(writer)
    store = Store(memory_path)
    seen_acknowledged = seen_torn = 0
    try:
        for number in range(ROUNDS):
            name = f"run-{number}"
            keeper.stdin.write(f"{memory_path} {name}\n")
            keeper.stdin.flush()
            child = int(keeper.stdout.readline())
            reports = b""
            if number % 4:
                # Most rounds wait for a first acknowledgement, so that the instant lies in the recording and not before it.
                assert select.select([reader], [], [], 30)[0]
            deadline = time.monotonic() + rng.random() * 0.006
            while (left := deadline - time.monotonic()) > 0:
                if select.select([reader], [], [], left)[0]:
                    reports += os.read(reader, 65536)
            os.kill(child, signal.SIGKILL)
            assert keeper.stdout.readline() == "dead\n"
            while select.select([reader], [], [], 0)[0]:
                reports += os.read(reader, 65536)
            acknowledged = [int.from_bytes(reports[at : at + 4], "little") for at in range(0, len(reports) - 3, 4)]
            if not (memory_path / "cassettes" / name).exists():
                assert not acknowledged
                continue
            torn = check_killed(store, name, acknowledged, rng)
            seen_acknowledged += len(acknowledged)
            seen_torn += torn
    finally:
        keeper.stdin.close()
        keeper.wait()
        keeper.stdout.close()
        os.close(reader)
    assert seen_acknowledged > ROUNDS


def check_killed(store: Store, name: str, acknowledged: list[int], rng: random.Random) -> bool:
    """Every acknowledged exchange is there (a sample of them read), what else is visible is whole. Says whether the tail was torn."""
    with store.open(name) as cassette:
        assert cassette.state is State.DIED
        whole = {row.seq for row in cassette.rows if row.ended is not Ending.RECORDER_DIED}
        assert set(acknowledged) <= whole
        assert sorted(whole) == list(range(len(whole)))
        for seq in {*acknowledged[-3:], *rng.sample(sorted(whole), min(3, len(whole)))}:
            if seq % 40 % 10 == 9:
                one = exchange(seq, b"", recorder_to_kill.LARGE[seq % 40 // 10])
                assert cassette.exchange(seq) == one
                assert one.answer is not None
                assert read_body(cassette, one.answer.body) == recorder_to_kill.LARGE[seq % 40 // 10]
            else:
                one, bodies = recorder_to_kill.WHAT[seq % 40]
                assert_holds(cassette, scenes.numbered(one, seq), bodies)
        faults = [fault.name for fault in cassette.faults]
    assert faults in ([], ["incomplete_tail"])
    if rng.random() < 0.2:
        assert [fault.name for fault in store.verify(name, quick=True).faults] == faults
    return bool(faults)


def test_what_was_in_flight_when_the_recorder_died_is_named(tmp_path: Path) -> None:
    """DESIGN 4: the request survives, the exchange says `recorder-died`, and how much of a streamed body was there."""
    store = Store(tmp_path)
    what = scene(3)
    writer = store.create("one", meta={})
    record(writer, what[:2])
    flying = exchange(50, b"", noise(9_000_000, 1))
    writer.write([head(what[2][0]), head(flying), Chunk(50, Side.RESPONSE, noise(9_000_000, 1)[:3_000_000])])
    assert commit(writer, exchange(60), {}) is None
    writer.abandon()
    assert commit(writer, exchange(61), {}) is not None
    with store.open("one") as cassette:
        assert cassette.state is State.DIED
        assert [row.seq for row in cassette.rows] == [0, 1, 60, 2, 50]
        assert cassette.rows[3].ended is Ending.RECORDER_DIED
        lost = cassette.exchange(2)
        assert (lost.answer, lost.ended, lost.request) == (None, Ending.RECORDER_DIED, head(what[2][0]).request)
        assert cassette.exchange(50).notes == ("partial: 3000000 bytes of the response were spooled",)
    assert store.verify("one").exit_code == 0
    store.gc()
    with store.open("one") as cassette:
        assert cassette.exchange(50).notes == ()


class SlowSync(DiskFiles):
    """Holds every sync until it is let go."""

    def __init__(self) -> None:
        self.entered = threading.Semaphore(0)
        self.go = threading.Semaphore(0)
        self.count = 0
        self.slow = False

    def sync(self, fd: int) -> None:
        if self.slow:
            self.count += 1
            self.entered.release()
            self.go.acquire()


def test_commits_that_wait_share_one_sync(tmp_path: Path) -> None:
    """DESIGN 4: commit is grouped over what is queued, and an idle writer adds no waiting."""
    files = SlowSync()
    writer = Store(tmp_path, files=files).create("one", meta={})
    files.slow = True
    answered: list[int] = []
    writer.commit(End(exchange(0), {}), lambda _: answered.append(0))
    assert files.entered.acquire(timeout=10)
    for seq in range(1, 30):
        writer.commit(End(exchange(seq), {}), lambda _, seq=seq: answered.append(seq))  # type: ignore[misc]
    assert answered == []
    assert writer.backlog_bytes > 0
    for _ in range(2):
        files.go.release()
    assert files.entered.acquire(timeout=10)
    files.slow = False
    files.go.release()
    writer.close(meta={})
    assert answered == list(range(30))
    assert files.count == 2
    assert writer.backlog_bytes == 0


def test_writing_never_waits_for_the_disk(tmp_path: Path) -> None:
    """Contract of write and commit: they queue, and say how much."""
    files = SlowSync()
    writer = Store(tmp_path, files=files).create("one", meta={})
    files.slow = True
    writer.commit(End(exchange(0), {}), lambda _: None)
    assert files.entered.acquire(timeout=10)
    writer.write([Chunk(1, Side.RESPONSE, bytes(1_000_000)) for _ in range(20)])
    assert writer.backlog_bytes >= 20_000_000
    files.slow = False
    files.go.release()
    writer.close(meta={})
    assert writer.backlog_bytes == 0


def test_an_object_is_durable_before_the_record_that_names_it(tmp_path: Path) -> None:
    """B-01: content synced, renamed, folder synced; then the record; then the journal's sync."""
    steps: list[str] = []

    class Noted(DiskFiles):
        def write(self, fd: int, data: bytes | bytearray | memoryview) -> None:
            steps.append("write journal" if Path(f"/proc/self/fd/{fd}").readlink().name == "journal" else "write spool")
            super().write(fd, data)

        def sync(self, fd: int) -> None:
            steps.append("sync journal" if Path(f"/proc/self/fd/{fd}").readlink().name == "journal" else "sync spool")

        def rename(self, old: Path, new: Path) -> None:
            steps.append("rename")
            super().rename(old, new)

        def sync_folder(self, path: Path) -> None:
            if len(path.name) == 2:
                steps.append("sync folder")

    writer = Store(tmp_path, files=Noted()).create("one", meta={})
    steps.clear()
    record_large(writer, 1, noise(OBJECT_BYTES, 1), OBJECT_BYTES)
    assert [step for number, step in enumerate(steps) if steps[number - 1 : number] != [step]][-6:] == [
        "write spool",
        "sync spool",
        "rename",
        "sync folder",
        "write journal",
        "sync journal",
    ]
    writer.close(meta={})


def test_a_body_seen_before_is_kept_once(tmp_path: Path) -> None:
    """T-E1, DESIGN 4: identity is the digest."""
    data = prose(100_000, 1)
    writer = Store(tmp_path).create("one", meta={})
    sizes = []
    for seq in range(3):
        one = exchange(seq, data, data)
        assert commit(writer, one, {one.request.body.digest: data}) is None
        sizes.append((tmp_path / "cassettes" / "one" / "journal").stat().st_size)
    writer.close(meta={})
    assert sizes[2] - sizes[1] < 700
    with Store(tmp_path).open("one") as cassette:
        assert read_body(cassette, cassette.exchange(2).request.body) == data


def test_a_thousand_small_exchanges_cost_little_memory_and_disk(tmp_path: Path) -> None:
    """T-J3, scaled: what is kept per exchange is a row and a digest; on disk a few hundred bytes."""
    writer = Store(tmp_path).create("one", meta={})
    for seq in range(1000):
        one = exchange(seq, b"", b"")
        writer.write([head(one)])
        writer.commit(End(one, {}), lambda _: None)
    writer.close(meta={})
    assert (tmp_path / "cassettes" / "one" / "journal").stat().st_size < 1000 * 450
    assert not (tmp_path / "cassettes" / "one" / "reserve").exists()

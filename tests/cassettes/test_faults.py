"""Failing and killing the store at its n-th operation, for every n (SECURITY B4.1, B-01, B-05)."""

from __future__ import annotations

import os
import random
import subprocess
from pathlib import Path

import pytest

from secondtake.cassettes.cassette import Cassette, Severity, State
from secondtake.cassettes.digest import digest_of
from secondtake.cassettes.errors import NotFound, NotStored
from secondtake.cassettes.exchange import Ending, Exchange
from secondtake.cassettes.limits import OBJECT_BYTES
from secondtake.cassettes.records import End
from secondtake.cassettes.store import Store
from tests.cassettes.faulty import FaultyFiles, ForgetfulFiles, Way
from tests.cassettes.scenes import Scene, assert_holds, commit, head, noise, record, record_large, scene

pytestmark = pytest.mark.anomaly

LARGE = noise(OBJECT_BYTES + 5, 3)


def perform(store: Store, what: Scene, acknowledged: list[int]) -> tuple[Exchange | None, bool]:
    """A recording with small bodies, deltas and a large one. Returns the large exchange, and whether success was claimed."""
    writer = store.create("one", meta={"created": "x"})
    for one, bodies in what[:3]:
        writer.write([head(one)])
        if commit(writer, one, bodies) is None:
            acknowledged.append(one.seq)
    large, error = record_large(writer, 100, LARGE)
    if error is None:
        acknowledged.append(100)
    for one, bodies in what[3:]:
        if commit(writer, one, bodies) is None:
            acknowledged.append(one.seq)
    writer.close(meta={"ended": "y"})
    return large, writer.failed is None


def agrees(cassette: Cassette, what: Scene, acknowledged: list[int]) -> None:
    """Every acknowledged exchange is whole, and whatever else is visible is whole too."""
    model = {one.seq: (one, bodies) for one, bodies in what}
    visible = {row.seq for row in cassette.rows if row.ended is not Ending.RECORDER_DIED}
    assert set(acknowledged) <= visible
    for seq in visible - {100}:
        assert_holds(cassette, *model[seq])
    if 100 in visible:
        one = cassette.exchange(100)
        assert one.answer is not None
        source = cassette.body(one.answer.body)
        assert source.read(0, source.size_bytes) == LARGE


def operations() -> int:
    """How many operations `perform` makes."""
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        files = FaultyFiles()
        perform(Store(Path(folder) / "store", files=files), scene(6), [])
        return files.count


@pytest.mark.parametrize("for_ever", [False, True], ids=["once", "for-ever"])
@pytest.mark.parametrize("way", list(Way))
def test_whichever_operation_fails_nothing_acknowledged_is_lost(tmp_path: Path, way: Way, for_ever: bool) -> None:
    """B-01, B-05, B4.1: for every operation, in four ways, once and for ever."""
    what = scene(6)
    total = operations()
    assert total > 40
    for at in range(total):
        root = tmp_path / str(at)
        acknowledged: list[int] = []
        claimed = False
        try:
            _, claimed = perform(Store(root, files=FaultyFiles(at, way, for_ever=for_ever)), what, acknowledged)
        except NotStored as error:
            assert not acknowledged
            assert error.reason in {"EIO", "ENOSPC", "short-write"}  # noqa: PT017  # most operations raise nothing here
        store = Store(root)
        try:
            cassette = store.open("one")
        except NotFound:
            assert not acknowledged
            continue
        with cassette:
            agrees(cassette, what, acknowledged)
            if claimed:
                assert cassette.state is State.CLOSED, at
                assert len(acknowledged) == 7
            elif acknowledged:
                assert cassette.state in (State.FAILED, State.DIED) or len(acknowledged) == 7, at
        report = store.verify("one")
        assert all(fault.name in ("incomplete_tail", "index_stale") and fault.severity is Severity.WARNING for fault in report.faults), (
            at,
            report.faults,
        )
        store.gc()
        with store.open("one") as cassette:
            agrees(cassette, what, acknowledged)


@pytest.mark.parametrize("way", [Way.EIO, Way.ENOSPC, Way.SHORT])
def test_a_recording_that_fails_says_why_and_answers_every_commit(tmp_path: Path, way: Way) -> None:
    """B-05: record-failed with the reason, in the closing record; every later commit is answered at once."""
    what = scene(6)
    files = FaultyFiles()
    store = Store(tmp_path, files=files)
    writer = store.create("one", meta={})
    record(writer, what[:3])
    files.at, files.way = files.count, way
    error = commit(writer, *what[3])
    assert error is not None
    expected = {Way.EIO: "EIO", Way.ENOSPC: "ENOSPC", Way.SHORT: "short-write"}[way]
    assert error.reason == expected
    assert commit(writer, *what[4]) is error
    writer.close(meta={})
    assert writer.failed is error
    with store.open("one") as cassette:
        assert (cassette.state, cassette.reason) == (State.FAILED, expected)
        agrees(cassette, what, [0, 1, 2])
        assert cassette.root == writer.root
    assert store.verify("one", root=writer.root).faults == ()


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("way", [Way.EIO, Way.ENOSPC])
def test_a_body_that_could_not_become_an_object_leaves_no_spool(tmp_path: Path, way: Way, streamed: bool) -> None:
    """B-05, T-R15: what a full disk could not take is not what keeps it full."""
    body = digest_of(LARGE)
    one = _with_body(scene(1)[0][0], LARGE)
    for later in range(4):
        files = FaultyFiles()
        store = Store(tmp_path / str(later), files=files)
        writer = store.create("one", meta={})
        record(writer, scene(1))
        files.at, files.way = files.count + later, way
        error = record_large(writer, 100, LARGE)[1] if streamed else commit(writer, one, {body: LARGE})
        writer.close(meta={})
        assert error is not None, later
        assert list(tmp_path.glob(f"{later}/cassettes/one/spool-*")) == [], later


@pytest.mark.parametrize("seed", range(12))
def test_a_machine_that_loses_power_keeps_what_was_synced(tmp_path: Path, seed: int) -> None:
    """B4.1: unsynced bytes are dropped, cut or overwritten with zeros, in any order; the cassette opens and loses nothing acknowledged."""
    rng = random.Random(seed)
    what = scene(8)
    files = ForgetfulFiles()
    store = Store(tmp_path, files=files)
    writer = store.create("one", meta={})
    kept = rng.randrange(1, 6)
    record(writer, what[:kept])
    journal = tmp_path / "cassettes" / "one" / "journal"
    durable = files.synced[journal.stat().st_ino]
    files.off = True
    for one, bodies in what[kept:]:
        writer.write([head(one)])
        writer.commit(End(one, bodies), lambda _: None)
    writer.close(meta={})
    data = bytearray(journal.read_bytes())
    assert len(data) > durable
    for _ in range(rng.randrange(3)):
        start = rng.randrange(durable, len(data))
        stop = min(len(data), start + 64)
        data[start:stop] = bytes(stop - start)
    del data[rng.randrange(durable, len(data) + 1) :]
    journal.write_bytes(data)
    with Store(tmp_path).open("one") as cassette:
        assert cassette.state is State.DIED
        agrees(cassette, what, list(range(kept)))
    assert Store(tmp_path).verify("one").exit_code == 0


def test_a_full_disk_keeps_what_was_there(tmp_path: Path) -> None:
    """B4.3, T-L3, T-R15: a real file system of 1 MiB."""
    disk = tmp_path / "disk"
    disk.mkdir()
    made = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(disk)], capture_output=True, check=False)
    if made.returncode:
        pytest.skip(f"mounting a tmpfs needs root: {made.stderr.decode().strip()}")
    try:
        store = Store(disk / "store")
        what = scene(3)
        writer = store.create("one", meta={})
        record(writer, what)
        acknowledged = [0, 1, 2]
        error = None
        for seq in range(10, 60):
            data = noise(OBJECT_BYTES - 1000, seq)
            extra = scene(1)[0][0]
            one = Exchange(seq, extra.channel, 0, extra.request, None, Ending.RESET, 1)
            one = _with_body(one, data)
            error = commit(writer, one, {digest_of(data): data})
            what.append((one, {digest_of(data): data}))
            if error is not None:
                break
            acknowledged.append(seq)
        assert error is not None
        assert error.reason == "ENOSPC"
        writer.close(meta={})
        with store.open("one") as cassette:
            assert (cassette.state, cassette.reason) == (State.FAILED, "ENOSPC")
            agrees(cassette, what, acknowledged)
        assert store.verify("one").exit_code == 0
        number = 0
        while os.statvfs(disk).f_bfree > 1:
            (disk / f"filler-{number}").write_bytes(bytes(4096))
            number += 1
        with pytest.raises(NotStored):
            store.create("more", meta={})
        for filler in disk.glob("filler-*"):
            filler.unlink()
        store.remove("one")
        writer = store.create("two", meta={})
        record(writer, scene(3))
        writer.close(meta={})
        assert writer.failed is None
    finally:
        subprocess.run(["umount", "-l", str(disk)], check=False)


def _with_body(one: Exchange, data: bytes) -> Exchange:
    import dataclasses

    from tests.cassettes.scenes import body

    return dataclasses.replace(one, request=dataclasses.replace(one.request, body=body(data)))

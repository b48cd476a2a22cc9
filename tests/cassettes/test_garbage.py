"""What gc removes, and what it leaves."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from secondtake.cassettes.errors import Corrupt, Locked
from secondtake.cassettes.exchange import Side
from secondtake.cassettes.limits import OBJECT_BYTES
from secondtake.cassettes.records import Chunk
from secondtake.cassettes.store import Store
from tests.cassettes.scenes import assert_holds, commit, exchange, head, noise, prose, record, record_large, scene


def files(root: Path) -> set[str]:
    return {path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file()}


def test_only_what_nothing_refers_to_is_removed(tmp_path: Path) -> None:
    """DESIGN 4: objects of removed cassettes; shared ones stay."""
    store = Store(tmp_path)
    shared, own, packed = noise(OBJECT_BYTES, 1), noise(OBJECT_BYTES, 2), prose(150_000, 3) * 10
    for name, datas in {"one": (shared, own, packed), "two": (shared,)}.items():
        writer = store.create(name, meta={})
        for seq, data in enumerate(datas):
            record_large(writer, seq, data)
        writer.close(meta={})
    assert store.gc().files == ()
    before = files(tmp_path)
    store.remove("one")
    planned = store.gc(dry_run=True)
    assert len(planned.files) == 2
    assert planned.size_bytes > OBJECT_BYTES
    assert store.gc() == planned
    assert before - files(tmp_path) == {*planned.files, "cassettes/one/journal"}
    assert store.verify("two").exit_code == 0
    assert store.gc().files == ()


def test_what_interrupted_recordings_left_is_removed(tmp_path: Path) -> None:
    """B-02: spools of died cassettes, folders that never became one; the cassettes stay."""
    store = Store(tmp_path)
    what = scene(2)
    writer = store.create("died", meta={})
    record(writer, what)
    writer.write([head(exchange(9)), Chunk(9, Side.RESPONSE, noise(9_000_000, 1))])
    commit(writer, exchange(10), {})
    writer.abandon()
    aside = tmp_path / "cassettes" / ".new-0-x"
    aside.mkdir()
    (aside / "journal").write_bytes(b"half")
    (tmp_path / "key.new-00").write_bytes(b"half")
    (tmp_path / "cassettes" / "died" / "index.new").write_bytes(b"half")
    (tmp_path / "README").write_bytes(b"somebody's")
    assert set(store.gc().files) == {"cassettes/.new-0-x", "key.new-00", "cassettes/died/index.new", "cassettes/died/spool-9-response"}
    assert (tmp_path / "README").exists()
    with store.open("died") as cassette:
        for one, bodies in what:
            assert_holds(cassette, one, bodies)


def test_nothing_is_collected_while_a_recording_runs(tmp_path: Path) -> None:
    """DESIGN 4: an object just written and not yet referred to survives, whoever collects."""
    store = Store(tmp_path)
    writer = store.create("one", meta={})
    record_large(writer, 1, noise(OBJECT_BYTES, 1))
    with pytest.raises(Locked):
        store.gc()
    writer.close(meta={})
    assert store.gc().files == ()


def test_two_collections_and_recordings_do_not_hurt_each_other(tmp_path: Path) -> None:
    """B4.6: two gc at once, and recorders that begin meanwhile."""
    store = Store(tmp_path)
    wrong: list[BaseException] = []

    def collect() -> None:
        for _ in range(20):
            try:
                Store(tmp_path).gc()
            except Locked:
                pass
            except BaseException as error:  # a thread's failure is looked at by the test
                wrong.append(error)

    def run(number: int) -> None:
        try:
            for take in range(3):
                writer = Store(tmp_path).create(f"run-{number}-{take}", meta={})
                _, error = record_large(writer, 1, noise(OBJECT_BYTES, number), OBJECT_BYTES)
                assert error is None
                writer.close(meta={})
        except BaseException as error:  # a thread's failure is looked at by the test
            wrong.append(error)

    threads = [threading.Thread(target=collect) for _ in range(2)] + [threading.Thread(target=run, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    for one in store.list():
        assert store.verify(one.name).exit_code == 0
    assert len(store.list()) == 6


def test_a_damaged_cassette_stops_a_collection(tmp_path: Path) -> None:
    """What it refers to cannot be known, so nothing is removed."""
    store = Store(tmp_path)
    writer = store.create("one", meta={})
    record_large(writer, 1, noise(OBJECT_BYTES, 1))
    writer.close(meta={})
    (tmp_path / "cassettes" / "one" / "journal").write_bytes(b"nothing")
    before = files(tmp_path)
    with pytest.raises(Corrupt):
        store.gc()
    assert files(tmp_path) == before


def test_an_empty_store_has_nothing_to_collect(tmp_path: Path) -> None:
    """gc makes no store where there is none."""
    assert Store(tmp_path / "none").gc().files == ()
    assert not (tmp_path / "none").exists()

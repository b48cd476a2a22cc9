"""Export and import."""

from __future__ import annotations

import os
import subprocess
import zlib
from pathlib import Path

import pytest

from secondtake.cassettes import zipped
from secondtake.cassettes.cassette import State
from secondtake.cassettes.errors import Corrupt, NameTaken, NotFound, NotStored, RecordedError
from secondtake.cassettes.limits import OBJECT_BYTES
from secondtake.cassettes.store import Store
from secondtake.cassettes.zipped import Member
from tests.cassettes import faulty
from tests.cassettes.scenes import Scene, assert_holds, noise, prose, read_body, record, record_large, scene

WHAT = scene(4)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """A store with one cassette that has both kinds of object."""
    store = Store(tmp_path / "store")
    recorded(store, "one", WHAT)
    return store


def recorded(store: Store, name: str, what: Scene, *, close: bool = True) -> None:
    writer = store.create(name, meta={"created": "x"})
    record(writer, what)
    record_large(writer, 100, noise(OBJECT_BYTES, 1))
    record_large(writer, 101, prose(150_000, 1) * 10)
    if close:
        writer.close(meta={})
    else:
        writer.abandon()


def listed(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_same_content_same_bytes_whatever_the_name(store: Store, tmp_path: Path) -> None:
    """DESIGN 4, B-14: deterministic; a second export, of a copy under another name, from another store."""
    store.export("one", tmp_path / "a.take")
    store.export("one", tmp_path / "b.take")
    other = Store(tmp_path / "other")
    assert other.import_(tmp_path / "a.take", "two") == "two"
    other.export("two", tmp_path / "c.take")
    assert len({(tmp_path / name).read_bytes() for name in ("a.take", "b.take", "c.take")}) == 1
    assert (tmp_path / "a.take").stat().st_mode & 0o777 == 0o600


def test_an_imported_cassette_is_the_exported_one(store: Store, tmp_path: Path) -> None:
    """DESIGN 4: rows, exchanges, bodies, root, index; objects stored once."""
    store.export("one", tmp_path / "two.take")
    assert store.import_(tmp_path / "two.take") == "two"
    with store.open("one") as one, store.open("two") as two:
        assert (one.root, one.meta, list(one.rows)) == (two.root, two.meta, list(two.rows))
        for exchange, bodies in WHAT:
            assert_holds(two, exchange, bodies)
    folder = store.root / "cassettes"
    assert {name: (folder / "one" / name).read_bytes() for name in listed(folder / "one")} == {
        name: (folder / "two" / name).read_bytes() for name in listed(folder / "two")
    }
    assert store.verify("two").faults == ()
    with pytest.raises(NameTaken):
        store.import_(tmp_path / "two.take")


def test_an_exported_file_is_opened_where_it_lies(store: Store, tmp_path: Path) -> None:
    """DESIGN 7: NAME is a path to an exported file; nothing is written."""
    store.export("one", tmp_path / "x.take")
    before = listed(tmp_path)
    with Store(tmp_path / "none").open(str(tmp_path / "x.take")) as cassette:
        assert cassette.state is State.CLOSED
        for exchange, bodies in WHAT:
            assert_holds(cassette, exchange, bodies)
        for seq, data in ((100, noise(OBJECT_BYTES, 1)), (101, prose(150_000, 1) * 10)):
            answer = cassette.exchange(seq).answer
            assert answer is not None
            assert read_body(cassette, answer.body) == data
    assert Store(tmp_path / "none").verify(str(tmp_path / "x.take")).faults == ()
    assert listed(tmp_path) == before
    with pytest.raises(NotFound):
        store.open(str(tmp_path / "y.take"))


def test_a_stranger_checks_it_with_sha256sum(store: Store, tmp_path: Path) -> None:
    """B-03: unzip and sha256sum, no software of ours."""
    import zipfile

    store.export("one", tmp_path / "x.take")
    with zipfile.ZipFile(tmp_path / "x.take") as archive:
        archive.extractall(tmp_path / "out")
    checked = subprocess.run(["sha256sum", "--check", "--strict", "SHA256SUMS"], cwd=tmp_path / "out", capture_output=True, text=True)
    assert checked.returncode == 0, checked.stdout
    assert checked.stdout.count("OK") == 4
    assert b"sha256sum --check" in (tmp_path / "out" / "README.txt").read_bytes()


def test_a_died_cassette_is_exported_up_to_its_last_whole_record(tmp_path: Path) -> None:
    """DESIGN 4: a died cassette is as good as any."""
    store = Store(tmp_path / "store")
    recorded(store, "one", WHAT, close=False)
    path = store.root / "cassettes" / "one" / "journal"
    path.write_bytes(path.read_bytes() + b"torn")
    store.export("one", tmp_path / "two.take")
    store.import_(tmp_path / "two.take")
    with store.open("two") as cassette:
        assert cassette.state is State.DIED
        assert cassette.faults == ()
        assert len(cassette.rows) == 6


def test_nothing_is_exported_from_a_damaged_cassette(store: Store, tmp_path: Path) -> None:
    """Damage is an error, and leaves no half file."""
    for path in (store.root / "objects").rglob("*"):
        if path.is_file():
            data = bytearray(path.read_bytes())
            data[100] ^= 1
            path.chmod(0o600)
            path.write_bytes(data)
    with pytest.raises(Corrupt):
        store.export("one", tmp_path / "x.take")
    assert [name for name in listed(tmp_path) if "take" in name] == []


def rebuilt(path: Path, changed: dict[str, bytes | None]) -> bytes:
    """The zip with members put in, changed or left out, and every checksum of the zip right."""
    data = path.read_bytes()
    fd = os.open(path, os.O_RDONLY)
    from secondtake.cassettes.files import DiskFiles, Region

    members = zipped.read(Region(DiskFiles(), fd, 0, len(data)))
    os.close(fd)
    contents = {one.name: data[one.content_at : one.content_at + one.size_bytes] for one in members}
    for name, content in changed.items():
        if content is None:
            del contents[name]
        else:
            contents[name] = content
    placed, end = zipped.placed([Member(name, len(content), zlib.crc32(content)) for name, content in contents.items()])
    return b"".join(zipped.local_header(one) + contents[one.name] for one in placed) + zipped.directory(placed, end)


def test_a_hostile_file_is_refused_whole(store: Store, tmp_path: Path) -> None:
    """B4.7, B-12: wrong and missing objects, stowaways, other sums, another journal; nothing of it enters the store."""
    good = tmp_path / "good.take"
    store.export("one", good)
    objects = sorted(name for name in zipped_names(good) if name.startswith("objects/"))
    plain = next(name for name in objects if not name.endswith(".zst"))
    packed = next(name for name in objects if name.endswith(".zst"))
    stowaway = "objects/ab/" + "ab" * 32
    cases: dict[str, dict[str, bytes | None]] = {
        "other-content": {plain: noise(OBJECT_BYTES, 9)},
        "other-size": {plain: b"short"},
        "other-packed": {packed: noise(1000, 3)},
        "missing": {plain: None},
        "stowaway": {stowaway: b"x"},
        "no-sums": {"SHA256SUMS": None},
        "other-sums": {"SHA256SUMS": b"0" * 64 + b"  journal\n"},
        "other-readme": {"README.txt": b"run this"},
        "no-journal": {"journal": None},
        "empty-journal": {"journal": b""},
        "other-journal": {"journal": b"\x89take\r\n\n" + bytes(100)},
        "cut-journal": {"journal": store_journal(store)[:-200]},
    }
    before = sorted(str(path) for path in store.root.rglob("*"))
    for name, changed in cases.items():
        bad = tmp_path / f"{name}.take"
        bad.write_bytes(rebuilt(good, changed))
        with pytest.raises(RecordedError):
            store.import_(bad)
        assert store.verify(str(bad)).exit_code in (1, 2), name
    assert sorted(str(path) for path in store.root.rglob("*")) == before


def zipped_names(path: Path) -> list[str]:
    import zipfile

    with zipfile.ZipFile(path) as archive:
        return archive.namelist()


def store_journal(store: Store) -> bytes:
    return (store.root / "cassettes" / "one" / "journal").read_bytes()


@pytest.mark.anomaly
@pytest.mark.parametrize("way", [faulty.Way.ENOSPC, faulty.Way.SHORT, faulty.Way.STOP])
def test_an_import_or_export_that_fails_leaves_nothing_half(store: Store, tmp_path: Path, way: faulty.Way) -> None:
    """B4.1: at every operation; what is there is whole, and trying again works."""
    good = tmp_path / "good.take"
    store.export("one", good)
    for at in range(200):
        root = tmp_path / "other" / str(at)
        files = faulty.FaultyFiles(at, way)
        try:
            Store(root, files=files).import_(good, "two")
        except NotStored:
            assert files.count > at
        if files.count <= at:
            break
        other = Store(root)
        if "two" in {one.name for one in other.list()}:
            assert other.verify("two").exit_code == 0
        else:
            other.gc()
            assert other.import_(good, "two") == "two"
    else:
        pytest.fail("an import makes fewer operations")
    for at in range(200):
        files = faulty.FaultyFiles(at, way)
        path = tmp_path / "out.take"
        path.write_bytes(b"older")
        try:
            Store(store.root, files=files).export("one", path)
        except NotStored:
            pass
        assert path.read_bytes() in (b"older", good.read_bytes())
        if files.count <= at:
            break

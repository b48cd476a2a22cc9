"""Opening and reading: without an index, torn, or damaged."""

from __future__ import annotations

from pathlib import Path

import pytest

from secondtake.cassettes import merkle
from secondtake.cassettes.cassette import Severity, State
from secondtake.cassettes.digest import digest_of
from secondtake.cassettes.errors import Corrupt, NotFound, TooNew
from secondtake.cassettes.exchange import Body, Ending
from secondtake.cassettes.limits import OBJECT_BYTES
from secondtake.cassettes.store import Store
from tests.cassettes.scenes import Scene, assert_holds, noise, read_body, record, record_large, scene


def recorded(root: Path, what: Scene, *, close: bool = True) -> Path:
    """Record a scene, and return its journal."""
    writer = Store(root).create("one", meta={"created": "x"})
    record(writer, what)
    if close:
        writer.close(meta={})
    else:
        writer.abandon()
    return root / "cassettes" / "one" / "journal"


def test_a_journal_cut_at_any_byte_of_its_last_record_loses_only_that(tmp_path: Path) -> None:
    """B-13, B4.5: a torn tail is `incomplete_tail`, never `corrupt`."""
    what = scene(3)
    journal = recorded(tmp_path, what, close=False)
    store = Store(tmp_path)
    with store.open("one") as cassette:
        last = cassette._index.frame(2)
        before = cassette._index.frame(1)
    whole = journal.read_bytes()
    assert last.offset + last.length == len(whole)
    for size in range(before.offset + before.length, len(whole)):
        journal.write_bytes(whole[:size])
        with store.open("one") as cassette:
            assert cassette.state is State.DIED
            assert [row.seq for row in cassette.rows if row.ended is Ending.COMPLETE] == [0, 1]
            assert [fault.name for fault in cassette.faults] == ["incomplete_tail"]
    (journal.parent / "reserve").unlink()
    for size in range(before.offset + before.length, len(whole), 11):
        journal.write_bytes(whole[:size])
        with store.open("one") as cassette:
            assert all(fault.severity is Severity.WARNING for fault in cassette.faults)
            assert [row.seq for row in cassette.rows if row.ended is Ending.COMPLETE] == [0, 1]


def test_a_closed_journal_cut_anywhere_opens_or_says_why(tmp_path: Path) -> None:
    """B4.5: whatever is left is whole exchanges; with the index beside it, the loss is an error."""
    what = scene(4)
    journal = recorded(tmp_path, what)
    store = Store(tmp_path)
    whole = journal.read_bytes()
    for size in range(0, len(whole), 41):
        journal.write_bytes(whole[:size])
        if size < 16:
            with pytest.raises(Corrupt):
                store.open("one")
            assert store.verify("one").exit_code == 2
            continue
        with store.open("one") as cassette:
            assert cassette.state is State.DIED
            for number, row in enumerate(cassette.rows):
                if row.ended is Ending.COMPLETE:
                    assert cassette.exchange(row.seq) == what[number][0]
        report = store.verify("one")
        assert report.exit_code == 1
        assert {fault.name for fault in report.faults} == {"incomplete_tail"}


def test_damage_in_the_middle_is_corrupt_and_never_absence(tmp_path: Path) -> None:
    """B-13, DESIGN 4: without an index the damaged frame is named; with one, what is asked for is checked."""
    what = scene(4)
    journal = recorded(tmp_path, what)
    store = Store(tmp_path)
    with store.open("one") as cassette:
        place = cassette._index.frame(1)
    data = bytearray(journal.read_bytes())
    data[place.offset + place.length // 2] ^= 4
    journal.write_bytes(data)
    with store.open("one") as cassette:
        assert_holds(cassette, *what[2])
        with pytest.raises(Corrupt):
            cassette.exchange(1)
    (journal.parent / "index").unlink()
    with pytest.raises(Corrupt) as caught:
        store.open("one")
    assert [fault.offset for fault in caught.value.faults] == [place.offset]  # type: ignore[attr-defined]
    assert "verify" in (caught.value.hint or "")


def test_damage_of_what_was_durable_is_corrupt_in_a_died_cassette_too(tmp_path: Path) -> None:
    """B-13: a torn tail is where nothing was acknowledged; the mark in the reserve says where that is."""
    journal = recorded(tmp_path, scene(4), close=False)
    store = Store(tmp_path)
    with store.open("one") as cassette:
        place = cassette._index.frame(1)
    data = bytearray(journal.read_bytes())
    data[place.offset + 20] ^= 4
    journal.write_bytes(data)
    for _ in range(2):
        with pytest.raises(Corrupt):
            store.open("one")
        (journal.parent / "reserve").unlink(missing_ok=True)


def test_a_newer_format_is_refused_by_name(tmp_path: Path) -> None:
    """B-09."""
    import struct
    import zlib

    journal = recorded(tmp_path, scene(1))
    data = bytearray(journal.read_bytes())
    data[8] = 2
    data[12:16] = struct.pack("<I", zlib.crc32(bytes(data[:12])))
    journal.write_bytes(data)
    with pytest.raises(TooNew, match="version 2"):
        Store(tmp_path).open("one")
    report = Store(tmp_path).verify("one")
    assert ([fault.name for fault in report.faults], report.exit_code) == (["too_new"], 2)


def test_an_exchange_is_proved_to_be_under_the_root(tmp_path: Path) -> None:
    """B-06: with the record, its position, the path and the root alone."""
    recorded(tmp_path, scene(7))
    with Store(tmp_path).open("one") as cassette:
        assert cassette.root is not None
        for seq in range(7):
            position, size, path = cassette.proof(seq)
            record_bytes = cassette.record(position)
            assert merkle.proves(merkle.leaf(record_bytes), position, size, path, bytes.fromhex(cassette.root))
        with pytest.raises(NotFound):
            cassette.proof(99)


def test_a_died_cassette_has_the_root_of_what_is_whole(tmp_path: Path) -> None:
    """DESIGN 4: a take can refer to a died cassette by root and seq."""
    recorded(tmp_path / "a", scene(4), close=False)
    recorded(tmp_path / "b", scene(4))
    with Store(tmp_path / "a").open("one") as died, Store(tmp_path / "b").open("one") as closed:
        assert died.root == closed.root


def test_a_large_body_is_read_in_parts(tmp_path: Path) -> None:
    """DESIGN 8: never whole in memory."""
    store = Store(tmp_path)
    writer = store.create("one", meta={})
    data = noise(OBJECT_BYTES * 5, 2)
    one, _ = record_large(writer, 1, data)
    writer.close(meta={})
    assert one.answer is not None
    with store.open("one") as cassette:
        source = cassette.body(one.answer.body)
        assert source.size_bytes == len(data)
        assert b"".join(source.read(at, 10_000) for at in range(0, len(data), 10_000)) == data
        with pytest.raises(Corrupt):
            cassette.body(Body(one.answer.body.digest, 5))


def test_a_body_that_lies_about_its_size_is_damage(tmp_path: Path) -> None:
    """B4.7: what an exchange says of a body is compared with the body."""
    what = scene(2)
    recorded(tmp_path, what)
    with Store(tmp_path).open("one") as cassette:
        good = what[0][0].request.body
        assert digest_of(read_body(cassette, good)) == good.digest
        with pytest.raises(Corrupt):
            cassette.body(Body(good.digest, good.size_bytes + 1))

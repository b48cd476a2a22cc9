"""The index: a cache that is never believed against the journal."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from secondtake.cassettes import index
from secondtake.cassettes.cassette import State
from secondtake.cassettes.digest import digest_of
from secondtake.cassettes.errors import Corrupt
from secondtake.cassettes.exchange import EMPTY, Digest
from secondtake.cassettes.index import NOWHERE, IndexBuilder, Rows
from secondtake.cassettes.journal import Place
from secondtake.cassettes.store import Store
from tests.cassettes.scenes import assert_holds, exchange, record, scene


def built(count: int) -> index.Index:
    builder = IndexBuilder()
    for seq in range(count):
        one = exchange(seq, b"sent %d" % (seq % 700), b"received %d" % seq)
        builder.add(one, Place(100 + seq, 50), Place(1000 + seq % 700, 9), Place(20_000 + seq, 9))
    return builder.index()


def test_an_index_is_read_back() -> None:
    """B-08: columns, texts and places."""
    made = built(50)
    again, (size, close, checksum) = index.unpack(made.pack(12345, Place(777, 88), 99))
    assert (size, close, checksum) == (12345, Place(777, 88), 99)
    assert list(Rows(again)) == list(Rows(made))
    assert [again.frame(number) for number in range(50)] == [Place(100 + number, 50) for number in range(50)]
    assert list(again.bodies()) == list(made.bodies())
    assert again.pack(12345, Place(777, 88), 99) == made.pack(12345, Place(777, 88), 99)


def test_bodies_are_found_by_digest() -> None:
    """First place wins; what is not there is not found."""
    made = built(1500)
    for seq in range(0, 1500, 7):
        assert made.body(digest_of(b"received %d" % seq)) == Place(20_000 + seq, 9)
        assert made.body(digest_of(b"sent %d" % (seq % 700))) == Place(1000 + seq % 700, 9)
    assert made.body(digest_of(b"never")) is None
    assert made.body(Digest("no digest")) is None
    assert IndexBuilder().index().body(EMPTY) is None


def test_five_thousand_rows_are_loaded_at_once() -> None:
    """DESIGN 8, T-J2: loading does not unpack rows; ten times the goal is allowed here, for machines that are busy."""
    packed = built(5000).pack(1, Place(16, 20), 0)
    assert len(packed) < 5000 * 260
    begin = time.perf_counter()
    made, _ = index.unpack(packed)
    assert time.perf_counter() - begin < 0.1
    assert len(made) == 5000


def test_losing_the_index_costs_time_only_and_it_is_rebuilt_to_the_byte(tmp_path: Path) -> None:
    """B-08: delete it, damage it at any byte, or give it another's."""
    store = Store(tmp_path)
    what = scene(5)
    for name in ("one", "two"):
        writer = store.create(name, meta={"name": name})
        record(writer, what[: 5 if name == "one" else 3])
        writer.close(meta={})
    path = tmp_path / "cassettes" / "one" / "index"
    good = path.read_bytes()
    with store.open("one") as cassette:
        rows = list(cassette.rows)
        assert cassette.packed_index() == good
    other = (tmp_path / "cassettes" / "two" / "index").read_bytes()
    for bad in (None, b"", b"x" * 100, good[:-1], good + b"x", other, *(_flipped(good, at) for at in range(0, len(good), 97))):
        if bad is None:
            path.unlink()
        else:
            path.write_bytes(bad)
        with store.open("one") as cassette:
            assert cassette.state is State.CLOSED
            assert list(cassette.rows) == rows
            assert_holds(cassette, *what[4])
            assert cassette.packed_index() == good
        report = store.verify("one", quick=True)
        assert [fault.name for fault in report.faults] == ([] if bad is None else ["index_stale"])
        assert report.exit_code == 0


def _flipped(data: bytes, at: int) -> bytes:
    made = bytearray(data)
    made[at] ^= 1 << at % 8
    return bytes(made)


def test_an_index_that_lies_about_places_gives_no_wrong_exchange(tmp_path: Path) -> None:
    """B4.7: whole by its checksum, and still not believed."""
    store = Store(tmp_path)
    what = scene(3)
    writer = store.create("one", meta={})
    record(writer, what)
    writer.close(meta={})
    path = tmp_path / "cassettes" / "one" / "index"
    made, (size, close, checksum) = index.unpack(path.read_bytes())
    builder = IndexBuilder()
    frames = [made.frame(number) for number in (1, 0, 2)]
    for (one, _), place in zip(what, frames, strict=True):
        builder.add(one, place, Place(16, 30), NOWHERE)
    path.write_bytes(builder.index().pack(size, close, checksum))
    with store.open("one") as cassette:
        with pytest.raises(Corrupt):
            cassette.exchange(0)
        with pytest.raises(Corrupt):
            cassette.body(what[0][0].request.body)
    assert [fault.name for fault in store.verify("one").faults] == ["index_stale"]


@given(st.data())
def test_columns_that_do_not_fit_are_damage(data: st.DataObject) -> None:
    """B4.8: a well-formed index of hostile columns never crashes a reader."""
    from secondtake.cassettes import layout

    packed = built(4).pack(1, Place(16, 20), 0)
    made = layout.mapping(layout.unpack(packed[16:]))
    columns = dict(layout.mapping(made["columns"]))
    name = data.draw(st.sampled_from(sorted(columns)))
    columns[name] = data.draw(st.binary(max_size=40))
    content = layout.pack({**made, "columns": columns})
    import zlib

    hostile = index._PREFACE.pack(index.MAGIC, index.VERSION, zlib.crc32(content)) + content
    try:
        read, _ = index.unpack(hostile)
    except Corrupt:
        return
    list(Rows(read))
    list(read.bodies())

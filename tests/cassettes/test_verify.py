"""Finding every kind of damage, and naming it."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from secondtake.cassettes import codec, index, journal, layout, merkle, verify
from secondtake.cassettes.cassette import Severity, State
from secondtake.cassettes.digest import digest_of, raw
from secondtake.cassettes.errors import BadInput, NotFound, RecordedError
from secondtake.cassettes.exchange import Exchange
from secondtake.cassettes.journal import FrameWriter, Kind, Place
from secondtake.cassettes.limits import OBJECT_BYTES
from secondtake.cassettes.store import Store
from tests.cassettes import scenes
from tests.cassettes.scenes import Scene, noise, prose, record, record_large, scene


def golden(root: Path, what: Scene) -> Store:
    """A closed cassette with a large body."""
    store = Store(root)
    writer = store.create("one", meta={"created": "x"})
    record(writer, what)
    record_large(writer, 100, noise(OBJECT_BYTES, 1))
    writer.close(meta={})
    return store


def test_a_whole_cassette_has_no_fault(tmp_path: Path) -> None:
    """B-04: exit code 0, and what was read is counted."""
    store = golden(tmp_path, scene(4))
    report = store.verify("one")
    assert (report.faults, report.exit_code, report.exchanges, report.state) == ((), 0, 5, State.CLOSED)
    assert report.checked_bytes > OBJECT_BYTES
    with pytest.raises(NotFound):
        store.verify("two")


def test_every_flipped_bit_is_noticed_and_none_gives_other_data(tmp_path: Path) -> None:
    """B4.4: each bit of the journal's metadata, one bit in 64 bytes of bodies, every byte of the index; never a crash."""
    what = scene(3)
    store = golden(tmp_path, what)
    model = {one.seq: (one, bodies) for one, bodies in what}
    folder = tmp_path / "cassettes" / "one"
    with store.open("one") as cassette:
        bodies = [place for _, place in cassette._index.bodies() if place.offset > 2]
    path = folder / "journal"
    good = path.read_bytes()
    rng = random.Random(2)
    inside = {at for place in bodies for at in range(place.offset + journal.HEADER_BYTES, place.offset + place.length)}
    chosen = [at for at in range(len(good)) if (at % 64 == 0 if at in inside else at % 3 == 0)]
    for at in chosen:
        data = bytearray(good)
        data[at] ^= 1 << rng.randrange(8)
        path.write_bytes(data)
        report = store.verify("one")
        assert report.exit_code in (1, 2), at
        if rng.random() < 0.1:
            _never_other_data(store, model)
            (folder / "index").rename(folder / "kept")
            _never_other_data(store, model)
            (folder / "kept").rename(folder / "index")


def _never_other_data(store: Store, model: dict[int, tuple]) -> None:  # type: ignore[type-arg]
    try:
        with store.open("one") as cassette:
            for seq, (one, bodies) in model.items():
                try:
                    assert cassette.exchange(seq) == one or cassette.exchange(seq).answer is None
                    for of in (one.request.body, one.answer.body):
                        if of.digest in bodies:
                            assert scenes.read_body(cassette, of) == bodies[of.digest]
                except RecordedError:
                    pass
    except RecordedError:
        pass


def test_a_part_of_the_bodies_can_be_read_at_a_time(tmp_path: Path) -> None:
    """B-04: n of t; all parts together read every body once."""
    store = golden(tmp_path, scene(8))
    whole = store.verify("one").bodies
    assert sum(store.verify("one", subset=(part, 3)).bodies for part in (1, 2, 3)) == whole
    for bad in ((0, 3), (4, 3), (1, 0)):
        with pytest.raises(BadInput):
            store.verify("one", subset=bad)
    (path,) = [path for path in (tmp_path / "objects").rglob("*") if path.is_file()]
    path.chmod(0o600)
    path.write_bytes(noise(OBJECT_BYTES, 2))
    assert [store.verify("one", subset=(part, 3)).exit_code for part in (1, 2, 3)].count(1) == 1
    assert store.verify("one", quick=True).exit_code == 0


def test_the_root_kept_elsewhere_finds_every_change(tmp_path: Path) -> None:
    """B-06: added, removed, reordered, altered; a rewritten journal with a root of its own is only found by the other root."""
    what = scene(5)
    store = golden(tmp_path / "a", what)
    root = store.verify("one").root
    assert store.verify("one", root=root).exit_code == 0
    others = {
        "added": [*what, scene(6)[5]],
        "removed": what[:4],
        "reordered": [what[1], what[0], *what[2:]],
        "altered": [*what[:4], (scenes.numbered(what[4][0], 9), what[4][1])],
    }
    for name, other in others.items():
        forged = golden(tmp_path / name, other)
        assert forged.verify("one").exit_code == 0
        report = forged.verify("one", root=root)
        assert [fault.name for fault in report.faults] == ["root_differs"]
        assert report.exit_code == 1
    with pytest.raises(BadInput):
        store.verify("one", root="abc")


class Forger:
    """Writes journals that are whole frame by frame, and wrong."""

    def __init__(self) -> None:
        self.frames = FrameWriter()
        self.data = journal.preface()
        self.tree = merkle.Tree()
        self.add(Kind.START, layout.pack({"meta": {}}))

    def add(self, kind: Kind, payload: bytes) -> Place:
        made = self.frames.make(kind, payload, len(self.data)) if kind is not Kind.BODY else journal.frame(kind, 0, len(self.data), payload)
        place = Place(len(self.data), len(made))
        self.data += made
        return place

    def end(self, one: Exchange, request_at: Place = index.NOWHERE, response_at: Place = index.NOWHERE) -> None:
        record_bytes = layout.pack_exchange(one)
        self.tree.append(merkle.leaf(record_bytes))
        self.add(Kind.END, layout.pack([record_bytes, list(request_at), list(response_at)]))

    def close(self, folder: Path, **changed: object) -> Store:
        made = {"state": "closed", "exchanges": self.tree.size, "root": self.tree.root(), "meta": {}, **changed}
        self.add(Kind.CLOSE, layout.pack(made))
        place = folder / "cassettes" / "one"
        place.mkdir(parents=True)
        (place / "journal").write_bytes(self.data)
        return Store(folder)


def names(store: Store) -> list[str]:
    return sorted({fault.name for fault in store.verify("one").faults})


def test_a_forged_journal_is_named_fault_by_fault(tmp_path: Path) -> None:
    """B-04, B4.7: each with a stable name, the exchange and the offset."""
    sent = prose(500, 1)
    one = scenes.exchange(1, sent)
    body = codec.pack(codec.Encoded(digest_of(sent), len(sent), codec.Encoding.PLAIN, sent))

    forger = Forger()
    forger.end(one)
    assert names(forger.close(tmp_path / "missing")) == ["body_missing"]

    forger = Forger()
    at = forger.add(Kind.BODY, body)
    forger.end(one, at)
    forger.end(one, at)
    store = forger.close(tmp_path / "twice")
    assert names(store) == ["repeated_seq"]
    fault = store.verify("one").faults[0]
    assert (fault.seq, fault.severity) == (1, Severity.ERROR)
    assert fault.offset is not None
    assert "seq=1" in str(fault)

    forger = Forger()
    forger.end(one, Place(16, 30))
    assert names(forger.close(tmp_path / "elsewhere")) == ["body_damaged"]

    forger = Forger()
    forger.end(one, index.PLAIN_OBJECT)
    assert names(forger.close(tmp_path / "no-object")) == ["object_missing"]

    forger = Forger()
    at = forger.add(Kind.BODY, body)
    forger.end(one, at)
    cases: dict[str, dict[str, object]] = {"count": {"exchanges": 2}, "root": {"root": bytes(32)}}
    for name, changed in cases.items():
        again = Forger()
        again.end(one, again.add(Kind.BODY, body))
        assert names(again.close(tmp_path / name, **changed)) == ["root_mismatch"]

    for name, payload in {
        "not-a-record": b"\x01",
        "wrong-shape": layout.pack([b"x"]),
        "no-exchange": layout.pack([b"\x80", [2, 0], [2, 0]]),
    }.items():
        again = Forger()
        again.add(Kind.END, payload)
        assert "damaged_frame" in names(again.close(tmp_path / name))

    again = Forger()
    again.close(tmp_path / "unused")
    again.end(one)
    again.data += again.frames.make(Kind.START, b"\x80", len(again.data))
    folder = tmp_path / "behind" / "cassettes" / "one"
    folder.mkdir(parents=True)
    (folder / "journal").write_bytes(again.data)
    assert "damaged_frame" in names(Store(tmp_path / "behind"))


def test_a_record_in_another_encoding_is_a_warning(tmp_path: Path) -> None:
    """DESIGN 4: the leaf is the canonical record; what another program wrote is whole, and named."""
    import msgpack

    one = scenes.exchange(1)
    made = msgpack.unpackb(layout.pack_exchange(one))
    turned = layout.pack(dict(reversed(made.items())))
    forger = Forger()
    forger.tree.append(merkle.leaf(turned))
    forger.add(Kind.END, layout.pack([turned, [2, 0], [2, 0]]))
    store = forger.close(tmp_path)
    assert names(store) == ["not_canonical"]
    assert store.verify("one").exit_code == 0


def test_kinds_of_a_later_minor_version_are_skipped(tmp_path: Path) -> None:
    """B-09: an unknown frame is checked and passed over; an artifact of any kind is taken."""
    forger = Forger()
    forger.end(scenes.exchange(1))
    forger.add(Kind.OBJECT, layout.pack(["envelope", raw(digest_of(b"{}")), b"{}"]))
    forger.data += journal.frame(77, 0, len(forger.data), b"later")
    store = forger.close(tmp_path)
    assert names(store) == []
    with store.open("one") as cassette:
        assert len(cassette.rows) == 1


def test_every_fault_has_its_sentence() -> None:
    """B-04: names are stable and explained."""
    import re

    source = Path(verify.__file__).read_text() + Path(verify.__file__).with_name("scanning.py").read_text()
    source += Path(verify.__file__).with_name("bundle.py").read_text()
    raised = set(re.findall(r'Fault\(\s*"([a-z_]+)"', source)) | {"too_new", "unreadable"}
    assert raised == set(verify.FAULTS)
    page = (Path(__file__).parents[2] / "docs" / "format.md").read_text()
    assert all(f"`{name}`" in page for name in verify.FAULTS)

"""Artifacts: kept beside the exchanges, once, whole, found again in every state of a cassette, and missed when they are gone."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from secondtake.cassettes import artifacts, layout, trees
from secondtake.cassettes.artifacts import Artifact, Placed, Record, Table
from secondtake.cassettes.cassette import Cassette, State
from secondtake.cassettes.digest import digest_of
from secondtake.cassettes.errors import BadInput, Corrupt, NotFound, NotStored
from secondtake.cassettes.exchange import Digest
from secondtake.cassettes.journal import Place
from secondtake.cassettes.limits import OBJECT_BYTES
from secondtake.cassettes.records import End
from secondtake.cassettes.store import Store
from secondtake.cassettes.trees import Entry, Node, tree_of
from tests.cassettes.faulty import FaultyFiles, Way
from tests.cassettes.scenes import assert_holds, commit, noise, prose, record, scene

LARGE = noise(OBJECT_BYTES + 9, 4)


def tree(count: int, changed: int = -1) -> trees.Tree:
    """A tree of `count` files, one of them unlike in each state."""
    return tree_of(
        Entry(b"src/file-%04d.py" % n, Node.FILE, 0o644, digest_of(b"%d" % (-n if n == changed else n)), 100 + n) for n in range(count)
    )


def kept(store: Store, name: str = "one") -> dict[str, bytes]:
    """A recording with an artifact of every way to be kept; what each must read back as."""
    writer = store.create(name, meta={})
    what = scene(2)
    contents = [b"", b"print('hello')\n", prose(9000, 1), LARGE, prose(200_000, 2) * 50]
    made = {writer.keep("blob", content): content for content in contents}
    record(writer, what)
    for number in range(3):
        for content in (b"%d" % n for n in range(-3, 60)):
            made[writer.keep("blob", content)] = content
        data = trees.encode(tree(60, number))
        made[writer.keep("tree", data)] = data
    made[writer.keep("envelope", b"{}")] = b"{}"
    writer.close(meta={})
    assert writer.failed is None
    return {str(digest): content for digest, content in made.items()}


def read(cassette: Cassette) -> dict[str, bytes]:
    return {str(one.digest): cassette.artifact(one.digest) for one in cassette.artifacts}


def test_what_is_kept_reads_back_by_its_digest_with_and_without_the_index(tmp_path: Path) -> None:
    """Issue 5: trees, files and the envelope stand beside the exchanges; the journal alone makes the index, byte for byte."""
    store = Store(tmp_path)
    made = kept(store)
    with store.open("one") as cassette:
        assert read(cassette) == made
        assert {one.kind for one in cassette.artifacts} == {"blob", "tree", "envelope"}
        assert all(one.size_bytes == len(made[one.digest]) for one in cassette.artifacts)
        for one, bodies in scene(2):
            assert_holds(cassette, one, bodies)
        with pytest.raises(NotFound, match="no artifact"):
            cassette.artifact(digest_of(b"never kept"))
        with pytest.raises(NotFound):
            cassette.artifact(Digest("../../etc/passwd"))
    assert store.verify("one").faults == ()
    place = tmp_path / "cassettes" / "one" / "index"
    index = place.read_bytes()
    place.unlink()
    with store.open("one") as cassette:
        assert read(cassette) == made
        assert cassette.packed_index() == index


def test_a_tree_that_differs_in_one_entry_costs_little(tmp_path: Path) -> None:
    """DESIGN 6: a tree a turn is affordable: the second of 2,000 entries takes a hundredth of the first."""
    store = Store(tmp_path)
    sizes = []
    for states in (1, 11):
        writer = store.create(f"states-{states}", meta={})
        for number in range(states):
            writer.keep("tree", trees.encode(tree(2000, number)))
        writer.close(meta={})
        sizes.append((tmp_path / "cassettes" / f"states-{states}" / "journal").stat().st_size)
    assert sizes[1] - sizes[0] < 10 * sizes[0] / 50


def test_the_same_bytes_are_kept_once_from_any_thread(tmp_path: Path) -> None:
    """Contract: any thread, once per digest."""
    store = Store(tmp_path)
    writer = store.create("one", meta={})
    threads = [threading.Thread(target=lambda: [writer.keep("blob", b"%d" % n) for n in range(200)]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    writer.close(meta={})
    with store.open("one") as cassette:
        assert sorted(int(cassette.artifact(one.digest)) for one in cassette.artifacts) == list(range(200))
    assert writer.backlog_bytes == 0


def test_a_commit_does_not_wait_for_a_workspace_being_kept(tmp_path: Path) -> None:
    """DESIGN 6: the wire is never slowed: an exchange that ends while thousands of files wait is answered before they are written."""
    store = Store(tmp_path)
    writer = store.create("one", meta={})
    held, answered = threading.Event(), threading.Event()
    left: list[tuple[NotStored | None, int]] = []
    (first, bodies), (second, more) = scene(2)

    def hold(error: NotStored | None) -> None:
        assert held.wait(30)

    writer.commit(End(first, bodies), hold)
    for number in range(4000):
        writer.keep("blob", b"%d" % number * 200)

    def done(error: NotStored | None) -> None:
        left.append((error, writer.backlog_bytes))
        answered.set()

    writer.commit(End(second, more), done)
    waiting = writer.backlog_bytes
    held.set()
    assert answered.wait(30)
    assert left[0][0] is None
    assert left[0][1] > waiting // 2
    writer.close(meta={})
    with store.open("one") as cassette:
        assert len(cassette.artifacts) == 4000


def test_export_import_and_gc_take_artifacts_along(tmp_path: Path) -> None:
    """DESIGN 4: one file holds all; objects that only artifacts refer to are not garbage."""
    store, other = Store(tmp_path / "a"), Store(tmp_path / "b")
    made = kept(store)
    assert store.gc().files == ()
    store.export("one", tmp_path / "one.take")
    with store.open(str(tmp_path / "one.take")) as cassette:
        assert read(cassette) == made
    other.import_(tmp_path / "one.take")
    with other.open("one") as cassette:
        assert read(cassette) == made
    other.export("one", tmp_path / "again.take")
    assert (tmp_path / "again.take").read_bytes() == (tmp_path / "one.take").read_bytes()
    store.remove("one")
    assert any(name.startswith("objects/") for name in store.gc().files)


def test_a_died_recording_keeps_the_whole_ones(tmp_path: Path) -> None:
    """B-02: what was durable is found, a torn tail takes only itself."""
    store = Store(tmp_path)
    writer = store.create("one", meta={})
    first = [writer.keep("blob", b"%d" % number * 50) for number in range(20)]
    assert commit(writer, *scene(1)[0]) is None
    while writer.backlog_bytes:  # until the writer has had its turn
        assert commit(writer, *scene(1)[0]) is None
    writer.abandon()
    journal = tmp_path / "cassettes" / "one" / "journal"
    journal.write_bytes(journal.read_bytes() + b"\xf5\x1e\x05\x00\xff\x00\x00\x00torn")
    with store.open("one") as cassette:
        assert cassette.state is State.DIED
        assert [one.digest for one in cassette.artifacts] == first
        assert cassette.artifact(first[3]) == b"3" * 50
    assert store.verify("one").readable


@pytest.mark.parametrize("at", [0, 1, 2, 3])
def test_damage_is_an_error_and_never_absence(tmp_path: Path, at: int) -> None:
    """B-04: a flipped byte in an artifact's frame, body or object is named by `verify` and never given out."""
    store = Store(tmp_path)
    made = kept(store)
    journal = tmp_path / "cassettes" / "one" / "journal"
    data = journal.read_bytes()
    with store.open("one") as cassette:
        table = [row for row in cassette._index.artifacts if row.artifact.size_bytes > 20]
        row = {0: table[0], 1: next(r for r in table if r.artifact.kind == "tree")}.get(at)
        stored = [r for r in table if r.content_at.offset < 2 and r.content_at.length == 0]
    if row is not None:
        place = row.at if row.content_at == artifacts.INSIDE else row.content_at
        middle = place.offset + place.length // 2
        journal.write_bytes(data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :])
    else:
        row = stored[at - 2]
        (file,) = (tmp_path / "objects").rglob(f"{row.artifact.digest}*")
        file.chmod(0o600)
        damaged = bytearray(file.read_bytes())
        damaged[len(damaged) // 2] ^= 1
        file.write_bytes(damaged)
    assert store.verify("one").damaged
    with store.open("one") as cassette:
        for digest, content in made.items():
            try:
                assert cassette.artifact(Digest(digest)) == content
            except Corrupt:
                continue
        with pytest.raises(Corrupt):
            cassette.artifact(row.artifact.digest)


def test_a_tree_or_a_stage_that_names_what_is_not_there_is_a_fault(tmp_path: Path) -> None:
    """Issue 5: a missing artifact is found by `verify`, not by the restore of an incident."""
    store = Store(tmp_path)
    writer = store.create("one", meta={})
    named = writer.keep("tree", trees.encode(tree_of([Entry(b"a", Node.FILE, 0o644, writer.keep("blob", b"a"), 1)])))
    writer.close(meta={"stage": {"workspace": named}})
    assert store.verify("one").faults == ()
    writer = store.create("two", meta={})
    writer.keep("tree", trees.encode(tree_of([Entry(b"a", Node.FILE, 0o644, digest_of(b"a"), 1)])))
    writer.close(meta={"stage": {"workspace": named}})
    assert [fault.name for fault in store.verify("two").faults] == ["artifact_missing"]
    writer = store.create("three", meta={})
    writer.close(meta={"stage": {"final": named}})
    assert [fault.name for fault in store.verify("three").faults] == ["artifact_missing"]
    assert store.verify("three").exit_code == 1


def test_a_take_is_whole_without_the_content_that_it_began_with(tmp_path: Path) -> None:
    """Issue 6: a take keeps what changed; the rest of its trees lies in its fixture, and `verify` does not miss it."""
    store = Store(tmp_path)
    began = Entry(b"a", Node.FILE, 0o644, digest_of(b"a"), 1)
    for name, kind, missing in (("take", "take", 0), ("recording", None, 2), ("lost", "take", 1)):
        writer = store.create(name, meta={"kind": kind} if kind is not None else {})
        start = writer.keep("tree", trees.encode(tree_of([began])))
        new = digest_of(b"gone") if name == "lost" else writer.keep("blob", b"new")
        final = writer.keep("tree", trees.encode(tree_of([began, Entry(b"b", Node.FILE, 0o644, new, 3)])))
        writer.close(meta={"stage": {"workspace": start, "final": final}})
        assert [fault.name for fault in store.verify(name).faults] == ["artifact_missing"] * missing


def test_an_operation_that_fails_costs_no_acknowledged_exchange(tmp_path: Path) -> None:
    """B-01, B-05: a full disk while a workspace is kept ends the recording as any other failure does."""
    files = FaultyFiles()
    _perform(Store(tmp_path / "count", files=files), [])
    for at in range(files.count):
        acknowledged: list[int] = []
        root = tmp_path / str(at)
        try:
            _perform(Store(root, files=FaultyFiles(at, Way.ENOSPC)), acknowledged)
        except NotStored:
            assert not acknowledged
            continue
        store = Store(root)
        with store.open("one") as cassette:
            assert set(acknowledged) <= {row.seq for row in cassette.rows}
            for one in cassette.artifacts:
                cassette.artifact(one.digest)
        assert not store.verify("one").damaged
        assert list(root.glob("cassettes/one/spool-*")) == []


def _perform(store: Store, acknowledged: list[int]) -> None:
    what = scene(2)
    writer = store.create("one", meta={})
    writer.keep("blob", b"small")
    writer.keep("blob", LARGE)
    for number in range(20):
        writer.keep("blob", b"%d" % number)
    writer.keep("tree", trees.encode(tree(20)))
    for one, bodies in what:
        if commit(writer, one, bodies) is None:
            acknowledged.append(one.seq)
    writer.close(meta={})


@given(st.lists(st.tuples(st.sampled_from(["blob", "tree", "x-1"]), st.binary(max_size=40)), max_size=20))
def test_the_table_is_what_was_added_to_it(rows: list[tuple[str, bytes]]) -> None:
    """The index's part: packed and read again it is the same, the first of one digest counts."""
    table = Table()
    expected: dict[Digest, Placed] = {}
    for number, (kind, content) in enumerate(rows):
        found = Artifact(kind, digest_of(content), len(content))
        table.add(Record(found, content, artifacts.INSIDE), Place(number, 12))
        expected.setdefault(found.digest, Placed(found, Place(number, 12), artifacts.INSIDE))
    again = artifacts.from_index(layout.unpack(layout.pack(table.packed())))
    assert list(again) == list(table) == list(expected.values())
    assert again[0:2] == list(expected.values())[:2]
    for digest, placed in expected.items():
        assert again.find(digest) == placed
    assert again.find(digest_of(b"x" * 99)) is None


@pytest.mark.parametrize(
    "value",
    [[1], [1, 2, 3], ["blob", b"short", b""], ["blob", bytes(32), None], ["blob", bytes(32), None, [1], 3], ["", bytes(32), b""], "x"],
)
def test_a_record_that_is_none_is_damage(value: object) -> None:
    """B-11: nothing else is raised, whatever a stranger wrote."""
    with pytest.raises(Corrupt):
        artifacts.unpack(layout.pack(value))


def test_a_kind_has_a_name(tmp_path: Path) -> None:
    """format.md: 1 to 64 letters, digits, dots and hyphens."""
    for bad in ("", "a b", "x" * 65, "é", "a/b"):
        with pytest.raises(BadInput):
            artifacts.check_kind(bad)
    assert artifacts.check_kind("exec.log-1") == "exec.log-1"
    with pytest.raises(Corrupt):
        artifacts.from_index({"kinds": [], "rows": b"123"})

"""The store as a whole: recording, opening, naming, locking, removing."""

from __future__ import annotations

import os
import resource
import stat
import threading
import time
from pathlib import Path

import pytest

from secondtake.cassettes.cassette import State
from secondtake.cassettes.digest import digest_of
from secondtake.cassettes.errors import BadInput, Corrupt, Locked, NameTaken, NotFound, NotStored, TooLarge
from secondtake.cassettes.exchange import Answer, Body, Channel, Ending, Exchange
from secondtake.cassettes.files import DiskFiles
from secondtake.cassettes.limits import META_BYTES, NAME_BYTES, OBJECT_BYTES
from secondtake.cassettes.records import End
from secondtake.cassettes.store import Store
from tests.cassettes.scenes import assert_holds, commit, exchange, head, noise, prose, record, record_large, request, scene, transcript


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


def test_what_was_recorded_is_read_back(store: Store) -> None:
    """B4.9: write and read are inverse, with every kind of field in use."""
    what = scene(12)
    writer = store.create("one", meta={"created": "2024-01-01", "n": 1})
    record(writer, what)
    root = writer.close(meta={"n": 2})
    assert writer.failed is None
    with store.open("one") as cassette:
        assert cassette.state is State.CLOSED
        assert cassette.root == root == writer.root
        assert cassette.meta == {"created": "2024-01-01", "n": 2}
        assert cassette.format == 1
        assert [row.seq for row in cassette.rows] == list(range(12))
        for one, bodies in what:
            assert_holds(cassette, one, bodies)


def test_a_row_says_what_its_exchange_says(store: Store) -> None:
    """The index and the record agree in every column."""
    what = scene(6)
    silent = Exchange(6, Channel.WEB, 9, request(b"/\xff?q"), None, Ending.REFUSED, 10)
    made = Exchange(7, Channel.WEB, 9, request(b"/"), Answer(502, synthetic=True), Ending.RESET, 10)
    writer = store.create("one", meta={})
    record(writer, [*what, (silent, {}), (made, {})])
    writer.close(meta={})
    with store.open("one") as cassette:
        for row in cassette.rows:
            one = cassette.exchange(row.seq)
            answer = one.answer or Answer(0)
            assert (row.channel, row.method, row.scheme, row.host, row.port, row.path) == (
                one.channel,
                one.request.method,
                one.request.scheme,
                one.request.host,
                one.request.port,
                one.request.path,
            )
            assert (row.ended, row.keys, row.started_us, row.synthetic) == (one.ended, one.keys, one.started_us, answer.synthetic)
            assert (row.request_digest, row.request_size) == (one.request.body.digest, one.request.body.size_bytes)
            assert (row.response_digest, row.response_size) == (answer.body.digest, answer.body.size_bytes)
            assert row.status == (one.answer.status if one.answer else None)
        assert cassette.rows[-1].seq == 7
        assert [row.seq for row in cassette.rows[2:4]] == [2, 3]
        with pytest.raises(IndexError):
            cassette.rows[8]


def test_an_exchange_or_body_that_is_not_there_is_not_found(store: Store) -> None:
    """errors.py: NotFound for what was never kept."""
    writer = store.create("one", meta={})
    record(writer, scene(1))
    writer.close(meta={})
    with store.open("one") as cassette:
        with pytest.raises(NotFound):
            cassette.exchange(5)
        with pytest.raises(NotFound):
            cassette.body(Body(digest_of(b"other"), 5))


def test_a_reader_while_recording_keeps_its_snapshot(store: Store) -> None:
    """T-L4, B-10: readers never wait, never hinder the writer, and see what was there when they opened."""
    what = scene(6)
    writer = store.create("one", meta={})
    record(writer, what[:3])
    writer.write([head(what[3][0])])
    with store.open("one") as early:
        record(writer, what[3:])
        assert early.state is State.RECORDING
        assert early.root is None
        assert len(early.rows) == 3
        for one, bodies in what[:3]:
            assert_holds(early, one, bodies)
        with store.open("one") as late:
            assert len(late.rows) == 6
        assert store.verify("one").faults == ()
    writer.close(meta={})


def test_a_second_recorder_is_refused_by_the_lock(store: Store) -> None:
    """T-L4, B-10, C: two recorders on one cassette."""
    writer = store.create("one", meta={})
    for replace in (False, True):
        with pytest.raises(Locked):
            store.create("one", meta={}, replace=replace)
    with pytest.raises(Locked):
        store.remove("one")
    with pytest.raises(Locked):
        store.export("one", store.root / "x.take")
    writer.close(meta={})
    with pytest.raises(NameTaken):
        store.create("one", meta={})


def test_two_recordings_run_beside_each_other(store: Store) -> None:
    """B4.6: locks are per cassette."""
    writers = [store.create(f"run-{number}", meta={}) for number in range(3)]
    threads = [threading.Thread(target=record, args=(writer, scene(5, seed))) for seed, writer in enumerate(writers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for writer in writers:
        writer.close(meta={})
    assert [(one.state, one.exchanges) for one in store.list()] == [(State.CLOSED, 5)] * 3


def test_replacing_leaves_only_the_new_one(store: Store) -> None:
    """DESIGN 4: an existing name is refused, or replaced when asked."""
    writer = store.create("one", meta={"take": 1})
    record(writer, scene(2))
    writer.close(meta={})
    with store.open("one") as old:
        writer = store.create("one", meta={"take": 2}, replace=True)
        writer.close(meta={})
        assert_holds(old, *scene(2)[0])
    with store.open("one") as cassette:
        assert cassette.meta == {"take": 2}
        assert len(cassette.rows) == 0
    assert [path.name for path in (store.root / "cassettes").iterdir()] == ["one"]


def test_names_that_differ_in_case_only_clash(store: Store) -> None:
    """B4.7: a store means the same on a file system that folds case."""
    store.create("Run", meta={}).close(meta={})
    with pytest.raises(NameTaken):
        store.create("run", meta={})


@pytest.mark.parametrize(
    "name",
    [
        *("", ".", "..", ".hidden", "a/b", "../a", "/a", "a\\b", "a\0b", "a\nb", "a b", "\u00e9", "e\u0301", "\u202eabc", "a.", "-a"),
        *("@last", "x.take", "a" * (NAME_BYTES + 1)),
    ],
)
def test_a_name_that_could_be_a_path_or_deceive_is_refused(store: Store, name: str) -> None:
    """B4.7, B-12: separators, dots, controls, right-to-left marks, overlong names."""
    with pytest.raises(BadInput):
        store.create(name, meta={})
    assert not store.root.exists()


def test_the_longest_name_is_taken(store: Store) -> None:
    """B-11: both sides of the boundary."""
    name = "a" * NAME_BYTES
    store.create(name, meta={}).close(meta={})
    assert [one.name for one in store.list()] == [name]


def test_names_resolve_by_beginning_and_by_last(store: Store) -> None:
    """DESIGN 7: `@last` and unique prefixes; an unknown name says what comes closest."""
    for number, name in enumerate(("refactor-demo", "refactor-two", "incident")):
        store.create(name, meta={}).close(meta={})
        os.utime(store.root / "cassettes" / name / "journal", ns=(0, number * 10**9))
    assert store.resolve("inc") == "incident"
    assert store.resolve("@last") == "incident"
    with pytest.raises(NotFound, match="beginning of 2"):
        store.resolve("refac")
    with pytest.raises(NotFound, match="closest: incident"):
        store.resolve("incidnet")
    with pytest.raises(NotFound):
        Store(store.root / "none").resolve("@last")


def test_everything_is_private_whatever_the_umask(store: Store) -> None:
    """C-18: 0600 and 0700 under umask 000 and 0277."""
    for name, mask in (("open", 0o000), ("shut", 0o277)):
        before = os.umask(mask)
        try:
            writer = store.create(name, meta={})
            record_large(writer, 1, noise(OBJECT_BYTES, 1))
            store.key(os.urandom)
            writer.close(meta={})
        finally:
            os.umask(before)
    modes = {stat.S_IMODE(path.stat().st_mode) for path in [store.root, *store.root.rglob("*")] if path.is_dir()}
    assert modes == {0o700}
    for path in store.root.rglob("*"):
        if path.is_file():
            expected = 0o400 if "objects" in path.parts else 0o600
            assert stat.S_IMODE(path.stat().st_mode) == expected, path


def test_identical_recordings_give_identical_bytes(tmp_path: Path) -> None:
    """B-14: same inputs, same files."""
    trees = []
    for number in range(2):
        store = Store(tmp_path / str(number))
        writer = store.create("one", meta={"b": 1, "a": 2} if number else {"a": 2, "b": 1})
        record(writer, scene(10))
        record_large(writer, 20, prose(3_000_000, 4))
        record_large(writer, 21, noise(OBJECT_BYTES, 4))
        writer.close(meta={"z": 1})
        trees.append({str(path.relative_to(store.root)): path.read_bytes() for path in store.root.rglob("*") if path.is_file()})
    assert trees[0] == trees[1]


def test_a_store_that_cannot_be_written_is_read(store: Store) -> None:
    """T-L7, T-L5: reading needs no write and makes none."""
    what = scene(5)
    writer = store.create("one", meta={})
    record(writer, what)
    writer.close(meta={})
    (store.root / "cassettes" / "one" / "index").unlink()
    before = {path: path.stat().st_mtime_ns for path in store.root.rglob("*")}
    with store.open("one") as cassette:
        for one, bodies in what:
            assert_holds(cassette, one, bodies)
    assert store.verify("one").exit_code == 0
    assert len(store.list()) == 1
    assert {path: path.stat().st_mtime_ns for path in store.root.rglob("*")} == before


def test_what_a_recording_says_about_itself_is_bounded(store: Store) -> None:
    """B-11: both sides of the boundary."""
    with pytest.raises(TooLarge):
        store.create("one", meta={"x": "a" * META_BYTES})
    store.create("one", meta={"x": "a" * (META_BYTES - 100)}).close(meta={})
    with store.open("one") as cassette:
        assert len(str(cassette.meta["x"])) == META_BYTES - 100


def test_a_store_below_a_file_is_not_stored(tmp_path: Path) -> None:
    """An impossible store is NotStored with the system's reason, not a traceback."""
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(NotStored) as caught:
        Store(tmp_path / "file" / "store").create("one", meta={})
    assert caught.value.reason == "ENOTDIR"


def test_a_list_of_damaged_cassettes_says_which(store: Store) -> None:
    """Damage is never absence: a damaged cassette stays in the list."""
    for name in ("good", "bad"):
        store.create(name, meta={"created": name}).close(meta={})
    (store.root / "cassettes" / "bad" / "journal").write_bytes(b"no journal at all")
    bad, good = store.list()
    assert (bad.name, bad.state, good.state, good.created) == ("bad", State.DAMAGED, State.CLOSED, "good")
    assert bad.trouble
    with pytest.raises(Corrupt):
        store.open("bad")


def test_a_removed_cassette_is_gone_and_its_reader_reads_on(store: Store) -> None:
    """Removing never pulls bytes from under a reader."""
    what = scene(3)
    writer = store.create("one", meta={})
    record(writer, what)
    writer.close(meta={})
    with store.open("one") as cassette:
        store.remove("one")
        assert_holds(cassette, *what[2])
    assert store.list() == []
    with pytest.raises(NotFound):
        store.remove("one")


@pytest.mark.parametrize("where", ["journal", "cassettes", "folder", "object"])
def test_a_link_inside_a_store_is_never_followed(tmp_path: Path, where: str) -> None:
    """B-12: links planted in a store lead nowhere."""
    good = Store(tmp_path / "good")
    writer = good.create("one", meta={})
    one, _ = record_large(writer, 1, noise(OBJECT_BYTES, 1))
    writer.close(meta={})
    assert one.answer is not None
    bad = tmp_path / "bad"
    folder = bad / "cassettes" / "one"
    if where == "cassettes":
        bad.mkdir()
        (bad / "cassettes").symlink_to(good.root / "cassettes")
    elif where == "folder":
        (bad / "cassettes").mkdir(parents=True)
        folder.symlink_to(good.root / "cassettes" / "one")
    else:
        folder.mkdir(parents=True)
        if where == "journal":
            (folder / "journal").symlink_to(good.root / "cassettes" / "one" / "journal")
        else:
            (folder / "journal").write_bytes((good.root / "cassettes" / "one" / "journal").read_bytes())
            digest = one.answer.body.digest
            (bad / "objects" / digest[:2]).mkdir(parents=True)
            (bad / "objects" / digest[:2] / digest).symlink_to(good.root / "objects" / digest[:2] / digest)
    store = Store(bad)
    if where == "object":
        with store.open("one") as cassette, pytest.raises(Corrupt):
            cassette.body(one.answer.body)
    else:
        with pytest.raises((Corrupt, NotFound)):
            store.open("one")


def test_a_pipe_in_place_of_a_journal_does_not_block(store: Store) -> None:
    """B4.7: device files and pipes are refused at once."""
    store.create("one", meta={}).close(meta={})
    journal = store.root / "cassettes" / "one" / "journal"
    journal.unlink()
    os.mkfifo(journal)
    with pytest.raises(Corrupt):
        store.open("one")
    assert store.verify("one").exit_code == 2


def test_commits_that_come_together_are_all_answered_in_order(store: Store) -> None:
    """DESIGN 4: commits are grouped; each is answered once, in order."""
    what = scene(40)
    writer = store.create("one", meta={})
    answered: list[tuple[int, NotStored | None]] = []
    for one, bodies in what:
        writer.commit(End(one, bodies), lambda error, seq=one.seq: answered.append((seq, error)))  # type: ignore[misc]
    writer.close(meta={})
    assert answered == [(seq, None) for seq in range(40)]
    assert writer.backlog_bytes == 0


def test_a_commit_after_closing_is_refused(store: Store) -> None:
    """Nothing is claimed once the cassette is closed."""
    writer = store.create("one", meta={})
    writer.close(meta={})
    error = commit(writer, exchange(1), {})
    assert error is not None
    assert error.reason == "closed"
    assert writer.close(meta={}) == writer.root


def test_a_record_that_cannot_be_kept_ends_the_recording(store: Store) -> None:
    """B-05: what is not kept is never claimed, whatever the reason."""
    writer = store.create("one", meta={})
    record(writer, scene(2))
    named_only = exchange(2, b"body that is not given")
    error = commit(writer, named_only, {})
    assert error is not None
    assert error.reason == "bad-record"
    assert commit(writer, exchange(3), {}) is error
    writer.close(meta={})
    with store.open("one") as cassette:
        assert cassette.state is State.FAILED
        assert cassette.reason == "bad-record"
        assert len(cassette.rows) == 2


def test_a_failing_callback_does_not_end_the_recording(store: Store) -> None:
    """Another's mistake costs no exchange, and is not hidden."""
    writer = store.create("one", meta={})

    def done(_: NotStored | None) -> None:
        raise LookupError("theirs")

    writer.commit(End(exchange(1), {}), done)
    assert commit(writer, exchange(2), {}) is None
    with pytest.raises(LookupError):
        writer.close(meta={})
    with store.open("one") as cassette:
        assert len(cassette.rows) == 2


class CountingFiles(DiskFiles):
    """Counts the bytes that are read."""

    def __init__(self) -> None:
        self.read_bytes = 0

    def read(self, fd: int, offset: int, size: int) -> bytes:
        data = super().read(fd, offset, size)
        self.read_bytes += len(data)
        return data


def test_opening_reads_the_index_and_no_body(tmp_path: Path) -> None:
    """T-J2, DESIGN 4: start-up does not grow with body bytes."""
    writer = Store(tmp_path).create("one", meta={})
    for seq in range(300):
        data = noise(20_000, seq)
        one = exchange(seq, b"", data)
        writer.commit(End(one, {digest_of(data): data}), lambda _: None)
    writer.close(meta={})
    files = CountingFiles()
    with Store(tmp_path, files=files).open("one") as cassette:
        assert len(list(cassette.rows)) == 300
    folder = tmp_path / "cassettes" / "one"
    assert (folder / "journal").stat().st_size > 6_000_000
    assert files.read_bytes < (folder / "index").stat().st_size + 2000 < 100_000


@pytest.mark.anomaly
def test_a_long_session_is_small_and_opens_at_once(tmp_path: Path) -> None:
    """T-J1: 100 turns, 45 MB: at most 2 MB; open and verify in half a second of this processor (twice that is allowed, for busy ones)."""
    store = Store(tmp_path)
    writer = store.create("one", meta={})
    bodies = transcript(100)
    for seq, data in enumerate(bodies):
        received = prose(2000, seq)
        one = exchange(seq, data, received)
        writer.commit(End(one, {digest_of(data): data, digest_of(received): received}), lambda _: None)
    writer.close(meta={})
    assert writer.failed is None
    assert sum(map(len, bodies)) > 40_000_000
    assert (tmp_path / "cassettes" / "one" / "journal").stat().st_size < 2_000_000
    begin = time.process_time()
    with store.open("one") as cassette:
        first = cassette.body(cassette.exchange(99).request.body)
        assert first.read(0, first.size_bytes) == bodies[99]
    assert store.verify("one").exit_code == 0
    assert time.process_time() - begin < 1.0


def test_many_large_bodies_need_no_more_files_than_are_read(store: Store, tmp_path: Path) -> None:
    """B4.12: descriptors are let go with the body; reading, checking and exporting hold one at a time."""
    writer = store.create("one", meta={})
    datas = {seq: noise(OBJECT_BYTES, seq) for seq in range(20)}
    for seq, data in datas.items():
        record_large(writer, seq, data, OBJECT_BYTES)
    writer.close(meta={})
    with store.open("one") as cassette:
        before = len(list(Path("/proc/self/fd").iterdir()))
        for seq, data in datas.items():
            answer = cassette.exchange(seq).answer
            assert answer is not None
            for _ in range(2):
                assert cassette.body(answer.body).read(0, OBJECT_BYTES) == data
        assert len(list(Path("/proc/self/fd").iterdir())) == before
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (before + 8, hard))
    try:
        assert store.verify("one").exit_code == 0
        store.export("one", tmp_path / "x.take")
        assert store.import_(tmp_path / "x.take", "two") == "two"
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))

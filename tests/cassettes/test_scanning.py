"""One walk over a journal finds everything in it."""

from __future__ import annotations

from pathlib import Path

import pytest

from secondtake.cassettes.errors import Corrupt
from secondtake.cassettes.files import DiskFiles, Region
from secondtake.cassettes.scanning import Severity, State, scan
from secondtake.cassettes.store import Store
from tests.cassettes.scenes import record, scene


def journal(folder: Path) -> Path:
    """A closed recording with an artifact."""
    store = Store(folder)
    writer = store.create("one", meta={"begun": 1})
    writer.keep("blob", b"a file")
    record(writer, scene(3))
    writer.close(meta={"ended": 2})
    return folder / "cassettes" / "one" / "journal"


def region(path: Path) -> Region:
    files = DiskFiles()
    fd = files.open_read(path.parent, [path.name])
    return Region(files, fd, 0, files.size(fd))


def test_a_walk_finds_exchanges_artifacts_and_the_closing_record(tmp_path: Path) -> None:
    """format.md: the journal alone makes everything."""
    found = scan(region(journal(tmp_path)))
    assert (len(found.index), len(found.index.artifacts), found.faults) == (3, 1, [])
    assert found.closing is not None
    assert (found.closing.state, found.closing.exchanges, found.closing.meta) == (State.CLOSED, 3, {"ended": 2})
    assert (found.meta, found.closing.root) == ({"begun": 1}, found.tree.root())


def test_a_torn_tail_is_told_from_damage(tmp_path: Path) -> None:
    """B-03: nothing whole behind it: torn; something whole behind it: damaged."""
    path = journal(tmp_path)
    data = path.read_bytes()
    path.write_bytes(data[:-5])
    (fault,) = scan(region(path)).faults
    assert (fault.name, fault.severity) == ("incomplete_tail", Severity.WARNING)
    path.write_bytes(data[:60] + b"\0\0\0\0" + data[64:])
    assert {fault.name for fault in scan(region(path)).faults} == {"damaged_frame"}
    path.write_bytes(b"not a journal at all")
    with pytest.raises(Corrupt):
        scan(region(path))

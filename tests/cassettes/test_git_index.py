"""An index written by us is read by git as what was given."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from secondtake.cassettes.errors import BadInput
from secondtake.cassettes.git_index import Staged, Stat, pack
from tests.harness.workspaces import git

OID = hashlib.sha1(b"blob 0\0", usedforsecurity=False).hexdigest()


def test_git_reads_every_flag_and_stage(tmp_path: Path) -> None:
    """Issue 5: conflict stages, assume-unchanged, skip-worktree, intent-to-add, executables, links, submodules, odd names."""
    git(tmp_path, "init", "-q")
    entries = [
        Staged(b"plain", 0o100644, OID),
        Staged(b"x/run", 0o100755, OID, assume_unchanged=True),
        Staged(b"hidden", 0o100644, OID, skip_worktree=True),
        Staged(b"soon", 0o100644, OID, intent_to_add=True),
        Staged(b"link", 0o120000, OID),
        Staged(b"lib", 0o160000, "1" * 40),
        Staged(b"line\nend\xff", 0o100644, OID),
        Staged(b"n" * 4100, 0o100644, OID),
        *(Staged(b"both", 0o100644, f"{stage}" * 40, stage) for stage in (1, 2, 3)),
    ]
    (tmp_path / ".git/index").write_bytes(pack((one, None) for one in entries))
    rows = git(tmp_path, "ls-files", "-s", "-v", "-z").split(b"\0")[:-1]
    found = {(row.split(b"\t", 1)[1], row.split(b" ")[3][:1]): row.split(b"\t")[0] for row in rows}
    assert len(found) == len(entries)
    for one in entries:
        letter = b"h" if one.assume_unchanged else b"S" if one.skip_worktree else b"M" if one.stage else b"H"
        assert found[one.path, b"%d" % one.stage] == letter + b" %06o %s %d" % (one.mode, one.oid.encode(), one.stage)
    assert b"flags: 20004000" in git(tmp_path, "ls-files", "--debug", "soon")


def test_git_trusts_the_stat_it_is_given(tmp_path: Path) -> None:
    """A file that held a credential is clean, as it was, though its content is a placeholder now."""
    git(tmp_path, "init", "-q")
    file = tmp_path / "a"
    file.write_bytes(b"")
    git(tmp_path, "add", "a")
    git(tmp_path, "commit", "-qm", "x")
    file.write_bytes(b"placeholder")
    import os

    os.utime(file, (1_000_000_000, 1_000_000_000))
    told = file.stat()
    stat = Stat(told.st_ctime_ns, told.st_mtime_ns, told.st_dev, told.st_ino, told.st_uid, told.st_gid, told.st_size)
    (tmp_path / ".git/index").write_bytes(pack([(Staged(b"a", 0o100644, OID, clean=True), stat)]))
    assert git(tmp_path, "status", "--porcelain") == b""
    (tmp_path / ".git/index").write_bytes(pack([(Staged(b"a", 0o100644, OID), None)]))
    assert git(tmp_path, "status", "--porcelain") == b" M a\n"


@pytest.mark.parametrize(
    "bad",
    [
        Staged(b"", 0o100644, OID),
        Staged(b"a", 0o777, OID),
        Staged(b"a", 0o100644, "ab"),
        Staged(b"a", 0o100644, OID, 4),
        Staged(b"a\0", 0o100644, OID),
    ],
)
def test_an_entry_that_cannot_be_is_refused(bad: Staged) -> None:
    """B-11: what comes from a stranger is checked before it is written."""
    with pytest.raises(BadInput):
        pack([(bad, None)])

"""The state of repositories as a value: one encoding, and nothing in it that runs or leads out."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from secondtake.cassettes import layout
from secondtake.cassettes.digest import digest_of
from secondtake.cassettes.errors import Corrupt
from secondtake.cassettes.git_index import Staged
from secondtake.cassettes.repositories import Replaced, Repositories, Repository, config_text, decode, encode, keeps, names_digest
from tests.harness.workspaces import git

OID = "ab" * 20
FULL = Repository(
    head=OID,
    branch="refs/heads/main",
    refs=(("refs/heads/main", OID), ("refs/remotes/origin/HEAD", "ref: refs/remotes/origin/main")),
    shallow=(OID,),
    index=(
        Staged(b"a\xff", 0o100755, OID, 1, assume_unchanged=True),
        Staged(b"b", 0o100644, OID, skip_worktree=True, intent_to_add=True, clean=True),
    ),
    config=(("core.autocrlf", "true"), ("remote.origin.url", "https://host.example/x")),
    files=((b"info/exclude", digest_of(b"x")),),
    objects=digest_of(b"pack"),
    object_names=names_digest([OID]),
    replaced=(Replaced(OID, "blob", digest_of(b"y")),),
    uninitialised=(b"lib/three",),
    lfs_pointers=(b"big",),
    lfs_contents=(b"bigger",),
)
TWO = Repositories((FULL, Repository(path=b"lib/one", place=b"modules/lib/one", object_format="sha1")))


def test_it_is_what_its_encoding_says() -> None:
    """One value, one encoding; the fingerprint does not know how objects are packed."""
    assert decode(encode(TWO)) == TWO
    assert decode(encode(Repositories())) == Repositories()
    other = Repositories((replace(FULL, objects=digest_of(b"another pack")), TWO.each[1]))
    assert other.fingerprint == TWO.fingerprint
    assert Repositories((replace(FULL, head=None), TWO.each[1])).fingerprint != TWO.fingerprint
    assert TWO.root == FULL
    assert TWO.named() == (digest_of(b"pack"), digest_of(b"x"), digest_of(b"y"))


@pytest.mark.parametrize(
    "changed",
    [
        {"path": b"../x"},
        {"path": b".git"},
        {"place": b"modules/x"},
        {"path": b"lib", "place": b"../../x"},
        {"path": b"lib", "place": b"hooks/x"},
        {"path": b"lib", "place": b"modules/../../x"},
        {"head": "HEAD"},
        {"head": "--upload-pack=x"},
        {"branch": "refs/heads/../../x"},
        {"branch": "refs/heads/x.lock"},
        {"branch": "refs/heads/a b"},
        {"branch": "main"},
        {"refs": [["refs/heads/x", "ref: ../config"]]},
        {"refs": [["config", OID]]},
        {"refs": [["refs/heads/\n[core]", OID]]},
        {"config": [["core.hookspath", "x"]]},
        {"config": [["core.fsmonitor", "rm -rf"]]},
        {"config": [["filter.x.clean", "rm"]]},
        {"config": [["alias.st", "!rm"]]},
        {"config": [["core.sshcommand", "x"]]},
        {"config": [["submodule.x.update", "!rm"]]},
        {"config": [["remote.x.uploadpack", "rm"]]},
        {"config": [["branch.a\n[alias]\nx.merge", "x"]]},
        {"files": [[b"hooks/pre-commit", digest_of(b"")]]},
        {"files": [[b"info/exclude", "x"]]},
        {"index": [[b"../a", 0o100644, bytes(20), 0, 0]]},
        {"index": [[b"a", 0o40000, bytes(20), 0, 0]]},
        {"replaced": [[OID, "tree", digest_of(b"")]]},
        {"object_format": "md5"},
        {"objects": "x"},
        {"uninitialised": [b"/etc"]},
        {"shallow": [3]},
    ],
)
def test_what_could_run_or_lead_out_is_damage(changed: dict[str, object]) -> None:
    """B-11: a repository's state comes from strangers."""
    with pytest.raises(Corrupt):
        decode(layout.pack({"v": 1, "each": [changed]}))


def test_a_config_says_what_was_kept_and_git_reads_it(tmp_path: Path) -> None:
    """Issue 5: configuration that changes behaviour comes back, quoted as git has it."""
    pairs = (
        ("core.autocrlf", "input"),
        ('remote.a"b\\c.url', 'https://host.example/"x\\y;#\n\tz'),
        ("branch.main.merge", "refs/heads/main"),
    )
    git(tmp_path, "init", "-q")
    (tmp_path / ".git/config").write_bytes(config_text(Repository(config=pairs)))
    said = dict(line.split("\n", 1) for line in git(tmp_path, "config", "--local", "--list", "-z").decode().split("\0") if line)
    assert said == {"core.repositoryformatversion": "0", **dict(pairs)}
    assert git(tmp_path, "status", "--porcelain") == b""
    assert not keeps("core.pager")
    assert keeps("remote.with.dots.url")


def test_repositories_are_in_order_and_of_this_version() -> None:
    """B-11."""
    for value in (
        {"v": 2, "each": []},
        {"v": 1, "each": [{"path": b"b"}, {"path": b"a"}]},
        {"v": 1, "each": [{}, {}]},
        {"v": 1, "each": 3},
    ):
        with pytest.raises(Corrupt):
            decode(layout.pack(value))

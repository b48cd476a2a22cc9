"""The layer of the repository."""

from __future__ import annotations

from typing import Any, ClassVar

from secondtake.cassettes import repositories, trees
from secondtake.cassettes.artifacts import Artifact
from secondtake.cassettes.envelope import FIELDS, Layer
from secondtake.cassettes.exchange import Digest
from secondtake.cassettes.git_index import Staged as Entry
from secondtake.cassettes.repositories import Repositories, Repository
from secondtake.cassettes.stages import Staged
from secondtake.cassettes.trees import Node, Tree
from secondtake.harness.envelope.repository import of_stage, repository_fields

OID = "a" * 40


def file(path: bytes) -> trees.Entry:
    """A file of no content."""
    return trees.Entry(path, Node.FILE, 0o644, Digest("e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"))


TREE = Tree((file(b"ignored.log"), trees.Entry(b"lib", Node.SUBMODULE, 0o755), file(b"lib/a"), file(b"lib/new"), file(b"main"), file(b"x")))
OUTER = Repository(
    head=OID,
    branch="refs/heads/main",
    index=(
        Entry(b"lib", 0o160000, OID),
        Entry(b"main", 0o100644, OID, clean=True),
        Entry(b"vendor", 0o160000, OID),
        Entry(b"x", 0o100644, OID),
    ),
    uninitialised=(b"vendor",),
)
INNER = Repository(path=b"lib", head="b" * 40, index=(Entry(b"a", 0o100644, OID, clean=True),))
BOTH = Repositories((OUTER, INNER))


def said(tree: Tree = TREE, found: Repositories | None = BOTH) -> Any:
    """The fields."""
    return repository_fields(tree, found, ["big: too large"])


def test_each_submodule_is_told_one_by_one() -> None:
    """Issue 5, item 2: submodules one by one, uninitialised submodules, dirty and untracked files."""
    fields = said()
    assert set(fields) == {each.name for each in FIELDS[Layer.REPOSITORY]}
    assert (fields["commit"], fields["branch"], fields["dirty"]) == (OID, "main", {"modified": 1, "untracked": 1})
    assert fields["submodules"] == {
        "lib": {"commit": "b" * 40, "branch": None, "dirty": {"modified": 0, "untracked": 1}},
        "vendor": "uninitialised",
    }
    assert fields["not_captured"] == ["big: too large"]


def test_a_changed_file_and_a_staged_one_are_two_different_fields() -> None:
    """A file may be the same and git say another thing of it."""
    other = Repositories((Repository(head=OID, branch="refs/heads/other", index=OUTER.index, uninitialised=(b"vendor",)), INNER))
    changed = {name for name, value in said(found=other).items() if value != said()[name]}
    assert changed == {"branch", "git"}
    fewer = Tree(tuple(entry for entry in TREE.entries if entry.path != b"ignored.log"))
    assert {name for name, value in said(fewer).items() if value != said()[name]} == {"dirty", "tree"}


def test_without_a_repository_there_is_the_tree() -> None:
    """Issue 5: null is known to be none."""
    fields = said(found=None)
    assert (fields["commit"], fields["branch"], fields["dirty"], fields["git"], fields["submodules"]) == (None, None, None, None, {})
    assert fields["tree"] == TREE.digest


def test_it_is_read_from_what_a_recording_kept() -> None:
    """Issue 5: at record time and again: one function for both."""
    contents = {Digest("1" * 64): trees.encode(TREE), Digest("2" * 64): repositories.encode(BOTH)}

    class Kept:
        meta: ClassVar[dict[str, object]] = {}
        artifacts: tuple[Artifact, ...] = ()

        def artifact(self, digest: Digest) -> bytes:
            return contents[digest]

    staged = Staged(workspace=Digest("1" * 64), repository=Digest("2" * 64), not_captured=("big: too large",))
    assert of_stage(Kept(), staged) == said()
    assert of_stage(Kept(), Staged()) == {}

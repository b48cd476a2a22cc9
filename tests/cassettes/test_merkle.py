"""The tree against RFC 6962's own vectors, and proofs against every other leaf."""

from __future__ import annotations

import hashlib

from hypothesis import given
from hypothesis import strategies as st

from secondtake.cassettes import merkle

INPUTS = [
    bytes.fromhex(text) for text in ("", "00", "10", "2021", "3031", "40414243", "5051525354555657", "606162636465666768696a6b6c6d6e6f")
]
"""The eight leaves of Certificate Transparency's published test vectors."""
ROOTS = [
    "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
    "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
    "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
    "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
    "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
    "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
    "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
]


def test_roots_are_those_of_the_published_vectors() -> None:
    """B-06: the tree is RFC 6962's, not one like it."""
    tree = merkle.Tree()
    assert tree.root() == hashlib.sha256(b"").digest()
    for record, root in zip(INPUTS, ROOTS, strict=True):
        tree.append(merkle.leaf(record))
        assert tree.root().hex() == root


@given(st.integers(1, 70))
def test_a_proof_holds_for_its_leaf_and_for_no_other(size: int) -> None:
    """B-06: the inclusion proof of one exchange verifies by itself, and only for that exchange at that place."""
    leaves = [merkle.leaf(b"%d" % number) for number in range(size)]
    root = merkle.root_of(leaves)
    for position in {0, size // 2, size - 1}:
        path = merkle.proof(leaves, position)
        assert merkle.proves(leaves[position], position, size, path, root)
        assert not merkle.proves(merkle.leaf(b"other"), position, size, path, root)
        assert not merkle.proves(leaves[position], position, size, (*path, root), root)
        assert not merkle.proves(leaves[position], size, size, path, root)
        if size > 1:
            assert not merkle.proves(leaves[position], position, size, path[:-1], root)
            assert not merkle.proves(leaves[position], (position + 1) % size, size, path, root)


@given(st.lists(st.binary(max_size=4), min_size=1, max_size=20), st.data())
def test_any_change_of_the_records_changes_the_root(records: list[bytes], data: st.DataObject) -> None:
    """B-06: added, removed, altered."""
    leaves = [merkle.leaf(record) for record in records]
    root = merkle.root_of(leaves)
    position = data.draw(st.integers(0, len(records) - 1))
    assert merkle.root_of([*leaves, merkle.leaf(b"")]) != root
    assert merkle.root_of([*leaves[:position], *leaves[position + 1 :]]) != root
    assert merkle.root_of([*leaves[:position], merkle.leaf(records[position] + b"x"), *leaves[position + 1 :]]) != root

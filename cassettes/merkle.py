"""The RFC 6962 Merkle tree over a cassette's records: root, inclusion proof and its check.

Leaf and node hashes are domain-separated (RFC 6962, section 2.1), so that a node can never pass for a leaf. A tree kept only beside its
data proves nothing against the owner of both: what it proves, it proves against a root kept elsewhere (B-07).
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field

EMPTY_ROOT = hashlib.sha256(b"").digest()
"""The root of no leaves."""


def leaf(record: bytes) -> bytes:
    """The hash of one record."""
    return hashlib.sha256(b"\x00" + record).digest()


def node(left: bytes, right: bytes) -> bytes:
    """The hash of two hashes."""
    return hashlib.sha256(b"\x01" + left + right).digest()


@dataclass(slots=True)
class Tree:
    """A tree that grows at its right edge and keeps only that edge: memory is logarithmic in the leaves."""

    size: int = 0
    _edge: list[bytes] = field(default_factory=list)

    def append(self, leaf_hash: bytes) -> None:
        """Add one leaf. Perfect subtrees are joined as soon as both halves are there."""
        joined, size = leaf_hash, self.size
        while size & 1:
            joined = node(self._edge.pop(), joined)
            size >>= 1
        self._edge.append(joined)
        self.size += 1

    def root(self) -> bytes:
        """The root of the leaves so far."""
        if not self._edge:
            return EMPTY_ROOT
        root = self._edge[-1]
        for left in reversed(self._edge[:-1]):
            root = node(left, root)
        return root


def root_of(leaves: Sequence[bytes]) -> bytes:
    """The root of `leaves` (leaf hashes, in order)."""
    tree = Tree()
    for one in leaves:
        tree.append(one)
    return tree.root()


def _split(size: int) -> int:
    """The largest power of two below `size`."""
    return 1 << ((size - 1).bit_length() - 1)


def proof(leaves: Sequence[bytes], position: int) -> tuple[bytes, ...]:
    """The audit path of the leaf at `position`, from its neighbour up to below the root."""
    if not 0 <= position < len(leaves):
        raise IndexError(position)
    path: list[bytes] = []
    low, high = 0, len(leaves)
    while high - low > 1:
        middle = low + _split(high - low)
        if position < middle:
            path.append(root_of(leaves[middle:high]))
            high = middle
        else:
            path.append(root_of(leaves[low:middle]))
            low = middle
    return tuple(reversed(path))


def proves(leaf_hash: bytes, position: int, size: int, path: Sequence[bytes], root: bytes) -> bool:
    """Whether `path` shows that `leaf_hash` is leaf `position` of the `size` leaves under `root` (RFC 9162, section 2.1.3.2)."""
    if not 0 <= position < size:
        return False
    here, last, joined = position, size - 1, leaf_hash
    for sibling in path:
        if last == 0:
            return False
        if here & 1 or here == last:
            joined = node(sibling, joined)
            while not here & 1 and here:
                here >>= 1
                last >>= 1
        else:
            joined = node(joined, sibling)
        here >>= 1
        last >>= 1
    return last == 0 and joined == root

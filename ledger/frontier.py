"""The growing edge of an RFC 6962 tree: enough to append leaves and to name the root.

A tree of n leaves is described by the roots of the perfect subtrees that n's binary digits stand for, largest
first. That is all that appending needs, so an append to a large ledger does not read the old events.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from itertools import islice

#: Leaves that are hashed together, a power of two.
_SUBTREE = 1024

EMPTY_ROOT = hashlib.sha256(b"").digest()


def node_hash(left: bytes, right: bytes) -> bytes:
    """Return the RFC 6962 section 2.1 interior hash, SHA-256(0x01 || left || right)."""
    return hashlib.sha256(b"\x01" + left + right).digest()


class Frontier:
    """The perfect-subtree roots of a tree of `size` leaves.

    Raises ValueError when the number of roots does not belong to the size.
    """

    def __init__(self, size: int = 0, roots: Iterable[bytes] = ()) -> None:
        self.size = size
        self.roots = list(roots)
        if len(self.roots) != size.bit_count() or any(len(r) != 32 for r in self.roots):
            raise ValueError(f"{len(self.roots)} subtree roots do not describe a tree of {size} leaves")

    def extend(self, leaves: Iterable[bytes]) -> None:
        """Append leaf hashes in order."""
        coming = iter(leaves)
        sha256 = hashlib.sha256
        while True:
            # Perfect subtrees are hashed level by level, which is twice as fast as leaf by leaf.
            room = _SUBTREE - self.size % _SUBTREE
            level = list(islice(coming, room))
            if len(level) == _SUBTREE:
                while len(level) > 1:
                    level = [
                        sha256(b"\x01" + left + right).digest()
                        for left, right in zip(level[::2], level[1::2], strict=True)
                    ]
                self._add(level[0], _SUBTREE)
            elif level:
                for leaf in level:
                    self._add(leaf, 1)
            else:
                return

    def _add(self, node: bytes, leaves: int) -> None:
        """Append the root of a perfect subtree of so many leaves, a power of two that divides the size."""
        carry = self.size // leaves
        while carry & 1:
            node = node_hash(self.roots.pop(), node)
            carry >>= 1
        self.roots.append(node)
        self.size += leaves

    def root(self) -> bytes:
        """Return the RFC 6962 root: the roots folded from the right."""
        if not self.roots:
            return EMPTY_ROOT
        node = self.roots[-1]
        for left in reversed(self.roots[:-1]):
            node = node_hash(left, node)
        return node

    def encode(self) -> str:
        """Return the roots as hex words, largest subtree first."""
        return " ".join(r.hex() for r in self.roots)

    @classmethod
    def decode(cls, size: int, text: str) -> Frontier:
        """Read what `encode` wrote; raises ValueError on anything else."""
        return cls(size, (bytes.fromhex(word) for word in text.split()))

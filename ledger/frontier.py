"""The growing edge of an RFC 6962 tree: enough to append leaves and to name the root.

A tree of n leaves is described by the roots of the perfect subtrees that n's binary digits stand for, largest
first. That is all that appending needs, so an append to a large ledger does not read the old events.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

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
        roots, size, sha256 = self.roots, self.size, hashlib.sha256
        for leaf in leaves:
            node, carry = leaf, size
            while carry & 1:
                node = sha256(b"\x01" + roots.pop() + node).digest()
                carry >>= 1
            roots.append(node)
            size += 1
        self.size = size

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

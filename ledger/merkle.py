"""Proofs over the hash tree of one origin (RFC 9162 section 2.1; the tree itself is that of RFC 6962).

Leaf `i` of an origin's tree is the `event_id` of its event with `seq` = `i`; interior nodes are
SHA-256(0x01 || left || right). A proof is a list of 32-byte node hashes. The two `*_ranges` functions say
which leaves each node of a proof covers, so that whoever holds the leaves can fold them in one pass of any
length; the two `verify_*` functions need no leaves at all.

Plain RFC trees and nothing else: home-made variants have accepted false proofs elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ledger.errors import EXIT_NEGATIVE, OakledgerError
from ledger.frontier import EMPTY_ROOT, Frontier, node_hash

#: Longest possible path: sizes are at most 2**63, so 63 levels, and one node more in a consistency proof.
MAX_PATH = 64

#: A run of leaves, from the first to before the second.
Range = tuple[int, int]


class ProofError(OakledgerError):
    """A proof that does not prove what it says."""

    exit_status = EXIT_NEGATIVE


def _split(n: int) -> int:
    """Return k, the largest power of two smaller than n (RFC 9162 section 2.1.1)."""
    return 1 << ((n - 1).bit_length() - 1)


def root(leaves: Sequence[bytes]) -> bytes:
    """Return MTH(leaves), the Merkle tree hash (RFC 9162 section 2.1.1), of leaf hashes."""
    if not leaves:
        return EMPTY_ROOT
    frontier = Frontier()
    frontier.extend(leaves)
    return frontier.root()


def inclusion_ranges(index: int, size: int) -> list[Range]:
    """Return the leaves under each node of PATH(index, D_size), in proof order (RFC 9162 section 2.1.3.1).

    Raises ValueError when there is no leaf `index` in a tree of `size` leaves.
    """
    if not 0 <= index < size:
        raise ValueError(f"a tree of {size} leaves has no leaf {index}")
    path: list[Range] = []
    start, end = 0, size
    while end - start > 1:
        k = _split(end - start)
        if index - start < k:
            path.append((start + k, end))
            end = start + k
        else:
            path.append((start, start + k))
            start += k
    path.reverse()
    return path


def consistency_ranges(first: int, second: int) -> list[Range]:
    """Return the leaves under each node of PROOF(first, D_second), in proof order (RFC 9162 section 2.1.4.1).

    Raises ValueError unless 0 < first <= second: RFC 9162 defines no proof from an empty tree, which is
    consistent with everything.
    """
    if not 0 < first <= second:
        raise ValueError(f"there is no consistency proof from {first} to {second} leaves")
    path: list[Range] = []
    start, end, m = 0, second, first
    known = True  # the subtree at hand is one whose root the verifier has: b in SUBPROOF(m, D_n, b)
    while m != end - start:
        k = _split(end - start)
        if m <= k:
            path.append((start + k, end))
            end = start + k
        else:
            path.append((start, start + k))
            start, m, known = start + k, m - k, False
    if not known:
        path.append((start, end))
    path.reverse()
    return path


def fold_ranges(ranges: Sequence[Range], leaves: Iterator[bytes]) -> list[bytes]:
    """Return the subtree root over each range, in the order of `ranges`, from one pass over the leaves.

    `leaves` yields the leaf hashes from leaf 0 on; leaves of no range are passed over. Raises ValueError when
    they end too early.
    """
    found: dict[Range, bytes] = {}
    position = 0
    for start, end in sorted(ranges):
        for _ in range(position, start):
            if next(leaves, None) is None:
                raise ValueError(f"the leaves end before {start}")
        frontier = Frontier()
        frontier.extend(leaf for _, leaf in zip(range(end - start), leaves, strict=False))
        if frontier.size != end - start:
            raise ValueError(f"the leaves end before {end}")
        found[(start, end)] = frontier.root()
        position = end
    return [found[r] for r in ranges]


def verify_inclusion(leaf: bytes, index: int, size: int, path: Sequence[bytes], root_hash: bytes) -> None:
    """Verify an inclusion proof (RFC 9162 section 2.1.3.2).

    Raises ProofError when `leaf` is not shown to be leaf `index` of the tree of `size` leaves with that root.
    """
    if not 0 <= index < size:
        raise ProofError(f"the proof names leaf {index} of a tree of {size} leaves: there is none")
    fn, sn, node = index, size - 1, leaf
    for sibling in path:
        if sn == 0:
            raise ProofError(f"the proof has {len(path)} nodes, more than a tree of {size} leaves needs")
        if fn & 1 or fn == sn:
            node = node_hash(sibling, node)
            while not fn & 1 and fn:
                fn, sn = fn >> 1, sn >> 1
        else:
            node = node_hash(node, sibling)
        fn, sn = fn >> 1, sn >> 1
    if sn != 0:
        raise ProofError(f"the proof has {len(path)} nodes, fewer than a tree of {size} leaves needs")
    if node != root_hash:
        raise ProofError(
            f"the proof leads to root {node.hex()}, the checkpoint says {root_hash.hex()}: "
            "the event, the path or the checkpoint was altered"
        )


def verify_consistency(
    first: int, second: int, path: Sequence[bytes], first_root: bytes, second_root: bytes
) -> None:
    """Verify a consistency proof (RFC 9162 section 2.1.4.2).

    Raises ProofError when the tree of `first` leaves is not shown to be the beginning of that of `second`.
    An empty first tree (outside the RFC's algorithm) is the beginning of every tree and takes no path.
    """
    if not 0 <= first <= second:
        raise ProofError(f"the proof goes from {first} to {second} leaves: a tree never shrinks")
    if first == 0 or first == second:
        if path:
            raise ProofError(f"the proof has {len(path)} nodes where none are needed")
        expected = EMPTY_ROOT if first == 0 else second_root
        if first_root != expected:
            raise ProofError(f"two roots for {first} leaves: {first_root.hex()} and {expected.hex()}")
        return
    if not path:
        raise ProofError(f"the proof from {first} to {second} leaves has no nodes")
    nodes = list(path)
    if first & (first - 1) == 0:  # a power of two: the verifier has that subtree's root
        nodes.insert(0, first_root)
    fn, sn = first - 1, second - 1
    while fn & 1:
        fn, sn = fn >> 1, sn >> 1
    fr = sr = nodes[0]
    for c in nodes[1:]:
        if sn == 0:
            raise ProofError(f"the proof has {len(path)} nodes, more than {first} to {second} leaves need")
        if fn & 1 or fn == sn:
            fr, sr = node_hash(c, fr), node_hash(c, sr)
            while not fn & 1 and fn:
                fn, sn = fn >> 1, sn >> 1
        else:
            sr = node_hash(sr, c)
        fn, sn = fn >> 1, sn >> 1
    if sn != 0:
        raise ProofError(f"the proof has {len(path)} nodes, fewer than {first} to {second} leaves need")
    if fr != first_root:
        raise ProofError(f"the proof leads back to root {fr.hex()}, the first is {first_root.hex()}")
    if sr != second_root:
        raise ProofError(f"the proof leads to root {sr.hex()}, the second is {second_root.hex()}")

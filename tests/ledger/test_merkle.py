"""Proofs: the definitions of RFC 9162 written out as recursion, and pymerkle, are the references."""

from __future__ import annotations

import hashlib
import itertools
import random

import pytest

from ledger.frontier import EMPTY_ROOT, Frontier
from ledger.merkle import (
    ProofError,
    consistency_ranges,
    fold_ranges,
    inclusion_ranges,
    root,
    verify_consistency,
    verify_inclusion,
)

SIZES = range(1, 71)
LEAVES = [hashlib.sha256(b"\x00%d" % i).digest() for i in range(70)]


def split(n):
    k = 1
    while k * 2 < n:
        k *= 2
    return k


def mth(d):
    """RFC 9162 section 2.1.1, by the letter."""
    if not d:
        return hashlib.sha256(b"").digest()
    if len(d) == 1:
        return d[0]
    k = split(len(d))
    return hashlib.sha256(b"\x01" + mth(d[:k]) + mth(d[k:])).digest()


def path(m, d):
    """RFC 9162 section 2.1.3.1, by the letter."""
    if len(d) == 1:
        return []
    k = split(len(d))
    return [*path(m, d[:k]), mth(d[k:])] if m < k else [*path(m - k, d[k:]), mth(d[:k])]


def subproof(m, d, b):
    """RFC 9162 section 2.1.4.1, by the letter."""
    if m == len(d):
        return [] if b else [mth(d)]
    k = split(len(d))
    if m <= k:
        return [*subproof(m, d[:k], b), mth(d[k:])]
    return [*subproof(m - k, d[k:], False), mth(d[:k])]


def test_published_roots():
    """Roots of the eight test inputs that RFC 6962 implementations share."""
    inputs = [
        b"",
        b"\x00",
        b"\x10",
        b"\x20\x21",
        b"\x30\x31",
        b"\x40\x41\x42\x43",
        bytes(range(0x50, 0x58)),
        bytes(range(0x60, 0x70)),
    ]
    leaves = [hashlib.sha256(b"\x00" + i).digest() for i in inputs]
    assert root(leaves[:1]).hex() == "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d"
    assert root(leaves[:2]).hex() == "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125"
    assert root(leaves[:3]).hex() == "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77"
    assert root(leaves).hex() == "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328"
    assert root([]) == EMPTY_ROOT == hashlib.sha256(b"").digest()


@pytest.mark.parametrize("n", SIZES)
def test_root_and_frontier(n):
    assert root(LEAVES[:n]) == mth(LEAVES[:n])
    frontier = Frontier()
    for cut in sorted(random.Random(n).sample(range(n + 1), k=min(3, n))):
        frontier.extend(LEAVES[frontier.size : cut])
        frontier = Frontier.decode(frontier.size, frontier.encode())
    frontier.extend(LEAVES[frontier.size : n])
    assert frontier.root() == mth(LEAVES[:n])


@pytest.mark.parametrize("first", [0, 1, 1000, 1023, 1024, 1025, 2047, 3000])
@pytest.mark.parametrize("second", [1, 24, 1023, 1024, 1025, 2049])
def test_a_frontier_that_takes_whole_subtrees_at_once(first, second):
    leaves = [hashlib.sha256(b"%d" % i).digest() for i in range(first + second)]
    at_once = Frontier()
    at_once.extend(leaves[:first])
    at_once.extend(iter(leaves[first:]))
    one_by_one = Frontier()
    for leaf in leaves:
        one_by_one.extend([leaf])
    assert (at_once.size, at_once.roots) == (one_by_one.size, one_by_one.roots)
    assert at_once.root() == mth(leaves)


@pytest.mark.parametrize("n", SIZES)
def test_inclusion(n):
    leaves = LEAVES[:n]
    top = mth(leaves)
    for i in range(n):
        proof = fold_ranges(inclusion_ranges(i, n), iter(leaves))
        assert proof == path(i, leaves)
        verify_inclusion(leaves[i], i, n, proof, top)


@pytest.mark.parametrize("n", SIZES)
def test_consistency(n):
    leaves = LEAVES[:n]
    top = mth(leaves)
    for m in range(1, n + 1):
        proof = fold_ranges(consistency_ranges(m, n), iter(leaves))
        assert proof == subproof(m, leaves, True)
        verify_consistency(m, n, proof, mth(leaves[:m]), top)
    verify_consistency(0, n, [], EMPTY_ROOT, top)


@pytest.mark.parametrize("n", [1, 2, 3, 4, 7, 8, 9, 33, 64, 70])
def test_pymerkle_agrees(n):
    """An independent implementation of RFC 9162 gives the same roots and paths."""
    from pymerkle import InmemoryTree
    from pymerkle import verify_consistency as their_consistency
    from pymerkle import verify_inclusion as theirs

    entries = [b"%d" % i for i in range(n)]
    tree = InmemoryTree(algorithm="sha256")
    for e in entries:
        tree.append_entry(e)
    assert tree.get_root() == mth(LEAVES[:n])
    for i in range(n):
        proof = tree.prove_inclusion(i + 1, n)
        theirs(LEAVES[i], mth(LEAVES[:n]), proof)
        ours = fold_ranges(inclusion_ranges(i, n), iter(LEAVES[:n]))
        # pymerkle puts the leaf itself first.
        assert [bytes.fromhex(h) if isinstance(h, str) else h for h in proof.path][1:] == ours
    for m in range(1, n + 1):
        proof = tree.prove_consistency(m, n)
        their_consistency(mth(LEAVES[:m]), mth(LEAVES[:n]), proof)


@pytest.mark.parametrize("n", [1, 2, 3, 6, 7, 8, 13, 31, 32, 33, 70])
def test_every_wrong_inclusion_proof_is_refused(n):
    leaves, top = LEAVES[:n], mth(LEAVES[:n])
    for i in range(n):
        proof = path(i, leaves)
        wrong = hashlib.sha256(b"\x00wrong").digest()
        bad = [
            (wrong, i, n, proof, top),
            (leaves[i], i, n, proof, wrong),
            (leaves[i], i, n, [*proof, wrong], top),
            (leaves[i], i, n, [wrong, *proof], top),
            (leaves[i], n, n, proof, top),
            (leaves[i], -1, n, proof, top),
            (leaves[i], i, 0, proof, top),
        ]
        bad += [(leaves[i], j, n, proof, top) for j in range(n) if j != i]
        bad += [(leaves[i], i, n, [*proof[:k], wrong, *proof[k + 1 :]], top) for k in range(len(proof))]
        bad += [(leaves[i], i, n, proof[:k] + proof[k + 1 :], top) for k in range(len(proof))]
        for args in bad:
            with pytest.raises(ProofError):
                verify_inclusion(*args)


@pytest.mark.parametrize("n", [2, 3, 6, 7, 8, 13, 32, 33, 70])
def test_every_wrong_consistency_proof_is_refused(n):
    leaves, top = LEAVES[:n], mth(LEAVES[:n])
    wrong = hashlib.sha256(b"\x00wrong").digest()
    for m in range(1, n + 1):
        first, proof = mth(leaves[:m]), subproof(m, leaves, True)
        bad = [
            (m, n, proof, wrong, top),
            (m, n, proof, first, wrong),
            (m, n, [*proof, wrong], first, top),
            (n + 1, n, proof, first, top),
            (-1, n, proof, first, top),
            (0, n, proof, first, top),
        ]
        bad += [(m, n, [*proof[:k], wrong, *proof[k + 1 :]], first, top) for k in range(len(proof))]
        bad += [(m, n, proof[:k] + proof[k + 1 :], first, top) for k in range(len(proof))]
        bad += [(j, n, proof, first, top) for j in range(1, n + 1) if j != m]
        for args in bad:
            with pytest.raises(ProofError):
                verify_consistency(*args)


def test_a_false_root_made_of_the_right_nodes_is_refused():
    """Splitting the path in two halves or swapping its order leads elsewhere."""
    leaves = LEAVES[:8]
    proof = path(3, leaves)
    with pytest.raises(ProofError):
        verify_inclusion(leaves[3], 3, 8, proof[::-1], mth(leaves))


def test_ranges_refuse_what_is_not_there():
    for index, size in [(0, 0), (1, 1), (-1, 3)]:
        with pytest.raises(ValueError, match="no leaf"):
            inclusion_ranges(index, size)
    for first, second in [(0, 3), (4, 3), (-1, 3)]:
        with pytest.raises(ValueError, match="no consistency proof"):
            consistency_ranges(first, second)
    with pytest.raises(ValueError, match="end before"):
        fold_ranges([(0, 4)], iter(LEAVES[:3]))
    with pytest.raises(ValueError, match="end before"):
        fold_ranges([(4, 5)], iter(LEAVES[:3]))


def test_large_sizes_need_no_leaves():
    """Ranges of a tree of 2**62 leaves come at once and partition it."""
    size, index = 2**62 + 12345, 2**61 + 77
    ranges = sorted([*inclusion_ranges(index, size), (index, index + 1)])
    assert ranges[0][0] == 0 and ranges[-1][1] == size
    assert all(a[1] == b[0] for a, b in itertools.pairwise(ranges))
    assert len(ranges) <= 64

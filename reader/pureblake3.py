"""BLAKE3 (plain hash mode, 32-byte output) with nothing but the standard library.

The source of every rule is the BLAKE3 paper ("BLAKE3: one function, fast everywhere", 2020): section 2.1
(the tree of chunks), 2.2 (the compression function), 2.4 (chunk values), 2.5 (parent values).

Speed comes from one idea. A Python integer may be as wide as one likes, and one `+`, `^` or shift of wide
integers costs little more than one of small ones. So the same 32-bit word of a thousand independent blocks is
kept in one integer, each word in a *lane* of 32 bits, and one run of the compression function serves all of
them. Chunks of one large object are independent, and so are small objects: `digest_many` puts both into the
same lanes, and the shorter ones leave early.

The module is loaded by file path into an isolated interpreter; it must import nothing outside the standard
library.
"""

from array import array
from collections.abc import Iterable, Sequence
from functools import lru_cache
from operator import attrgetter
from typing import NamedTuple

# Paper, table 1: the initial chaining value.
_IV = (
    0x6A09E667,
    0xBB67AE85,
    0x3C6EF372,
    0xA54FF53A,
    0x510E527F,
    0x9B05688C,
    0x1F83D9AB,
    0x5BE0CD19,
)
# Paper, table 2: how the message words move between two rounds.
_PERMUTATION = (2, 6, 3, 10, 7, 0, 4, 13, 1, 11, 12, 5, 9, 14, 15, 8)
_ROUNDS = 7
# Paper, table 3: domain flags.
_CHUNK_START, _CHUNK_END, _PARENT, _ROOT = 1, 2, 4, 8

_BLOCK_LEN = 64
_CHUNK_LEN = 1024
_WORD_MASK = 0xFFFFFFFF

_LANES = 1024
"""Most lanes in one run: more would leave the processor's cache, fewer would not pay for the interpreter."""

# Words are picked out of byte strings by slicing an array with a stride; their values are never looked at,
# so the byte order of the machine does not matter. The item size does.
_WORDS = "I"
assert array(_WORDS).itemsize == 4


def _schedule() -> tuple[tuple[int, ...], ...]:
    """For each round, which message word stands where (the permutation applied once more every round)."""
    order = tuple(range(16))
    rounds = [order]
    for _ in range(_ROUNDS - 1):
        order = tuple(order[i] for i in _PERMUTATION)
        rounds.append(order)
    return tuple(rounds)


_SCHEDULE = _schedule()
# Paper, section 2.2: the quarter-rounds of one round, columns first, then diagonals: four state words and the
# positions of two message words.
_QUARTER_ROUNDS = (
    (0, 4, 8, 12, 0, 1),
    (1, 5, 9, 13, 2, 3),
    (2, 6, 10, 14, 4, 5),
    (3, 7, 11, 15, 6, 7),
    (0, 5, 10, 15, 8, 9),
    (1, 6, 11, 12, 10, 11),
    (2, 7, 8, 13, 12, 13),
    (3, 4, 9, 14, 14, 15),
)


def digest(data: object) -> bytes:
    """The 32-byte BLAKE3 hash of one bytes-like object.

    Raises:
        TypeError: `data` does not offer the buffer protocol.
    """
    return _digest_group([_bytes_view(data)])[0]


def digest_many(items: Iterable[object]) -> list[bytes]:
    """The 32-byte BLAKE3 hash of each bytes-like object, in order; much faster than one `digest` call each.

    Args:
        items: bytes-like objects. They are consumed in groups of about 1 MiB, so a generator works and no
            more than one group (or one object, where it is larger) is held at a time.

    Raises:
        TypeError: an item does not offer the buffer protocol.
    """
    digests: list[bytes] = []
    group: list[memoryview] = []
    chunks = 0
    for item in items:
        view = _bytes_view(item)
        group.append(view)
        chunks += _chunk_count(len(view))
        if chunks >= _LANES:
            digests += _digest_group(group)
            group, chunks = [], 0
    if group:
        digests += _digest_group(group)
    return digests


def _bytes_view(data: object) -> memoryview:
    view = memoryview(data)  # type: ignore[arg-type]  # the TypeError for other objects is the wanted answer
    if view.c_contiguous and view.nbytes:
        return view.cast("B")
    return memoryview(view.tobytes())


def _chunk_count(length: int) -> int:
    return max(1, -(-length // _CHUNK_LEN))


class _Chunk(NamedTuple):
    """One chunk that waits for a lane."""

    blocks: int  # 1 to 16
    data: memoryview  # 0 to 1024 bytes
    counter: int  # number of the chunk within its object
    tree: int  # number of the object within its group
    last_flags: int  # flags of the last block: CHUNK_END, and ROOT for an object of one chunk


def _digest_group(views: "Sequence[memoryview]") -> list[bytes]:
    """Hash a group of objects together."""
    # One tree an object: the chaining values of one level, from left to right, 8 words each.
    trees: list[array[int]] = []
    waiting: list[_Chunk] = []
    for number, view in enumerate(views):
        count = _chunk_count(len(view))
        trees.append(array(_WORDS, bytes(32 * count)))
        last_flags = _CHUNK_END | _ROOT if count == 1 else _CHUNK_END
        for counter in range(count):
            data = view[counter * _CHUNK_LEN : (counter + 1) * _CHUNK_LEN]
            waiting.append(_Chunk(max(1, -(-len(data) // _BLOCK_LEN)), data, counter, number, last_flags))
            if len(waiting) == _LANES:
                _compress_chunks(waiting, trees)
                waiting.clear()
    if waiting:
        _compress_chunks(waiting, trees)
    _merge_parents(trees)
    return [tree.tobytes() for tree in trees]


def _compress_chunks(chunks: list[_Chunk], trees: "Sequence[array[int]]") -> None:
    """Chaining values of up to `_LANES` chunks (paper, section 2.4), written into their trees."""
    # Longest first: then the lanes that finish early are always the last ones and can simply be cut off.
    chunks.sort(key=attrgetter("blocks"), reverse=True)
    most = chunks[0].blocks
    words = array(
        _WORDS, b"".join([chunk.data.tobytes().ljust(most * _BLOCK_LEN, b"\0") for chunk in chunks])
    )
    stride = most * 16
    lanes = len(chunks)
    low = array(_WORDS, b"".join([(chunk.counter & _WORD_MASK).to_bytes(4, "little") for chunk in chunks]))
    high = array(_WORDS, b"".join([(chunk.counter >> 32).to_bytes(4, "little") for chunk in chunks]))
    values = [_repeat(word, lanes) for word in _IV]
    for block in range(most):
        # Both fit into the lowest byte of a word.
        lengths = bytearray(_BLOCK_LEN.to_bytes(4, "little") * lanes)
        flags = bytearray((_CHUNK_START if block == 0 else 0).to_bytes(4, "little") * lanes)
        staying = lanes
        while staying and chunks[staying - 1].blocks == block + 1:
            staying -= 1
            chunk = chunks[staying]
            lengths[4 * staying] = len(chunk.data) - block * _BLOCK_LEN
            flags[4 * staying] |= chunk.last_flags
        message = [words[block * 16 + word : lanes * stride : stride] for word in range(16)]
        values = _compress(lanes, values, message, (low[:lanes], high[:lanes], lengths, flags))
        if staying < lanes:
            finished = _values_in_order(values, lanes)
            for lane in range(staying, lanes):
                chunk = chunks[lane]
                trees[chunk.tree][chunk.counter * 8 : chunk.counter * 8 + 8] = finished[
                    lane * 8 : lane * 8 + 8
                ]
            remain = (1 << 32 * staying) - 1
            values = [value & remain for value in values]
            lanes = staying


def _merge_parents(trees: "list[array[int]]") -> None:
    """Reduce the chaining values of each object to its root value (paper, sections 2.1 and 2.5).

    Neighbours merge level by level and an odd last one moves up unchanged, which gives the same tree as the
    paper's rule (the left sub-tree is the largest complete one).
    """
    unfinished = [number for number, tree in enumerate(trees) if len(tree) > 8]
    while unfinished:
        # The values of two children, one after the other, are the block of their parent: the pairs of all
        # objects are simply laid end to end.
        pairs: array[int] = array(_WORDS)
        flags = bytearray()
        for number in unfinished:
            tree = trees[number]
            count = len(tree) // 16
            pairs += tree[: count * 16]
            flags += (_PARENT | _ROOT if len(tree) == 16 else _PARENT).to_bytes(4, "little") * count
        parents: array[int] = array(_WORDS)
        for start in range(0, len(pairs) // 16, _LANES):
            end = min(start + _LANES, len(pairs) // 16)
            lanes = end - start
            message = [pairs[start * 16 + word : end * 16 : 16] for word in range(16)]
            zeros = bytes(4 * lanes)
            lengths = _BLOCK_LEN.to_bytes(4, "little") * lanes
            values = [_repeat(word, lanes) for word in _IV]
            values = _compress(lanes, values, message, (zeros, zeros, lengths, flags[start * 4 : end * 4]))
            parents += _values_in_order(values, lanes)
        at = 0
        for number in unfinished:
            tree = trees[number]
            half = len(tree) // 16 * 8
            trees[number] = parents[at : at + half] + tree[2 * half :]
            at += half
        unfinished = [number for number in unfinished if len(trees[number]) > 8]


def _values_in_order(values: Sequence[int], lanes: int) -> "array[int]":
    """Eight wide words as chaining values, lane after lane."""
    ordered = array(_WORDS, bytes(32 * lanes))
    for word, value in enumerate(values):
        ordered[word::8] = array(_WORDS, value.to_bytes(4 * lanes, "little"))
    return ordered


def _compress(
    lanes: int,
    values: Sequence[int],
    message: "Sequence[array[int]]",
    rest: "Sequence[bytes | bytearray | array[int]]",
) -> list[int]:
    """The compression function (paper, section 2.2) on independent blocks, truncated to chaining values.

    Args:
        lanes: number of blocks.
        values: the 8 words of the input chaining values, wide.
        message: the 16 words of the blocks, a word of 4 bytes a lane.
        rest: in the same form the last four words of the state: low and high word of the counters, bytes in
            the block, domain flags.

    Returns:
        The 8 words of the output chaining values, wide.
    """
    v = [
        *values,
        *(_repeat(word, lanes) for word in _IV[:4]),
        *(int.from_bytes(words, "little") for words in rest),
    ]
    m = [int.from_bytes(words, "little") for words in message]
    # A single lane is an ordinary word, and cheaper as such.
    return _compress_wide(v, m, _masks(lanes)) if lanes > 1 else _compress_one(v, m)


def _compress_one(v: list[int], m: Sequence[int]) -> list[int]:
    """The compression function on one block, in ordinary words."""
    mask = _WORD_MASK
    for order in _SCHEDULE:
        for i, j, k, n, x, y in _QUARTER_ROUNDS:
            a, b, c, d = v[i], v[j], v[k], v[n]
            a = (a + b + m[order[x]]) & mask
            d ^= a
            d = d >> 16 | (d & 0xFFFF) << 16
            c = (c + d) & mask
            b ^= c
            b = b >> 12 | (b & 0xFFF) << 20
            a = (a + b + m[order[y]]) & mask
            d ^= a
            d = d >> 8 | (d & 0xFF) << 24
            c = (c + d) & mask
            b ^= c
            v[i], v[j], v[k], v[n] = a, b >> 7 | (b & 0x7F) << 25, c, d
    return [v[word] ^ v[word + 8] for word in range(8)]


class _Masks(NamedTuple):
    """Wide constants for one number of lanes."""

    top: int  # the highest bit of every lane
    low: int  # the other 31 bits
    keep: tuple[int, int, int, int]  # for rotations by 16, 12, 8, 7: the bits that the right shift may leave
    move: tuple[int, int, int, int]  # and those that the left shift may fill


@lru_cache(maxsize=32)
def _repeat(word: int, lanes: int) -> int:
    """The same word in every lane."""
    return int.from_bytes(word.to_bytes(4, "little") * lanes, "little")


@lru_cache(maxsize=8)
def _masks(lanes: int) -> _Masks:
    keep = [_WORD_MASK >> rotation for rotation in (16, 12, 8, 7)]
    k16, k12, k8, k7 = (_repeat(word, lanes) for word in keep)
    m16, m12, m8, m7 = (_repeat(word ^ _WORD_MASK, lanes) for word in keep)
    return _Masks(
        _repeat(0x80000000, lanes), _repeat(0x7FFFFFFF, lanes), (k16, k12, k8, k7), (m16, m12, m8, m7)
    )


def _compress_wide(v: list[int], m: Sequence[int], masks: _Masks) -> list[int]:
    """The compression function on all lanes at once.

    Lanes touch each other, so an addition must not carry from one into the next: the low 31 bits are added,
    which reaches the top bit at most, and the top bits are added without carry by `^`. For the same reason a
    rotation masks away what either shift brought in from the neighbour.
    """
    top, low, (k16, k12, k8, k7), (m16, m12, m8, m7) = masks
    m_low = [word & low for word in m]
    m_top = [word & top for word in m]
    for order in _SCHEDULE:
        for i, j, k, n, x, y in _QUARTER_ROUNDS:
            a, b, c, d = v[i], v[j], v[k], v[n]
            a = ((a & low) + (b & low)) ^ ((a ^ b) & top)
            a = ((a & low) + m_low[order[x]]) ^ (a & top) ^ m_top[order[x]]
            d ^= a
            d = (d >> 16) & k16 | (d << 16) & m16
            c = ((c & low) + (d & low)) ^ ((c ^ d) & top)
            b ^= c
            b = (b >> 12) & k12 | (b << 20) & m12
            a = ((a & low) + (b & low)) ^ ((a ^ b) & top)
            a = ((a & low) + m_low[order[y]]) ^ (a & top) ^ m_top[order[y]]
            d ^= a
            d = (d >> 8) & k8 | (d << 24) & m8
            c = ((c & low) + (d & low)) ^ ((c ^ d) & top)
            b ^= c
            v[i], v[j], v[k], v[n] = a, (b >> 7) & k7 | (b << 25) & m7, c, d
    return [v[word] ^ v[word + 8] for word in range(8)]

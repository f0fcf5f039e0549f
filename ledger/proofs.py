"""Proof files: one event, or one older checkpoint, shown to belong to a tree without the ledger at hand.

A proof is one JSON object in a file of its own, with everything in it that a verifier needs (docs/audit.md):

* inclusion: `proof` = `oakledger-inclusion/1`, the `event` as its exact canonical text, `index` (its seq),
  the `path` as hex node hashes from the leaf up (RFC 9162 section 2.1.3), and the `checkpoint` as its text;
* consistency: `proof` = `oakledger-consistency/1`, the older checkpoint `from`, the newer `to`, and the
  `path` (RFC 9162 section 2.1.4).

A proof proves membership in the tree that its checkpoint names. Whether that checkpoint is the ledger's is
shown by a signature on it, or by comparing it with one that was kept elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, TypeAlias

import msgspec
from msgspec import Meta, Struct

from ledger import checkpoints as notes
from ledger.checkpoints import Note
from ledger.errors import LedgerDamagedError, OakledgerError
from ledger.events import MAX_EVENT_BYTES, leaf_hash
from ledger.frontier import EMPTY_ROOT, Frontier, node_hash
from ledger.merkle import (
    MAX_PATH,
    ProofError,
    consistency_ranges,
    fold_ranges,
    inclusion_ranges,
    verify_consistency,
    verify_inclusion,
)
from ledger.store import Checkpoint, Ledger

#: Largest proof file that is read: an event of the largest size, every character escaped, and the rest.
MAX_PROOF_BYTES = 6 * MAX_EVENT_BYTES + (256 << 10)

_WINDOW = 65_536

Hash = Annotated[str, Meta(pattern=r"^[0-9a-f]{64}$(?!\n)")]
Path = Annotated[list[Hash], Meta(max_length=MAX_PATH)]
NoteText = Annotated[str, Meta(max_length=notes.MAX_NOTE_BYTES)]


class InclusionProof(
    Struct, frozen=True, forbid_unknown_fields=True, tag_field="proof", tag="oakledger-inclusion/1"
):
    """An event, and the path from it to the root of a checkpoint."""

    event: str
    index: Annotated[int, Meta(ge=0, le=notes.MAX_SIZE)]
    path: Path
    checkpoint: NoteText


class ConsistencyProof(
    Struct, frozen=True, forbid_unknown_fields=True, tag_field="proof", tag="oakledger-consistency/1"
):
    """Two checkpoints, and the path that shows the tree of the first to be the beginning of the second."""

    from_: NoteText = msgspec.field(name="from")
    to: NoteText
    path: Path


Proof: TypeAlias = InclusionProof | ConsistencyProof

_decoder = msgspec.json.Decoder(Proof)


@dataclass(frozen=True)
class Verified:
    """What a proof has shown: the newer checkpoint as read, and the event id or the older checkpoint."""

    proof: Proof
    note: Note
    event_id: str | None = None
    older: Note | None = None


def encode(proof: Proof) -> bytes:
    """Return a proof as it is written to a file: indented JSON with a final newline."""
    return msgspec.json.format(msgspec.json.encode(proof), indent=2) + b"\n"


def parse(data: bytes, where: str = "the proof") -> Proof:
    """Read a proof file. Raises ProofError saying what is wrong, with `where` it was."""
    try:
        return _decoder.decode(data)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as e:
        text = "".join(c if c.isprintable() else "?" for c in str(e)[:200])
        raise ProofError(f"{where} is no proof file of this oakledger: {text}") from None


def verify(proof: Proof, where: str = "the proof") -> Verified:
    """Verify a proof against the checkpoint in it, without any ledger. Raises ProofError."""
    if isinstance(proof, InclusionProof):
        note = _note(proof.checkpoint, where)
        leaf = leaf_hash(proof.event.encode())
        head = note.checkpoint
        verify_inclusion(leaf, proof.index, head.size, [bytes.fromhex(h) for h in proof.path], head.root)
        return Verified(proof, note, event_id=leaf.hex())
    older, newer = _note(proof.from_, where), _note(proof.to, where)
    if older.checkpoint.origin != newer.checkpoint.origin:
        raise ProofError(f"{where} goes from one origin to another: two origins have nothing in common")
    verify_consistency(
        older.checkpoint.size,
        newer.checkpoint.size,
        [bytes.fromhex(h) for h in proof.path],
        older.checkpoint.root,
        newer.checkpoint.root,
    )
    return Verified(proof, newer, older=older)


def _note(text: str, where: str) -> Note:
    try:
        return notes.parse_note(text.encode(), f"the checkpoint in {where}")
    except notes.CheckpointError as e:
        raise ProofError(str(e)) from None


# Making proofs


def find_event(ledger: Ledger, event_id: str, origin: str | None = None) -> tuple[str, int, str]:
    """Return (origin, seq, payload) of an event, preferring the ledger's own origin.

    Raises OakledgerError when the ledger, or that origin in it, does not have it.
    """
    rows = ledger.con.execute(
        "SELECT origin, seq, payload FROM events WHERE event_id = ? AND (origin = ? OR ? IS NULL) "
        "ORDER BY origin <> ?, origin, seq LIMIT 1",
        [event_id, origin, origin, ledger.origin],
    ).fetchall()
    if not rows:
        where = f"origin {origin} of {ledger.path}" if origin else ledger.path
        raise OakledgerError(f"{where} has no event {event_id}: look ids up with oakledger sql")
    found_origin, seq, payload = rows[0]
    if leaf_hash(str(payload).encode()).hex() != event_id:
        raise LedgerDamagedError(
            f"the payload of event {event_id} does not hash to its id: run oakledger audit"
        )
    return str(found_origin), int(seq), str(payload)


def _leaves(ledger: Ledger, origin: str, size: int) -> Iterator[bytes]:
    """Yield an origin's first `size` leaf hashes. Raises LedgerDamagedError when they are not all there."""
    for first in range(0, size, _WINDOW):
        last = min(first + _WINDOW, size)
        rows = ledger.con.execute(
            "SELECT seq, event_id FROM events WHERE origin = ? AND seq >= ? AND seq < ? ORDER BY seq",
            [origin, first, last],
        ).fetchall()
        if [seq for seq, _ in rows] != list(range(first, last)):
            raise LedgerDamagedError(
                f"{ledger.path} lacks events of {origin} from {first} to {last - 1}: run oakledger audit"
            )
        yield from (bytes.fromhex(event_id) for _, event_id in rows)


def tree_head(ledger: Ledger, origin: str, size: int) -> Checkpoint:
    """Return an origin's tree head at a size, folded from its events and compared with `checkpoints`.

    Raises LedgerDamagedError when the file states another root for that size.
    """
    frontier = Frontier()
    frontier.extend(_leaves(ledger, origin, size))
    return _agreed(ledger, Checkpoint(origin, size, frontier.root()))


def _agreed(ledger: Ledger, head: Checkpoint) -> Checkpoint:
    row = ledger.con.execute(
        "SELECT root FROM checkpoints WHERE origin = ? AND size = ?", [head.origin, head.size]
    ).fetchone()
    if row is not None and row[0] != head.root.hex():
        raise LedgerDamagedError(
            f"the events of {head.origin} have another root at size {head.size} than the ledger states: "
            "run oakledger audit"
        )
    return head


def prove_inclusion(
    ledger: Ledger, event_id: str, *, size: int | None = None, origin: str | None = None
) -> tuple[InclusionProof, Checkpoint]:
    """Make the proof that an event is in the tree of `size` leaves (default: the newest checkpoint's).

    The proof carries the checkpoint unsigned; `with_note` puts in a signed one. Raises OakledgerError when
    the event is not there or came after `size`, LedgerDamagedError when the tree is not what the file states.
    """
    origin, index, payload = find_event(ledger, event_id, origin)
    newest = ledger.checkpoint(origin).size
    size = newest if size is None else size
    if not index < size <= newest:
        raise OakledgerError(
            f"event {event_id} is number {index} of {origin}, whose newest checkpoint has {newest} events: "
            f"size {size} does not cover it, give --size from {index + 1} to {newest}"
        )
    ranges = inclusion_ranges(index, size)
    nodes = fold_ranges([*ranges, (index, index + 1)], _leaves(ledger, origin, size))
    head = _agreed(ledger, Checkpoint(origin, size, _root_over([*ranges, (index, index + 1)], nodes)))
    path = [node.hex() for node in nodes[:-1]]
    text = notes.checkpoint_text(head)
    return InclusionProof(event=payload, index=index, path=path, checkpoint=text), head


def prove_consistency(
    ledger: Ledger, older: Note, *, size: int | None = None
) -> tuple[ConsistencyProof, Checkpoint]:
    """Make the proof that the tree of an older checkpoint is the beginning of a newer one.

    Raises OakledgerError when the sizes do not go up, and LedgerDamagedError when the ledger does not have
    the older tree: then history was changed, or the checkpoint is of another ledger.
    """
    head = older.checkpoint
    newest = ledger.checkpoint(head.origin).size
    size = newest if size is None else size
    if head.size > newest:
        raise LedgerDamagedError(
            f"the checkpoint knows {head.size} events of {head.origin} and {ledger.path} has {newest}: "
            "events were lost, or it is of another ledger"
        )
    if not head.size <= size <= newest:
        raise OakledgerError(
            f"no proof from {head.size} to {size} events: give --size from {head.size} to {newest}"
        )
    if head.root != tree_head(ledger, head.origin, head.size).root:
        raise LedgerDamagedError(
            f"the first {head.size} events of {head.origin} have another root than the checkpoint: "
            "history was changed, or it is of another ledger"
        )
    path: list[str] = []
    if 0 < head.size < size:
        nodes = fold_ranges(consistency_ranges(head.size, size), _leaves(ledger, head.origin, size))
        path = [node.hex() for node in nodes]
    newer = tree_head(ledger, head.origin, size) if size else Checkpoint(head.origin, 0, EMPTY_ROOT)
    text = notes.note_bytes(older).decode()
    return ConsistencyProof(from_=text, to=notes.checkpoint_text(newer), path=path), newer


def _root_over(ranges: list[tuple[int, int]], nodes: list[bytes]) -> bytes:
    """Return the root of a tree whose leaves the given subtrees cover without gap."""
    level = sorted(zip(ranges, nodes, strict=True))

    def fold(start: int, end: int) -> bytes:
        for (first, last), node in level:
            if (first, last) == (start, end):
                return node
        k = 1 << ((end - start - 1).bit_length() - 1)
        return node_hash(fold(start, start + k), fold(start + k, end))

    return fold(0, max(end for _, end in ranges))


def with_note(proof: Proof, note: Note) -> Proof:
    """Return a proof whose newer checkpoint is the given note of the same tree head."""
    text = notes.note_bytes(note).decode()
    if isinstance(proof, InclusionProof):
        return msgspec.structs.replace(proof, checkpoint=text)
    return msgspec.structs.replace(proof, to=text)

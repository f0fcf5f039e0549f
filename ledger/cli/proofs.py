"""`oakledger checkpoint`, `prove`, `verify-proof` and `keygen`: evidence that leaves the ledger."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any

import click

from ledger.cli.context import Context, json_option, pass_context, printable
from ledger.errors import LedgerDamagedError, OakledgerError

if TYPE_CHECKING:
    from ledger.checkpoints import Note
    from ledger.store import Checkpoint

#: Findings that speak against the tree itself; what is wrong with a view does not stop a checkpoint.
_TREE_FINDINGS = frozenset(
    {
        "checkpoint_row",
        "kept_checkpoint",
        "gap",
        "duplicate_seq",
        "uncovered",
        "seq",
        "origin",
        "missing_table",
    }
)

_key_option = click.option(
    "--key", metavar="FILE", help="Sign the checkpoint with this private key (see keygen)."
)
_output_option = click.option(
    "-o", "--output", metavar="FILE", help="Write to a new file instead of standard output."
)


def _write(data: bytes, output: str | None) -> None:
    """Write to standard output, or to a file that must not exist."""
    if output is None:
        click.echo(data, nl=False)
        return
    try:
        with open(output, "xb") as f:
            f.write(data)
    except FileExistsError:
        raise OakledgerError(f"{output} exists: give another name, evidence is not written over") from None
    except OSError as e:
        raise OakledgerError(f"{output} cannot be written ({e.strerror}): give another name") from None


def _note(context: Context, head: Checkpoint, key: str | None) -> Note:
    """Return the note of a tree head: signed by the key, or as it was kept, or plain."""
    from ledger import checkpoints as notes

    if key:
        return notes.make_note(head, notes.read_private_key(key))
    path = os.path.join(notes.folder(context.path), notes.file_name(head))
    if os.path.isfile(path):
        note = notes.read_note(path)
        if note.checkpoint != head:
            raise LedgerDamagedError(f"{path} has another root than the ledger: run oakledger audit")
        return note
    return notes.make_note(head)


@click.command()
@click.option("--origin", metavar="ORIGIN", help="The stream to take, where the ledger holds several.")
@_key_option
@_output_option
@click.option("--keep", is_flag=True, help="Also keep it beside the ledger, as every ingest does.")
@pass_context
def checkpoint(context: Context, origin: str | None, key: str | None, output: str | None, keep: bool) -> None:
    """Print the current checkpoint: origin, number of events, root hash.

    Keep it where the ledger is not, for example in a release note: `oakledger audit --checkpoint FILE` then
    shows whether the ledger still holds what it held. The tree is folded from the events and compared with
    every checkpoint known before anything is printed or signed.

    Exit status: 0 printed; 2 usage; 3 the tree does not verify.

    Example: oakledger checkpoint --key release.key -o release-1.checkpoint
    """
    from ledger import checkpoints as notes
    from ledger.audit import audit_ledger
    from ledger.frontier import EMPTY_ROOT
    from ledger.store import Checkpoint

    with context.open(read_only=True) as ledger:
        report = audit_ledger(ledger, deep=False)
        wanted = origin or ledger.origin
    bad = [f for f in report.findings if f.code in _TREE_FINDINGS]
    if bad:
        raise LedgerDamagedError(
            f"{context.path} does not verify ({bad[0].detail}): no checkpoint is made, run oakledger audit"
        )
    heads = {head.origin: head for head in report.heads}
    if wanted not in heads and origin:
        raise OakledgerError(
            f"{context.path} has no events of origin {printable(origin)}: "
            f"its origins are {printable(', '.join(heads)) or 'none'}"
        )
    note = _note(context, heads.get(wanted, Checkpoint(wanted, 0, EMPTY_ROOT)), key)
    if keep and note.checkpoint.size:
        notes.keep_note(context.path, note)
    _write(notes.note_bytes(note), output)


@click.command()
@click.argument("event_id", required=False)
@click.option(
    "--from",
    "older",
    metavar="FILE",
    help="Prove instead that this older checkpoint is a beginning of the tree.",
)
@click.option("--size", type=click.IntRange(min=0), metavar="N", help="Size of the tree to prove against.")
@click.option("--origin", metavar="ORIGIN", help="The stream to take, where several hold the event.")
@_key_option
@_output_option
@pass_context
def prove(
    context: Context,
    event_id: str | None,
    older: str | None,
    size: int | None,
    origin: str | None,
    key: str | None,
    output: str | None,
) -> None:
    """Make a proof that stands without the ledger.

    With an EVENT_ID: the event itself, its place, the hashes from it to the root, and the checkpoint, in one
    JSON file for `oakledger verify-proof`. With --from: that the tree of an older checkpoint is the beginning
    of the newest one, that is, that nothing was changed or taken out in between.

    Exit status: 0 proof made; 2 usage, or no such event; 3 the tree does not verify.

    Example: oakledger prove 6527bb4b... -o trial.proof
    """
    from ledger import checkpoints as notes
    from ledger import proofs

    if (event_id is None) == (older is None):
        raise click.UsageError("give an EVENT_ID, or --from FILE")
    proof: proofs.Proof
    if older is not None:
        note = notes.read_note(older)
        if origin is not None and origin != note.checkpoint.origin:
            raise click.UsageError("--origin is not that of the checkpoint")
        with context.open(read_only=True) as ledger:
            proof, head = proofs.prove_consistency(ledger, note, size=size)
    else:
        assert event_id is not None
        if not re.fullmatch(r"[0-9a-f]{64}", event_id):
            raise click.UsageError("EVENT_ID is 64 hexadecimal digits in lower case")
        with context.open(read_only=True) as ledger:
            proof, head = proofs.prove_inclusion(ledger, event_id, size=size, origin=origin)
    _write(proofs.encode(proofs.with_note(proof, _note(context, head, key))), output)


@click.command("verify-proof")
@click.argument("file")
@click.option(
    "--checkpoint", metavar="FILE", help="The checkpoint that you have: the proof must be about its tree."
)
@click.option("--public-key", metavar="FILE", help="The checkpoint must be signed by this key.")
@json_option
def verify_proof(file: str, checkpoint: str | None, public_key: str | None, as_json: bool) -> None:
    """Check a proof without the ledger.

    By itself a proof shows that an event belongs to the tree that the checkpoint inside names. That this is
    the ledger's tree is shown by --checkpoint, one that you have from somewhere else, or by --public-key.

    Exit status: 0 valid; 1 not valid; 2 usage.

    Example: oakledger verify-proof trial.proof --public-key release.key.pub
    """
    from ledger import checkpoints as notes
    from ledger import proofs
    from ledger.merkle import ProofError

    trusted = notes.read_note(checkpoint) if checkpoint else None
    key = notes.read_public_key(public_key) if public_key else None
    proof = proofs.parse(notes.read_small_file(file, proofs.MAX_PROOF_BYTES), file)
    verified = proofs.verify(proof, file)
    known = [verified.note] + ([verified.older] if verified.older else [])
    if trusted is not None and trusted.checkpoint not in [note.checkpoint for note in known]:
        head, given = verified.note.checkpoint, trusted.checkpoint
        if (head.origin, head.size) == (given.origin, given.size):
            raise ProofError(
                f"{file} and {checkpoint} have different roots for {head.size} events: one is false"
            )
        raise ProofError(
            f"{file} is about {printable(head.origin)} at size {head.size}, {checkpoint} about "
            f"{printable(given.origin)} at size {given.size}: ask for a proof at that size"
        )
    if key is not None:
        notes.verify_signature(trusted or verified.note, key, checkpoint or f"the checkpoint in {file}")
    if as_json:
        Context.print_json(_as_json(verified, checked=bool(trusted or key)))
        return
    head = verified.note.checkpoint
    place = f"{printable(head.origin)} size {head.size} root {head.root.hex()}"
    if isinstance(proof, proofs.InclusionProof):
        click.echo(f"valid: event {verified.event_id} is number {proof.index} of {place}")
        click.echo(printable(proof.event))
    else:
        assert verified.older is not None
        click.echo(f"valid: the first {verified.older.checkpoint.size} events are the beginning of {place}")
    if not (trusted or key):
        click.echo(
            "note: the checkpoint in the proof was compared with nothing: give --checkpoint or --public-key"
        )


def _as_json(verified: Any, *, checked: bool) -> dict[str, Any]:
    head = verified.note.checkpoint
    result = {
        "valid": True,
        "proof": verified.proof.__struct_config__.tag,
        "origin": head.origin,
        "size": head.size,
        "root": head.root.hex(),
        "checkpoint_compared": checked,
    }
    if verified.event_id is not None:
        result |= {
            "event_id": verified.event_id,
            "index": verified.proof.index,
            "event": verified.proof.event,
        }
    else:
        older = verified.older.checkpoint
        result |= {"from_size": older.size, "from_root": older.root.hex()}
    return result


@click.command()
@click.option(
    "-o",
    "--output",
    default="oakledger.key",
    show_default=True,
    metavar="FILE",
    help="The private key; the public one is FILE.pub.",
)
@click.option(
    "--name", help="Name of the key in signature lines. Default: the origin of the ledger in force."
)
@pass_context
def keygen(context: Context, output: str, name: str | None) -> None:
    """Make an Ed25519 key pair for checkpoints.

    The private key is readable by you alone and never printed. Publish the public one, and keep the private
    one away from the machine that measures.

    Exit status: 0 made; 2 usage, or a file is there already.

    Example: oakledger keygen --name example.org/bench -o release.key
    """
    from ledger import checkpoints as notes

    if name is None:
        if not os.path.exists(context.path):
            raise click.UsageError("give --name: there is no ledger here to take a name from")
        with context.open(read_only=True) as ledger:
            name = ledger.origin
    key = notes.generate_key(name)
    public = f"{output}.pub"
    for path in (output, public):
        if os.path.lexists(path):
            raise OakledgerError(f"{path} exists: a key is never written over, give another name")
    _write_new(output, key.encode(), 0o600)
    _write_new(public, key.public().encode(), 0o644)
    click.echo(f"private key {output} (keep it secret), public key {public}:")
    click.echo(key.public().encode())


def _write_new(path: str, text: str, mode: int) -> None:
    try:
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
        with open(fd, "w", encoding="utf-8") as f:
            f.write(text + "\n")
    except OSError as e:
        raise OakledgerError(f"{path} cannot be written ({e.strerror}): give another name") from None

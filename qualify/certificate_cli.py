"""`oakledger verify-certificate`: does a certificate show what it says?"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

from ledger.cli.context import Context, json_option, pass_context, printable
from ledger.errors import LedgerDamagedError, OakledgerError

if TYPE_CHECKING:
    from qualify.certificate import Certificate, Checked


@click.command("verify-certificate")
@click.argument("file")
@click.option("--proofs-only", is_flag=True, help="Use no ledger: check what is in the file alone.")
@click.option("--again", is_flag=True, help="Evaluate all rules again, on the events that were decided on.")
@click.option(
    "--checkpoint", metavar="FILE", help="A checkpoint that you have: the certificate must rest on it."
)
@click.option("--public-key", metavar="FILE", help="The checkpoint in it must be signed by this key.")
@click.option("--require", type=click.Choice(["qualified"]), help="A diagnostic certificate is not enough.")
@json_option
@pass_context
def verify_certificate(
    ctx: Context,
    file: str,
    proofs_only: bool,
    again: bool,
    checkpoint: str | None,
    public_key: str | None,
    require: str | None,
    as_json: bool,
) -> None:
    """Check a certificate of oakledger qualify against the ledger, or by its proofs alone.

    By itself a certificate shows that the decision, and the plan that it is about, belong to the tree that
    the checkpoint inside names. That this is the ledger's tree is shown by the ledger, by --checkpoint with
    one that you have from somewhere else, or by --public-key.

    Exit status: 0 valid; 1 not valid; 2 usage; 3 the ledger does not verify. A valid certificate may say
    `diagnostic`: with --require qualified that is status 1.

    Example: oakledger verify-certificate release.certificate.json --proofs-only --public-key release.key.pub
    """
    from ledger import checkpoints as notes
    from qualify import certificate as certificates

    if again and proofs_only:
        raise click.UsageError("--again needs the ledger: leave out --proofs-only")
    trusted = notes.read_note(checkpoint) if checkpoint else None
    key = notes.read_public_key(public_key) if public_key else None
    data = notes.read_small_file(file, certificates.MAX_CERTIFICATE_BYTES)
    if not proofs_only and not os.path.lexists(ctx.path):
        raise click.UsageError(
            f"no ledger at {ctx.path}: give --ledger PATH before the command, or --proofs-only"
        )
    checked = certificates.verify(certificates.parse(data, file), file)
    if key is not None:
        certificates.verify_signature(checked, key, file)
    if trusted is not None and checkpoint is not None:
        certificates.compare_checkpoint(checked, trusted, file, checkpoint)
    if not proofs_only:
        checked = _against_ledger(ctx, checked, file, again)
    if require and checked.certificate.decision != require:
        raise certificates.CertificateError(
            f"{file} is valid and says {checked.certificate.decision}: {require} was required"
        )
    compared = not proofs_only or trusted is not None or key is not None
    if as_json:
        ctx.print_json(_as_json(checked, ledger=not proofs_only, compared=compared, again=again))
        return
    _print(checked.certificate, checked, compared, again)


def _against_ledger(ctx: Context, checked: Checked, file: str, again: bool) -> Checked:
    from ledger.audit import audit_ledger
    from qualify import certificate as certificates

    with ctx.open(read_only=True) as ledger:
        report = audit_ledger(ledger)
        if not report.ok:
            raise LedgerDamagedError(
                f"{ctx.path} does not verify ({report.findings[0].detail}): nothing can be compared with it; "
                "run oakledger audit"
            )
        checked = certificates.verify_in_ledger(checked, ledger, file)
        if again:
            certificates.again(checked, ledger, file)
    return checked


def _as_json(checked: Checked, *, ledger: bool, compared: bool, again: bool) -> dict[str, object]:
    c, head = checked.certificate, checked.note.checkpoint
    return {
        "valid": True,
        "campaign": c.campaign,
        "decision": c.decision,
        "event_id": c.event_id,
        "plan_sha256": c.plan_sha256,
        "views_sha256": c.views_sha256,
        "decided_on": {"origin": c.checkpoint.origin, "size": c.checkpoint.size, "root": c.checkpoint.root},
        "checkpoint": {"origin": head.origin, "size": head.size, "root": head.root.hex()},
        "ledger_compared": ledger,
        "checkpoint_compared": compared,
        "evaluated_again": again,
        "remarks": list(checked.remarks),
    }


def _print(c: Certificate, checked: Checked, compared: bool, again: bool) -> None:
    click.echo(f"valid: campaign {printable(c.campaign)} was decided as {c.decision}")
    refused = [r.rule for r in c.rules if r.violations]
    if refused:
        click.echo(f"violated: {', '.join(refused)}")
    on, head = c.checkpoint, checked.note.checkpoint
    click.echo(f"decided on {printable(on.origin)} size {on.size} root {on.root}")
    click.echo(f"recorded as event {c.event_id} in the tree of size {head.size} root {head.root.hex()}")
    if again:
        click.echo("evaluated again on the same events: the same answer")
    for remark in checked.remarks:
        click.echo(printable(f"note: {remark}"))
    if not compared:
        click.echo(
            "note: the checkpoint in it was compared with nothing: "
            "give --public-key, --checkpoint or a ledger"
        )


def check_new(path: str) -> None:
    """Refuse a certificate file that exists. Raises OakledgerError."""
    if os.path.lexists(path):
        raise OakledgerError(f"{path} exists: give another name, evidence is not written over")


def write(ctx: Context, event_id: str, path: str, key_path: str | None) -> None:
    """Write the certificate of a decision that was just recorded. Raises OakledgerError."""
    from ledger import checkpoints as notes
    from qualify import certificate as certificates

    key = notes.read_private_key(key_path) if key_path else None
    with ctx.open(read_only=True) as ledger:
        made = certificates.make(ledger, event_id, key)
    data = certificates.encode(made)
    try:
        with open(path, "xb") as f:
            f.write(data)
    except OSError as e:
        raise OakledgerError(
            f"{path} cannot be written ({e.strerror}): the decision is recorded as event {event_id}; give "
            "another name and run oakledger qualify again"
        ) from None

"""`oakledger audit`: does the ledger verify, and if not, everything that is wrong with it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from ledger.cli.context import Context, json_option, pass_context, printable

if TYPE_CHECKING:
    from ledger.audit import AuditReport

#: Findings shown in the text output; --json has them all.
SHOWN = 50


@click.command()
@click.option(
    "--checkpoint",
    "checkpoints",
    multiple=True,
    metavar="FILE",
    help="Compare with a checkpoint that was kept elsewhere. May be given several times.",
)
@click.option(
    "--public-key",
    metavar="FILE",
    help="Checkpoints given must be signed by this key; with none given, one kept beside the ledger must.",
)
@click.option("--no-kept", is_flag=True, help="Leave out the checkpoints kept beside the ledger.")
@json_option
@pass_context
def audit(
    context: Context, checkpoints: tuple[str, ...], public_key: str | None, no_kept: bool, as_json: bool
) -> None:
    """Verify the ledger: contents, tree, guards, views, checkpoints.

    Every payload is hashed and decoded again, every typed column compared with it, every tree folded and
    compared with the checkpoints in the file, beside it and given here, and guards and views with the shipped
    ones. Everything that is wrong is listed. Nothing is changed.

    Exit status: 0 the ledger verifies; 2 it cannot be opened; 3 it does not verify.

    Example: oakledger --ledger theirs.duckdb audit --checkpoint release-1.checkpoint
    """
    from ledger.audit import audit_ledger
    from ledger.checkpoints import read_public_key

    report = audit_ledger(
        context.path,
        checkpoints=checkpoints,
        public_key=read_public_key(public_key) if public_key else None,
        kept=not no_kept,
        lock_timeout_s=context.lock_timeout_s,
    )
    if as_json:
        context.print_json(report.as_json())
    else:
        _print(report)
    click.get_current_context().exit(report.exit_status)


def _print(report: AuditReport) -> None:
    origins = "1 origin" if len(report.heads) == 1 else f"{len(report.heads)} origins"
    click.echo(
        f"{printable(report.path)}: {report.events} events, {origins} with a whole tree, "
        f"{report.checkpoints_compared} checkpoints compared, {report.duration_ns / 1e9:.1f} s"
    )
    for head in report.heads:
        click.echo(f"  {printable(head.origin)}  size {head.size}  root {head.root.hex()}")
    if report.ok:
        click.echo("verifies")
        return
    for finding in report.findings[:SHOWN]:
        click.echo(f"  {finding.code}: {printable(finding.place())}: {printable(finding.detail)}")
    total = sum(report.counts.values())
    if total > SHOWN:
        click.echo(f"  ... and {total - SHOWN} more: --json lists them")
    counts = ", ".join(f"{code} {count}" for code, count in sorted(report.counts.items()))
    click.echo(f"DOES NOT VERIFY: {total} findings ({counts})")

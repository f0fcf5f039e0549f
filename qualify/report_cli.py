"""`oakledger report`: a campaign as one page for people, with the decision of `oakledger qualify` in it."""

from __future__ import annotations

import hashlib
import os
import sys
import tempfile
from typing import TYPE_CHECKING

import click

from ledger.cli.context import Context, json_option, pass_context, printable
from ledger.cli.names import complete_campaign, require_campaign
from ledger.errors import LedgerDamagedError, OakledgerError

if TYPE_CHECKING:
    from qualify.decision import Decision


@click.command()
@click.option(
    "--campaign", required=True, shell_complete=complete_campaign, help="The campaign to report on."
)
@click.option(
    "-o",
    "--output",
    required=True,
    metavar="FILE",
    help="The page to write, - for standard output. An earlier report of that name is replaced.",
)
@json_option
@pass_context
def report(context: Context, campaign: str, output: str, as_json: bool) -> None:
    """Write a campaign's report as one self-contained HTML page.

    Verifies the ledger, decides as `oakledger qualify` does, and records nothing. The page needs no network
    and holds the SQL and the events behind its figures, and the commands that check it.

    Exit status: 0 the page is written, whatever the decision; 2 usage; 3 the ledger does not verify; 4 no
    such campaign.

    Example: oakledger report --campaign demo -o demo.html
    """
    if as_json and output == "-":
        raise click.UsageError("--json and -o - both write to standard output: name a file")
    if output != "-":
        _check_output(output)
    page, decision = _make(context, campaign)
    if output == "-":
        sys.stdout.buffer.write(page)
        sys.stdout.buffer.flush()
        return
    _write(output, page)
    if as_json:
        context.print_json(
            {
                "file": output,
                "bytes": len(page),
                "sha256": hashlib.sha256(page).hexdigest(),
                "campaign": campaign,
                "decision": decision.word,
                "checkpoint": {
                    "origin": decision.checkpoint.origin,
                    "size": decision.checkpoint.size,
                    "root": decision.checkpoint.root.hex(),
                },
            }
        )
        return
    size = f"{len(page) / 1000:,.0f} kB"
    click.echo(printable(f"{output}: campaign {campaign} is {decision.word}, {size}; open it in a browser"))


def _make(context: Context, campaign: str) -> tuple[bytes, Decision]:
    """Audit, decide and render on one open file, so that nothing comes in between."""
    from ledger.audit import audit_ledger
    from qualify.decision import decide
    from qualify.report.data import collect
    from qualify.report.page import environment, render

    environment()  # a missing package is said before the ledger is read
    with context.open(read_only=True) as ledger:
        require_campaign(ledger, campaign)
        audit = audit_ledger(ledger)
        if not audit.ok:
            total = sum(audit.counts.values())
            raise LedgerDamagedError(
                f"{context.path} does not verify ({total} findings): no page is written; "
                "run oakledger audit, and restore a copy that matches a kept checkpoint"
            )
        decision = decide(ledger, campaign)
        data = collect(ledger, decision)
    return render(data, os.path.basename(context.path)), decision


def _check_output(path: str) -> None:
    """Raise OakledgerError, before any work, when the page would replace something else or has no place."""
    from qualify.report.page import MARK

    folder = os.path.dirname(os.path.abspath(path))
    if not os.path.isdir(folder):
        raise OakledgerError(f"{path} cannot be written: {folder} is no directory, make it first")
    if not os.path.lexists(path):
        return
    try:
        with open(path, "rb") as f:
            if f.read(len(MARK)) == MARK:
                return
    except OSError as e:
        raise OakledgerError(f"{path} cannot be replaced ({e.strerror}): give another name") from e
    raise OakledgerError(f"{path} exists and is no oakledger report: give another name")


def _write(path: str, page: bytes) -> None:
    """Write a whole page or nothing."""
    try:
        folder = os.path.dirname(os.path.abspath(path))
        descriptor, draft = tempfile.mkstemp(prefix=".oakledger-report-", dir=folder)
        try:
            with open(descriptor, "wb") as f:
                f.write(page)
            os.chmod(draft, 0o666 & ~_umask())
            os.replace(draft, path)
        except BaseException:
            os.unlink(draft)
            raise
    except OSError as e:
        raise OakledgerError(f"{path} cannot be written ({e.strerror}): give another name") from e


def _umask() -> int:
    mask = os.umask(0o022)
    os.umask(mask)
    return mask

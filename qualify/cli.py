"""`oakledger qualify`: may this campaign's comparison be published? The exit status decides."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from ledger.cli.context import Context, pass_context
from ledger.cli.names import complete_campaign, require_campaign
from ledger.errors import EXIT_LEDGER, LedgerDamagedError, OakledgerError

if TYPE_CHECKING:
    from ledger.audit import AuditReport
    from qualify.decision import Decision

#: Findings of a failed audit that are printed; `oakledger audit` prints all.
SHOWN_FINDINGS = 10


@click.command()
@click.option(
    "--campaign", required=True, shell_complete=complete_campaign, help="The campaign to decide on."
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json", "github"]),
    default="text",
    show_default=True,
    help="What to print.",
)
@click.option("--json", "as_json", is_flag=True, help="The same as --format json.")
@click.option(
    "--explain", "rule_name", metavar="RULE", help="Explain one rule, by number or id; records nothing."
)
@click.option("--describe", is_flag=True, help="Add paired outcomes with exact McNemar figures (text only).")
@click.option(
    "--no-record", is_flag=True, help="Do not append the decision: for a ledger that must not change."
)
@click.option(
    "--certificate",
    metavar="FILE",
    help="Write a certificate to a new file: the decision and what shows it without the ledger.",
)
@click.option("--key", metavar="FILE", help="Sign the checkpoint in the certificate (see keygen).")
@pass_context
def qualify(
    ctx: Context,
    campaign: str,
    form: str,
    as_json: bool,
    rule_name: str | None,
    describe: bool,
    no_record: bool,
    certificate: str | None,
    key: str | None,
) -> None:
    """Decide whether a campaign's comparison may be published.

    Verifies the ledger first, evaluates all rules and shows all of them, and records the decision with the
    checkpoint it was made on. Exit status: 0 qualified; 1 not qualified (diagnostic); 2 usage; 3 the ledger
    does not verify; 4 no such campaign.
    """
    from qualify.rules import find, rules

    form = "json" if as_json else form
    rule = None
    if rule_name is not None:
        rule = find(rule_name)
        if rule is None:
            raise OakledgerError(
                f"no rule {rule_name!r}: rules are 1 to {len(rules())}, or {', '.join(r.id for r in rules())}"
            )
    if certificate is not None:
        from qualify.certificate_cli import check_new

        if no_record or rule is not None:
            raise click.UsageError(
                "a certificate is about a recorded decision: leave out --no-record, --explain"
            )
        check_new(certificate)
    elif key is not None:
        raise click.UsageError("--key signs a certificate: give --certificate FILE too")
    decision = _decide(ctx, campaign, form, recorded=not no_record and rule is None)
    if rule is not None:
        from qualify import show

        state = decision.rules[rule.number - 1]
        if form == "json":
            ctx.print_json(show.explanation_json(state))
        else:
            show.explanation(ctx.console, decision, state)
        sys.exit(decision.exit_status)
    event = None
    if not no_record:
        _, ids = ctx.record([decision.event()], create=False)
        event = ids[0]
        if certificate is not None:
            from qualify.certificate_cli import write

            write(ctx, event, certificate, key)
    _print(ctx, decision, form, event, describe)
    sys.exit(decision.exit_status)


def _decide(ctx: Context, campaign: str, form: str, *, recorded: bool) -> Decision:
    """Audit and decide on one open file, so that nothing comes in between.

    A file that is going to be written anyway gets this package's views first: they are no evidence, and those
    of another version would be findings.
    """
    from ledger.audit import audit_ledger
    from ledger.store import has_shipped_views
    from qualify.decision import decide

    ledger = ctx.open(read_only=True)
    if recorded and not has_shipped_views(ledger.con):
        ledger.close()
        ctx.open().close()
        ledger = ctx.open(read_only=True)
    with ledger:
        report = audit_ledger(ledger)
        if not report.ok:
            _refuse(ctx, report, form)
        require_campaign(ledger, campaign)
        return decide(ledger, campaign)


def _refuse(ctx: Context, report: AuditReport, form: str) -> None:
    """Print what the audit found, and end with status 3."""
    from ledger.cli.context import printable

    if form == "json":
        ctx.print_json(
            {"document": "oakledger-qualification/1", "decision": None, "exit_status": EXIT_LEDGER}
            | {"audit": report.as_json()}
        )
        sys.exit(EXIT_LEDGER)
    total = sum(report.counts.values())
    for finding in report.findings[:SHOWN_FINDINGS]:
        where = "" if finding.origin is None else f" {finding.origin}"
        where += "" if finding.seq is None else f" number {finding.seq}"
        click.echo(printable(f"{finding.code}{where}: {finding.detail}"), err=True)
    raise LedgerDamagedError(
        f"{ctx.path} does not verify ({total} findings, {min(total, SHOWN_FINDINGS)} shown): no answer is "
        "given; run oakledger audit for all of them, and restore a copy that matches a kept checkpoint"
    )


def _print(ctx: Context, decision: Decision, form: str, event: str | None, describe: bool) -> None:
    if form == "json":
        ctx.print_json(decision.as_json(event))
        return
    from qualify import show

    if form == "github":
        for text in show.github(decision):
            click.echo(text)
        return
    show.terminal(ctx.console, decision, event, describe)

"""`oakledger merge`: take in the events of other ledgers."""

from __future__ import annotations

import click

from ledger.cli.context import Context, json_option, pass_context


@click.command()
@click.argument("others", nargs=-1, required=True, metavar="OTHER...", type=click.Path())
@json_option
@pass_context
def merge(context: Context, others: tuple[str, ...], as_json: bool) -> None:
    """Take the events of the ledgers OTHER... into this one.

    Idempotent and independent of order; every earlier checkpoint and proof stays valid. An event that several
    ledgers hold is stored for each origin and counted once in the views. Each OTHER is audited first, and is
    one transaction.
    """
    from ledger.checkpoints import keep
    from ledger.merge import merge as merge_ledger

    results = []
    with context.open(create=True) as ledger:
        for other in others:
            result = merge_ledger(ledger, other, lock_timeout_s=context.lock_timeout_s)
            results.append(
                {"ledger": other, "new": result.new, "known": result.known, "origins": result.origins}
            )
        origins = [
            r[0] for r in ledger.con.execute("SELECT DISTINCT origin FROM checkpoints ORDER BY 1").fetchall()
        ]
        heads = [ledger.checkpoint(origin) for origin in origins]
    for head in heads:
        keep(context.path, head)
    if as_json:
        context.print_json({"merged": results})
    else:
        for r in results:
            word = "origin" if r["origins"] == 1 else "origins"
            click.echo(f"{r['ledger']}: {r['new']} new, {r['known']} known, from {r['origins']} {word}")

"""`oakledger schema`: what a harness in any language may write."""

from __future__ import annotations

import click

from ledger.cli.context import Context, pass_context


@click.command()
@click.option("--kind", metavar="KIND", help="Only this kind, for example trial_recorded.")
@click.option("--row", "of_row", is_flag=True, help="The harness row instead of the events.")
@pass_context
def schema(context: Context, kind: str | None, of_row: bool) -> None:
    """Print the JSON Schema of the events, with the meaning of every field.

    \b
    Example: oakledger schema --kind trial_recorded | less
    """
    from ledger.rows import row_schema
    from ledger.schema import event_schema

    if kind is not None and of_row:
        raise click.UsageError("--kind and --row exclude each other")
    context.print_json(row_schema() if of_row else event_schema(kind))

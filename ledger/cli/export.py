"""`oakledger export`: the events as Parquet, for tools that do not read DuckDB files."""

from __future__ import annotations

import os

import click
import duckdb

from ledger.cli.context import Context, json_option, pass_context
from ledger.errors import OakledgerError
from ledger.scratch import scratch


@click.command()
@click.option(
    "--parquet",
    "folder",
    required=True,
    metavar="DIR",
    type=click.Path(file_okay=False),
    help="New folder; hive-partitioned by campaign and kind.",
)
@json_option
@pass_context
def export(context: Context, folder: str, as_json: bool) -> None:
    """Export all events as Parquet files under DIR/campaign=.../kind=.../.

    Events without a campaign are under campaign=__HIVE_DEFAULT_PARTITION__. The columns are those of
    the table `events`; an event held by several origins appears once for each.
    """
    if os.path.lexists(folder):
        raise OakledgerError(f"{folder} exists: name a new folder, nothing was written")
    parent = os.path.dirname(os.path.abspath(folder))
    if not os.path.isdir(parent):
        raise OakledgerError(f"{parent} is no directory: make it first, nothing was written")
    with (
        context.open(read_only=True) as ledger,
        scratch(parent) as draft,
    ):
        target = os.path.join(draft, "parquet")
        os.mkdir(target)
        counted = ledger.con.execute("SELECT count(*) FROM events").fetchone()
        count = int(counted[0]) if counted else 0
        if count:
            quoted = target.replace("'", "''")
            try:
                ledger.con.execute(
                    "COPY (SELECT * FROM events ORDER BY campaign, kind, origin, seq) "  # noqa: S608 - our own path
                    f"TO '{quoted}' (FORMAT parquet, PARTITION_BY (campaign, kind), COMPRESSION zstd, "
                    "OVERWRITE_OR_IGNORE true)"
                )
            except duckdb.Error as e:
                # A full disk, or a campaign whose name is too long for a folder once it is escaped.
                raise OakledgerError(
                    f"{folder} could not be written ({' '.join(str(e).split())[:160]}): check room and "
                    "permissions there, and for a name too long use oakledger sql; nothing was written"
                ) from e
        os.rename(target, folder)
    if as_json:
        context.print_json({"folder": folder, "events": count})
    else:
        click.echo(f"{count} events in {folder}")

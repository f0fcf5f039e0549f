"""Reads `oakledger export --parquet DIR` with three tools that must agree: `python read_export.py DIR`.

The folder is partitioned as Hive does it. Each tool finds `campaign` and `kind` in the names of folders and
pushes a filter on them down, so that one campaign of a large export is read without the others.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds

#: (campaign or null, kind, events, first and last sequence number); null: the event belongs to no campaign.
Row = tuple[str | None, str, int, int, int]

#: What Hive calls a null in the name of a folder. Not every tool turns it back into one.
NULL = "__HIVE_DEFAULT_PARTITION__"


def with_polars(folder: str) -> list[Row]:
    """Count events by campaign and kind."""
    frame = pl.scan_parquet(
        f"{folder}/**/*.parquet", hive_schema={"campaign": pl.String, "kind": pl.String}, glob=True
    )
    counted = frame.group_by("campaign", "kind").agg(
        pl.len(), pl.col("seq").min().alias("first"), pl.col("seq").max().alias("last")
    )
    return _sorted(counted.collect().rows())


def with_pyarrow(folder: str) -> list[Row]:
    """The same."""
    parts = ds.partitioning(pa.schema([("campaign", pa.string()), ("kind", pa.string())]), flavor="hive")
    table = ds.dataset(folder, format="parquet", partitioning=parts).to_table(
        columns=["campaign", "kind", "seq"]
    )
    counted = table.group_by(["campaign", "kind"]).aggregate(
        [([], "count_all"), ("seq", "min"), ("seq", "max")]
    )
    columns = ("campaign", "kind", "count_all", "seq_min", "seq_max")
    return _sorted(tuple(row[c] for c in columns) for row in counted.to_pylist())


def with_duckdb(folder: str) -> list[Row]:
    """The same, in SQL."""
    with duckdb.connect() as con:
        found = con.execute(
            "SELECT campaign, kind, count(*), min(seq), max(seq) "
            "FROM read_parquet(?, hive_partitioning = true, "
            "hive_types = {'campaign': VARCHAR, 'kind': VARCHAR}) GROUP BY ALL",
            [f"{folder}/**/*.parquet"],
        )
        return _sorted(found.fetchall())


def trials_of(folder: str, campaign: str) -> pl.DataFrame:
    """Return one row a trial of one campaign, with a metric out of the payload, as BI tools want it."""
    frame = pl.scan_parquet(
        f"{folder}/**/*.parquet", hive_schema={"campaign": pl.String, "kind": pl.String}, glob=True
    )
    return (
        frame.filter(pl.col("campaign") == campaign, pl.col("kind") == "trial_recorded")
        .select(
            "trial",
            "subject",
            "scenario",
            "status",
            pl.col("payload").str.json_path_match("$.metrics.wall_ns").cast(pl.Int64).alias("wall_ns"),
        )
        .sort("trial")
        .collect()
    )


def _sorted(rows: object) -> list[Row]:
    """Return rows in one order, with Hive's word for null turned back into one."""
    found = [(None if row[0] == NULL else row[0], *row[1:]) for row in rows]  # type: ignore[attr-defined]
    return sorted(found, key=lambda row: (row[0] or "", row[1]))


TOOLS: dict[str, Callable[[str], list[Row]]] = {
    "polars": with_polars,
    "pyarrow": with_pyarrow,
    "duckdb": with_duckdb,
}


def main(folder: str) -> None:
    """Print what each tool counts, and stop where they differ."""
    results = {name: tool(folder) for name, tool in TOOLS.items()}
    for name, rows in results.items():
        if rows != results["polars"]:
            sys.exit(f"{name} reads something else than polars: {rows}")
    for campaign, kind, events, first, last in results["polars"]:
        print(f"{campaign or '(none)':<20} {kind:<24} {events:>8}  number {first} to {last}")
    print(f"{', '.join(results)} agree")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python read_export.py DIR")
    main(sys.argv[1])

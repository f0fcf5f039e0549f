"""Speed and memory of the audit, on ledgers of a million and of ten million events that verify.

Whole processes, as people run them: `oakledger audit --json`. The peak is that of all its processes together,
sampled in a run of its own. Processor time stands beside the wall time: on a busy machine that is the figure
to compare. The audit in plain SQL, what an auditor without oakledger runs, is measured on the smaller ledger.
"""

from __future__ import annotations

import argparse
import itertools
import os
import statistics
import tempfile
import time
from typing import Any

import duckdb

from bench.ledger_ingest import events
from bench.processes import oakledger, peak, timed
from ledger import sqlfiles
from ledger.checkpoints import keep
from ledger.staging import Staging
from ledger.store import open_ledger

EVENTS = 1_000_000
LARGE = 10_000_000
RUNS = 3
BATCH = 500_000
QUERIES = ("bad_events", "gaps", "identities", "roots")


def build(path: str, count: int, *, full: bool) -> int:
    """Make a ledger of so many events with its kept checkpoints; returns the bytes of all payloads."""
    size = 0
    source = events(count, f"bench/{count}", full=full)
    with open_ledger(path) as ledger:
        while batch := list(itertools.islice(source, BATCH)):
            with Staging() as staging:
                for event in batch:
                    staging.add_event(event)
                size += staging.bytes
                keep(path, ledger.append_staged(staging).checkpoint)
    return size


def measured(path: str, count: int, size: int, runs: int) -> list[dict[str, Any]]:
    """Return the rows of one ledger."""
    command = oakledger(path, "audit", "--json")
    found = [timed(command) for _ in range(runs)]
    what = f"audit of {count:,} events of {size // count} bytes"
    walls, cpus = ([run[i] for run in found] for i in range(2))
    rows: list[dict[str, Any]] = [
        {"name": f"{what}, median of {runs}", "value": statistics.median(walls), "unit": "s"},
        {
            "name": f"{what}, processor time",
            "value": statistics.median(cpus) * 1e6 / count,
            "unit": "us/event",
        },
        {
            "name": f"{what}, peak of all processes",
            "value": peak(command) / 2**20,
            "unit": "MiB",
            "bound": 1024,
        },
    ]
    if count == EVENTS:
        rows[0]["bound"] = 5
    return rows


def in_sql(path: str, count: int) -> list[dict[str, Any]]:
    """Return what the queries of sql/audit take."""
    found = []
    for name in QUERIES:
        with duckdb.connect() as con:
            con.execute(f"ATTACH '{path}' AS ledger (READ_ONLY)")
            started = time.perf_counter()
            con.execute(sqlfiles.read(f"audit/{name}.sql")).fetchall()
            seconds = time.perf_counter() - started
        found.append({"name": f"sql/audit/{name}.sql, {count:,} events", "value": seconds, "unit": "s"})
    return found


def rows(count: int = EVENTS, large: int = LARGE) -> list[dict[str, Any]]:
    """Return the measurements; `large` 0 leaves out the larger ledger."""
    found: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(prefix="oakledger-bench-") as folder:
        for full in (False, True):
            path = os.path.join(folder, f"{full}.duckdb")
            found += measured(path, count, build(path, count, full=full), RUNS)
        found += in_sql(path, count)
        if large:
            path = os.path.join(folder, "large.duckdb")
            found += measured(path, large, build(path, large, full=False), 1)
    return found


def main() -> None:
    """Print the measurements, by default of a tenth of the events."""
    parser = argparse.ArgumentParser(prog="python -m bench.ledger_audit")
    parser.add_argument("--events", type=int, default=EVENTS // 10)
    parser.add_argument("--large", type=int, default=0)
    args = parser.parse_args()
    for row in rows(args.events, args.large):
        print(f"{row['name']}: {row['value']:,.2f} {row['unit']}")


if __name__ == "__main__":
    main()

"""Speed and size of the report, and of `status` and `show`: whole processes, as people run them.

The bounds are those that the project promises: a page of ten thousand trials in ten seconds and five
megabytes, `status` and `show` on a million events in half a second. Processor time stands beside the wall
time: on a busy machine that is the figure to compare.
"""

from __future__ import annotations

import os
import statistics
import tempfile
from typing import Any

from bench.processes import oakledger, timed
from bench.qualify import make
from ledger.store import open_ledger

TRIALS = 10_000
LARGE_TRIALS = 333_000
RUNS = 5


def _measured(name: str, bound: float, ledger: str, *args: str) -> dict[str, Any]:
    command = oakledger(ledger, *args)
    timed(command)
    found = [timed(command) for _ in range(RUNS)]
    return {
        "name": name,
        "value": statistics.median(w for w, _ in found),
        "unit": "s",
        "cpu": statistics.median(c for _, c in found),
        "bound": bound,
    }


def rows() -> list[dict[str, Any]]:
    """Measure on honest campaigns."""
    found = []
    with tempfile.TemporaryDirectory(prefix="oakledger-bench-") as folder:
        path, page = os.path.join(folder, "l.duckdb"), os.path.join(folder, "r.html")
        trials = make(path, TRIALS)
        found.append(
            _measured(f"report, {trials} trials", 10, path, "report", "--campaign", "bench", "-o", page)
        )
        size = os.path.getsize(page) / 1e6
        found.append({"name": f"page, {trials} trials", "value": size, "unit": "MB", "bound": 5})
        os.remove(path)
        make(path, LARGE_TRIALS)
        with open_ledger(path, read_only=True) as ledger:
            row = ledger.con.execute(
                "SELECT (SELECT count(*) FROM events), trial, event_id FROM events "
                "WHERE verdict = 'pass' LIMIT 1"
            ).fetchone()
            assert row is not None
        events, trial, event = row
        found.append(_measured(f"status, {events} events", 0.5, path, "status"))
        for what, ref in (("trial", trial), ("event", event[:16]), ("campaign", "bench")):
            found.append(_measured(f"show {what}, {events} events", 0.5, path, "show", ref))
    return found

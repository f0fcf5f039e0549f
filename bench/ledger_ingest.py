"""Speed and memory of ingest: a million events from one NDJSON file, and one small spool into that ledger.

Whole processes, as people run them: checking, hashing, a durable commit, the checkpoint kept beside. The
events are what a campaign leaves behind, a trial, a reader invocation and a verdict in turn; `short` ones
carry little evidence. Processor time of all processes stands beside the wall time: on a busy machine that is
the figure to compare.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from typing import Any

from bench.processes import oakledger, peak, timed
from ledger.events import (
    AnyEvent,
    Check,
    Condition,
    OracleJudged,
    ReaderBounds,
    ReaderInvoked,
    TrialRecorded,
    canonical,
)

EVENTS = 1_000_000
SPOOL_EVENTS = 30
SPOOL_RUNS = 7
START_NS = 1_760_000_000_000_000_000


def digest(text: str) -> str:
    """A digest that stands for something."""
    return hashlib.sha256(text.encode()).hexdigest()


def events(count: int, source: str, *, full: bool) -> Iterator[AnyEvent]:
    """A campaign's events; `full` with all the evidence that readers and oracles give."""
    rng = random.Random(source)
    conditions = [
        Condition(
            agent="claude-code",
            agent_version="2.1.0",
            model=f"model-{n}",
            instruction_level="plain",
            instruction_sha256=digest(f"instruction {n}") if full else None,
            track="agent-default",
            environment_id=digest("environment"),
            transport="https",
            limits={"timeout_ns": 600_000_000_000},
        )
        for n in range(4)
    ]
    for ordinal in range(count):
        which, number = ordinal % 3, ordinal // 3
        envelope: dict[str, Any] = {
            "source": source,
            "ordinal": ordinal,
            "recorded_at_ns": START_NS + ordinal * 1_000_003,
            "campaign": f"campaign-{number // 5000}",
            "trial": f"trial-{number:08d}",
            "subject": ("git", "oak_installed")[number % 2],
        }
        scenario = {
            "scenario": ("wide_config_refactor", "bugfix_test_loop")[number // 2 % 2],
            "scenario_version": 1,
        }
        more: dict[str, Any] = {}
        if which == 0:
            if full:
                more = {"process_key": f"process {number}", "subject_version": "2.39.5", "exit_code": 0}
                more["subject_binary_sha256"] = digest(envelope["subject"])
            yield TrialRecorded(
                **envelope,
                **scenario,
                **more,
                lane="agent",
                condition=conditions[number % 4],
                status="completed",
                repetition=number // 16,
                reached_head=True,
                started_at_ns=envelope["recorded_at_ns"] - rng.randrange(10**11),
                ended_at_ns=envelope["recorded_at_ns"],
                fixture_version=1,
                metrics={"wall_ns": rng.randrange(10**11), "tokens_count": rng.randrange(10**5)},
            )
        elif which == 1:
            if full:
                more = {
                    "python_version": "3.11.7",
                    "python_sha256": digest("python"),
                    "scope_sha256": digest("scope"),
                    "scope_count": 12,
                    "bytes_decoded": rng.randrange(10**8),
                    "objects_verified": 700,
                }
            yield ReaderInvoked(
                **envelope,
                **more,
                vcs="git",
                reader="git",
                reader_version="1",
                code_sha256=digest("code"),
                backend="pure",
                outcome="ok",
                exit_status=0,
                relation="independent",
                bounds=ReaderBounds(max_blob_bytes=1 << 20, deadline_ns=60_000_000_000),
                head=digest(envelope["trial"])[:40],
                entries=639,
                duration_ns=rng.randrange(10**9),
            )
        else:
            if full:
                more = {"manifest_sha256": digest(envelope["trial"]), "depth": "committed_tree"}
                more["checks"] = (Check(check="tree", result="pass"),)
            yield OracleJudged(
                **envelope,
                **scenario,
                **more,
                oracle_version=1,
                fixture_version=1,
                contract_sha256=digest("contract"),
                verdict="pass",
                reader_event_id=digest(str(ordinal)),
                duration_ns=rng.randrange(10**9),
            )


def write(path: str, count: int, source: str, *, full: bool) -> int:
    """Write events as NDJSON; returns the bytes."""
    with open(path, "wb", buffering=1 << 20) as stream:
        for event in events(count, source, full=full):
            stream.write(canonical(event) + b"\n")
        return stream.tell()


#: Runs a command line in this process and says what it cost, helpers included.
_RUN = """
import json, resource, sys, time
from ledger.cli.root import main
wall = time.perf_counter()
try:
    main(sys.argv[1:])
finally:
    own, theirs = (resource.getrusage(w) for w in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    cpu = own.ru_utime + own.ru_stime + theirs.ru_utime + theirs.ru_stime
    print(json.dumps([time.perf_counter() - wall, cpu, own.ru_maxrss, theirs.ru_maxrss]), file=sys.stderr)
"""


def ingest(ledger: str, path: str) -> tuple[int, float, float, float, float]:
    """Ingest in a process of its own: new events, wall s, processor s, peak MiB of it and of a helper."""
    command = [sys.executable, "-c", _RUN, "--ledger", ledger, "ingest", "--json", path]
    done = subprocess.run(command, capture_output=True, check=True)
    wall, cpu, own, helper = json.loads(done.stderr)
    return json.loads(done.stdout)["new"], wall, cpu, own / 1024, helper / 1024


def rows(count: int = EVENTS) -> list[dict[str, Any]]:
    """Return the measurements."""
    found: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(prefix="oakledger-bench-") as folder:
        ledger = ""
        for name, full in (("full", True), ("short", False)):
            path = os.path.join(folder, f"{name}.ndjson")
            size = write(path, count, f"bench/{name}", full=full)
            ledger = os.path.join(folder, f"{name}.duckdb")
            new, wall, cpu, own, helper = ingest(ledger, path)
            assert new == count
            what = f"bulk, {count:,} {name} events of {size // count} bytes"
            rate = {"name": what, "value": count / wall, "unit": "events/s"}
            found += [
                rate | {"bound": 60_000} if not full else rate,
                {"name": f"{what}, processor time", "value": cpu * 1e6 / count, "unit": "us/event"},
                {"name": f"{what}, peak memory", "value": own, "unit": "MiB"},
                {"name": f"{what}, peak memory of a helper", "value": helper, "unit": "MiB"},
                {"name": f"{what}, ledger file", "value": os.path.getsize(ledger) / 2**20, "unit": "MiB"},
            ]
            other = os.path.join(folder, "other.duckdb")
            most = peak(oakledger(other, "ingest", path))
            found.append(
                {"name": f"{what}, peak of all processes", "value": most / 2**20, "unit": "MiB", "bound": 700}
            )
            for left in (path, other):
                os.unlink(left)
        runs = []
        for run in range(SPOOL_RUNS):
            path = os.path.join(folder, f"spool-{run}.ndjson")
            write(path, SPOOL_EVENTS, f"bench/spool-{run}", full=True)
            runs.append(timed(oakledger(ledger, "ingest", path)))
        walls, cpus = zip(*runs, strict=True)
        what = f"a spool of {SPOOL_EVENTS} into {count:,} events, whole process"
        found += [
            {"name": what, "value": statistics.median(walls) * 1000, "unit": "ms", "bound": 500},
            {"name": f"{what}, processor time", "value": statistics.median(cpus) * 1000, "unit": "ms"},
        ]
    return found


def main() -> None:
    """Print the measurements, by default for a tenth of the events."""
    parser = argparse.ArgumentParser(prog="python -m bench.ledger_ingest")
    parser.add_argument("--events", type=int, default=EVENTS // 10)
    for row in rows(parser.parse_args().events):
        print(f"{row['name']}: {row['value']:,.1f} {row['unit']}")


if __name__ == "__main__":
    main()

"""Runs the benchmarks and prints one table, with the machine's facts above it.

`python -m bench [NAME...] [-o FILE]`; a name is a module of this folder that has `rows()`. Each runs in a
process of its own, so that one's memory is not another's. Rows are dictionaries with `name`, `value` and
`unit`, and where there is one a `bound` that is shown beside the value; nothing fails here.
"""

from __future__ import annotations

import argparse
import datetime
import importlib
import json
import os
import platform
import subprocess
import sys
from typing import Any

SUITES = (
    "ledger_ingest",
    "ledger_audit",
    "qualify",
    "codecs",
    "oak_reader",
    "git_pure",
    "git_instrument",
    "oracles",
    "report",
)


def machine() -> list[str]:
    """Facts that figures depend on."""
    import duckdb

    model = "unknown processor"
    with open("/proc/cpuinfo") as stream:
        for line in stream:
            if line.startswith("model name"):
                model = line.split(":", 1)[1].strip()
                break
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") >> 30
    git = subprocess.run(["git", "--version"], capture_output=True, text=True, check=False).stdout.strip()
    return [
        f"{datetime.datetime.now(datetime.UTC):%Y-%m-%d}, {os.cpu_count()} cores ({model}), {memory} GiB",
        f"{platform.system()} {platform.release()}, Python {platform.python_version()}, "
        f"DuckDB {duckdb.__version__}, {git}",
        f"load average at the start {os.getloadavg()[0]:.2f}",
    ]


def number(value: Any) -> str:
    """A figure with three significant digits and no exponent."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        return str(value)
    if value == 0 or abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def table(suite: str, rows: list[dict[str, Any]]) -> str:
    """The rows of one suite as a Markdown table; columns are the keys that occur."""
    keys = list(dict.fromkeys(key for row in rows for key in row))
    lines = [f"## {suite}", "", "| " + " | ".join(keys) + " |", "|" + "---|" * len(keys)]
    lines += [
        "| " + " | ".join(number(row[k]) if row.get(k) is not None else "" for k in keys) + " |"
        for row in rows
    ]
    return "\n".join(lines) + "\n"


def main(argv: list[str] | None = None) -> int:
    """Run suites; exit status 1 when one could not be run."""
    parser = argparse.ArgumentParser(prog="python -m bench", description="Run the benchmarks.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(SUITES)}")
    parser.add_argument("-o", "--output", metavar="FILE", help="also write the table here")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    args = parser.parse_args(argv)
    if args.child:
        print(json.dumps(importlib.import_module(f"bench.{args.child}").rows()))
        return 0
    unknown = set(args.names) - set(SUITES)
    if unknown:
        parser.error(f"no benchmark {', '.join(sorted(unknown))}: there are {', '.join(SUITES)}")
    text = "\n".join(f"* {fact}" for fact in machine()) + "\n"
    print(text, flush=True)
    failed = 0
    for name in args.names or SUITES:
        done = subprocess.run(
            [sys.executable, "-m", "bench", "--child", name], stdout=subprocess.PIPE, check=False
        )
        if done.returncode == 0:
            part = table(name, json.loads(done.stdout.splitlines()[-1]))
        else:
            failed, part = 1, f"## {name}\n\nfailed with status {done.returncode}\n"
        print(part, flush=True)
        text += "\n" + part
    if args.output:
        with open(args.output, "w", encoding="utf-8") as stream:
            stream.write(text)
    return failed


sys.exit(main())

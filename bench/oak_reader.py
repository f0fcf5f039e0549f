"""What a read with the isolated Oak reader costs: time and peak memory, as a process of its own.

A store of 100,000 files is generated. 20 paths spread over it are read with either backend, and the same
20 from a store of a tenth of the size, which shows what of the memory goes with the repository; then the
whole of the smaller one is read.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from bench.oak_stores import ROOT, large

SCRIPT = ROOT / "reader" / "oak_sqlite_reader.py"


def _run(repo: Path, *options: str) -> tuple[float, int, dict[str, Any]]:
    """Seconds, peak memory in bytes and report of one read."""
    started = time.perf_counter()
    command = [sys.executable, "-I", str(SCRIPT), *options, str(repo)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE)
    if process.stdout is None:
        raise OSError("no output pipe")
    output = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - started
    process.returncode = os.waitstatus_to_exitcode(status)
    report = json.loads(output)
    if process.returncode != 0:
        raise ValueError(f"the read ended with {report['reason']}: {report['detail']}")
    return seconds, usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024), report


def _make(repo: Path, files: int) -> list[str]:
    """Generate a store in another process: a child's peak memory is never less than its parent's was."""
    command = [sys.executable, "-m", "bench.oak_reader", "--make", str(repo), str(files)]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True, cwd=ROOT)
    return [str(path) for path in json.loads(done.stdout)]


def rows(files: int = 100_000, rounds: int = 5) -> list[dict[str, Any]]:
    """The measurements: name, value, unit, the bound it is held to, how it came about."""
    found: list[dict[str, Any]] = []

    def add(name: str, value: float, unit: str, bound: float | None, how: str) -> None:
        found.append({"name": name, "value": value, "unit": unit, "bound": bound, "how": how})

    with tempfile.TemporaryDirectory(prefix="oakledger-bench-") as folder:
        whole, tenth = Path(folder) / "whole", Path(folder) / "tenth"
        paths, few = _make(whole, files), _make(tenth, files // 10)
        peaks: dict[str, int] = {}
        for backend in ("pure", "native"):
            for repo, names in ((whole, paths), (tenth, few)):
                scope = [f"--path={name}" for name in names[:: max(1, len(names) // 20)][:20]]
                runs = [_run(repo, "--backend", backend, *scope) for _ in range(rounds)]
                seconds = statistics.median(run[0] for run in runs)
                peaks[f"{backend} {repo.name}"] = max(run[1] for run in runs)
                size = (repo / ".oak" / "oak.db").stat().st_size >> 20
                how = f"median of {rounds}, {len(names)} files, {size} MiB, the whole command"
                bound = 3.0 if backend == "pure" and repo == whole else None
                add(f"oak reader {backend}, 20 paths", round(seconds, 3), "s", bound, how)
        for backend in ("pure", "native"):
            peak = peaks[f"{backend} whole"] / 2**20
            smaller = peaks[f"{backend} tenth"] / 2**20
            how = f"with a tenth of the files {smaller:.1f} MiB"
            add(f"oak reader {backend}, 20 paths, peak memory", round(peak, 1), "MiB", None, how)
        for backend in ("pure", "native"):
            seconds, peak_bytes, report = _run(tenth, "--backend", backend)
            decoded = report["counts"]["bytes_decoded"] >> 20
            how = f"{len(few)} files, {decoded} MiB decoded, {peak_bytes >> 20} MiB of memory"
            add(f"oak reader {backend}, everything", round(seconds, 3), "s", None, how)
    return found


def main() -> int:
    """Print the rows; exit status 1 when one is over its bound."""
    if sys.argv[1:2] == ["--make"]:
        print(json.dumps(large(Path(sys.argv[2]), int(sys.argv[3]))))
        return 0
    bad = False
    for row in rows():
        over = row["bound"] is not None and row["value"] > row["bound"]
        bad |= over
        bound = "" if row["bound"] is None else f" (at most {row['bound']})"
        print(f"{'OVER ' if over else ''}{row['name']}: {row['value']} {row['unit']}{bound}; {row['how']}")
    return int(bad)


if __name__ == "__main__":
    sys.exit(main())

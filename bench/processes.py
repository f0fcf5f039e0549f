"""What a command costs with all its processes: time, or peak memory.

Memory is sampled while the command runs, which costs processor time of its own: a run whose memory is
measured is not timed.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import suppress

_EVERY_S = 0.05


def oakledger(ledger: str, *arguments: str) -> list[str]:
    """The command line of the tool on a ledger."""
    return [sys.executable, "-m", "ledger.cli", "--ledger", ledger, *arguments]


def timed(command: Sequence[str]) -> tuple[float, float]:
    """Run a command, which must end with status 0, and return wall and processor seconds."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    started = time.perf_counter()
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
    wall = time.perf_counter() - started
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _tree_memory(pid: int) -> int:
    """Resident bytes of a process and its children, pages that they share counted once (PSS)."""
    total = 0
    with suppress(OSError):
        with open(f"/proc/{pid}/task/{pid}/children") as f:
            children = f.read().split()
        for one in (str(pid), *children):
            with open(f"/proc/{one}/smaps_rollup") as f:
                total += next(int(line.split()[1]) << 10 for line in f if line.startswith("Pss:"))
    return total


def peak(command: Sequence[str]) -> int:
    """Run a command, which must end with status 0, and return the peak in bytes."""
    found = 0
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        done = threading.Event()

        def watch() -> None:
            nonlocal found
            while not done.wait(_EVERY_S):
                found = max(found, _tree_memory(process.pid))

        watcher = threading.Thread(target=watch)
        watcher.start()
        status = process.wait()
        done.set()
        watcher.join()
    if status != 0:
        raise SystemExit(f"{' '.join(command[:8])} ... ended with status {status}")
    return found

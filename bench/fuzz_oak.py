"""Damages every byte of a small Oak database, one at a time, and reads it with the isolated Oak reader.

Each bit of each byte is flipped, and the file is cut at each length. Whatever the damage, the reader must
give the true content, or exit 1, 3 or 77 with a reason that speaks of the store; never other content, a
failure of its own, or a read that overstays its deadline.

`python -m bench.fuzz_oak` tries everything (tens of minutes); `--step N` takes every Nth damage;
`--database FILE` takes another store, such as one of the recorded ones, instead of the built one.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from bench.oak_stores import small
from reader.oak_sqlite_reader import READER
from reader.scoped_read import run

DEADLINE_SECONDS = 5
OWN_FAULTS = frozenset(("instrument_failed", "read_error", "memory", "usage", "deadline", "destination"))
"""Reasons that say that the reader failed, and not that the store is bad."""


def damages(data: bytes, step: int, bits: int = 8) -> Iterator[tuple[str, bytes]]:
    """Every `step`th damage of `data`: what was done, and the result. Neighbouring steps take different
    bits.
    """
    total = len(data) * bits
    for number in range(0, total, step):
        position, bit = divmod(number, bits)
        changed = bytearray(data)
        changed[position] ^= 1 << bit
        yield f"bit {bit} of byte {position} flipped", bytes(changed)
    for length in range(0, len(data), step):
        yield f"cut to {length} bytes", data[:length]


class Judge:
    """Knows the true content and says what is wrong with an answer."""

    def __init__(self, repo: Path, *options: str) -> None:
        self.repo = repo
        self.database = repo / ".oak" / "oak.db"
        self.options = [f"--deadline={DEADLINE_SECONDS}", "--manifest=-", *options, str(repo)]
        self.answers: Counter[str] = Counter()
        self.truth = self._read()
        if self.truth["exit_status"] != 0:
            raise ValueError(f"the undamaged store cannot be read: {self.truth['detail']}")

    def _read(self) -> dict[str, Any]:
        report, stop = run(READER, self.options)
        result: dict[str, Any] = json.loads(report.render(stop))
        return result

    def problem(self, data: bytes) -> str | None:
        """What is wrong with the answer to the store `data`; None when it is as it must be."""
        # A new file instead of new content, so that nothing of the last one can be seen.
        fresh = self.database.with_name("fresh")
        fresh.write_bytes(data)
        os.replace(fresh, self.database)
        started = time.monotonic()
        report = self._read()
        seconds = time.monotonic() - started
        status, reason = report["exit_status"], report["reason"]
        self.answers[f"{status} {reason}"] += 1
        if seconds > DEADLINE_SECONDS + 1:
            return f"took {seconds:.1f} s"
        if status == 0:
            if report["head"] == self.truth["head"] and report["entries"] == self.truth["entries"]:
                return None
            return "other content, and called good"
        if status not in (1, 3, 77):
            return f"exit status {status}"
        if reason in OWN_FAULTS:
            return f"{reason}: {report['detail']}"
        return None


def sweep(
    repo: Path, step: int, *options: str, limit_seconds: float | None = None
) -> tuple[Judge, list[str]]:
    """Try every `step`th damage of the store of `repo`, which is left damaged; the judge and what was
    wrong.
    """
    judge = Judge(repo, *options)
    data = judge.database.read_bytes()
    findings = []
    end = None if limit_seconds is None else time.monotonic() + limit_seconds
    for what, changed in damages(data, step):
        problem = judge.problem(changed)
        if problem is not None:
            findings.append(f"{what}: {problem}")
        if end is not None and time.monotonic() > end:
            break
    return judge, findings


def main(argv: Sequence[str] | None = None) -> int:
    """Sweep; exit status 1 when an answer was not as it must be."""
    parser = argparse.ArgumentParser(prog="python -m bench.fuzz_oak", description=__doc__.splitlines()[0])
    parser.add_argument("--step", type=int, default=1, metavar="N", help="take every Nth damage")
    parser.add_argument("--database", metavar="FILE", help="damage this oak.db instead of a built one")
    parser.add_argument("--deep", action="store_true", help="read with --deep")
    args = parser.parse_args(argv)
    with tempfile.TemporaryDirectory(prefix="oakledger-fuzz-") as folder:
        repo = Path(folder) / "repo"
        if args.database:
            (repo / ".oak").mkdir(parents=True)
            (repo / ".oak" / "oak.db").write_bytes(Path(args.database).read_bytes())
        else:
            small(repo)
        size = (repo / ".oak" / "oak.db").stat().st_size
        started = time.monotonic()
        judge, findings = sweep(repo, args.step, *(["--deep"] if args.deep else []))
    tried = sum(judge.answers.values())
    print(f"{tried} damaged stores of {size} bytes in {time.monotonic() - started:.0f} s")
    for answer, count in judge.answers.most_common():
        print(f"  {answer}: {count}")
    for finding in findings[:50]:
        print(finding)
    print(f"{len(findings)} answers were wrong")
    return int(bool(findings))


if __name__ == "__main__":
    sys.exit(main())

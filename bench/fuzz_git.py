"""Damages every byte of a small Git repository, one at a time, and reads it with the own object reader.

Each bit of each byte of every loose object, pack, pack index, reference, HEAD, packed-refs and config is
flipped, and each file is cut at each length. Whatever the damage, the reader must give the true content, or
exit 1, 3 or 77 with a reason that speaks of the store; never other content, a failure of its own, a read that
overstays its deadline, or a change in the subject's tree.

``python -m bench.fuzz_git`` tries everything (minutes); ``--step N`` takes every Nth damage.
"""

from __future__ import annotations

import argparse
import os
import struct
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from bench.git_repositories import git
from reader.git_object_reader import READER
from reader.scoped_read import run

DEADLINE_SECONDS = 5
OWN_FAULTS = frozenset(("instrument_failed", "read_error", "memory", "usage", "deadline", "destination"))
"""Reasons that say that the reader failed, and not that the store is bad."""

Finding = str
"""One line: what was done to which file and what is wrong with the answer."""


def _write(repository: Path, path: str, data: bytes) -> None:
    target = repository / path
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(data)


def make_loose(repository: Path, object_format: str = "sha1") -> Path:
    """Two commits as loose objects, with a link, an executable and two directories."""
    repository.mkdir(parents=True)
    git(repository, "init", "-q", "--template=", f"--object-format={object_format}", "-b", "main", ".")
    git(repository, "config", "user.name", "T")
    git(repository, "config", "user.email", "t@example.invalid")
    lines = [b"line %d of a file that both commits hold\n" % number for number in range(20)]
    _write(repository, "a/b/long.txt", b"".join(lines))
    _write(repository, "readme", b"first\n")
    git(repository, "add", "-A")
    git(repository, "commit", "-q", "-m", "one")
    lines[7] = b"another line\n"
    _write(repository, "a/b/long.txt", b"".join(lines))
    _write(repository, "a/other.txt", b"".join(lines[3:]))
    _write(repository, "run", b"#!/bin/sh\n")
    os.chmod(repository / "run", 0o755)
    os.symlink("readme", repository / "link")
    git(repository, "add", "-A")
    git(repository, "commit", "-q", "-m", "two")
    for path in (repository / ".git/objects").glob("??/*"):
        path.chmod(0o644)
    return repository


def make_packed(repository: Path, object_format: str = "sha1", index_version: int = 2) -> Path:
    """The same as `make_loose`, in one pack with deltas and with packed references."""
    make_loose(repository, object_format)
    git(repository, "config", "pack.indexVersion", str(index_version))
    git(repository, "repack", "-adfq")
    git(repository, "prune-packed", "-q")
    git(repository, "pack-refs", "--all")
    for path in (repository / ".git/objects/pack").iterdir():
        path.chmod(0o644)
    index = next((repository / ".git/objects/pack").glob("*.idx")).read_bytes()
    assert (index[:4] == b"\xfftOc") == (index_version == 2)
    pack = next((repository / ".git/objects/pack").glob("*.pack")).read_bytes()
    assert struct.unpack(">I", pack[8:12])[0] >= 10
    return repository


REPOSITORIES: dict[str, Callable[[Path], Path]] = {
    "loose": make_loose,
    "packed": make_packed,
    "packed-index-1": lambda path: make_packed(path, index_version=1),
    "sha256": lambda path: make_packed(path, "sha256"),
}


def targets(repository: Path) -> list[Path]:
    """The files whose bytes are damaged."""
    store = repository / ".git"
    found = [store / "HEAD", store / "config", store / "packed-refs", store / "refs/heads/main"]
    found += sorted(store.glob("objects/??/*")) + sorted(store.glob("objects/pack/*.pack"))
    found += sorted(store.glob("objects/pack/*.idx"))
    return [path for path in found if path.exists()]


def damages(data: bytes) -> Iterator[tuple[str, bytes]]:
    """Every bit flip and every truncation of a file's bytes."""
    for position in range(len(data)):
        for bit in range(8):
            flipped = bytearray(data)
            flipped[position] ^= 1 << bit
            yield f"bit {bit} of byte {position}", bytes(flipped)
        yield f"cut to {position} bytes", data[:position]


def _snapshot(root: Path) -> dict[str, tuple[int, int]]:
    """Name, size and modification time of everything below a directory."""
    return {
        str(path): (path.lstat().st_size, path.lstat().st_mtime_ns)
        for path in root.rglob("*")
        if path.is_symlink() or not path.is_dir()
    }


def sweep(repository: Path, step: int = 1, first: int = 0) -> tuple[Counter[str], list[Finding]]:
    """Try every ``step``-th damage from the ``first`` on; outcomes by reason, and what was wrong."""
    arguments = [str(repository), "--deep", "--deadline", str(DEADLINE_SECONDS)]
    report, stop = run(READER, arguments)
    assert stop is None, stop
    truth = report.head, report.manifest_sha256
    outcomes: Counter[str] = Counter()
    findings: list[Finding] = []
    number = 0
    for path in targets(repository):
        whole = path.read_bytes()
        for what, damaged in damages(whole):
            number += 1
            if (number - first) % step:
                continue
            path.write_bytes(damaged)
            before = _snapshot(repository) if number % 101 == 0 else None
            started = time.monotonic()
            report, stop = run(READER, arguments)
            took = time.monotonic() - started
            problem = ""
            if stop is None:
                outcomes["ok"] += 1
                if (report.head, report.manifest_sha256) != truth:
                    problem = "other content was accepted"
            else:
                outcomes[f"{stop.exit_status} {stop.reason}"] += 1
                if stop.exit_status not in (1, 3, 77) or stop.reason in OWN_FAULTS:
                    problem = f"{stop.reason}: {stop.detail}"
            if took > DEADLINE_SECONDS:
                problem = f"it took {took:.1f} s"
            if before is not None and _snapshot(repository) != before:
                problem = "the repository was changed"
            if problem:
                findings.append(f"{path.relative_to(repository)}, {what}: {problem}")
        path.write_bytes(whole)
    return outcomes, findings


def main(argv: Sequence[str] | None = None) -> int:
    """Sweep all repositories; exit status 1 when anything was wrong."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--step", type=int, default=1, metavar="N", help="take every Nth damage")
    step = parser.parse_args(argv).step
    bad = 0
    with tempfile.TemporaryDirectory(prefix="oakledger-fuzz-") as folder:
        for name, make in REPOSITORIES.items():
            outcomes, findings = sweep(make(Path(folder) / name), step)
            print(f"git {name}: {outcomes.total()} damages: {dict(outcomes.most_common())}")
            for finding in findings:
                print(f"  {finding}")
            bad += len(findings)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())

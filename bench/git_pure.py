"""The own Git object reader against dulwich: the time for one and the same manifest.

Both read the same repository in turn, each in a process of its own, several times:

* `dulwich`: walks HEAD's tree and reads every blob; it applies deltas in compiled code and hashes no object
  to see whether it is what its name says;
* `own`: `reader/git_object_reader.py` as it is shipped, isolated, every object hashed.

A row is the ratio of the medians. The repositories: several packs full of deltas, one pack without, and loose
objects. Besides the whole tree, a scope of 20 paths is read.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from bench.git_repositories import generate, git, path_of

READER = Path(__file__).resolve().parent.parent / "reader" / "git_object_reader.py"

DULWICH = """
import hashlib, sys
from dulwich.object_store import iter_tree_contents
from dulwich.repo import Repo
with Repo(sys.argv[1]) as repo:
    digest = hashlib.sha256()
    for entry in iter_tree_contents(repo.object_store, repo[repo.head()].tree):
        _, content = repo.object_store.get_raw(entry.sha)
        sha256 = hashlib.sha256(content).hexdigest()
        digest.update(f"{entry.mode:06o} {len(content)} {sha256} ".encode() + entry.path + b"\\0")
    print(digest.hexdigest())
"""


def _dulwich(repository: Path) -> str:
    command = [sys.executable, "-I", "-c", DULWICH, str(repository)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def _own(repository: Path, *arguments: str) -> str:
    command = [sys.executable, "-I", str(READER), str(repository), *arguments]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    digest: str = json.loads(done.stdout)["manifest_sha256"]
    return digest


def measure(repository: Path, rounds: int) -> dict[str, float]:
    """Median seconds of each program; raises ValueError when they do not agree on the manifest."""
    times: dict[str, list[float]] = {"dulwich": [], "own": []}
    for _ in range(rounds):
        digests = set()
        for name, program in (("dulwich", _dulwich), ("own", _own)):
            started = time.perf_counter()
            digests.add(program(repository))
            times[name].append(time.perf_counter() - started)
        if len(digests) != 1:
            raise ValueError(f"the programs read different content in {repository.name}")
    return {name: statistics.median(seconds) for name, seconds in times.items()}


def without_deltas(repository: Path) -> Path:
    """Everything in one pack, each object on its own."""
    git(repository, "repack", "-adfq", "--window=0")
    return repository


def unpacked(repository: Path) -> Path:
    """Every object in a file of its own."""
    folder = repository / ".git/objects/pack"
    packs = [path.read_bytes() for path in folder.glob("*.pack")]
    for path in folder.iterdir():
        path.unlink()
    for pack in packs:
        git(repository, "unpack-objects", "-q", data=pack)
    return repository


def rows(files: int = 50_000, rounds: int = 5) -> list[dict[str, Any]]:
    """The measurements: what, value, unit, the bound it is held to, and how it came about."""
    found: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(prefix="oakledger-bench-") as folder:
        packed = generate(Path(folder) / "packed", files)
        few = max(files // 10, 100)
        loose = unpacked(generate(Path(folder) / "loose", few, 1))

        def compare(what: str, repository: Path, count: int) -> None:
            took = measure(repository, rounds)
            how = ", ".join(f"{name} {seconds:.2f} s" for name, seconds in took.items())
            ratio = round(took["own"] / took["dulwich"], 3)
            found.append({
                "what": f"git object reader / dulwich, {what}", "value": ratio, "unit": "ratio", "bound": 3.0,
                "how": f"{count} files: {how}",
            })  # fmt: skip

        compare("several packs of deltas", packed, files)
        scope = [f"--path={path_of(number)}" for number in range(0, files, files // 20)][:20]
        seconds = []
        for _ in range(rounds):
            started = time.perf_counter()
            _own(packed, *scope)
            seconds.append(time.perf_counter() - started)
        found.append({
            "what": "git object reader, 20 paths", "value": round(statistics.median(seconds), 3), "unit": "s",
            "bound": 0.5, "how": f"of {files} files in packs, the whole command",
        })  # fmt: skip
        compare("loose objects", loose, few)
        compare("one pack without deltas", without_deltas(packed), files)
    return found


def main() -> int:
    """Print the rows; exit status 1 when one is over its bound."""
    bad = False
    for row in rows():
        over = row["value"] > row["bound"]
        bad |= over
        mark = "OVER " if over else ""
        print(f"{mark}{row['what']}: {row['value']} {row['unit']} (at most {row['bound']}); {row['how']}")
    return int(bad)


if __name__ == "__main__":
    sys.exit(main())

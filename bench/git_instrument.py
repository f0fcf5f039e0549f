"""What isolation and verification cost when git fetches the objects.

Three programs read the same repository, in turn, each in a process of its own, several times:

* `commands`: `git ls-tree -r -z HEAD` and `git cat-file --batch`, their output thrown away;
* `plain`: the reader that one would write first: the same two commands, the manifest of what they print,
nothing verified;
* `git`: `reader/git_instrument_reader.py`, isolated, every object hashed, the same manifest.

A row is the ratio of the medians. Besides the whole tree, a scope of 20 paths is read.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench.git_repositories import generate, git, path_of

ROOT = Path(__file__).resolve().parent.parent
READER = ROOT / "reader" / "git_instrument_reader.py"

PLAIN = """
import hashlib, subprocess, sys
def run(*arguments, **how):
    return subprocess.run(["git", "-C", sys.argv[1], *arguments], stdout=-1, check=True, **how).stdout
lines = [line for line in run("ls-tree", "-r", "-z", "HEAD").split(b"\\0") if line]
rows = sorted((line.split(b"\\t", 1)[1], *line.split(b"\\t")[0].split()) for line in lines)
answers = run("cat-file", "--batch", input=b"".join(name + b"\\n" for path, mode, kind, name in rows))
digest = hashlib.sha256()
position = 0
for path, mode, kind, name in rows:
    end = answers.index(b"\\n", position)
    size = int(answers[position:end].split()[2])
    content = answers[end + 1 : end + 1 + size]
    position = end + size + 2
    digest.update(b"%s %d %s %s\\0" % (mode, size, hashlib.sha256(content).hexdigest().encode(), path))
print(digest.hexdigest())
"""


def _commands(repository: Path) -> None:
    listing = git(repository, "ls-tree", "-r", "-z", "HEAD")
    names = b"".join(line.split(b"\t")[0].split()[2] + b"\n" for line in listing.split(b"\0") if line)
    with tempfile.TemporaryFile() as wanted:
        wanted.write(names)
        wanted.seek(0)
        command = ["git", "-C", str(repository), "cat-file", "--batch"]
        subprocess.run(command, stdin=wanted, stdout=subprocess.DEVNULL, check=True)


def _plain(repository: Path) -> str:
    command = [sys.executable, "-I", "-c", PLAIN, str(repository)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def _reader(repository: Path, *arguments: str) -> str:
    import json

    command = [sys.executable, "-I", str(READER), str(repository), *arguments]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    digest: str = json.loads(done.stdout)["manifest_sha256"]
    return digest


def _timed(action: Callable[[], object]) -> float:
    started = time.perf_counter()
    action()
    return time.perf_counter() - started


def unpacked(repository: Path) -> Path:
    """Turn every pack of a repository into loose objects."""
    store = repository / ".git/objects/pack"
    aside = repository / ".git/aside"
    os.rename(store, aside)
    store.mkdir()
    for pack in sorted(aside.glob("*.pack")):
        git(repository, "unpack-objects", "-q", data=pack.read_bytes())
    for path in list(aside.iterdir()):
        path.unlink()
    aside.rmdir()
    return repository


def measure(repository: Path, rounds: int) -> dict[str, float]:
    """Median seconds of each program on one repository; the manifests must agree."""
    actions: dict[str, Callable[[], object]] = {
        "commands": lambda: _commands(repository),
        "plain": lambda: _plain(repository),
        "git": lambda: _reader(repository),
    }
    assert _plain(repository) == _reader(repository)
    times: dict[str, list[float]] = {name: [] for name in actions}
    for _ in range(rounds):
        for name, action in actions.items():
            times[name].append(_timed(action))
    return {name: statistics.median(values) for name, values in times.items()}


def rows(files: int = 50_000, rounds: int = 5) -> list[dict[str, Any]]:
    """The measurements: what, value, unit, the bound it is held to (None: information), and how it came
    about.
    """
    found: list[dict[str, Any]] = []

    def add(what: str, value: float, unit: str, bound: float | None, how: str) -> None:
        found.append({"what": what, "value": round(value, 3), "unit": unit, "bound": bound, "how": how})

    with tempfile.TemporaryDirectory(prefix="oakledger-bench-") as folder:
        packed = generate(Path(folder) / "packed", files)
        small = unpacked(generate(Path(folder) / "loose", 5_000, 1))
        for name, repository, count in (("packs", packed, files), ("loose objects", small, 5_000)):
            took = measure(repository, rounds)
            how = ", ".join(f"{program} {seconds:.2f} s" for program, seconds in took.items())
            how = f"{count} files in {name}: {how}"
            add(f"git backend / plain reader, {name}", took["git"] / took["plain"], "ratio", 1.3, how)
            add(f"git backend / bare commands, {name}", took["git"] / took["commands"], "ratio", None, how)
        scope = [f"--path={path_of(number)}" for number in range(0, files, files // 20)][:20]
        took_scoped = statistics.median(_timed(lambda: _reader(packed, *scope)) for _ in range(rounds))
        add("git backend, 20 paths", took_scoped, "s", 0.5, f"of {files} files in packs")
    return found


def main() -> int:
    """Print the rows; exit status 1 when one is over its bound."""
    bad = 0
    for row in rows():
        over = row["bound"] is not None and row["value"] > row["bound"]
        bad |= over
        bound = "" if row["bound"] is None else f" (at most {row['bound']})"
        print(f"{'OVER ' if over else ''}{row['what']}: {row['value']} {row['unit']}{bound}; {row['how']}")
    return int(bad)


if __name__ == "__main__":
    sys.exit(main())

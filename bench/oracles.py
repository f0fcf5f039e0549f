"""Oracles: verdicts from given reader results, an exact tree, and `verify` as a whole process."""

from __future__ import annotations

import hashlib
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

from oracles.contract import Contract, Loaded, TreeFile, load
from oracles.judge import judge
from oracles.scenarios import SCENARIOS
from oracles.scenarios.files import pseudo_random
from oracles.scenarios.vcs import Git, find_git
from reader.driver import Reading, Request, read

_GIT = find_git() or "git"


def _median(action: Callable[[], object], rounds: int = 5) -> float:
    times = []
    for _ in range(rounds):
        started = time.perf_counter()
        action()
        times.append(time.perf_counter() - started)
    return statistics.median(times)


def _row(name: str, value: float, unit: str, bound: str) -> dict[str, Any]:
    return {"name": name, "value": value, "unit": unit, "bound": bound}


def small_verdicts(folder: str) -> dict[str, Any]:
    """A thousand verdicts on one given reader result."""
    script = SCENARIOS["undo_bad_commit"]
    work = script.prepare(Git(_GIT, folder), folder)
    script.right["revert"](work)
    contract = load("undo_bad_commit")
    dest = os.path.join(folder, "dest")
    reading = read(Request("git", work.repo, "pure", scope=contract.scope, dest=dest))
    assert judge(contract, reading).verdict == "pass"
    value = _median(lambda: [judge(contract, reading) for _ in range(1000)], 3)
    return _row("1,000 small verdicts", value, "s", "under 2 s")


def exact_tree(folder: str, files: int = 5000, total: int = 64 << 20) -> list[dict[str, Any]]:
    """Judging an exact tree against reading it."""
    repo = os.path.join(folder, "repo")
    os.mkdir(repo)
    tree = []
    for number in range(files):
        path = f"d{number % 70:02}/f{number:05}.bin"
        content = pseudo_random(path, total // files)
        os.makedirs(os.path.join(repo, os.path.dirname(path)), exist_ok=True)
        with open(os.path.join(repo, path), "wb") as stream:
            stream.write(content)
        tree.append(TreeFile(path, "100644", hashlib.sha256(content).hexdigest()))
    git = Git(_GIT, folder)
    git.init(repo)
    git.commit(repo)
    plain = load("wide_config_refactor").contract
    fields = {f: getattr(plain, f) for f in plain.__struct_fields__}
    contract = Loaded(Contract(**{**fields, "tree": tuple(tree)}), "0" * 64, "bench")
    reading: list[Reading] = []
    read_s = _median(lambda: reading.append(read(Request("git", repo, "pure"))), 3)
    assert judge(contract, reading[-1]).verdict == "pass"
    both_s = read_s + _median(lambda: judge(contract, reading[-1]))
    return [
        _row(f"read {files:,} files, {total >> 20} MiB", read_s, "s", ""),
        _row("reading and judging against reading alone", both_s / read_s, "times", "under 2 times"),
    ]


def whole_process(folder: str) -> dict[str, Any]:
    """`oakledger verify` on a small repository."""
    script = SCENARIOS["undo_bad_commit"]
    work = script.prepare(Git(_GIT, folder), folder)
    script.right["revert"](work)
    command = [sys.executable, "-m", "ledger.cli", "verify", "--scenario", "undo_bad_commit"]
    command += ["--vcs", "git", "--repo", work.repo]
    value = _median(lambda: subprocess.run(command, check=True, capture_output=True))
    return _row("verify a small repository, whole process", value, "s", "under 0.6 s")


def rows() -> list[dict[str, Any]]:
    """All measurements: name, value, unit, bound."""
    found: list[dict[str, Any]] = []
    for measure in (small_verdicts, exact_tree, whole_process):
        with tempfile.TemporaryDirectory() as folder:
            result = measure(folder)
            found += result if isinstance(result, list) else [result]
    return found

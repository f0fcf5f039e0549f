"""The subjects of the demo: the git on PATH, and Oak: live where there is a client, else from stores.

A recorded store is a database that a real client wrote when it did a recipe; reading and judging it is as
real as ever, but nothing is measured about Oak by it, and its trials carry no timings.
"""

from __future__ import annotations

import hashlib
import json
import lzma
import os
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib.resources import files

from oracles.scenarios import SCENARIOS
from oracles.scenarios.vcs import Git, Oak, Vcs, find_git, find_oak
from reader.driver import file_sha256


@dataclass(frozen=True)
class Ran:
    """One execution of a recipe: where the repository is, and when it ran (null for a recorded store)."""

    repo: str
    started_ns: int
    ended_ns: int
    wall_ns: int | None


@dataclass(frozen=True)
class Subject:
    """A subject: logical name, kind of repository, and what identifies its binary."""

    name: str
    vcs: str
    version: str
    binary_sha256: str
    program: str | None
    run: Callable[[str, str, str], Ran]
    """Run a recipe (right or wrong) of a scenario in a new folder: (scenario, recipe, folder)."""


def version_of(program: str) -> str:
    """Return the version text of a program."""
    done = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=20, check=False)
    return "".join(c for c in done.stdout.strip() if " " <= c <= "~" and c not in '"\\')[:200]


def _live(make: Callable[[str], Vcs]) -> Callable[[str, str, str], Ran]:
    def run(scenario: str, recipe: str, folder: str) -> Ran:
        script = SCENARIOS[scenario]
        home = os.path.join(folder, "home")
        os.mkdir(home)
        work = script.prepare(make(home), folder)
        chosen = script.right.get(recipe) or script.wrong[recipe].recipe
        started, clock = time.time_ns(), time.perf_counter_ns()
        chosen(work)
        return Ran(work.repo, started, time.time_ns(), time.perf_counter_ns() - clock)

    return run


def recorded_facts() -> dict[str, str]:
    """Return version and binary digest of the client that wrote the recorded stores."""
    found = json.loads((files("oracles") / "demo" / "stores" / "facts.json").read_text())
    return {str(k): str(v) for k, v in found.items()}


def _recorded(scenario: str, recipe: str, folder: str) -> Ran:
    started = time.time_ns()
    repo = os.path.join(folder, "work")
    # One at a time: a trial whose folder is gone must fail, not make it.
    os.mkdir(repo)
    os.mkdir(os.path.join(repo, ".oak"))
    packed = (files("oracles") / "demo" / "stores" / f"{scenario}-{recipe}.db.xz").read_bytes()
    with open(os.path.join(repo, ".oak", "oak.db"), "xb") as stream:
        stream.write(lzma.decompress(packed))
    return Ran(repo, started, time.time_ns(), None)


def find_subjects() -> list[Subject]:
    """Return git and oak. Raises FileNotFoundError without git."""
    git = find_git()
    if git is None:
        raise FileNotFoundError("there is no git on PATH")
    subjects = [
        Subject("git", "git", version_of(git), file_sha256(git), git, _live(lambda home: Git(git, home)))
    ]
    oak = find_oak()
    if oak is not None:
        subjects.append(
            Subject(
                "oak_installed",
                "oak",
                version_of(oak),
                file_sha256(oak),
                oak,
                _live(lambda home: Oak(oak, home)),
            )
        )
    else:
        facts = recorded_facts()
        subjects.append(
            Subject("oak_recorded", "oak", facts["version"], facts["binary_sha256"], None, _recorded)
        )
    return subjects


def environment_facts() -> dict[str, str]:
    """Return what identifies this machine as an environment, without naming it."""
    import platform

    with open("/proc/cpuinfo", "rb") as stream:
        models = [line for line in stream.read().splitlines() if line.startswith(b"model name")]
    return {
        "system": f"{platform.system()} {platform.release()}",
        "machine": platform.machine(),
        "cpus": str(os.cpu_count()),
        "cpu_sha256": hashlib.sha256(b"\n".join(sorted(set(models)))).hexdigest(),
        "python": platform.python_version(),
    }

"""What a scenario's script is made of.

A scenario prepares a working directory with a version control system, and has recipes: right ones that do the
task in the ways people do it, and wrong ones that go wrong in the ways people and agents do. A wrong recipe
says which verdict and reason it must get, the same for every system.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from oracles.scenarios.files import Files, write
from oracles.scenarios.vcs import Vcs


@dataclass
class Workspace:
    """A trial's working directory and what its preparation wants to remember."""

    vcs: Vcs
    root: str
    repo: str
    notes: dict[str, str] = field(default_factory=dict)


Recipe = Callable[[Workspace], None]


@dataclass(frozen=True)
class Wrong:
    """A recipe that goes wrong, and what the oracle must say. `needs_index`: only where there is an index."""

    recipe: Recipe
    reason: str
    verdict: str = "fail"
    needs_index: bool = False
    lane: str | None = None


@dataclass(frozen=True)
class Scenario:
    """One scenario's script."""

    name: str
    fixture: Callable[[], Files]
    prepare: Callable[[Vcs, str], Workspace]
    right: Mapping[str, Recipe]
    wrong: Mapping[str, Wrong]
    solution: Callable[[], Files] | None = None
    """The exact tree that must be committed, where the contract demands one."""


def simple_repository(vcs: Vcs, root: str, files: Files) -> Workspace:
    """Make a repository of one commit in a folder `work` below `root`."""
    repo = os.path.join(root, "work")
    os.mkdir(repo)
    vcs.init(repo)
    write(repo, files)
    vcs.commit(repo)
    return Workspace(vcs, root, repo)


def nothing(work: Workspace) -> None:
    """Do nothing at all."""


def uncommitted(task: Recipe) -> Recipe:
    """Do the task and forget to commit."""
    return task


def committed(task: Recipe) -> Recipe:
    """Do the task and commit everything."""

    def recipe(work: Workspace) -> None:
        task(work)
        work.vcs.commit(work.repo)

    return recipe


def staged(task: Recipe) -> Recipe:
    """Do the task and add it to the index only."""

    def recipe(work: Workspace) -> None:
        task(work)
        work.vcs.stage(work.repo)

    return recipe


def on_another_branch(task: Recipe) -> Recipe:
    """Do the task, commit it on a branch of its own, and go back."""

    def recipe(work: Workspace) -> None:
        start = work.vcs.start(work.repo)
        work.vcs.branch(work.repo, "side-work")
        task(work)
        work.vcs.commit(work.repo)
        work.vcs.switch(work.repo, start)

    return recipe

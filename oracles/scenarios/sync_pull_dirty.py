"""Take in upstream work without losing an uncommitted edit."""

from __future__ import annotations

import os

from oracles.scenarios.files import Files, append, text
from oracles.scenarios.recipe import Scenario, Workspace, Wrong, simple_repository
from oracles.scenarios.vcs import Vcs

_UPSTREAM = "* 1.4.0: parcels can be split\n"
_DIRTY = "- [ ] ask Bo about the split\n"


def fixture() -> Files:
    """Return the starting tree."""
    return {
        "CHANGES.md": text("# Changes\n\n* 1.3.0: labels\n"),
        "notes/todo.md": text("# To do\n\n- [x] labels\n"),
        "src/parcel.txt": text("parcel\n"),
    }


def prepare(vcs: Vcs, root: str) -> Workspace:
    """Make the repository that will be shared; the recipes clone it while it is served."""
    seed = simple_repository(vcs, root, fixture())
    os.rename(seed.repo, os.path.join(root, "seed"))
    return Workspace(vcs, root, os.path.join(root, "work"))


def _with_upstream(work: Workspace, *, pull: bool, keep_edit: bool, commit_edit: bool = False) -> None:
    """Play the scenario against the shared repository while it is served."""
    vcs, repo = work.vcs, work.repo
    with vcs.shared(work.root, os.path.join(work.root, "seed")) as remote:
        remote.clone(repo)
        other = os.path.join(work.root, "other")
        remote.clone(other)
        append(other, "CHANGES.md", _UPSTREAM)
        vcs.commit(other)
        remote.land(other)
        append(repo, "notes/todo.md", _DIRTY)
        if pull:
            # Set the edit aside by hand: what works with every system.
            vcs.restore(repo, "notes/todo.md")
            remote.pull(repo)
            if keep_edit:
                append(repo, "notes/todo.md", _DIRTY)
        if commit_edit:
            vcs.commit(repo, "notes/todo.md")


def _right(work: Workspace) -> None:
    _with_upstream(work, pull=True, keep_edit=True)


def _right_and_committed(work: Workspace) -> None:
    _with_upstream(work, pull=True, keep_edit=True, commit_edit=True)


def _lost_edit(work: Workspace) -> None:
    _with_upstream(work, pull=True, keep_edit=False)


def _never_pulled(work: Workspace) -> None:
    _with_upstream(work, pull=False, keep_edit=True)


def _typed_it_in(work: Workspace) -> None:
    """Write the upstream line into the worktree instead of pulling it."""
    _with_upstream(work, pull=False, keep_edit=True)
    append(work.repo, "CHANGES.md", _UPSTREAM)


SCENARIO = Scenario(
    name="sync_pull_dirty",
    fixture=fixture,
    prepare=prepare,
    right={"edit_stays_uncommitted": _right, "edit_committed_too": _right_and_committed},
    wrong={
        "lost_edit": Wrong(_lost_edit, "worktree_marker_missing"),
        "never_pulled": Wrong(_never_pulled, "marker_missing"),
        "typed_it_in": Wrong(_typed_it_in, "marker_missing"),
    },
)

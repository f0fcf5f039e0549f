"""Bring in upstream work that conflicts, and keep both sides' intent."""

from __future__ import annotations

import os

from oracles.scenarios.files import Files, edit, text, write
from oracles.scenarios.recipe import Scenario, Workspace, Wrong, simple_repository
from oracles.scenarios.vcs import Vcs

_BASE = "limits:\n  upload_mib: 10\n  sessions: 5\n"
_OURS = _BASE.replace("upload_mib: 10", "upload_mib: 25")
_THEIRS = _BASE.replace("upload_mib: 10", "upload_mib: 10\n  download_mib: 40")
_BOTH = _BASE.replace("upload_mib: 10", "upload_mib: 25\n  download_mib: 40")


def fixture() -> Files:
    """Return the starting tree."""
    return {"limits.yaml": text(_BASE), "README.md": text("# Limits\n"), "owners.txt": text("core\n")}


def prepare(vcs: Vcs, root: str) -> Workspace:
    """Make the repository that will be shared; the recipes clone it while it is served."""
    seed = simple_repository(vcs, root, fixture())
    os.rename(seed.repo, os.path.join(root, "seed"))
    return Workspace(vcs, root, os.path.join(root, "work"))


def _diverge(work: Workspace, resolved: str | None, *, conclude: bool = True, pull: bool = True) -> None:
    """Let both sides change one line; resolve the conflict with a text (None: leave the markers)."""
    vcs, repo = work.vcs, work.repo
    with vcs.shared(work.root, os.path.join(work.root, "seed")) as remote:
        remote.clone(repo)
        other = os.path.join(work.root, "other")
        remote.clone(other)
        write(other, {"limits.yaml": text(_THEIRS)})
        edit(other, "owners.txt", "core", "core, transfer")
        vcs.commit(other)
        remote.land(other)
        write(repo, {"limits.yaml": text(_OURS)})
        vcs.commit(repo)
        if pull:
            assert not remote.pull(repo), "the two sides were meant to conflict"
            if resolved is not None:
                write(repo, {"limits.yaml": text(resolved)})
        if conclude:
            if pull:
                vcs.conclude(repo)
            else:
                vcs.commit(repo)


def _right(work: Workspace) -> None:
    _diverge(work, _BOTH)


def _left_markers(work: Workspace) -> None:
    marked = "limits:\n<<<<<<< ours\n  upload_mib: 25\n=======\n  upload_mib: 10\n  download_mib: 40\n>>>>>>> theirs\n  sessions: 5\n"  # noqa: E501
    _diverge(work, _BOTH)
    write(work.repo, {"limits.yaml": text(marked)})
    work.vcs.commit(work.repo)


def _ours_only(work: Workspace) -> None:
    _diverge(work, _OURS)


def _theirs_only(work: Workspace) -> None:
    _diverge(work, _THEIRS)


def _never_concluded(work: Workspace) -> None:
    _diverge(work, _BOTH, conclude=False)


def _never_pulled(work: Workspace) -> None:
    _diverge(work, None, pull=False, conclude=False)


def _copied_the_line(work: Workspace) -> None:
    """Write the other side's line by hand instead of taking in their commit."""
    _diverge(work, None, pull=False, conclude=False)
    write(work.repo, {"limits.yaml": text(_BOTH)})
    work.vcs.commit(work.repo)


SCENARIO = Scenario(
    name="merge_conflict_resolution",
    fixture=fixture,
    prepare=prepare,
    right={"resolve": _right},
    wrong={
        "left_markers": Wrong(_left_markers, "marker_forbidden"),
        "ours_only": Wrong(_ours_only, "marker_missing"),
        "theirs_only": Wrong(_theirs_only, "marker_missing"),
        "never_concluded": Wrong(_never_concluded, "marker_missing"),
        "never_pulled": Wrong(_never_pulled, "marker_missing"),
        "copied_the_line": Wrong(_copied_the_line, "marker_missing"),
    },
)

"""Commit a hotfix on another branch without committing or losing the work in progress."""

from __future__ import annotations

from oracles.scenarios.files import Files, append, edit, text
from oracles.scenarios.recipe import Scenario, Workspace, Wrong, nothing, simple_repository
from oracles.scenarios.vcs import Vcs

_WIP = "def draft_invoice():\n    pass\n"


def fixture() -> Files:
    """Return the starting tree."""
    return {
        "VERSION": text("1.2.0\n"),
        "release-line": text("main\n"),
        "src/invoice.py": text("def invoice():\n    return 'invoice'\n"),
        "src/tax.py": text("RATE_PERCENT = 91\n"),
    }


def prepare(vcs: Vcs, root: str) -> Workspace:
    """Make a release branch, go back to the first branch, and leave work in progress there."""
    work = simple_repository(vcs, root, fixture())
    start = vcs.start(work.repo)
    vcs.branch(work.repo, "release-1.2")
    edit(work.repo, "release-line", "main", "1.2")
    vcs.commit(work.repo)
    vcs.switch(work.repo, start)
    append(work.repo, "src/invoice.py", _WIP)
    work.notes["start"] = start
    return work


def _set_aside(work: Workspace) -> None:
    work.vcs.restore(work.repo, "src/invoice.py")


def _bring_back(work: Workspace) -> None:
    append(work.repo, "src/invoice.py", _WIP)


def _hotfix(work: Workspace) -> None:
    edit(work.repo, "src/tax.py", "91", "19")
    edit(work.repo, "VERSION", "1.2.0", "1.2.1")


def _right(work: Workspace) -> None:
    _set_aside(work)
    work.vcs.switch(work.repo, "release-1.2")
    _hotfix(work)
    work.vcs.commit(work.repo)
    _bring_back(work)


def _by_paths(work: Workspace) -> None:
    """Carry the work in progress along and commit only the paths of the fix."""
    _set_aside(work)
    work.vcs.switch(work.repo, "release-1.2")
    _bring_back(work)
    _hotfix(work)
    work.vcs.commit(work.repo, "src/tax.py", "VERSION")


def _committed_wip(work: Workspace) -> None:
    _set_aside(work)
    work.vcs.switch(work.repo, "release-1.2")
    _bring_back(work)
    _hotfix(work)
    work.vcs.commit(work.repo)


def _lost_wip(work: Workspace) -> None:
    _set_aside(work)
    work.vcs.switch(work.repo, "release-1.2")
    _hotfix(work)
    work.vcs.commit(work.repo)


def _wrong_branch(work: Workspace) -> None:
    _hotfix(work)
    work.vcs.commit(work.repo, "src/tax.py", "VERSION")


def _forgot_commit(work: Workspace) -> None:
    _set_aside(work)
    work.vcs.switch(work.repo, "release-1.2")
    _bring_back(work)
    _hotfix(work)


def _index_only(work: Workspace) -> None:
    _forgot_commit(work)
    work.vcs.stage(work.repo, "src/tax.py", "VERSION")


def _went_back(work: Workspace) -> None:
    """The right commit, but HEAD is on the first branch again."""
    _lost_wip(work)
    work.vcs.switch(work.repo, work.notes["start"])
    _bring_back(work)


SCENARIO = Scenario(
    name="branch_switch_wip",
    fixture=fixture,
    prepare=prepare,
    right={"set_aside": _right, "by_paths": _by_paths},
    wrong={
        "nothing": Wrong(nothing, "marker_missing"),
        "committed_wip": Wrong(_committed_wip, "marker_forbidden"),
        "lost_wip": Wrong(_lost_wip, "worktree_marker_missing"),
        "wrong_branch": Wrong(_wrong_branch, "marker_missing"),
        "forgot_commit": Wrong(_forgot_commit, "marker_missing"),
        "index_only": Wrong(_index_only, "marker_missing", needs_index=True),
        "went_back": Wrong(_went_back, "marker_missing"),
    },
)

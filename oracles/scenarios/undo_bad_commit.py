"""Undo one bad commit and keep the good one that came after it."""

from __future__ import annotations

from oracles.scenarios.files import Files, append, edit, text, write
from oracles.scenarios.recipe import (
    Scenario,
    Workspace,
    Wrong,
    committed,
    nothing,
    on_another_branch,
    simple_repository,
    staged,
    uncommitted,
)
from oracles.scenarios.vcs import Vcs

_PRICES = "item,cents\nbolt,120\nnut,80\nwasher,15\n"
_LATER = "- washers are sold by the dozen\n"


def fixture() -> Files:
    """Return the starting tree."""
    return {
        "prices.csv": text(_PRICES),
        "tools/import.sh": text("#!/bin/sh\ncat prices.csv\n", executable=True),
        "NOTES.md": text("# Notes\n\n- prices are in cents\n"),
    }


def prepare(vcs: Vcs, root: str) -> Workspace:
    """Make the repository with the bad commit and the good one after it."""
    work = simple_repository(vcs, root, fixture())
    write(work.repo, {"prices.csv": text(_PRICES.replace("bolt,120", "bolt,1.20").replace("80", "0.80"))})
    edit(work.repo, "tools/import.sh", "cat prices.csv", "sed s/,/./ prices.csv")
    vcs.commit(work.repo)
    append(work.repo, "NOTES.md", _LATER)
    vcs.commit(work.repo)
    return work


def task(work: Workspace) -> None:
    """Put back what the bad commit changed."""
    write(work.repo, {path: fixture()[path] for path in ("prices.csv", "tools/import.sh")})


def _everything_back(work: Workspace) -> None:
    write(work.repo, fixture())


def _half(work: Workspace) -> None:
    write(work.repo, {"prices.csv": fixture()["prices.csv"]})


def _lost_mode(work: Workspace) -> None:
    task(work)
    content = fixture()["tools/import.sh"].content
    write(work.repo, {"tools/import.sh": text(content.decode())})


def _crlf(work: Workspace) -> None:
    task(work)
    write(work.repo, {"prices.csv": text(_PRICES.replace("\n", "\r\n"))})


SCENARIO = Scenario(
    name="undo_bad_commit",
    fixture=fixture,
    prepare=prepare,
    right={"revert": committed(task)},
    wrong={
        "nothing": Wrong(nothing, "content_mismatch"),
        "forgot_commit": Wrong(uncommitted(task), "content_mismatch"),
        "index_only": Wrong(staged(task), "content_mismatch", needs_index=True),
        "wrong_branch": Wrong(on_another_branch(task), "content_mismatch"),
        "reset_too_far": Wrong(committed(_everything_back), "marker_missing"),
        "half": Wrong(committed(_half), "marker_missing"),
        "lost_mode": Wrong(committed(_lost_mode), "mode_mismatch"),
        "crlf": Wrong(committed(_crlf), "content_mismatch"),
    },
)

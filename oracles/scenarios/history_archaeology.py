"""Find out from history when a value changed, and what it was before.

Version 1 has no answer artifact: it is unmeasured for every subject, whatever the repository looks like.
Version 2 asks for `answer.json` in the worktree; its scoring key is in the contract and not in the
repository.
"""

from __future__ import annotations

import json

from oracles.scenarios.files import Files, text, write
from oracles.scenarios.recipe import Scenario, Workspace, Wrong, nothing, simple_repository
from oracles.scenarios.vcs import Vcs

#: The limit in each release; the question is when it first became 400.
_LIMITS = (100, 100, 150, 150, 250, 250, 250, 400, 400, 300, 400, 400)


def _release(number: int) -> Files:
    return {
        "VERSION": text(f"0.{number + 1}\n"),
        "settings.ini": text(f"[queue]\nlimit = {_LIMITS[number]}\nworkers = {2 + number % 3}\n"),
        "README.md": text("# Queue\n\nThe history knows why the limit is what it is.\n"),
    }


def fixture() -> Files:
    """Return the first release."""
    return _release(0)


def answer() -> dict[str, str | int]:
    """Return the scoring key."""
    first = _LIMITS.index(400)
    return {"first_release": f"0.{first + 1}", "limit_before": _LIMITS[first - 1]}


def prepare(vcs: Vcs, root: str) -> Workspace:
    """Make a repository with one commit a release."""
    work = simple_repository(vcs, root, fixture())
    for number in range(1, len(_LIMITS)):
        write(work.repo, _release(number))
        vcs.commit(work.repo)
    return work


def _write(work: Workspace, given: object) -> None:
    write(work.repo, {"answer.json": text(given if isinstance(given, str) else json.dumps(given))})


def _right(work: Workspace) -> None:
    _write(work, answer())


def _last_change(work: Workspace) -> None:
    _write(work, {"first_release": "0.11", "limit_before": 300})


def _as_text(work: Workspace) -> None:
    _write(work, {**answer(), "limit_before": str(answer()["limit_before"])})


def _extra_key(work: Workspace) -> None:
    _write(work, {**answer(), "confidence": "high"})


def _not_json(work: Workspace) -> None:
    _write(work, "first_release: 0.8\n")


def _half(work: Workspace) -> None:
    _write(work, {"first_release": answer()["first_release"]})


SCENARIO = Scenario(
    name="history_archaeology",
    fixture=fixture,
    prepare=prepare,
    right={"answer": _right},
    wrong={
        "nothing": Wrong(nothing, "answer_absent"),
        "last_change": Wrong(_last_change, "answer_wrong"),
        "as_text": Wrong(_as_text, "answer_wrong"),
        "extra_key": Wrong(_extra_key, "answer_extra_key"),
        "not_json": Wrong(_not_json, "answer_malformed"),
        "half": Wrong(_half, "answer_incomplete"),
    },
)

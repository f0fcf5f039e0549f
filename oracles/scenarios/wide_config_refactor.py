"""Rename one key in many configuration files: the whole tree must be exactly right."""

from __future__ import annotations

import os

from oracles.scenarios.files import File, Files, text, write
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

_SERVICES = ("billing", "catalog", "gateway", "identity", "mailer", "search", "shipping", "stock")
_ENVIRONMENTS = ("dev", "load", "prod", "stage", "test")


def _config(service: str, environment: str, *, done: bool) -> str:
    seconds = 5 + (_SERVICES.index(service) * 7 + _ENVIRONMENTS.index(environment) * 3) % 55
    timeout = f"timeout_ms = {seconds * 1000}" if done else f"timeout = {seconds}"
    return (
        f'[service]\nname = "{service}"\nenvironment = "{environment}"\n\n'
        f"[client]\n{timeout}\nretries = {seconds % 4}\n\n# unit: see docs/units.md\n"
    )


def _tree(*, done: bool) -> dict[str, File]:
    files = {f"config/{s}/{e}.toml": text(_config(s, e, done=done)) for s in _SERVICES for e in _ENVIRONMENTS}
    unit = "milliseconds in `timeout_ms`" if done else "seconds in `timeout`"
    files["docs/units.md"] = text(f"# Units\n\nClient timeouts are {unit}.\n")
    files["bin/check"] = text('#!/bin/sh\ngrep -rq "timeout" config\n', executable=True)
    files["README.md"] = text("# Services\n\nOne file a service and environment under `config/`.\n")
    return files


def fixture() -> Files:
    """Return the starting tree."""
    return _tree(done=False)


def solution() -> Files:
    """Return the tree that must be committed."""
    return _tree(done=True)


def prepare(vcs: Vcs, root: str) -> Workspace:
    """Make the repository."""
    return simple_repository(vcs, root, fixture())


def task(work: Workspace) -> None:
    """Make every edit in the worktree."""
    write(work.repo, solution())


def _missed_one(work: Workspace) -> None:
    write(work.repo, {**solution(), "config/search/load.toml": fixture()["config/search/load.toml"]})


def _extra_file(work: Workspace) -> None:
    write(work.repo, {**solution(), "refactor.py": text("print('done')\n")})


def _crlf(work: Workspace) -> None:
    path = "config/mailer/prod.toml"
    content = solution()[path].content.replace(b"\n", b"\r\n")
    write(work.repo, {**solution(), path: File(content)})


def _wrong_mode(work: Workspace) -> None:
    write(work.repo, {**solution(), "bin/check": File(solution()["bin/check"].content)})


def _lost_file(work: Workspace) -> None:
    task(work)
    os.unlink(os.path.join(work.repo, "docs/units.md"))


SCENARIO = Scenario(
    name="wide_config_refactor",
    fixture=fixture,
    solution=solution,
    prepare=prepare,
    right={"commit_all": committed(task)},
    wrong={
        "nothing": Wrong(nothing, "content_mismatch"),
        "forgot_commit": Wrong(uncommitted(task), "content_mismatch"),
        "index_only": Wrong(staged(task), "content_mismatch", needs_index=True),
        "wrong_branch": Wrong(on_another_branch(task), "content_mismatch"),
        "missed_one": Wrong(committed(_missed_one), "content_mismatch"),
        "extra_file": Wrong(committed(_extra_file), "extra_path"),
        "lost_file": Wrong(committed(_lost_file), "missing_path"),
        "crlf": Wrong(committed(_crlf), "content_mismatch"),
        "wrong_mode": Wrong(committed(_wrong_mode), "mode_mismatch"),
    },
)

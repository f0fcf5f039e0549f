"""Replace binary assets and keep their manifest right: the whole tree must be exactly right."""

from __future__ import annotations

import hashlib
import json

from oracles.scenarios.files import File, Files, pseudo_random, remove, text, write
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

_SIZES = (3_000, 17_000, 70_001, 262_144)


def _asset(number: int, generation: int) -> bytes:
    return pseudo_random(f"asset {number} generation {generation}", _SIZES[number % len(_SIZES)] + number)


def _with_manifest(assets: dict[str, bytes]) -> Files:
    listed = {
        name: {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
        for name, content in sorted(assets.items())
    }
    manifest = json.dumps({"assets": listed}, indent=2, sort_keys=True) + "\n"
    files = {f"assets/{name}": File(content) for name, content in assets.items()}
    return {**files, "manifest.json": text(manifest), "README.md": text("# Assets\n\nSee manifest.json.\n")}


def fixture() -> Files:
    """Return the starting tree: twenty assets and their manifest."""
    return _with_manifest({f"a{n:02}.bin": _asset(n, 1) for n in range(20)})


def solution() -> Files:
    """Return the tree that must be committed: three assets gone, four replaced, five new."""
    assets = {f"a{n:02}.bin": _asset(n, 1) for n in range(20) if n not in (2, 9, 16)}
    assets |= {f"a{n:02}.bin": _asset(n, 2) for n in (0, 5, 7, 19)}
    assets |= {f"a{n:02}.bin": _asset(n, 1) for n in range(20, 25)}
    return _with_manifest(assets)


def prepare(vcs: Vcs, root: str) -> Workspace:
    """Make the repository."""
    return simple_repository(vcs, root, fixture())


def task(work: Workspace) -> None:
    """Change the assets and the manifest in the worktree."""
    remove(work.repo, *sorted(fixture().keys() - solution().keys()))
    write(work.repo, solution())


def _stale_manifest(work: Workspace) -> None:
    task(work)
    write(work.repo, {"manifest.json": fixture()["manifest.json"]})


def _kept_removed(work: Workspace) -> None:
    write(work.repo, solution())


def _truncated(work: Workspace) -> None:
    task(work)
    write(work.repo, {"assets/a07.bin": File(solution()["assets/a07.bin"].content[:-1])})


def _text_mangled(work: Workspace) -> None:
    task(work)
    content = solution()["assets/a19.bin"].content
    write(work.repo, {"assets/a19.bin": File(content.replace(b"\n", b"\r\n"))})


SCENARIO = Scenario(
    name="large_asset_manifest",
    fixture=fixture,
    solution=solution,
    prepare=prepare,
    right={"commit_all": committed(task)},
    wrong={
        "nothing": Wrong(nothing, "missing_path"),
        "forgot_commit": Wrong(uncommitted(task), "missing_path"),
        "index_only": Wrong(staged(task), "missing_path", needs_index=True),
        "wrong_branch": Wrong(on_another_branch(task), "missing_path"),
        "stale_manifest": Wrong(committed(_stale_manifest), "content_mismatch"),
        "kept_removed": Wrong(committed(_kept_removed), "extra_path"),
        "truncated": Wrong(committed(_truncated), "content_mismatch"),
        "text_mangled": Wrong(committed(_text_mangled), "content_mismatch"),
    },
)

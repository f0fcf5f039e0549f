"""Move modules to another directory and follow them with every import."""

from __future__ import annotations

from oracles.scenarios.files import Files, edit, remove, text, write
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

_MOVED = ("geometry.py", "units.py")


def fixture() -> Files:
    """Return the starting tree."""
    return {
        "lib/util/geometry.py": text(
            "from lib.util.units import MM\n\n\ndef area(a, b):\n    return a * b * MM\n"
        ),
        "lib/util/units.py": text("MM = 1\nINCH = 25.4\n"),
        "lib/util/__init__.py": text(""),
        "app/main.py": text("from lib.util.geometry import area\n\nprint(area(2, 3))\n"),
        "README.md": text("# Shapes\n"),
    }


def prepare(vcs: Vcs, root: str) -> Workspace:
    """Make the repository."""
    return simple_repository(vcs, root, fixture())


def _copy(work: Workspace) -> None:
    moved = {}
    for name in _MOVED:
        content = fixture()[f"lib/util/{name}"].content.decode()
        moved[f"core/{name}"] = text(content.replace("lib.util", "core"))
    write(work.repo, {**moved, "core/__init__.py": text("")})


def _imports(work: Workspace) -> None:
    edit(work.repo, "app/main.py", "lib.util.geometry", "core.geometry")


def task(work: Workspace) -> None:
    """Move, and follow the imports."""
    _copy(work)
    remove(work.repo, *(f"lib/util/{name}" for name in (*_MOVED, "__init__.py")))
    _imports(work)


def _copied(work: Workspace) -> None:
    _copy(work)
    _imports(work)


def _stale_import(work: Workspace) -> None:
    task(work)
    edit(work.repo, "app/main.py", "core.geometry", "lib.util.geometry")


def _moved_without_adding(work: Workspace) -> None:
    """Commit the edited import and forget the moved files."""
    task(work)
    work.vcs.commit(work.repo, "app/main.py")


def _case_variant(work: Workspace) -> None:
    task(work)
    remove(work.repo, "core/units.py")
    write(work.repo, {"core/Units.py": fixture()["lib/util/units.py"]})


SCENARIO = Scenario(
    name="rename_across_directories",
    fixture=fixture,
    prepare=prepare,
    right={"move": committed(task)},
    wrong={
        "nothing": Wrong(nothing, "missing_path"),
        "forgot_commit": Wrong(uncommitted(task), "missing_path"),
        "index_only": Wrong(staged(task), "missing_path", needs_index=True),
        "wrong_branch": Wrong(on_another_branch(task), "missing_path"),
        "copied": Wrong(committed(_copied), "must_be_absent"),
        "stale_import": Wrong(committed(_stale_import), "marker_missing"),
        "moved_without_adding": Wrong(_moved_without_adding, "missing_path"),
        "case_variant": Wrong(committed(_case_variant), "missing_path"),
    },
)

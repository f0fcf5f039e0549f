"""What a reader says about the paths in scope, before any content: the same reasons for every subject.

These facts fail a task whatever became of the rest of the read (docs/reader-report.md): they are about state
that the subject controls, and readers establish them before any bound.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import Any

from ledger.events import Check
from oracles.checks.found import failed, raw_path


def path_facts(report: Mapping[str, Any], *, absent: Set[bytes], links_allowed: bool) -> list[Check]:
    """Return a failed check for each fact that fails a task.

    `absent` are scope paths that must not exist; `links_allowed` for an exact tree, which names its links.
    """
    found = []
    for path in map(raw_path, report["oversize_paths"]):
        if path not in absent:
            found.append(failed("committed_content", "oversize_path", path))
    for group in report["colliding_paths"]:
        found += [failed("committed_content", "colliding_path", path) for path in map(raw_path, group)]
    for path in map(raw_path, report["nonregular_paths"]):
        if path not in absent and not links_allowed:
            found.append(failed("committed_content", "nonregular_path", path))
    for path in map(raw_path, report["missing_paths"]):
        if path not in absent:
            found.append(failed("committed_content", "missing_path", path))
    return found

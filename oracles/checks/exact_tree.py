"""The exact committed tree: path set, modes and bytes; nothing missing, nothing extra."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ledger.events import Check
from oracles.checks.found import failed, passed, raw_path
from oracles.contract import TreeFile

CHECK = "exact_tree"


def exact_tree(expected: Iterable[TreeFile], entries: Iterable[Mapping[str, Any]]) -> list[Check]:
    """Compare a manifest with the files that must be there; one failed check a difference."""
    wanted = {f.path.encode(): f for f in expected}
    present = {raw_path(e.get("path", e)): e for e in entries}
    found = [failed(CHECK, "missing_path", path) for path in sorted(wanted.keys() - present.keys())]
    found += [failed(CHECK, "extra_path", path) for path in sorted(present.keys() - wanted.keys())]
    for path in sorted(wanted.keys() & present.keys()):
        want, have = wanted[path], present[path]
        if have["mode"] != want.mode:
            found.append(failed(CHECK, "mode_mismatch", path, expected=want.mode, found=have["mode"]))
        if have["sha256"] != want.sha256:
            digest = have["sha256"] or "unread"
            found.append(failed(CHECK, "content_mismatch", path, expected=want.sha256, found=digest))
    return found or [passed(CHECK)]

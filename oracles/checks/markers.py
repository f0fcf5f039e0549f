"""Markers in one file's bytes: narrower than an exact tree, and no proof of behaviour."""

from __future__ import annotations

import hashlib
import re

from ledger.events import Check
from oracles.checks.found import failed, passed
from oracles.contract import Marker


def judge_markers(check: str, marker: Marker, content: bytes, mode: str | None = None) -> list[Check]:
    """Judge one file's bytes (and committed mode, where there is one) by its marker."""
    path = marker.path.encode()
    found: list[Check] = []
    if marker.mode is not None and mode is not None and mode != marker.mode:
        found.append(failed(check, "mode_mismatch", path, expected=marker.mode, found=mode))
    digest = hashlib.sha256(content).hexdigest()
    if marker.sha256 is not None and digest != marker.sha256:
        found.append(failed(check, "content_mismatch", path, expected=marker.sha256, found=digest))
    for text in marker.contains:
        if text.encode() not in content:
            found.append(failed(check, "marker_missing", path, expected=shown(text), content=content))
    for text in marker.not_contains:
        at = content.find(text.encode())
        if at >= 0:
            near = content[max(0, at - 40) :]
            found.append(failed(check, "marker_forbidden", path, found=shown(text), content=near))
    if (marker.matches or marker.not_matches) and len(content) > marker.max_bytes:
        found.append(failed(check, "oversize_path", path, found=str(len(content))))
        return found
    for expression in marker.matches:
        if re.search(expression.encode(), content) is None:
            found.append(failed(check, "pattern_missing", path, expected=shown(expression), content=content))
    for expression in marker.not_matches:
        match = re.search(expression.encode(), content)
        if match is not None:
            found.append(failed(check, "pattern_forbidden", path, found=shown(expression), content=match[0]))
    return found or [passed(check, path)]


def shown(text: str) -> str:
    """Return a contract's text in the plain characters that events allow."""
    return "".join(c if " " <= c <= "~" and c not in '"\\' else "?" for c in text)[:200]

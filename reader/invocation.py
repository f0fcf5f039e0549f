"""The `reader_invoked` event of a read, as a plain mapping (design section 4).

This package knows nothing of the ledger, so the event leaves it as a mapping of the documented fields; the
ledger validates it against its own type when it is recorded.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

from reader.driver import Reading

KIND = "reader_invoked/1"

#: How many paths of each finding an event carries; the counts are always whole.
LISTED = 100


def reader_invoked(
    reading: Reading,
    *,
    relation: str,
    campaign: str | None = None,
    trial: str | None = None,
    subject: str | None = None,
    subject_binary_sha256: str | None = None,
    qualified_by: str | None = None,
    qualified_because: str | None = None,
) -> dict[str, Any]:
    """Return the event without its envelope (source, ordinal, recorded_at_ns)."""
    report = reading.report
    instrument: Mapping[str, Any] = report.get("instrument") or {}
    counts = report["counts"]
    event: dict[str, Any] = {
        "kind": KIND,
        "vcs": report["vcs"],
        "reader": report["reader"],
        "reader_version": plain(report["reader_version"]),
        "code_sha256": report["code_sha256"],
        "backend": report["backend"] or reading.backend,
        "outcome": report["outcome"],
        "exit_status": report["exit_status"],
        "relation": relation,
        "bounds": report["bounds"],
        "reason": report["reason"],
        "campaign": campaign,
        "trial": trial,
        "subject": subject,
        "codec_sha256": report["codec_sha256"],
        "python_version": reading.python_version,
        "python_sha256": reading.python_sha256,
        "dependencies": {plain(k): plain(str(v)) for k, v in report["dependencies"].items()},
        "instrument_name": optional_plain(instrument.get("name")),
        "instrument_version": optional_plain(instrument.get("version")),
        "instrument_sha256": instrument.get("sha256"),
        "subject_binary_sha256": subject_binary_sha256,
        "qualified_by": qualified_by,
        "qualified_because": qualified_because,
        "scope_sha256": report["scope"]["sha256"],
        "scope_count": report["scope"]["count"],
        "head": report["head"],
        "format": {plain(k): plain(format_value(v)) for k, v in report["format"].items()},
        "manifest_sha256": report["manifest_sha256"],
        "entries": counts["entries"],
        "colliding_paths": [group[:LISTED] for group in report["colliding_paths"][:LISTED]],
        "colliding_count": len(report["colliding_paths"]),
        "shallow_boundary": report["shallow_boundary"][:LISTED],
        "bytes_decoded": counts["bytes_decoded"],
        "objects_verified": counts["objects_verified"],
        "duration_ns": report["duration_ns"],
        "report_sha256": hashlib.sha256(reading.text).hexdigest(),
    }
    for finding in ("nonregular", "oversize", "missing", "unsafe"):
        paths: Sequence[Any] = report[f"{finding}_paths"]
        event[f"{finding}_paths"] = paths[:LISTED]
        event[f"{finding}_count"] = len(paths)
    return event


def plain(text: str, limit: int = 500) -> str:
    """Return text in the one spelling that digests allow: printable ASCII, no quote, no backslash."""
    kept = "".join(c if " " <= c <= "~" and c not in '"\\' else "?" for c in text)
    return kept[:limit]


def optional_plain(text: str | None) -> str | None:
    """Return `plain(text)`, None for None."""
    return None if text is None else plain(text)


def format_value(value: Any) -> str:
    """Return one fact of the recognised format as text; a list becomes words."""
    if isinstance(value, list | tuple):
        return " ".join(str(v) for v in value)
    return str(value)

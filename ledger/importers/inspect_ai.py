"""Inspect AI eval logs: the `.json` form, and the `.eval` form, a zip of the same parts.

A trial is one sample in one epoch. What the log says of the whole run reaches every sample of it: those of a
cancelled or broken run carry that as their status code, whatever results the log shows.
"""

from __future__ import annotations

import io
import re
import zipfile
import zlib
from collections.abc import Iterator
from typing import Any

from ledger.importers.shared import (
    MAX_DOCUMENT_BYTES,
    MAX_TRIALS,
    SCENARIO_VERSION,
    Draft,
    ForeignFile,
    Imported,
    Node,
    agree,
    code,
    derived_trial,
    known,
    name,
    not_ours,
    plain,
    unique,
)

#: Versions of the log format that this module knows.
_VERSIONS = (2,)

#: Most bytes that all parts of a `.eval` file may unpack to.
MAX_UNPACKED_BYTES = 1 << 30

_ZIP_MAGIC = b"PK\x03\x04"

#: Status of the log -> status code of its samples.
_RUN_CODES = {"success": None, "cancelled": "cancelled", "error": "run_error", "started": "run_unfinished"}

#: What a scorer's value says about success; partial and unanswered (P, N) say neither.
_CLAIMS = {"C": True, "I": False}

#: Limit of the eval's config -> limit of the condition and its power of ten.
_LIMITS = {
    "time_limit": ("time_limit_ns", 9),
    "working_limit": ("working_limit_ns", 9),
    "token_limit": ("token_limit_count", 0),
    "message_limit": ("message_limit_count", 0),
}


def looks_like(document: object) -> bool:
    """Say whether a document is an eval log."""
    return (
        isinstance(document, dict)
        and {"status", "eval"} <= document.keys()
        and isinstance(document["eval"], dict)
        and "task" in document["eval"]
    )


def read(file: ForeignFile, subject: str | None) -> Imported:
    """Turn an eval log into drafts of trials."""
    if subject is not None:
        raise file.fail("", "it names its model: leave --subject out")
    if file.data.startswith(_ZIP_MAGIC):
        root, samples = _unpack(file)
    else:
        root = file.document()
        _check(root)
        listed = root.get("samples")
        samples = iter(()) if listed.value is None else listed.items()
    status = root.get("status").needed_text()
    if status not in _RUN_CODES:
        raise root.get("status").fail(f"not a status that is known: {', '.join(_RUN_CODES)}")
    drafts = []
    completed = 0
    for sample in samples:
        drafts.append(_draft(file, root, sample, _RUN_CODES[status]))
        completed += sample.get("error").value is None
    _check_counts(root, len(drafts), completed)
    notes = []
    if status != "success":
        scored = " and shows results" if root.get("results").value is not None else ""
        notes.append(f"the log's status is {status}{scored}: its samples are not those of a whole run")
    written = root.get("stats", "completed_at").time_ns() or root.get("eval", "created").time_ns()
    return Imported(written, unique(drafts, file), notes)


def _check(root: Node) -> None:
    if not looks_like(root.value):
        raise not_ours(root, "inspect", "an eval log, .json or .eval")
    if root.get("version").integer() not in _VERSIONS:
        raise root.get("version").fail("not a version that this importer knows (2): update oakledger")


def _check_counts(root: Node, found: int, completed: int) -> None:
    said = root.get("results", "completed_samples").integer()
    if not found and said:
        raise root.get("results", "completed_samples").fail(
            f"says {said} (status {root.get('status').text()}), and the log has no samples: "
            "results alone are no trials, get the log with its samples"
        )
    agree(root.get("results", "completed_samples"), completed, "samples without error")


def _draft(file: ForeignFile, root: Node, sample: Node, run_code: str | None) -> Draft:
    about = root.get("eval")
    task, version = about.get("task").needed_text(), _label(about.get("task_version"))
    sample_id = _label(sample.get("id"))
    epoch = sample.get("epoch").integer()
    if sample_id is None or epoch is None or epoch < 1:
        raise sample.fail("no id, or no epoch from 1: they identify the sample")
    own = sample.get("uuid").text()
    error = sample.get("error").value is not None
    limit = sample.get("limit", "type").text()
    timed_out = limit in ("time", "working")
    where = f"{task}@{version}" if version is not None else task
    return Draft(
        sample.place,
        known(
            {
                "kind": "trial_recorded/1",
                "lane": "agent",
                "scenario": name(f"inspect/{where}/{sample_id}"),
                "scenario_version": SCENARIO_VERSION,
                "subject": name(about.get("model").needed_text()),
                "trial": name(f"inspect/{own}")
                if own
                else derived_trial("inspect", file, where, sample_id, str(epoch)),
                "condition": _condition(about, sample),
                "status": "error" if error else "timeout" if timed_out else "completed",
                "status_code": run_code
                or ("sample_error" if error else code(f"limit_{limit}") if limit else None),
                "repetition": epoch - 1,
                "started_at_ns": _start(sample),
                "ended_at_ns": sample.get("completed_at").time_ns(),
                "claimed_success": _claim(sample),
                "row_sha256": sample.row_sha256(),
                "metrics": _metrics(sample),
            }
        ),
    )


def _label(at: Node) -> str | None:
    """Return an id or a version, which the format has as a text or an integer."""
    return str(at.integer()) if isinstance(at.value, int) else at.text()


def _condition(about: Node, sample: Node) -> dict[str, Any]:
    limits = {ours: about.get("config", theirs).scaled(power) for theirs, (ours, power) in _LIMITS.items()}
    model = sample.get("output", "model").text()
    return known({"model": plain(model or None), "limits": known(limits) or None})


def _start(sample: Node) -> int | None:
    """Return when the sample began: its own word, or the time of its `sample_init` event."""
    said = sample.get("started_at").time_ns()
    if said is not None or sample.get("events").value is None:
        return said
    for event in sample.get("events").items():
        if event.get("event").value == "sample_init":
            return event.get("timestamp").time_ns()
    return None


def _claim(sample: Node) -> bool | None:
    """Return what the scores say when they agree, null when they say nothing or not the same."""
    if sample.get("scores").value is None:
        return None
    says = set()
    for scorer in sample.get("scores").object():
        value = sample.get("scores", scorer, "value")
        if isinstance(value.value, str):
            says.add(_CLAIMS.get(value.value))
        elif isinstance(value.value, bool):
            says.add(value.value)
        elif isinstance(value.value, dict | list) or value.value is None:
            says.add(None)
        else:
            number = value.number()
            says.add(bool(number) if number in (0, 1) else None)
    return says.pop() if len(says) == 1 else None


def _metrics(sample: Node) -> dict[str, int | None]:
    metrics = {
        "total_ns": sample.get("total_time").scaled(9),
        "working_ns": sample.get("working_time").scaled(9),
    }
    usage = sample.get("model_usage")
    for kind in ("input", "output", "total"):
        counts: list[int | None] = []
        if usage.value is not None:
            counts = [usage.get(model, f"{kind}_tokens").integer() for model in usage.object()]
        known_counts = [c for c in counts if c is not None]
        whole = counts and len(known_counts) == len(counts)
        metrics[f"{kind}_tokens_count"] = sum(known_counts) if whole else None
    return metrics


def _unpack(file: ForeignFile) -> tuple[Node, Iterator[Node]]:
    try:
        packed = zipfile.ZipFile(io.BytesIO(file.data))
        members = packed.infolist()
    except (zipfile.BadZipFile, ValueError, NotImplementedError, OverflowError) as e:
        raise file.fail("", f"no whole .eval file ({e}): get it again") from None
    by_name = {m.filename: m for m in members}
    if len(by_name) != len(members):
        raise file.fail("", "two parts of one name in it: get it again")
    if len(members) > 3 * MAX_TRIALS:
        raise file.fail("", f"{len(members)} parts: too many")
    if sum(m.file_size for m in members) > MAX_UNPACKED_BYTES:
        raise file.fail("", f"unpacks to more than {MAX_UNPACKED_BYTES >> 20} MiB: too much")
    if "header.json" not in by_name:
        raise file.fail("", "no header.json in it: the run was not finished, or it is no .eval file")
    root = _part(file, packed, by_name["header.json"])
    _check(root)
    names = sorted(n for n in by_name if re.fullmatch(r"samples/[^/]+\.json", n))
    return root, (_part(file, packed, by_name[n]) for n in names)


def _part(file: ForeignFile, packed: zipfile.ZipFile, member: zipfile.ZipInfo) -> Node:
    if member.file_size > MAX_DOCUMENT_BYTES:
        raise file.fail(member.filename, f"{member.file_size} bytes: at most {MAX_DOCUMENT_BYTES} are read")
    try:
        with packed.open(member) as stream:
            data = stream.read(MAX_DOCUMENT_BYTES + 1)
    except (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, NotImplementedError, ValueError) as e:
        raise file.fail(member.filename, f"cannot be unpacked ({e}): get the file again") from None
    return file.decode(data, member.filename)

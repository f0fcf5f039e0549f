"""pytest-benchmark JSON: one process ran every benchmark, its rounds are iterations and no trials.

So each benchmark is one trial with statistics as metrics, and all of a file share a process.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from typing import Any

from ledger.events import canonical_sha256
from ledger.importers.shared import (
    SCENARIO_VERSION,
    Draft,
    ForeignFile,
    Imported,
    Node,
    agree,
    derived_trial,
    known,
    name,
    not_ours,
    plain,
    text_sha256,
    unique,
)

#: Times of one iteration, in picoseconds: a nanosecond is too coarse for what this tool measures.
_TIMES = ("min", "max", "mean", "median", "stddev", "q1", "q3")

#: Facts of machine_info that identify the environment; the host's name is there as a digest only.
_FACTS = (
    "machine",
    "processor",
    "system",
    "release",
    "python_implementation",
    "python_implementation_version",
    "python_version",
    "python_compiler",
)
_CPU_FACTS = (
    "arch",
    "brand_raw",
    "vendor_id_raw",
    "hz_advertised_friendly",
    "count",
    "family",
    "model",
    "stepping",
)


def looks_like(document: object) -> bool:
    """Say whether a document is a pytest-benchmark file."""
    return isinstance(document, dict) and {"benchmarks", "machine_info", "datetime"} <= document.keys()


def read(file: ForeignFile, subject: str | None) -> Imported:
    """Turn a file into drafts of an environment, a subject identity and trials."""
    root = file.document()
    if not looks_like(root.value):
        raise not_ours(root, "pytest-benchmark", "a file with benchmarks, machine_info and datetime")
    commit = root.get("commit_info")
    project = commit.get("project").text()
    if subject is not None and project is not None:
        raise file.fail("", "it names its project: leave --subject out")
    measured = name(project or subject or f"pytest-benchmark/unnamed/{file.short}")
    identity = known({"version": plain(commit.get("id").text()), "dirty": commit.get("dirty").boolean()})
    environment = _environment(root.get("machine_info"))
    drafts = [Draft("machine_info", environment)] if environment else []
    if identity:
        drafts.append(Draft("commit_info", {"kind": "subject_identified/1", "subject": measured, **identity}))
    trial = {
        "subject": measured,
        "condition": {"environment_id": environment["environment_id"]} if environment else {},
        "subject_version": identity.get("version"),
        "subject_dirty": identity.get("dirty"),
        "process_key": f"pytest-benchmark/{file.sha256}",
    }
    drafts += unique(_trials(file, root, trial), file)
    notes = ["one process ran all of it: its rounds are iterations, and no start times are in the file"]
    if project is None and subject is None:
        notes.append(f"the file does not name the project: subject {measured}, or give --subject NAME")
    if identity.get("dirty"):
        notes.append("the source had uncommitted changes")
    # The tool writes UTC; versions before 5 leave the zone out.
    written = root.get("datetime").time_ns(zone_of_naive=datetime.UTC)
    return Imported(written, drafts, notes)


def _trials(file: ForeignFile, root: Node, common: dict[str, Any]) -> Iterator[Draft]:
    for benchmark in root.get("benchmarks").items():
        fullname = benchmark.get("fullname").needed_text()
        yield Draft(
            benchmark.place,
            known(
                {
                    "kind": "trial_recorded/1",
                    "lane": "core",
                    "scenario": name(f"pytest-benchmark/{fullname}"),
                    "scenario_version": SCENARIO_VERSION,
                    "trial": derived_trial("pytest-benchmark", file, fullname),
                    "status": "completed",
                    "row_sha256": benchmark.row_sha256(),
                    "metrics": _metrics(benchmark.get("stats")),
                    **common,
                }
            ),
        )


def _metrics(stats: Node) -> dict[str, int | None]:
    stats.object()
    ordered = [t for key in ("min", "median", "max") if (t := stats.get(key).number()) is not None]
    if ordered != sorted(ordered):
        raise stats.fail("min, median and max are not in this order: it contradicts itself")
    if stats.get("data").value is not None:
        agree(stats.get("rounds"), len(list(stats.get("data").items())), "rounds in data")
    times = {f"{key}_ps": stats.get(key).scaled(12) for key in _TIMES}
    counts = {f"{key}_count": stats.get(key).integer() for key in ("rounds", "iterations")}
    return {**times, **counts}


def _environment(machine: Node) -> dict[str, Any] | None:
    facts = {key: plain(machine.get(key).text()) for key in _FACTS}
    facts["node_sha256"] = text_sha256(machine.get("node").text())
    if machine.get("cpu").value is not None:
        for key in _CPU_FACTS:
            at = machine.get("cpu", key)
            facts[f"cpu_{key}"] = str(at.integer()) if isinstance(at.value, int) else plain(at.text())
    told = known(facts)
    if not told:
        return None
    return {"kind": "environment_observed/1", "environment_id": canonical_sha256(told), "facts": told}

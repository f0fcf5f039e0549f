"""vcbench (version-control-bench) `results.json`: one row a run, without identity, start or order.

The provenance of a batch is that of its arm which is not the baseline: the generator of these files takes it
from that arm's runs. Facts about the format: docs/import.md.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from ledger.importers.shared import (
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

#: Versions of the format that this module knows.
_SCHEMAS = (1,)


def looks_like(document: object) -> bool:
    """Say whether a document is a vcbench result file."""
    return isinstance(document, dict) and {"rows", "meta", "source_snapshots"} <= document.keys()


def read(file: ForeignFile, subject: str | None) -> Imported:
    """Turn a `results.json` into drafts of trials and subject identities."""
    root = file.document()
    if not looks_like(root.value):
        raise not_ours(root, "vcbench", "a results.json with rows, meta and source_snapshots")
    if root.get("schema_version").integer() not in _SCHEMAS:
        raise root.get("schema_version").fail("not a version that this importer knows (1): update oakledger")
    _check_counts(root)
    subjects = _provenance(root)
    agents = {a.get("id").needed_text(): a for a in root.get("meta", "agents").items()}
    drafts = [
        Draft(place, {"kind": "subject_identified/1", "subject": name(arm), **facts})
        for arm, (place, facts) in subjects.items()
    ]
    drafts += unique(_trials(file, root, agents, subjects), file)
    notes = [
        "no trial identity, start time or order in the file: trial names are derived, starts are unknown"
    ]
    for agent in sorted({r.get("agent").needed_text() for r in root.get("rows").items()}):
        if agent not in agents or agents[agent].get("observed_model").text() is None:
            notes.append(f"the model of agent {plain(agent)} is unknown")
    return Imported(root.get("generated_at").time_ns(), drafts, notes)


def _trials(
    file: ForeignFile, root: Node, agents: dict[str, Node], subjects: dict[str, tuple[str, dict[str, Any]]]
) -> Iterator[Draft]:
    for row in root.get("rows").items():
        scenario, agent, arm = (row.get(k).needed_text() for k in ("scenario", "agent", "arm"))
        repetition = row.get("rep").integer()
        if repetition is None or repetition < 1:
            raise row.get("rep").fail("no number from 1: it identifies the run")
        failure = row.get("failure").text()
        identity = subjects[arm][1] if arm in subjects else {}
        facts = agents.get(agent, Node(file, None, f"meta.agents of {agent}"))
        condition = {
            "agent": plain(agent),
            "agent_version": plain(facts.get("agent_cli_version").text()),
            "model": plain(facts.get("observed_model").text()),
        }
        yield Draft(
            row.place,
            known(
                {
                    "kind": "trial_recorded/1",
                    "lane": "agent",
                    "scenario": name(f"vcbench/{scenario}"),
                    "scenario_version": SCENARIO_VERSION,
                    "subject": name(arm),
                    "trial": derived_trial("vcbench", file, scenario, agent, arm, str(repetition)),
                    "condition": known(condition),
                    "status": "timeout" if failure == "AGENT_TIMEOUT" else "completed",
                    "status_code": None if failure is None else code(failure),
                    "repetition": repetition - 1,
                    "subject_binary_sha256": identity.get("binary_sha256"),
                    "subject_version": identity.get("version"),
                    "claimed_success": row.get("passed").boolean(),
                    "row_sha256": row.row_sha256(),
                    "metrics": {
                        "wall_ns": row.get("wall_ms").scaled(6),
                        "task_vc_count": row.get("task_vc").integer(),
                        "cold_bytes": row.get("cold_bytes").integer(),
                        "warm_bytes": row.get("warm_bytes").integer(),
                    },
                }
            ),
        )


def _provenance(root: Node) -> dict[str, tuple[str, dict[str, Any]]]:
    """Return, for each arm whose binary the file speaks of, the place and the facts."""
    baseline = {
        a.get("id").needed_text() for a in root.get("meta", "arms").items() if a.get("is_baseline").boolean()
    }
    found: dict[str, tuple[str, dict[str, Any]]] = {}
    for snapshot in root.get("source_snapshots").items():
        arms = [text for a in snapshot.get("arms").items() if (text := a.needed_text()) not in baseline]
        if len(arms) != 1:
            continue  # nothing says whose binary it is
        facts = snapshot.get("provenance")
        head = facts.get("gitbutler_head").text()
        version = facts.get("jj_version").text() or (f"gitbutler_head {head}" if head else None)
        identity = known({"binary_sha256": facts.get("binary_hash").text(), "version": plain(version)})
        if identity:
            if found.get(arms[0], (None, identity))[1] != identity:
                raise snapshot.fail(
                    "another binary for an arm than the snapshot before: import one batch a file"
                )
            found[arms[0]] = (snapshot.place, identity)
    return found


def _check_counts(root: Node) -> None:
    rows = list(root.get("rows").items())
    passed = [r for r in rows if r.get("passed").boolean()]
    agree(root.get("meta", "total_runs"), len(rows), "rows")
    agree(root.get("meta", "total_passed"), len(passed), "passed rows")
    by_arm = Counter(r.get("arm").needed_text() for r in rows)
    for snapshot in root.get("source_snapshots").items():
        runs = sum(by_arm[a.needed_text()] for a in snapshot.get("arms").items())
        agree(snapshot.get("runs"), runs, "rows of its arms")
    cells = Counter(_cell(r) for r in rows)
    passes = Counter(_cell(r) for r in passed)
    if root.get("cells_by_scenario").value is not None:
        for cell in root.get("cells_by_scenario").items():
            if cell.get("agent").text() != "both":
                agree(cell.get("n"), cells[_cell(cell)], "rows of this cell")
                agree(cell.get("pass"), passes[_cell(cell)], "passed rows of this cell")


def _cell(row: Node) -> tuple[str, ...]:
    return tuple(row.get(k).needed_text() for k in ("scenario", "agent", "arm"))

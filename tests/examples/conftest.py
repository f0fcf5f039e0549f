"""A small real campaign for the examples: two subjects, what went well, what did not, and what is missing."""

from __future__ import annotations

import pytest

from ledger.cli.context import Context
from ledger.store import open_ledger

T = 1_760_000_000_000_000_000
OUTCOMES = {0: "pass", 1: "fail", 2: "unmeasured", 3: None}


def _events():
    condition = {"track": "core-equivalent", "transport": "none"}
    scenario = {"scenario": "undo", "scenario_version": 1, "oracle_version": 1, "fixture_version": 1}
    yield {
        "kind": "campaign_declared/1",
        "campaign": "small",
        "preregistered": True,
        "plan": {
            "lane": "workflow",
            "subjects": [{"subject": "git"}, {"subject": "oak"}],
            "scenarios": [scenario],
            "conditions": [condition],
            "trials_per_cell": 5,
        },
    }
    # The last of the five planned trials never happens.
    for n in range(8):
        subject, repetition = ("git", "oak")[n % 2], n // 2
        status = "harness_failure" if OUTCOMES[repetition] is None else "completed"
        trial = {"campaign": "small", "trial": f"small/{n}", "subject": subject}
        yield {
            "kind": "trial_recorded/1",
            **trial,
            "lane": "workflow",
            "scenario": "undo",
            "scenario_version": 1,
            "condition": condition,
            "status": status,
            "repetition": repetition,
            "reached_head": status == "completed" or None,
            "started_at_ns": T + n * 1_000_000_000,
            "ended_at_ns": T + n * 1_000_000_000 + 500_000_000,
            "metrics": {"wall_ns": 500_000_000 if subject == "git" else None},
        }
        if OUTCOMES[repetition]:
            yield {
                "kind": "reader_invoked/1",
                **trial,
                "vcs": "git",
                "reader": "git_object_reader",
                "reader_version": "1",
                "code_sha256": "a" * 64,
                "backend": "pure",
                "outcome": "unmeasured" if repetition == 2 else "ok",
                "exit_status": 77 if repetition == 2 else 0,
                "reason": "deadline" if repetition == 2 else None,
                "relation": "independent",
                "bounds": {"deep": False},
                "scope_count": 1,
                "scope_sha256": "b" * 64,
            }
            verdict = {
                "kind": "oracle_judged/1",
                **trial,
                **scenario,
                "contract_sha256": "c" * 64,
                "verdict": OUTCOMES[repetition],
                "reason": None if repetition == 0 else "content_mismatch" if repetition == 1 else "deadline",
                "depth": "committed_payload",
            }
            yield lambda ids, verdict=verdict: {**verdict, "reader_event_id": ids[-1]}
    yield {"kind": "subject_identified/1", "subject": "git", "version": "2.50.0"}


@pytest.fixture(scope="session")
def small_ledger(tmp_path_factory):
    """Path of the ledger with the campaign `small`."""
    path = tmp_path_factory.mktemp("examples") / "small.duckdb"
    Context(ledger_path=str(path)).record(_events())
    with open_ledger(path, read_only=True) as ledger:
        assert ledger.con.execute("SELECT count(*) FROM events").fetchone() == (22,)
    return path

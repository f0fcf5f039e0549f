"""What a gate says about public result files (`../shared/data`), imported as they are.

The conclusions are those that the notes beside the files draw. A plan is declared in a test where a rule can
only speak about planned slots; an import itself declares none.
"""

from __future__ import annotations

import json
import pathlib
from collections import Counter
from collections.abc import Iterator
from typing import Any

import duckdb
import pytest

from ledger import views
from ledger.cli.root import main
from ledger.store import open_ledger
from qualify.decision import Decision, decide

DATA = pathlib.Path(__file__).resolve().parents[3] / "shared" / "data"

pytestmark = [
    pytest.mark.shared_vectors,
    pytest.mark.skipif(not DATA.is_dir(), reason="the public result files are not beside the project"),
]


class Desk:
    """A ledger and the commands on it."""

    def __init__(self, folder: pathlib.Path) -> None:
        self.folder = folder
        self.ledger = str(folder / "oakledger.duckdb")

    def run(self, *arguments: str | pathlib.Path) -> int:
        with pytest.raises(SystemExit) as ended:
            main(["--ledger", self.ledger, *map(str, arguments)])
        return int(ended.value.code or 0)

    def take(self, tool: str, *files: str, campaign: str = "real") -> None:
        assert self.run("import", tool, *(DATA / f for f in files), "--campaign", campaign) == 0

    def declare(self, plan: dict[str, Any], campaign: str = "real") -> None:
        line = {
            "kind": "campaign_declared/1",
            "source": f"plan/{campaign}",
            "ordinal": 0,
            "recorded_at_ns": 1_790_000_000_000_000_000,
            "campaign": campaign,
            "preregistered": False,
            "plan": plan,
        }
        path = self.folder / "plan.ndjson"
        path.write_text(json.dumps(line) + "\n")
        assert self.run("ingest", path) == 0

    def decide(self, campaign: str = "real") -> Decision:
        with open_ledger(self.ledger, read_only=True) as ledger:
            decision = decide(ledger, campaign)
        assert not decision.qualified
        return decision

    def query(self, sql: str, campaign: str = "real") -> list[Any]:
        with (
            open_ledger(self.ledger, read_only=True) as ledger,
            views.workspace(ledger.con, campaign) as con,
        ):
            return con.execute(sql).fetchall()


@pytest.fixture(scope="module")
def leaderboard(tmp_path_factory: pytest.TempPathFactory) -> Iterator[duckdb.DuckDBPyConnection]:
    """The 5,200 trials of the Terminal-Bench leaderboard, imported once, as a workspace."""
    desk = Desk(tmp_path_factory.mktemp("leaderboard"))
    desk.take("terminal-bench", "terminal-bench/leaderboard-trials.jsonl")
    with open_ledger(desk.ledger, read_only=True) as ledger, views.workspace(ledger.con, "real") as con:
        yield con


@pytest.fixture
def desk(tmp_path: pathlib.Path) -> Desk:
    return Desk(tmp_path)


def whats(decision: Decision) -> Counter[tuple[int, str]]:
    return Counter((s.rule.number, v.what) for s in decision.rules for v in s.violations)


VCBENCH = {
    "results-2026-06-29-k5.json": (5, 150, 142, True),
    "results-2026-07-01-k5.json": (5, 150, 137, True),
    "results-2026-07-04-k7.json": (7, 210, 193, True),
    "results-2026-07-05-k8.json": (8, 240, 239, False),
    "results-2026-07-06-k10.json": (10, 300, 299, False),
    "results-2026-07-20-k10-six-scenarios.json": (10, 360, 359, False),
}


def plan_of(file: str, k: int) -> dict[str, Any]:
    """The plan that the authors of a vcbench file would declare: what the file says was run."""
    meta = json.loads((DATA / "vcbench" / file).read_bytes())["meta"]
    conditions = [
        {"agent": a["id"]}
        | {
            ours: a[theirs]
            for ours, theirs in (("agent_version", "agent_cli_version"), ("model", "observed_model"))
            if a.get(theirs)
        }
        for a in meta["agents"]
        if a["id"] != "both"
    ]
    scenario = {"scenario_version": 1, "oracle_version": 1, "fixture_version": 1}
    return {
        "lane": "agent",
        "subjects": [{"subject": a["id"]} for a in meta["arms"]],
        "scenarios": [{"scenario": f"vcbench/{s['id']}", **scenario} for s in meta["scenarios"]],
        "conditions": conditions,
        "trials_per_cell": k,
    }


@pytest.mark.parametrize("file", VCBENCH)
def test_vcbench_is_too_small_and_its_order_cannot_be_shown(desk: Desk, file: str) -> None:
    k, runs, passed, model_unknown = VCBENCH[file]
    desk.take("vcbench", f"vcbench/{file}")
    assert desk.query("SELECT count(*), count(*) FILTER (claimed_success) FROM trials") == [(runs, passed)]
    plan = plan_of(file, k)
    desk.declare(plan)
    decision = desk.decide()
    found = whats(decision)
    cells = 2 * 3 * len(plan["scenarios"])
    assert {c["recorded"] for c in decision.tables["cells"]} == {k}
    assert {c["measured"] for c in decision.tables["cells"]} == {0}  # a claim measures nothing
    assert found[2, "too_few_recorded"] == cells
    assert found[5, "start_missing"] == cells
    assert found[5, "order_not_shown"] == 1
    assert not found[1, "slots_missing"]
    assert not [w for w in found if w[1].startswith("off_plan")]  # the plan is that of the file
    unknown = [v.detail for s in decision.rules for v in s.found if v.what == "condition_unknown"]
    assert len(unknown) == 2
    assert any(" model," in detail for detail in unknown) == model_unknown
    assert found[6, "binary_unknown"] == 2  # git, for both agents


def test_vcbench_without_a_plan_is_refused_for_that(desk: Desk) -> None:
    desk.take("vcbench", "vcbench/results-2026-07-20-k10-six-scenarios.json")
    found = whats(desk.decide())
    assert found[1, "not_declared"] == 1
    assert found[5, "start_missing"] == 36
    assert found[3, "condition_unknown"] == 2
    assert found[4, "environment_unknown"] == 2


def test_vcbench_files_pooled_to_reach_thirty_mix_binaries(desk: Desk) -> None:
    desk.take("vcbench", *(f"vcbench/{file}" for file in VCBENCH))
    found = whats(desk.decide())
    assert found[6, "binary_changes"] > 0
    models = desk.query(
        "SELECT count(DISTINCT model), count(*) FILTER (model IS NULL) FROM conditions WHERE agent = 'claude'"
    )
    assert models == [(1, 1)]  # one that is known, and runs of which it is not
    binaries = desk.query(
        "SELECT count(DISTINCT subject_binary_sha256) FROM trials WHERE subject = 'but+skill'"
    )
    assert binaries == [(6,)]


def test_vcbench_a_pass_that_timed_out_is_in_the_file_of_july_4(desk: Desk) -> None:
    desk.take("vcbench", "vcbench/results-2026-07-04-k7.json")
    rows = desk.query("SELECT subject, repetition FROM trials WHERE claimed_success AND status = 'timeout'")
    assert rows == [("git", 6)]


def test_terminal_bench_figures(leaderboard: duckdb.DuckDBPyConnection) -> None:
    (row,) = leaderboard.execute(
        "SELECT count(*), count(DISTINCT trial), count(*) FILTER (trial LIKE '%/derived/%'), "
        "count(*) FILTER (claimed_success IS NULL), "
        "count(*) FILTER (claimed_success AND status = 'timeout'), "
        "count(*) FILTER (NOT claimed_success AND status = 'timeout'), "
        "count(*) FILTER (started_at_ns IS NULL) FROM trials"
    ).fetchall()
    assert row == (5200, 5200, 1200, 418, 378, 1126, 1276)


def test_terminal_bench_has_five_trials_a_cell(leaderboard: duckdb.DuckDBPyConnection) -> None:
    cells = leaderboard.execute("SELECT recorded, measured, count(*) FROM cells GROUP BY ALL").fetchall()
    assert cells == [(5, 0, 13 * 80)]


def test_terminal_bench_nulls_are_not_failures(leaderboard: duckdb.DuckDBPyConnection) -> None:
    outcomes = leaderboard.execute(
        "SELECT t.status_code, o.outcome, count(*) FROM trial_outcomes AS o "
        "JOIN trials AS t USING (campaign, trial) WHERE t.claimed_success IS NULL GROUP BY ALL ORDER BY ALL"
    ).fetchall()
    assert outcomes == [
        ("parse_error", "harness_failure", 182),
        ("test_timeout", "unmeasured", 132),
        ("unknown_agent_error", "unmeasured", 104),
    ]
    failed = leaderboard.execute("SELECT sum(failed_committed + failed_before_head) FROM cells").fetchone()
    assert failed == (0,)


def test_terminal_bench_starts_are_missing(leaderboard: duckdb.DuckDBPyConnection) -> None:
    missing = leaderboard.execute(
        "SELECT sum(len(event_ids)) FROM rule_05_order WHERE what = 'start_missing'"
    ).fetchone()
    assert missing == (1276,)


def test_terminal_bench_claims_beside_timeouts_are_conflicts(leaderboard: duckdb.DuckDBPyConnection) -> None:
    found = leaderboard.execute(
        "SELECT sum(len(event_ids)) FROM rule_10_conflicts WHERE what <> 'not_declared'"
    ).fetchone()
    assert found == (378,)


def test_terminal_bench_a_run_and_the_leaderboard_hold_the_same_trials(desk: Desk) -> None:
    desk.take("terminal-bench", "terminal-bench/leaderboard-trials.jsonl", campaign="board")
    desk.take("terminal-bench", "terminal-bench/chaterm-run1.results.json", campaign="run")
    assert whats(desk.decide("run"))[2, "identity_used_elsewhere"] == 80


def test_harbor_preflight_measures_nothing(desk: Desk) -> None:
    desk.take("harbor", "harbor/trial-1.result.json", "harbor/trial-2.result.json")
    decision = desk.decide()
    (cell,) = decision.tables["cells"]
    assert (cell["recorded"], cell["measured"], cell["failed_committed"]) == (2, 0, 0)
    rows = desk.query(
        "SELECT DISTINCT o.outcome, t.status_code, t.claimed_success FROM trial_outcomes AS o "
        "JOIN trials AS t USING (campaign, trial)"
    )
    assert rows == [("unlaunched", "fake_agent", False)]


@pytest.mark.parametrize("file", ["job-1.result.json", "trial-1.lock.json", "trial-1.verifier-ctrf.json"])
def test_harbor_files_that_hold_no_trial_are_refused(desk: Desk, file: str) -> None:
    assert desk.run("import", "harbor", DATA / "harbor" / file) == 2
    assert not pathlib.Path(desk.ledger).exists()


def test_inspect_a_cancelled_run_is_no_measurement(desk: Desk) -> None:
    desk.take("inspect", "inspect-ai/2025-05-12T20-28-13-04-00_popularity.json")
    rows = desk.query(
        "SELECT o.outcome, t.status_code, count(*) FROM trial_outcomes AS o "
        "JOIN trials AS t USING (campaign, trial) GROUP BY ALL"
    )
    assert rows == [("harness_failure", "cancelled", 3)]


@pytest.mark.parametrize(
    "file",
    [
        "2025-05-12T20-28-13-04-00_no-samples.json",
        "2024-08-29T15-11-18+00-00_popularity_5EAmX6wjMFqea6WY7XHzZp.json",
        "log_tool_call_error.json",
    ],
)
def test_inspect_results_without_their_samples_are_refused(
    desk: Desk, capfd: pytest.CaptureFixture[str], file: str
) -> None:
    assert desk.run("import", "inspect", DATA / "inspect-ai" / file) == 2
    assert "results.completed_samples: says" in capfd.readouterr().err
    assert not pathlib.Path(desk.ledger).exists()


def test_inspect_zip_and_json_agree_on_the_run(desk: Desk) -> None:
    desk.take("inspect", "inspect-ai/log_read_sample.json", campaign="json")
    desk.take("inspect", "inspect-ai/log_read_sample.eval", campaign="zip")
    made = [desk.query("SELECT scenario, subject, status, metrics FROM trials", c) for c in ("json", "zip")]
    assert [len(rows) for rows in made] == [1, 1]
    assert made[0][0][:3] == made[1][0][:3]


def test_hyperfine_and_pytest_benchmark_files(desk: Desk) -> None:
    desk.take("hyperfine", *(f"hyperfine/{p.name}" for p in sorted((DATA / "hyperfine").glob("*.json"))))
    files = sorted((DATA / "pytest-benchmark").glob("*.json"))
    desk.take("pytest-benchmark", *(f"pytest-benchmark/{p.name}" for p in files), campaign="pb")
    assert desk.query("SELECT count(*), count(exit_code) FROM trials") == [(24, 21)]
    found = whats(desk.decide("pb"))
    assert (found[2, "iterations"], found[6, "dirty_source"]) == (3, 3)

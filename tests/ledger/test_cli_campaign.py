"""`oakledger campaign plan` and `declare` as people call them."""

from __future__ import annotations

import json

from click.testing import CliRunner

import ledger
from ledger.cli.root import cli

PLAN = """
campaign = "pair"
preregistered = true
lane = "workflow"
trials_per_cell = 2
order = { seed = "7", extent = "block" }
subjects = [{ subject = "git" }, { subject = "oak" }]
conditions = [{ track = "core-equivalent", environment = { cpu = "x" } }]
criteria = [{ criterion = "power", text = "made" }]
[[scenarios]]
scenario = "undo_bad_commit"
scenario_version = 1
oracle_version = 1
fixture_version = 1
"""


def run(*args):
    return CliRunner().invoke(cli, [str(a) for a in args])


def test_plan_writes_the_slots_in_order_and_records_nothing(tmp_path):
    file = tmp_path / "plan.toml"
    file.write_text(PLAN)
    out = run("--ledger", tmp_path / "l.duckdb", "campaign", "plan", file)
    assert out.exit_code == 0
    rows = [json.loads(line) for line in out.output.splitlines()]
    assert [r["position"] for r in rows] == [0, 1, 2, 3]
    assert {(r["repetition"], r["subject"]) for r in rows} == {(0, "git"), (0, "oak"), (1, "git"), (1, "oak")}
    assert {r["condition"] for r in rows} == {0}
    assert not (tmp_path / "l.duckdb").exists()
    target = tmp_path / "slots.ndjson"
    assert run("campaign", "plan", file, "-o", target).exit_code == 0
    assert target.read_text() == out.output


def test_declare_records_once_and_refuses_a_changed_plan(tmp_path):
    file, book = tmp_path / "plan.toml", tmp_path / "l.duckdb"
    file.write_text(PLAN)
    first = json.loads(run("--ledger", book, "campaign", "declare", file, "--json").output)
    assert first["new"] and first["slots"] == 4
    again = run("--ledger", book, "campaign", "declare", file)
    assert again.exit_code == 0 and "unchanged" in again.output
    file.write_text(PLAN.replace('seed = "7"', 'seed = "8"'))
    other = run("--ledger", book, "campaign", "declare", file)
    assert other.exception.exit_status == 2 and "declared already" in str(other.exception)
    with ledger.open(book, read_only=True) as opened:
        rows = opened.con.execute("SELECT kind, count(*) FROM events GROUP BY kind ORDER BY kind").fetchall()
        slots = opened.con.execute("SELECT position, subject FROM planned_slots ORDER BY 1").fetchall()
        plan = opened.con.execute("SELECT plan_sha256 FROM campaigns").fetchone()
    assert rows == [("campaign_declared", 1), ("environment_observed", 1)]
    assert plan == (first["plan_sha256"],)
    file.write_text(PLAN)
    assert slots == [
        (r["position"], r["subject"])
        for r in map(json.loads, run("campaign", "plan", file).output.splitlines())
    ]


def test_a_declared_campaign_is_known_to_qualify_and_empty(tmp_path):
    file, book = tmp_path / "plan.toml", tmp_path / "l.duckdb"
    file.write_text(PLAN)
    run("--ledger", book, "campaign", "declare", file)
    out = run("--ledger", book, "qualify", "--campaign", "pair", "--json", "--no-record")
    assert out.exit_code == 1
    doc = json.loads(out.output)
    assert [r["id"] for r in doc["rules"] if r["state"] == "violated"].count("planned_slots") == 1


def test_bad_files_end_with_status_two(tmp_path):
    for command in ("plan", "declare"):
        out = run("--ledger", tmp_path / "l.duckdb", "campaign", command, tmp_path / "none.toml")
        assert out.exception.exit_status == 2

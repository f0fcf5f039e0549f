"""`oakledger audit` as a command: output, exit statuses, one-line errors."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest

from ledger import checkpoints as cp
from ledger.audit import audit_ledger


def run(*args, cwd=None):
    code = "from ledger.cli.root import main; main()"
    env = {k: v for k, v in os.environ.items() if k != "OAKLEDGER"}
    env["PYTHONPATH"] = str(Path(__file__).parents[2])
    return subprocess.run(
        [sys.executable, "-c", code, *map(str, args)],
        capture_output=True,
        text=True,
        cwd=cwd,
        env=env,
        check=False,
    )


def test_a_clean_ledger(make_ledger):
    path = make_ledger()
    done = run("--ledger", path, "audit")
    assert done.returncode == 0 and done.stderr == ""
    assert "33 events" in done.stdout and done.stdout.endswith("verifies\n")
    root = audit_ledger(path).heads[0].root.hex()
    assert f"origin/a  size 33  root {root}" in done.stdout
    data = json.loads(run("--ledger", path, "audit", "--json").stdout)
    assert data["verifies"] is True and data["findings"] == [] and data["finding_count"] == 0
    assert data["origins"] == [{"origin": "origin/a", "size": 33, "root": root}]


def test_findings_are_listed_with_their_place_and_status_3(make_ledger):
    path = make_ledger()
    with duckdb.connect(str(path)) as con:
        con.execute("CREATE OR REPLACE TABLE events AS SELECT * FROM events")
        con.execute("UPDATE events SET status = 'timeout' WHERE seq = 3")
        con.execute("UPDATE events SET trial = E'\\x1b[2Jgone' WHERE seq = 4")
    done = run("--ledger", path, "audit")
    assert done.returncode == 3 and "DOES NOT VERIFY" in done.stdout and done.stderr == ""
    assert "columns: origin/a seq 3 event " in done.stdout
    assert "status is 'timeout', the payload says 'completed'" in done.stdout
    assert "\x1b" not in done.stdout
    done = run("--ledger", path, "audit", "--json")
    data = json.loads(done.stdout)
    assert done.returncode == 3 and data["verifies"] is False
    found = {(f["code"], f["origin"], f["seq"]) for f in data["findings"]}
    assert {("columns", "origin/a", 3), ("columns", "origin/a", 4)} <= found
    assert data["finding_count"] == len(data["findings"]) == sum(data["counts"].values())


def test_the_text_is_bounded_and_json_is_complete(make_ledger):
    path = make_ledger(batches=10)
    with duckdb.connect(str(path)) as con:
        con.execute("CREATE OR REPLACE TABLE events AS SELECT * FROM events")
        con.execute("UPDATE events SET event_id = sha256(event_id)")
    done = run("--ledger", path, "audit")
    assert "more: --json lists them" in done.stdout and len(done.stdout.splitlines()) < 60
    data = json.loads(run("--ledger", path, "audit", "--json").stdout)
    assert {f["seq"] for f in data["findings"] if f["code"] == "event_id"} == set(range(110))


def test_checkpoints_and_keys_as_files(make_ledger, tmp_path):
    path = make_ledger()
    key = cp.generate_key("k")
    (tmp_path / "k.pub").write_text(key.public().encode() + "\n")
    good, lost = tmp_path / "good", tmp_path / "lost"
    good.write_bytes(cp.note_bytes(cp.make_note(audit_ledger(path).heads[0], key)))
    lost.write_bytes(cp.note_bytes(cp.make_note(cp.Checkpoint("origin/a", 99, bytes(32)))))
    ledger = ("--ledger", path, "audit")
    assert run(*ledger, "--checkpoint", good, "--public-key", tmp_path / "k.pub").returncode == 0
    done = run(*ledger, "--checkpoint", good, "--checkpoint", lost, "--public-key", tmp_path / "k.pub")
    assert done.returncode == 3
    assert "events were lost" in done.stdout and "no signature of k" in done.stdout
    cp.keep(path, cp.Checkpoint("origin/a", 99, bytes(32)))
    assert run(*ledger).returncode == 3
    assert run(*ledger, "--no-kept").returncode == 0


@pytest.mark.parametrize("what", ["missing", "directory", "text", "checkpoint", "key"])
def test_usage_errors_are_one_line(make_ledger, tmp_path, what):
    path = make_ledger()
    (tmp_path / "text").write_text("no ledger at all")
    args = {
        "missing": ("--ledger", tmp_path / "none", "audit"),
        "directory": ("--ledger", tmp_path, "audit"),
        "text": ("--ledger", tmp_path / "text", "audit"),
        "checkpoint": ("--ledger", path, "audit", "--checkpoint", tmp_path / "text"),
        "key": ("--ledger", path, "audit", "--public-key", tmp_path / "text"),
    }[what]
    done = run(*args)
    assert done.returncode == 2 and done.stdout == ""
    assert done.stderr.startswith("oakledger: ") and done.stderr.count("\n") == 1

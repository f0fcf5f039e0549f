"""`oakledger verify`: exit codes, what it prints, what it records, odd repositories."""

import json
import os
import subprocess
import sys

import pytest

from oracles.scenarios import SCENARIOS
from oracles.scenarios.vcs import Git, find_git


@pytest.fixture
def ledger(tmp_path):
    return str(tmp_path / "l.duckdb")


def oakledger(ledger, *args):
    return subprocess.run(
        [sys.executable, "-m", "ledger.cli", "--ledger", ledger, *args],
        capture_output=True,
        text=True,
        timeout=120,
    )


def trial(tmp_path, scenario, recipe):
    home = tmp_path / "home"
    home.mkdir(exist_ok=True)
    script = SCENARIOS[scenario]
    work = script.prepare(Git(find_git(), str(home)), str(tmp_path))
    (script.right.get(recipe) or script.wrong[recipe].recipe)(work)
    return work.repo


def verify(ledger, scenario, repo, *args):
    return oakledger(ledger, "verify", "--scenario", scenario, "--vcs", "git", "--repo", repo, *args)


@pytest.mark.parametrize(
    ("recipe", "status", "word"), [("revert", 0, "pass"), ("half", 1, "fail (marker_missing)")]
)
def test_verdict_and_exit_status(tmp_path, ledger, recipe, status, word):
    done = verify(ledger, "undo_bad_commit", trial(tmp_path, "undo_bad_commit", recipe))
    assert done.returncode == status, done
    assert done.stdout.startswith(f"{word}: undo_bad_commit version 1\n")
    assert "no proof of behaviour" in done.stdout
    assert not os.path.exists(ledger)


def test_json(tmp_path, ledger):
    done = verify(ledger, "undo_bad_commit", trial(tmp_path, "undo_bad_commit", "half"), "--json")
    found = json.loads(done.stdout)
    assert (found["verdict"], found["reason"], found["depth"]) == (
        "fail",
        "marker_missing",
        "committed_payload",
    )
    assert found["evidence_class"] is None and found["recorded"] == []
    bad = [c for c in found["checks"] if c["result"] == "fail"]
    assert bad[0]["path"] == "tools/import.sh" and bad[0]["excerpt"].startswith("#!/bin/sh")


def test_unmeasured_by_contract(tmp_path, ledger):
    repo = trial(tmp_path, "history_archaeology", "nothing")
    done = verify(ledger, "history_archaeology", repo, "--scenario-version", "1")
    assert done.returncode == 77 and done.stdout.startswith("unmeasured (unmeasured_by_contract)")


def test_it_records_the_chain_of_evidence(tmp_path, ledger):
    repo = trial(tmp_path, "history_archaeology", "answer")
    done = verify(
        ledger, "history_archaeology", repo, "--campaign", "c", "--trial", "t1", "--subject", "git", "--json"
    )
    assert done.returncode == 0, done
    ids = json.loads(done.stdout)["recorded"]
    rows = json.loads(
        oakledger(
            ledger, "sql", "--json",
            "SELECT event_id, kind, trial, verdict, reader_event_id, payload ->> '$.control' AS control "
            "FROM events ORDER BY seq",
        ).stdout
    )  # fmt: skip
    assert [r["event_id"] for r in rows] == ids
    assert [(r["kind"], r["control"], r["verdict"]) for r in rows] == [
        ("oracle_judged", "absent", "fail"),
        ("oracle_judged", "wrong", "fail"),
        ("oracle_judged", "wrong", "fail"),
        ("reader_invoked", None, None),
        ("oracle_judged", None, "pass"),
    ]
    assert rows[-1]["reader_event_id"] == rows[-2]["event_id"] and rows[-1]["trial"] == "t1"


def test_identical_bytes_are_said(tmp_path, ledger):
    repo = trial(tmp_path, "undo_bad_commit", "revert")
    done = verify(ledger, "undo_bad_commit", repo, "--backend", "git", "--subject-binary", find_git())
    assert done.returncode == 0
    assert "subject_binary_committed_payload" in done.stdout
    done = verify(ledger, "undo_bad_commit", repo, "--backend", "git", "--json")
    assert json.loads(done.stdout)["evidence_class"] is None


def test_odd_repositories(tmp_path, ledger):
    empty = tmp_path / "empty"
    empty.mkdir()
    done = verify(ledger, "undo_bad_commit", str(empty))
    assert (done.returncode, done.stdout.splitlines()[0]) == (
        1,
        "fail (store_missing): undo_bad_commit version 1",
    )
    done = verify(ledger, "undo_bad_commit", str(tmp_path / "nowhere"))
    assert done.returncode == 2 and done.stderr.count("\n") == 1 and "is no directory" in done.stderr
    unborn = tmp_path / "unborn"
    unborn.mkdir()
    subprocess.run(["git", "init", "-q", str(unborn)], check=True)
    assert verify(ledger, "undo_bad_commit", str(unborn)).stdout.startswith("fail (no_committed_head)")


def test_a_lock_or_an_unfinished_merge_changes_nothing(tmp_path, ledger):
    repo = trial(tmp_path, "merge_conflict_resolution", "never_concluded")
    with open(os.path.join(repo, ".git", "index.lock"), "w"):
        pass
    done = verify(ledger, "merge_conflict_resolution", repo)
    assert done.stdout.startswith("fail (marker_missing)")
    assert os.path.exists(os.path.join(repo, ".git", "MERGE_HEAD"))


@pytest.mark.parametrize(
    ("args", "part"),
    [
        (["--scenario", "nothing", "--vcs", "git", "--repo", "."], "no contract for nothing"),
        (["--scenario", "undo_bad_commit", "--vcs", "svn", "--repo", "."], "svn"),
        (["--scenario", "undo_bad_commit", "--vcs", "git", "--repo", ".", "--trial", "t"], "go together"),
        (["--scenario", "undo_bad_commit", "--vcs", "git", "--repo", ".", "--because", "x"], "go together"),
        (["--scenario", "undo_bad_commit", "--vcs", "oak", "--repo", ".", "--backend", "git"], "no reader"),
        (
            ["--scenario", "undo_bad_commit", "--vcs", "git", "--repo", ".", "--contracts", "/nowhere"],
            "/nowhere",
        ),
    ],
)
def test_usage(ledger, args, part):
    done = oakledger(ledger, "verify", *args)
    assert done.returncode == 2, done
    assert part in done.stderr and done.stderr.count("\n") == 1 and "Traceback" not in done.stderr

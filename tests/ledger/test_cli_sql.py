"""`oakledger sql`: every known way to reach beyond a snapshot, and the four output forms."""

import csv
import hashlib
import io
import json
import os
import signal
import subprocess
import sys
import time

import pytest

from ledger.events import TrialInvalidated
from ledger.store import open_ledger

NOW = 1_750_000_000_000_000_000


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "l.duckdb"
    with open_ledger(path) as ledger:
        ledger.append(
            TrialInvalidated(
                source="s",
                ordinal=i,
                recorded_at_ns=NOW,
                campaign="c",
                trial=f"t{i}",
                who="me",
                why="a\x1b[31mb\nc",
            )
            for i in range(3)
        )
    return str(path)


def oakledger(path, *args, **kwargs):
    return subprocess.run(
        [sys.executable, "-m", "ledger.cli", "--ledger", path, "sql", *args],
        capture_output=True,
        text=True,
        timeout=60,
        **kwargs,
    )


def digest(path):
    with open(path, "rb") as f:
        return hashlib.sha256(f.read()).hexdigest()


ATTACKS = [
    "UPDATE events SET campaign = 'x'",
    "DELETE FROM events",
    "DROP TABLE events",
    "INSERT INTO ledger_meta VALUES ('a', 'b')",
    "ATTACH '{path}' AS w (READ_WRITE); UPDATE w.ledger_meta SET value = 'x'",
    "ATTACH ':memory:' AS m; USE m; DETACH ledger; ATTACH '{path}' AS w; "
    "UPDATE w.ledger_meta SET value = 'x'",
    "COPY (SELECT 1) TO '{path}'",
    "COPY (SELECT 1) TO '{folder}/planted.csv'",
    "COPY (SELECT 1) TO '{path}.wal' (FORMAT csv)",
    "SELECT * FROM read_text('{secret}')",
    "SELECT * FROM read_csv('{secret}')",
    "SELECT * FROM '{secret}'",
    "SET enable_external_access = true; SELECT * FROM read_text('{secret}')",
    "RESET enable_external_access; SELECT * FROM read_text('{secret}')",
    "SET lock_configuration = false; SELECT * FROM read_text('{secret}')",
    "INSTALL httpfs; LOAD httpfs",
    "LOAD '{folder}/x.duckdb_extension'",
    "EXPORT DATABASE '{folder}/planted'",
    "WITH x AS (SELECT * FROM read_blob('{secret}')) SELECT * FROM x",
]


@pytest.mark.parametrize("attack", ATTACKS)
def test_no_way_out(path, tmp_path, attack):
    secret = tmp_path / "secret.txt"
    secret.write_text("credential")
    before = digest(path), sorted(os.listdir(tmp_path))
    done = oakledger(path, attack.format(path=path, folder=tmp_path, secret=secret))
    assert done.returncode == 2, done
    assert done.stderr.count("\n") == 1 and done.stderr.startswith("oakledger: ")
    assert "Traceback" not in done.stderr and "credential" not in done.stdout + done.stderr
    assert (digest(path), sorted(os.listdir(tmp_path))) == before


def test_formats_agree(path):
    query = "SELECT ordinal, trial, payload ->> '$.why' AS why, NULL AS nothing FROM events ORDER BY ordinal"
    rows = json.loads(oakledger(path, query, "--json").stdout)
    assert rows[1] == {"ordinal": 1, "trial": "t1", "why": "a\x1b[31mb\nc", "nothing": None}
    lines = oakledger(path, query, "--format", "ndjson").stdout.splitlines()
    assert [json.loads(line) for line in lines] == rows
    table = list(csv.DictReader(io.StringIO(oakledger(path, query, "--format", "csv").stdout)))
    assert [r["why"] for r in table] == [r["why"] for r in rows]
    text = oakledger(path, query).stdout
    assert "t2" in text and "\x1b" not in text


def test_statements_from_a_pipe(path):
    assert json.loads(oakledger(path, "--json", input="SELECT count(*) AS n FROM events;").stdout) == [
        {"n": 3}
    ]


def test_time_limit(path):
    done = oakledger(
        path, "SELECT count(*) FROM range(100000000000) t(i) WHERE i % 7 = 3", "--timeout", "0.5"
    )
    assert done.returncode == 2
    assert done.stderr == "oakledger: the query ran longer than 0.5 s: narrow it, or raise --timeout\n"


def test_ctrl_c_interrupts_the_query(path):
    child = subprocess.Popen(
        [sys.executable, "-m", "ledger.cli", "--ledger", path, "sql"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    child.stdin.write("SELECT count(*) FROM range(100000000000) t(i) WHERE i % 7 = 3")
    child.stdin.close()
    child.stdin = None
    time.sleep(3)
    assert child.poll() is None
    child.send_signal(signal.SIGINT)
    _, err = child.communicate(timeout=30)
    assert child.returncode in (2, 130)
    assert "interrupted" in err and "Traceback" not in err and err.count("\n") == 1


@pytest.mark.parametrize(
    ("query", "part"),
    [("SELEC 1", "syntax"), ("", "no SQL given"), ("SELECT * FROM nowhere", "nowhere")],
)
def test_wrong_sql_is_one_line(path, query, part):
    done = oakledger(path, query)
    assert done.returncode == 2
    assert part in done.stderr and done.stderr.count("\n") == 1


def test_a_missing_ledger_is_not_made(tmp_path):
    done = oakledger(str(tmp_path / "none.duckdb"), "SELECT 1")
    assert done.returncode == 2 and "no ledger at" in done.stderr
    assert os.listdir(tmp_path) == []

"""`oakledger status`, and the completion of shells."""

import json
import os
import pty
import re
import subprocess
import sys

import duckdb
import pytest

from ledger.cli.root import COMMANDS
from ledger.decode import decode
from ledger.events import QualificationDecided, RuleResult, TrialRecorded, event_id
from ledger.store import open_ledger

ROOT = [sys.executable, "-m", "ledger.cli"]


def oakledger(path, *args, **extra):
    env = {**os.environ, **extra}
    return subprocess.run(
        [*ROOT, "--ledger", str(path), *args], capture_output=True, text=True, check=False, env=env
    )


def decided(campaign, size, origin, at, word="diagnostic"):
    return QualificationDecided(
        source=f"decider/{campaign}",
        ordinal=size,
        recorded_at_ns=at,
        campaign=campaign,
        decision=word,
        exit_status=1,
        plan_sha256=None,
        checkpoint_origin=origin,
        checkpoint_size=size,
        checkpoint_root="0" * 64,
        views_sha256="1" * 64,
        package_version="0.1.0",
        rules=(RuleResult("order", "violated", 2), RuleResult("failures", "holds", 0)),
    )


@pytest.fixture
def path(tmp_path, one_of_each):
    """Two campaigns; the first is decided on, and one of its trials comes after that."""
    path = tmp_path / "l.duckdb"
    events = [e for e in one_of_each("a", 0, "first") if not isinstance(e, QualificationDecided)]
    late = next(e for e in events if isinstance(e, TrialRecorded))
    with open_ledger(path) as ledger:
        ledger.append(e for e in events if e is not late)
        others = one_of_each("b", 0, "second")
        ledger.append(e for e in others if not isinstance(e, QualificationDecided))
        size = ledger.checkpoint().size
        last = max(e.recorded_at_ns for e in events)
        ledger.append([decided("first", size, ledger.origin, last + 10**9)])
        ledger.append([late])
    return path


def test_counts_are_those_of_the_events(path):
    run = oakledger(path, "status", "--json")
    assert (run.returncode, run.stderr) == (0, "")
    found = json.loads(run.stdout)
    with open_ledger(path, read_only=True) as ledger:
        rows = ledger.con.execute(
            "SELECT campaign, kind, count(*) FROM ledger_events GROUP BY ALL"
        ).fetchall()
        head = ledger.checkpoint()
    assert found["events"] == sum(n for *_, n in rows) == head.size
    assert {c["campaign"] for c in found["campaigns"]} == {"first", "second"}
    for c in found["campaigns"]:
        mine = {kind: n for campaign, kind, n in rows if campaign == c["campaign"]}
        assert c["events"] == sum(mine.values())
        assert (c["trials"], c["readings"], c["verdicts"]) == (
            mine["trial_recorded"],
            mine["reader_invoked"],
            mine["oracle_judged"],
        )
        assert c["planned"] == 60 and c["lane"] == "workflow"
    own = next(h for h in found["checkpoints"] if h["own"])
    assert (own["size"], own["root"], own["kept"]) == (head.size, head.root.hex(), False)
    first = next(c for c in found["campaigns"] if c["campaign"] == "first")["decision"]
    assert first["decision"] == "diagnostic" and first["violated"] == ["order"] and first["events_since"] == 1


def test_a_copy_counts_once(path, tmp_path):
    other, merged = tmp_path / "other.duckdb", tmp_path / "merged.duckdb"
    merged.write_bytes(path.read_bytes())
    with open_ledger(path, read_only=True) as book, open_ledger(other) as ledger:
        lines = book.con.execute("SELECT payload FROM events ORDER BY seq").fetchall()
        ledger.append(decode(line.encode())[0] for (line,) in lines)
    assert oakledger(merged, "merge", str(other)).returncode == 0
    found = json.loads(oakledger(merged, "status", "--json").stdout)
    assert found["events"] == len(lines) and len(found["checkpoints"]) == 2


def test_text_says_the_same_without_colour(path):
    run = oakledger(path, "status")
    assert "\x1b" not in run.stdout
    lines = run.stdout.splitlines()
    assert any(line.startswith("first ") and "DIAGNOSTIC, 1 event since" in line for line in lines)
    assert any(line.startswith("second ") and "not decided" in line for line in lines)
    assert "not kept beside the ledger: oakledger checkpoint" in run.stdout


def on_a_terminal(path, *args, **extra):
    """Run on a pseudo terminal of eighty columns and return what it shows."""
    leader, follower = pty.openpty()
    env = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "80", **extra}
    if "NO_COLOR" not in extra:
        env.pop("NO_COLOR", None)
    process = subprocess.Popen(
        [*ROOT, "--ledger", str(path), *args], stdin=follower, stdout=follower, stderr=follower, env=env
    )
    os.close(follower)
    shown = b""
    while True:
        try:
            data = os.read(leader, 65536)
        except OSError:
            break
        if not data:
            break
        shown += data
    os.close(leader)
    assert process.wait() == 0
    return shown.decode()


def test_colours_on_a_terminal_only_and_never_alone(path):
    shown = on_a_terminal(path, "status")
    assert "\x1b[" in shown and "DIAGNOSTIC" in shown
    plain = on_a_terminal(path, "status", NO_COLOR="1")
    assert "\x1b[3" not in plain and "DIAGNOSTIC" in plain
    # Escapes for bold and dim are no colours; without them every line fits.
    lines = re.sub(r"\x1b\[[0-9;]*m", "", plain).splitlines()
    assert [line for line in lines if len(line) > 80] == []


def test_an_empty_and_a_missing_ledger(tmp_path):
    with open_ledger(tmp_path / "empty.duckdb"):
        pass
    run = oakledger(tmp_path / "empty.duckdb", "status")
    assert run.returncode == 0 and "no campaign yet: oakledger campaign declare" in run.stdout
    run = oakledger(tmp_path / "none.duckdb", "status")
    assert run.returncode == 2 and run.stderr.count("\n") == 1 and "--ledger" in run.stderr


def test_ids_are_whole(path):
    found = json.loads(oakledger(path, "status", "--json").stdout)
    decision = next(c["decision"] for c in found["campaigns"] if c["decision"])
    with open_ledger(path, read_only=True) as ledger:
        origin = ledger.origin
        at = ledger.con.execute("SELECT max(recorded_at_ns) FROM events").fetchone()[0]
    assert decision["event_id"] == event_id(decided("first", decision["checkpoint_size"], origin, at))


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_script(shell, tmp_path):
    run = oakledger(tmp_path / "none.duckdb", "completion", shell)
    assert run.returncode == 0 and f"_OAKLEDGER_COMPLETE={shell}_complete" in run.stdout
    assert "oakledger" in run.stdout


def complete(path, words, index):
    return subprocess.run(
        ROOT,
        capture_output=True,
        text=True,
        check=False,
        env={
            **os.environ,
            "OAKLEDGER": str(path),
            "_OAKLEDGER_COMPLETE": "bash_complete",
            "COMP_WORDS": words,
            "COMP_CWORD": str(index),
        },
    )


def test_completion_offers_commands_options_and_campaigns(path):
    run = complete(path, "oakledger ", 1)
    assert {line.split(",")[1] for line in run.stdout.split()} >= set(COMMANDS)
    assert complete(path, "oakledger sta", 1).stdout.split() == ["plain,status"]
    assert "plain,--rules" in complete(path, "oakledger show --", 2).stdout.split()
    assert complete(path, "oakledger show f", 2).stdout.split() == ["plain,first"]
    assert complete(path, "oakledger report --campaign s", 3).stdout.split() == ["plain,second"]
    gone = complete(path.parent / "none.duckdb", "oakledger show f", 2)
    assert (gone.stdout.strip(), gone.stderr) == ("", "")


def test_a_file_that_is_no_whole_ledger(path):
    con = duckdb.connect(str(path))
    con.execute("DROP TABLE checkpoints CASCADE")
    con.close()
    for args in (("status",), ("show", "first")):
        run = oakledger(path, *args)
        assert run.returncode == 3 and run.stdout == ""
        assert run.stderr.count("\n") == 1 and "run oakledger audit" in run.stderr

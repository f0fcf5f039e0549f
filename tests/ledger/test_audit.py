"""The audit on ledgers that verify, on their checkpoints, and side by side with the audit in SQL."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest

from ledger import checkpoints as cp
from ledger import sqlfiles
from ledger.audit import audit_ledger
from ledger.audit_catalog import normal
from ledger.errors import LedgerDamagedError, LedgerOpenError
from ledger.merge import merge
from ledger.merkle import root
from ledger.store import Checkpoint, open_ledger

pytestmark = pytest.mark.usefixtures("few_views")


def sql_audit(path, name):
    with duckdb.connect() as con:
        con.execute(f"ATTACH '{path}' AS ledger (READ_ONLY)")
        return con.execute(sqlfiles.read(f"audit/{name}.sql")).fetchall()


def ids(path, origin):
    with duckdb.connect(str(path), read_only=True) as con:
        rows = con.execute("SELECT event_id FROM events WHERE origin = ? ORDER BY seq", [origin]).fetchall()
    return [bytes.fromhex(r[0]) for r in rows]


def test_a_clean_ledger_verifies_by_path_and_open(make_ledger):
    path = make_ledger()
    report = audit_ledger(path)
    assert report.findings == () and report.ok and report.exit_status == 0
    assert report.events == 33
    assert report.heads == (Checkpoint("origin/a", 33, root(ids(path, "origin/a"))),)
    assert report.checkpoints_compared == 6  # three rows, three kept files
    for read_only in (True, False):
        with open_ledger(path, read_only=read_only) as ledger:
            assert audit_ledger(ledger).ok
            assert ledger.con.execute("SELECT count(*) FROM events").fetchone() == (33,)
    assert Path(path).exists() and not Path(f"{path}.wal").exists()


def test_an_empty_ledger_verifies(tmp_path):
    with open_ledger(tmp_path / "l.duckdb"):
        pass
    report = audit_ledger(tmp_path / "l.duckdb")
    assert report.ok and report.events == 0 and report.heads == ()


def test_the_audit_changes_nothing(make_ledger):
    path = make_ledger()
    before = Path(path).read_bytes(), sorted(os.listdir(path.parent))
    audit_ledger(path)
    assert (Path(path).read_bytes(), sorted(os.listdir(path.parent))) == before


def test_a_read_only_file_in_a_read_only_folder(make_ledger):
    path = make_ledger()
    os.chmod(path, 0o444)
    os.chmod(path.parent, 0o555)
    try:
        assert audit_ledger(path).ok
    finally:
        os.chmod(path.parent, 0o755)


def test_a_held_file_is_waited_for_and_its_holder_named(make_ledger):
    path = make_ledger()
    code = (
        "import duckdb, sys, time\n"
        f"con = duckdb.connect({str(path)!r})\n"
        "print('held', flush=True)\n"
        "sys.stdin.read()\n"
    )
    holder = subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(LedgerOpenError, match=str(holder.pid)):
            audit_ledger(path, lock_timeout_s=0.2)
    finally:
        holder.communicate("")
    assert audit_ledger(path, lock_timeout_s=30).ok


def test_what_is_no_ledger(tmp_path):
    with pytest.raises(LedgerOpenError, match="no ledger at"):
        audit_ledger(tmp_path / "none.duckdb")
    (tmp_path / "text").write_text("hello world, this is text")
    with pytest.raises(LedgerOpenError, match="no DuckDB file"):
        audit_ledger(tmp_path / "text")
    with duckdb.connect(str(tmp_path / "other.duckdb")) as con:
        con.execute("CREATE TABLE t (a INTEGER)")
    with pytest.raises(LedgerOpenError, match="no ledger"):
        audit_ledger(tmp_path / "other.duckdb")


def test_a_newer_ledger_is_refused(make_ledger):
    path = make_ledger()
    with duckdb.connect(str(path)) as con:
        con.execute("UPDATE ledger_meta SET value = '999' WHERE key = 'schema_version'")
    with pytest.raises(LedgerOpenError, match="newer oakledger"):
        audit_ledger(path)


def test_merged_ledgers_verify_origin_by_origin(make_ledger, one_of_each):
    a = make_ledger("a.duckdb", "origin/a")
    b = make_ledger("b.duckdb", "origin/b", batches=5)  # the first three batches are the same events
    before = {h for p in (a, b) for h in audit_ledger(p).heads}
    with open_ledger(a) as ledger:
        assert merge(ledger, str(b)).new == 55
    report = audit_ledger(a, checkpoints=[p for p, _ in cp.kept(b)])
    assert report.findings == ()
    assert set(report.heads) == before
    assert sql_audit(a, "identities") == [] and sql_audit(a, "bad_events") == []
    assert {r[-1] for r in sql_audit(a, "roots")} == {"matches"}
    with open_ledger(a) as ledger:
        cp.keep(a, ledger.append(one_of_each("more")).checkpoint)
    assert audit_ledger(a).ok


def test_a_given_checkpoint_of_a_larger_tree_means_lost_events(make_ledger, tmp_path):
    path = make_ledger()
    shorter = make_ledger("short.duckdb", batches=2)
    newest = [p for p, _ in cp.kept(path)][-1]
    assert audit_ledger(shorter).ok  # by itself it looks whole
    report = audit_ledger(shorter, checkpoints=[newest])
    assert report.exit_status == 3 and report.counts == {"given_checkpoint": 1}
    assert report.findings[0].origin == "origin/a" and "events were lost" in report.findings[0].detail
    # A smaller one, and one of the same size, are fine the other way round.
    assert audit_ledger(path, checkpoints=[p for p, _ in cp.kept(shorter)]).ok


def test_every_kind_of_checkpoint_that_does_not_fit_is_found(make_ledger):
    path = make_ledger()
    other = Checkpoint("origin/a", 22, bytes(32))
    report = audit_ledger(path, checkpoints=[other])
    assert report.counts == {"given_checkpoint": 1} and "history was changed" in report.findings[0].detail
    report = audit_ledger(path, checkpoints=[Checkpoint("origin/unknown", 1, bytes(32))])
    assert report.counts == {"given_checkpoint": 1} and report.findings[0].origin == "origin/unknown"
    # Sizes between batches are as good as any.
    leaves = ids(path, "origin/a")
    between = [Checkpoint("origin/a", n, root(leaves[:n])) for n in range(34)]
    assert audit_ledger(path, checkpoints=between).ok
    wrong = [Checkpoint("origin/a", n, root(leaves[:n])[:-1] + b"\0") for n in range(34)]
    assert audit_ledger(path, checkpoints=wrong).counts == {"given_checkpoint": 34}


def test_kept_checkpoints_are_compared_unless_refused(make_ledger):
    path = make_ledger()
    cp.keep(path, Checkpoint("origin/a", 34, bytes(32)))
    assert audit_ledger(path).counts == {"kept_checkpoint": 1}
    assert audit_ledger(path, kept=False).ok
    Path(cp.folder(path), "x.checkpoint").write_text("nonsense\n")
    assert audit_ledger(path).counts == {"kept_checkpoint": 2}


def test_signatures(make_ledger, tmp_path):
    path = make_ledger()
    key, other = cp.generate_key("release"), cp.generate_key("other")
    head = audit_ledger(path).heads[0]
    signed, unsigned, foreign = tmp_path / "s", tmp_path / "u", tmp_path / "f"
    signed.write_bytes(cp.note_bytes(cp.make_note(head, key)))
    unsigned.write_bytes(cp.note_bytes(cp.make_note(head)))
    foreign.write_bytes(cp.note_bytes(cp.make_note(head, other)))
    assert audit_ledger(path, checkpoints=[signed], public_key=key.public()).ok
    for file in (unsigned, foreign):
        report = audit_ledger(path, checkpoints=[file], public_key=key.public())
        assert report.counts == {"signature": 1} and str(file) in report.findings[0].detail
    # With none given, one of the kept ones must be signed.
    assert audit_ledger(path, public_key=key.public()).counts == {"signature": 1}
    shutil.rmtree(cp.folder(path))
    cp.keep_note(path, cp.make_note(head, key))
    assert audit_ledger(path, public_key=key.public()).ok
    file = next(p for p, _ in cp.kept(path))
    note = cp.read_note(file)
    s = note.signatures[0]
    forged = cp.Note(note.checkpoint, note.text, (cp.Signature(s.name, s.key_id, bytes(64)),))
    Path(file).write_bytes(cp.note_bytes(forged))
    assert audit_ledger(path, public_key=key.public()).counts == {"signature": 2}


def test_not_deep_leaves_out_contents_only(make_ledger):
    path = make_ledger()
    report = audit_ledger(path, deep=False)
    assert report.ok and not report.deep and report.heads == audit_ledger(path).heads


def test_a_garbage_file_after_the_header_is_damaged_not_a_crash(make_ledger):
    path = make_ledger()
    data = bytearray(Path(path).read_bytes())
    data[4096:8192] = os.urandom(4096)  # the first header block
    data[8192:12288] = os.urandom(4096)
    Path(path).write_bytes(data)
    with pytest.raises((LedgerDamagedError, LedgerOpenError)):
        audit_ledger(path)


def test_guards_query_knows_the_guards_of_a_new_ledger(make_ledger):
    rows = sql_audit(make_ledger(), "guards")
    assert rows and {r[2] for r in rows} == {"present"}
    schema = sqlfiles.read("000_schema.sql")
    assert sum(r[0] == "trigger" for r in rows) == schema.count("CREATE TRIGGER")
    assert sum(r[0] == "check" for r in rows) == schema.count("CONSTRAINT")


def test_leaf_hashes_and_roots_in_sql_are_those_of_python(make_ledger):
    path = make_ledger(batches=6)
    leaves = ids(path, "origin/a")
    assert [(r[1], r[3], r[4]) for r in sql_audit(path, "leaf_hashes")] == [
        (i, leaf.hex(), True) for i, leaf in enumerate(leaves)
    ]
    expected = [(n, root(leaves[:n]).hex()) for n in range(11, 67, 11)]
    assert [(r[1], r[2]) for r in sql_audit(path, "roots")] == expected


@pytest.mark.parametrize("n", range(1, 71))
def test_root_in_sql_for_every_size(tmp_path_factory, n):
    """The recursive query against the definition, on a table of ids alone."""
    import hashlib

    leaves = [hashlib.sha256(b"\0%d" % i).digest() for i in range(n)]
    with duckdb.connect() as con:
        con.execute("ATTACH ':memory:' AS ledger")
        con.execute("CREATE TABLE ledger.main.events (origin VARCHAR, seq BIGINT, event_id VARCHAR)")
        con.execute("CREATE TABLE ledger.main.checkpoints (origin VARCHAR, size BIGINT, root VARCHAR)")
        con.execute(
            "INSERT INTO ledger.main.events SELECT 'o', i - 1, leaf FROM ("
            "SELECT unnest(range(1, len(l) + 1)) AS i, unnest(l) AS leaf FROM (SELECT ? AS l))",
            [[leaf.hex() for leaf in leaves]],
        )
        con.execute(
            "INSERT INTO ledger.main.checkpoints SELECT 'o', unnest(?), unnest(?)",
            [list(range(1, n)), [root(leaves[:m]).hex() for m in range(1, n)]],
        )
        rows = con.execute(sqlfiles.read("audit/roots.sql")).fetchall()
    assert [(r[1], r[2]) for r in rows] == [(m, root(leaves[:m]).hex()) for m in range(1, n + 1)]
    assert [r[-1] for r in rows] == ["matches"] * (n - 1) + ["NO CHECKPOINT"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT * EXCLUDE (b, a) FROM t", "SELECT * EXCLUDE (a, b) FROM t"),
        (
            "SELECT t.* EXCLUDE (b, a) REPLACE (f(b, 'x)') AS z, a AS b), 1",
            "SELECT t.* EXCLUDE (a, b) REPLACE (a AS b, f(b, 'x)') AS z), 1",
        ),
        ("SELECT replace(x, 'b', 'a')", "SELECT replace(x, 'b', 'a')"),
        ("SELECT * EXCLUDE (b", "SELECT * EXCLUDE (b"),
    ],
)
def test_sets_after_a_star_are_compared_as_sets(text, expected):
    assert normal(text) == expected

"""Faults that are really made: flipped bits, every way round the guards, a write-ahead log cut short."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest

from ledger import audit, audit_contents, audit_identity, audit_tree, audit_worker, sqlfiles
from ledger import checkpoints as cp
from ledger.audit import audit_ledger
from ledger.errors import LedgerDamagedError, OakledgerError
from ledger.events import canonical, leaf_hash
from ledger.frontier import Frontier
from ledger.store import open_ledger

pytestmark = pytest.mark.usefixtures("few_views")

COLUMNS = [
    "event_id",
    "kind",
    "kind_version",
    "source",
    "ordinal",
    "recorded_at_ns",
    "campaign",
    "lane",
    "scenario",
    "scenario_version",
    "subject",
    "trial",
    "condition_key",
    "repetition",
    "status",
    "started_at_ns",
    "verdict",
    "reader_event_id",
    "outcome",
    "reason",
    "payload",
]
INTEGERS = {"kind_version", "ordinal", "recorded_at_ns", "scenario_version", "repetition", "started_at_ns"}

#: What tampering through CREATE TABLE AS leaves behind besides the tampering itself.
UNGUARDED = {"changed_table", "missing_trigger"}


def sql_audit(path, name):
    with duckdb.connect() as con:
        con.execute(f"ATTACH '{path}' AS ledger (READ_ONLY)")
        return con.execute(sqlfiles.read(f"audit/{name}.sql")).fetchall()


def tamper(path, *statements):
    with duckdb.connect(str(path)) as con:
        for statement in statements:
            con.execute(*statement) if isinstance(statement, tuple) else con.execute(statement)


def unguard(path):
    """Replace the tables by ones without triggers and CHECKs."""
    tamper(
        path,
        "CREATE OR REPLACE TABLE events AS SELECT * FROM events",
        "CREATE OR REPLACE TABLE checkpoints AS SELECT * FROM checkpoints",
    )


def codes(report):
    return set(report.counts)


# One flipped bit


def test_the_columns_tested_are_all_there_are(make_ledger):
    with open_ledger(make_ledger(), read_only=True) as ledger:
        names = [d[0] for d in ledger.con.execute("SELECT * FROM events LIMIT 0").description]
    assert sorted(names) == sorted([*COLUMNS, "origin", "seq"])


def test_one_flipped_bit_in_every_column_of_every_kind_is_named(make_ledger):
    """Event by event another column is flipped: the audit must name each of them, and nothing else."""
    path = make_ledger(batches=len(COLUMNS))
    unguard(path)
    expected = {}
    with duckdb.connect(str(path)) as con:
        kinds = set()
        for seq in range(11 * len(COLUMNS)):
            column = COLUMNS[seq // 11]
            value, kind = con.execute(f"SELECT {column}, kind FROM events WHERE seq = ?", [seq]).fetchone()
            kinds.add(kind)
            if column in INTEGERS:
                value = 1 if value is None else value ^ 1
            elif value is None:
                value = "x"
            else:
                at = seq % len(value)
                value = value[:at] + chr(ord(value[at]) ^ 1) + value[at + 1 :]
            con.execute(f"UPDATE events SET {column} = ? WHERE seq = ?", [value, seq])
            expected[seq] = column
    assert len(kinds) == 11
    report = audit_ledger(path)
    named = {f.seq: f for f in report.findings if f.code in ("event_id", "columns", "payload")}
    assert named.keys() == expected.keys()
    for seq, column in expected.items():
        found = {f.code: f for f in report.findings if f.seq == seq}
        if column in ("event_id", "payload"):
            assert "event_id" in found
        else:
            assert f"{column} is " in found["columns"].detail
            assert "event_id" not in found
        assert all(f.origin == "origin/a" and f.event_id for f in found.values())
    # The audit in SQL says the same, event by event.
    by_sql = {(r[1], r[3]) for r in sql_audit(path, "bad_events")}
    by_python = {(f.seq, f.code) for f in report.findings if f.code in ("event_id", "columns")}
    assert {(s, c) for s, c in by_sql if c != "payload"} == by_python
    for row in sql_audit(path, "bad_events"):
        if row[3] == "columns" and expected[row[1]] != "payload":
            assert expected[row[1]] in row[4].split("/")


def test_every_bit_of_a_payload(tmp_path, one_of_each):
    """As many events as a payload has bits, each with another one flipped."""
    from ledger.events import TrialInvalidated

    def event(i):
        return TrialInvalidated(
            source="s", ordinal=10_000 + i, recorded_at_ns=1_750_000_000_000_000_000, campaign="c", trial="t",
            who="me", why="broken machine",
        )  # fmt: skip

    length = len(canonical(event(0)))
    path = tmp_path / "l.duckdb"
    with open_ledger(path) as ledger:
        ledger.append(event(i) for i in range(length * 7))
    unguard(path)
    with duckdb.connect(str(path)) as con:
        rows = con.execute("SELECT seq, payload FROM events ORDER BY seq").fetchall()
        flipped = []
        for seq, payload in rows:  # the eighth bit would make it no text, which the database refuses
            at, bit = divmod(seq, 7)
            flipped.append((seq, payload[:at] + chr(ord(payload[at]) ^ (1 << bit)) + payload[at + 1 :]))
        con.execute("CREATE TABLE f AS SELECT unnest($s) AS seq, unnest($p) AS payload",
                    {"s": [s for s, _ in flipped], "p": [p for _, p in flipped]})  # fmt: skip
        con.execute("UPDATE events SET payload = f.payload FROM f WHERE f.seq = events.seq")
        con.execute("DROP TABLE f")
    report = audit_ledger(path)
    assert {f.seq for f in report.findings if f.code == "event_id"} == set(range(length * 7))
    assert report.counts["event_id"] == length * 7
    assert {r[1] for r in sql_audit(path, "bad_events") if r[3] == "event_id"} == set(range(length * 7))


@pytest.mark.parametrize("column", [c for c in COLUMNS if c not in ("payload", "event_id")])
def test_a_column_emptied_or_filled_in_every_row_lists_every_row(make_ledger, column):
    path = make_ledger(batches=1)
    unguard(path)
    value = "7" if column in INTEGERS else "'x'"
    tamper(path, f"UPDATE events SET {column} = CASE WHEN {column} IS NULL THEN {value} END")
    report = audit_ledger(path)
    named = {f.seq for f in report.findings if f.code == "columns" and f"{column} is " in f.detail}
    assert named == set(range(11))


# Payloads that hash right and are wrong all the same


def rehash(path, seq, change):
    """Rewrite one payload together with its id, and the trees after it, as somebody thorough would."""
    unguard(path)
    with duckdb.connect(str(path)) as con:
        payload = con.execute("SELECT payload FROM events WHERE seq = ?", [seq]).fetchone()[0]
        changed = change(payload)
        con.execute(
            "UPDATE events SET payload = ?, event_id = ? WHERE seq = ?",
            [changed, leaf_hash(changed.encode()).hex(), seq],
        )
        ids = [
            bytes.fromhex(r[0]) for r in con.execute("SELECT event_id FROM events ORDER BY seq").fetchall()
        ]
        for (size,) in con.execute("SELECT size FROM checkpoints").fetchall():
            frontier = Frontier()
            frontier.extend(ids[:size])
            con.execute(
                "UPDATE checkpoints SET root = ?, frontier = ? WHERE size = ?",
                [frontier.root().hex(), frontier.encode(), size],
            )


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (lambda p: p.replace('"who":"me"', '"who": "me"'), "not_canonical"),
        (lambda p: p.replace('"who":"me","why":"late"', '"why":"late","who":"me"'), "not_canonical"),
        (lambda p: p.replace("late", "l\\u0061te"), "not_canonical"),
        (lambda p: p + " ", "not_canonical"),
        (lambda p: p.replace('"who":"me"', '"who":"me","who":"me"'), "payload"),
        (lambda p: p.replace('"who":"me"', '"who":"me","extra":1'), "payload"),
        (lambda p: p.replace('"who":"me"', '"who":1.5'), "payload"),
        (lambda p: p.replace('"who":"me",', ""), "payload"),
        (lambda p: p.replace("conflict_rule_recorded/1", "conflict_rule_recorded/2"), "newer_version"),
        (lambda p: p.replace("conflict_rule_recorded/1", "nobody_knows/1"), "payload"),
        (lambda p: p[:-1], "payload"),
        (lambda p: "[" * 5000, "payload"),
        (lambda p: "[]", "payload"),
        (lambda p: "", "payload"),
        (lambda p: p.replace("late", "line\nfeed"), "payload"),
    ],
)
def test_a_payload_that_hashes_right_must_still_be_a_canonical_known_event(make_ledger, change, code):
    path = make_ledger(batches=1)
    rehash(path, 8, change)
    report = audit_ledger(path)
    found = {f.code: f for f in report.findings if f.seq == 8}
    assert code in found and "event_id" not in found
    assert found[code].origin == "origin/a" and "\n" not in found[code].detail
    assert {f.seq for f in report.findings if f.seq is not None} == {8}
    # The trees in the file were made to fit: only the checkpoint kept beside it speaks of the change.
    assert "checkpoint_row" not in report.counts and report.counts["kept_checkpoint"] == 1


def test_history_rewritten_to_the_last_byte_is_seen_by_a_kept_checkpoint_alone(make_ledger):
    path = make_ledger()
    tamper(path, "ATTACH ':memory:' AS m")
    rehash(path, 8, lambda p: p.replace("late", "late again"))
    report = audit_ledger(path)
    assert codes(report) - UNGUARDED == {"kept_checkpoint"} and report.counts["kept_checkpoint"] == 3
    assert "history was changed" in next(f for f in report.findings if f.code == "kept_checkpoint").detail
    shutil.rmtree(cp.folder(path))
    assert codes(audit_ledger(path)) == UNGUARDED


# Every way round the guards


WAYS = {
    "drop an update trigger": (["DROP TRIGGER events_no_update ON events"], {"missing_trigger"}),
    "drop a delete trigger": (["DROP TRIGGER checkpoints_no_delete ON checkpoints"], {"missing_trigger"}),
    "weaken a trigger": (
        [
            "DROP TRIGGER events_no_update ON events",
            "CREATE TRIGGER events_no_update BEFORE UPDATE ON events FOR EACH STATEMENT "
            "INSERT INTO _deny SELECT 'fine'",
        ],
        {"changed_trigger"},
    ),
    "drop the events": (
        ["DROP TABLE events CASCADE"],
        {"missing_table", "missing_trigger", "checkpoint_row", "kept_checkpoint"},
    ),
    "drop the checkpoints": (
        ["DROP TABLE checkpoints CASCADE"],
        {"missing_table", "missing_trigger", "uncovered"},
    ),
    "drop ledger_meta": (["DROP TABLE ledger_meta"], {"missing_table", "meta"}),
    "replace the events by themselves": (
        ["CREATE OR REPLACE TABLE events AS SELECT * FROM events"],
        {"changed_table", "missing_trigger"},
    ),
    "replace the events by a view": (
        [
            "CREATE TABLE real_events AS SELECT * FROM events",
            "DROP TABLE events CASCADE",
            "CREATE VIEW events AS SELECT * FROM real_events",
        ],
        {
            "missing_table",
            "missing_trigger",
            "extra_table",
            "extra_view",
            "checkpoint_row",
            "kept_checkpoint",
        },
    ),
    "rewrite a column through its type": (
        [
            "CREATE OR REPLACE TABLE events AS SELECT * FROM events",
            "ALTER TABLE events ALTER COLUMN subject TYPE VARCHAR USING upper(subject)",
        ],
        {"changed_table", "missing_trigger", "columns"},
    ),
    "turn seq into text": (
        [
            "CREATE OR REPLACE TABLE events AS SELECT * FROM events",
            "ALTER TABLE events ALTER COLUMN seq TYPE VARCHAR USING 'n' || seq",
        ],
        {"changed_table", "missing_trigger", "seq", "checkpoint_row", "kept_checkpoint"},
    ),
    "rewrite roots through their type": (
        ["ALTER TABLE checkpoints ALTER COLUMN root TYPE VARCHAR USING repeat('0', 64)"],
        {"checkpoint_row"},
    ),
    "rewrite frontiers through their type": (
        ["ALTER TABLE checkpoints ALTER COLUMN frontier TYPE VARCHAR USING repeat('0', 64)"],
        {"checkpoint_row"},
    ),
    "add a column": (["ALTER TABLE events ADD COLUMN note VARCHAR"], {"changed_table"}),
    "drop a column": (
        [
            "CREATE OR REPLACE TABLE events AS SELECT * FROM events",
            "ALTER TABLE events DROP COLUMN subject",
        ],
        {"changed_table", "missing_trigger", "columns"},
    ),
    "delete from the middle": (
        ["DROP TRIGGER events_no_delete ON events", "DELETE FROM events WHERE seq BETWEEN 5 AND 7"],
        {"missing_trigger", "gap", "checkpoint_row", "kept_checkpoint"},
    ),
    "delete the end and what knows of it": (
        [
            "DROP TRIGGER events_no_delete ON events",
            "DROP TRIGGER checkpoints_no_delete ON checkpoints",
            "DELETE FROM events WHERE seq >= 22",
            "DELETE FROM checkpoints WHERE size > 22",
        ],
        {"missing_trigger", "kept_checkpoint"},
    ),
    "insert past the store": (
        [
            "INSERT INTO events BY NAME SELECT * EXCLUDE (p) REPLACE (33 AS seq, p AS payload, "
            "sha256(chr(0) || p) AS event_id, 'late comer' AS source) FROM ("
            'SELECT *, replace(payload, \'"source":"run"\', \'"source":"late comer"\') AS p '
            "FROM events WHERE seq = 6)"
        ],
        {"uncovered", "payload"},  # no store would have taken that source name
    ),
    "insert an event twice": (
        ["INSERT INTO events BY NAME SELECT * REPLACE (33 AS seq) FROM events WHERE seq = 6"],
        {"uncovered", "duplicate_event", "not_in_duplicates"},
    ),
    "move an event to another number": (
        [
            "CREATE OR REPLACE TABLE events AS SELECT * FROM events",
            "UPDATE events SET seq = 40 WHERE seq = 3",
        ],
        {"changed_table", "missing_trigger", "gap", "checkpoint_row", "kept_checkpoint"},
    ),
    "swap two events": (
        [
            "CREATE OR REPLACE TABLE events AS SELECT * FROM events",
            "UPDATE events SET seq = 7 - seq WHERE seq IN (3, 4)",
        ],
        {"changed_table", "missing_trigger", "checkpoint_row", "kept_checkpoint"},
    ),
    "two events with one number": (
        [
            "CREATE OR REPLACE TABLE events AS SELECT * FROM events",
            "UPDATE events SET seq = 4 WHERE seq = 3",
        ],
        {"changed_table", "missing_trigger", "gap", "duplicate_seq", "checkpoint_row", "kept_checkpoint"},
    ),
    "give an event to another origin": (
        [
            "CREATE OR REPLACE TABLE events AS SELECT * FROM events",
            "UPDATE events SET origin = 'origin/b', seq = 0 WHERE seq = 3",
        ],
        {"changed_table", "missing_trigger", "gap", "uncovered", "checkpoint_row", "kept_checkpoint"},
    ),
    "no number, no origin": (
        [
            "CREATE OR REPLACE TABLE events AS SELECT * FROM events",
            "UPDATE events SET seq = NULL WHERE seq = 32",
            "UPDATE events SET origin = NULL WHERE seq = 31",
            "UPDATE events SET seq = -1 WHERE seq = 30",
            "UPDATE events SET payload = NULL WHERE seq = 29",
        ],
        {"changed_table", "missing_trigger", "seq", "origin", "payload", "checkpoint_row", "kept_checkpoint"},
    ),
    "hide an event among the duplicates": (
        ["INSERT INTO duplicates VALUES ('origin/a', 5)"],
        {"wrong_in_duplicates"},
    ),
    "change a view": (
        ["CREATE OR REPLACE VIEW ledger_events AS SELECT * FROM events WHERE verdict <> 'fail'"],
        {"changed_view"},
    ),
    "drop a view": (["DROP VIEW ledger_events"], {"missing_view"}),
    "replace a view by a table": (
        ["DROP VIEW ledger_events", "CREATE TABLE ledger_events AS SELECT * FROM events"],
        {"missing_view", "extra_table"},
    ),
    "a macro in place of a function": (["CREATE MACRO sha256(x) AS 'fine'"], {"extra_macro"}),
    "macros in place of what the audit asks": (
        [
            "DROP TRIGGER events_no_update ON events",
            "CREATE MACRO duckdb_triggers() AS TABLE SELECT 'events_no_update' AS trigger_name",
            "CREATE VIEW duckdb_tables AS SELECT 1 AS a",
            "CREATE MACRO hash(x) AS 1",
        ],
        {"missing_trigger", "extra_macro", "extra_view"},
    ),
    "a type, a schema, a sequence, an index": (
        [
            "CREATE TYPE mood AS ENUM ('sad')",
            "CREATE SCHEMA other",
            "CREATE TABLE other.events (a INTEGER)",
            "CREATE SEQUENCE s",
            "CREATE INDEX i ON events (source)",
        ],
        {"extra_type", "extra_schema", "extra_table", "extra_sequence", "extra_index"},
    ),
    "forget the origin": (["DELETE FROM ledger_meta WHERE key = 'origin'"], {"meta"}),
}


@pytest.mark.parametrize("way", WAYS)
def test_ways_round_the_guards_are_detected(make_ledger, way):
    statements, expected = WAYS[way]
    path = make_ledger()
    assert audit_ledger(path).ok
    tamper(path, *statements)
    report = audit_ledger(path)
    assert report.exit_status == 3
    assert codes(report) == expected, report.findings[:20]


def test_an_event_taken_out_is_named_by_its_number(make_ledger):
    path = make_ledger()
    tamper(path, "DROP TRIGGER events_no_delete ON events", "DELETE FROM events WHERE seq IN (0, 5, 6, 20)")
    report = audit_ledger(path)
    gaps = [(f.seq, f.detail) for f in report.findings if f.code == "gap"]
    assert gaps == [
        (0, "event 0 is missing"),
        (5, "events 5 to 6 are missing"),
        (20, "event 20 is missing"),
    ]
    assert [r[1:] for r in sql_audit(path, "gaps")] == [("gap", 0, 0), ("gap", 5, 6), ("gap", 20, 20)]


def test_producer_key_conflicts_name_both_events(make_ledger, one_of_each):
    path = make_ledger()
    other = canonical(one_of_each("run", 0)[6]).replace(b"broken machine", b"other reason").decode()
    with duckdb.connect(str(path)) as con:
        con.execute(
            "INSERT INTO events BY NAME SELECT * REPLACE (33 AS seq, ? AS payload, ? AS event_id) "
            "FROM events WHERE seq = 6",
            [other, leaf_hash(other.encode()).hex()],
        )
    report = audit_ledger(path)
    assert codes(report) == {"uncovered", "producer_key"}
    found = [f for f in report.findings if f.code == "producer_key"]
    assert [f.seq for f in found] == [6, 33]
    assert found[0].event_id in found[1].detail and found[1].event_id in found[0].detail
    assert [(r[1], r[3]) for r in sql_audit(path, "identities")] == [
        (6, "producer_key"),
        (33, "producer_key"),
    ]


def test_the_duplicates_of_a_merge_are_computed_again(make_ledger):
    from ledger.merge import merge

    a, b = make_ledger("a.duckdb", "origin/a"), make_ledger("b.duckdb", "origin/b")
    with open_ledger(a) as ledger:
        merge(ledger, str(b))
    assert audit_ledger(a).ok
    tamper(
        a,
        "DELETE FROM duplicates WHERE seq IN (2, 3)",
        "INSERT INTO duplicates VALUES ('origin/a', 7), ('nobody', 1)",
    )
    report = audit_ledger(a)
    found = {(f.code, f.origin, f.seq) for f in report.findings}
    assert found == {
        ("not_in_duplicates", "origin/b", 2),
        ("not_in_duplicates", "origin/b", 3),
        ("wrong_in_duplicates", "origin/a", 7),
        ("wrong_in_duplicates", "nobody", 1),
    }
    assert {(r[3], r[0], r[1]) for r in sql_audit(a, "identities")} == found


def test_copies_that_lose_the_triggers(make_ledger, tmp_path):
    path = make_ledger()
    with duckdb.connect() as con:
        con.execute(f"ATTACH '{path}' AS l (READ_ONLY)")
        con.execute(f"ATTACH '{tmp_path / 'copied.duckdb'}' AS c")
        con.execute("COPY FROM DATABASE l TO c")
    report = audit_ledger(tmp_path / "copied.duckdb")
    assert "missing_trigger" in codes(report) and report.counts["missing_trigger"] == 4
    with duckdb.connect(str(path)) as con:
        con.execute(f"EXPORT DATABASE '{tmp_path / 'exported'}' (FORMAT parquet)")
    with duckdb.connect(str(tmp_path / "imported.duckdb")) as con:
        # IMPORT DATABASE itself stops at the first view that is written before one it needs.
        for file in ("schema.sql", "load.sql"):
            for statement in con.extract_statements((tmp_path / "exported" / file).read_text()):
                with contextlib.suppress(duckdb.CatalogException):
                    con.execute(statement)
    report = audit_ledger(tmp_path / "imported.duckdb")
    assert "missing_trigger" in codes(report) and report.counts["missing_trigger"] == 4


def test_all_bad_events_are_listed_and_the_cap_still_counts(make_ledger):
    path = make_ledger(batches=10)
    unguard(path)
    tamper(path, "UPDATE events SET event_id = sha256(event_id)")
    report = audit_ledger(path)
    assert {f.seq for f in report.findings if f.code == "event_id"} == set(range(110))
    capped = audit_ledger(path, max_findings=7)
    assert len(capped.findings) == 7 and capped.counts == report.counts


def test_the_audits_agree_on_a_tampered_tree(make_ledger):
    path = make_ledger()
    unguard(path)
    tamper(
        path, "UPDATE events SET event_id = sha256('x') WHERE seq = 15", "DELETE FROM events WHERE seq = 30"
    )
    report = audit_ledger(path)
    states = {r[1]: r[-1] for r in sql_audit(path, "roots")}
    assert states == {11: "matches", 22: "DIFFERS", 32: "EVENTS MISSING", 33: "EVENTS MISSING"}
    rows = [f.detail for f in report.findings if f.code == "checkpoint_row"]
    assert len(rows) == 2 and "size 22" in rows[0] + rows[1] and "size 33" in rows[0] + rows[1]
    assert [(r[1], r[3]) for r in sql_audit(path, "bad_events")] == [(15, "event_id")]


# The write-ahead log


WRITER = """
import os, signal, sys
sys.path.insert(0, {helpers!r})
from ledger.checkpoints import keep
from ledger import views
from ledger.events import TrialInvalidated
from ledger.store import open_ledger

first = views.shipped()[:3]  # as the fixture few_views
views.shipped = lambda: first
with open_ledger({path!r}, origin="origin/a") as ledger:
    for batch in range(4):
        events = [
            TrialInvalidated(source="s", ordinal=10 * batch + i, recorded_at_ns=1_750_000_000_000_000_000,
                             campaign="c", trial=f"t{{i}}", who="me", why="x" * 40)
            for i in range(3)
        ]
        keep({path!r}, ledger.append(events).checkpoint)
    print("acknowledged", flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture(scope="module")
def killed_ledger(tmp_path_factory, few_views):
    """A ledger whose writer was killed right after its last commit: the events are in the log alone."""
    path = tmp_path_factory.mktemp("killed") / "l.duckdb"
    code = WRITER.format(path=str(path), helpers=str(Path(__file__).parents[2]))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout == "acknowledged\n" and done.returncode == -signal.SIGKILL, done.stderr
    assert os.path.getsize(f"{path}.wal") > 400
    return path


def copy_cut(path, folder, data):
    folder.mkdir()
    copy = folder / "l.duckdb"
    shutil.copyfile(path, copy)
    (folder / "l.duckdb.wal").write_bytes(data)
    shutil.copytree(cp.folder(path), cp.folder(copy))
    return copy


def audited(copy):
    """Return (exit status, number of events) of an audit; damage that DuckDB itself refuses is status 3."""
    try:
        report = audit_ledger(copy)
    except LedgerDamagedError as e:
        assert e.exit_status == 3
        return 3, None
    return report.exit_status, report.events


def test_nothing_is_lost_when_the_writer_is_killed(killed_ledger, tmp_path):
    wal = Path(f"{killed_ledger}.wal").read_bytes()
    assert audited(copy_cut(killed_ledger, tmp_path / "whole", wal)) == (0, 12)


@pytest.mark.parametrize("first", [1, 51, 101, 151])
def test_a_log_cut_at_every_byte_of_its_end_never_loses_events_in_silence(killed_ledger, tmp_path, first):
    wal = Path(f"{killed_ledger}.wal").read_bytes()
    outcomes = {}
    for cut in range(first, first + 50):
        folder = tmp_path / f"cut{cut}"
        outcomes[cut] = audited(copy_cut(killed_ledger, folder, wal[:-cut]))
        shutil.rmtree(folder)
    for cut, (status, events) in outcomes.items():
        assert (status, events) == (0, 12) or status == 3, (cut, status, events)
    # DuckDB opens the cut file without a word: the kept checkpoint is what speaks.
    assert any(status == 3 and events == 9 for status, events in outcomes.values())


def test_a_damaged_last_record_never_loses_events_in_silence(killed_ledger, tmp_path):
    wal = Path(f"{killed_ledger}.wal").read_bytes()
    for at in range(1, 201, 13):
        damaged = bytearray(wal)
        damaged[-at] ^= 0x40
        status, events = audited(copy_cut(killed_ledger, tmp_path / f"flip{at}", bytes(damaged)))
        assert (status, events) == (0, 12) or status == 3, (at, status, events)


def test_without_any_checkpoint_a_lost_tail_cannot_be_seen(killed_ledger, tmp_path):
    """What audit cannot see, as docs/audit.md says: the reason why checkpoints belong elsewhere too."""
    wal = Path(f"{killed_ledger}.wal").read_bytes()
    copy = copy_cut(killed_ledger, tmp_path / "cut", wal[:-1])
    shutil.rmtree(cp.folder(copy))
    report = audit_ledger(copy)
    assert report.ok and report.events < 12
    head = hashlib.sha256(b"any").digest()
    assert not audit_ledger(copy, checkpoints=[cp.Checkpoint("origin/a", 12, head)]).ok


# Many rows: chunks, threads and processes


@pytest.fixture
def in_processes(monkeypatch):
    """Audit in small chunks by processes, as with a large ledger."""
    monkeypatch.setattr(audit_contents, "WORKERS_FROM", 0)
    monkeypatch.setattr(audit_contents, "CHUNK", 16)
    monkeypatch.setattr(audit_tree, "WINDOW", 16)
    monkeypatch.setattr(audit_identity, "PART_ROWS", 50)


def test_a_large_ledger_is_audited_like_a_small_one(make_ledger, monkeypatch, in_processes):
    path = make_ledger(batches=12)
    asked = []
    holds = audit_worker.Worker.holds
    monkeypatch.setattr(
        audit_worker.Worker, "holds", lambda self, chunk: asked.append(chunk.count) or holds(self, chunk)
    )
    report = audit_ledger(path)
    assert report.findings == () and sum(asked) == 132
    unguard(path)
    tamper(
        path,
        "UPDATE events SET subject = 'None' WHERE seq = 6",
        "UPDATE events SET subject = '-' WHERE seq = 7",
        "UPDATE events SET subject = '' WHERE seq = 8",
        "UPDATE events SET trial = trial || chr(1) WHERE seq = 47",
        "UPDATE events SET kind = NULL WHERE seq = 80",
        "UPDATE events SET payload = replace(payload, 'late', 'last') WHERE seq = 96",
        "UPDATE events SET payload = payload || chr(10) || payload WHERE seq = 97",
        "UPDATE events SET event_id = upper(event_id) WHERE seq = 131",
    )
    report = audit_ledger(path)
    found = {(f.code, f.seq) for f in report.findings if f.seq is not None}
    assert found == {
        ("columns", 6),
        ("columns", 7),
        ("columns", 8),
        ("columns", 47),
        ("columns", 80),
        ("event_id", 96),
        ("event_id", 97),
        ("payload", 97),
        ("event_id", 131),
    }
    assert {(r[3], r[1]) for r in sql_audit(path, "bad_events")} == found


def test_the_payload_none_is_told_from_null(make_ledger, in_processes):
    """The text None and no value look alike in a chunk; the rows are then looked at one by one."""
    path = make_ledger(batches=1)
    rehash(path, 2, lambda p: p.replace('"subject":"git"', '"subject":"None"'))
    tamper(path, "UPDATE events SET subject = 'None' WHERE seq = 2")
    assert not any(f.seq == 2 for f in audit_ledger(path).findings)
    tamper(path, "UPDATE events SET subject = NULL WHERE seq = 2")
    found = [f for f in audit_ledger(path).findings if f.seq == 2]
    assert [f.code for f in found] == ["columns"] and "subject is null" in found[0].detail


def test_columns_that_look_alike_when_joined_are_told_apart(make_ledger, in_processes):
    """Texts with the separators of the chunk in them, shifted by one column."""
    path = make_ledger(batches=1)
    unguard(path)
    tamper(path, "UPDATE events SET campaign = campaign || chr(1) || lane, lane = NULL WHERE seq = 3")
    tamper(path, "UPDATE events SET verdict = NULL, outcome = NULL, reason = 'None' WHERE seq = 7")
    assert {f.seq for f in audit_ledger(path).findings if f.code == "columns"} >= {3}


def test_helpers_that_die_change_nothing(make_ledger, monkeypatch, in_processes):
    path = make_ledger(batches=12)
    start = audit_worker.Worker.__init__

    def dying(self):
        start(self)
        self._process.kill()

    monkeypatch.setattr(audit_worker.Worker, "__init__", dying)
    assert audit_ledger(path).ok
    unguard(path)
    tamper(path, "UPDATE events SET subject = 'x' WHERE seq = 100")
    assert {f.seq for f in audit_ledger(path).findings if f.code == "columns"} == {100}


def test_an_error_while_helpers_run_ends_them(make_ledger, monkeypatch, in_processes):
    path = make_ledger(batches=12)
    workers = []
    start = audit_worker.Worker.__init__

    def noted(self):
        workers.append(self)
        start(self)

    monkeypatch.setattr(audit_worker.Worker, "__init__", noted)

    def broken(*_):
        raise duckdb.IOException("the disk is gone")

    monkeypatch.setattr(audit, "check_copies", broken)
    with pytest.raises(LedgerDamagedError, match="the disk is gone"):
        audit_ledger(path)
    assert workers and all(w._process.poll() is not None for w in workers)


def test_a_damaged_block_is_reported_as_damage(tmp_path, one_of_each):
    """A byte changed in the data of the file itself: the database's own checksum refuses the block."""
    path = tmp_path / "l.duckdb"
    with open_ledger(path) as ledger:
        for i in range(40):
            ledger.append(one_of_each("run", 20 * i))
    with duckdb.connect(str(path)) as con:
        con.execute("CHECKPOINT")
    data = bytearray(path.read_bytes())
    hits = 0
    for at in range(3 * 4096, len(data), len(data) // 12):
        damaged = bytearray(data)
        damaged[at + 1000] ^= 0x10
        path.write_bytes(damaged)
        try:
            report = audit_ledger(path)
        except OakledgerError as e:
            assert e.exit_status == 3 and "\n" not in str(e)
            hits += 1
        else:
            assert report.ok or report.exit_status == 3  # a free block, or one that is not read
    assert hits

"""The store: what an append does, and what the database itself refuses."""

from __future__ import annotations

import json
import pathlib
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import duckdb
import pytest

import ledger
from ledger.errors import (
    BadEventError,
    LedgerDamagedError,
    LedgerOpenError,
    OakledgerError,
    ProducerKeyConflictError,
)
from ledger.events import Condition, TrialInvalidated, TrialRecorded, canonical, canonical_sha256, event_id
from ledger.frontier import Frontier
from ledger.staging import Staging, staged_line
from ledger.store import Ledger, StagedConflictError, open_ledger

T = 1_760_000_000_000_000_000


def trial(ordinal: int, **fields: Any) -> TrialRecorded:
    given: dict[str, Any] = {
        "source": "run-1",
        "ordinal": ordinal,
        "recorded_at_ns": T + ordinal,
        "campaign": "c",
        "lane": "agent",
        "scenario": "s",
        "scenario_version": 1,
        "subject": "git",
        "trial": f"t{ordinal}",
        "condition": Condition(model="m", limits={"b_ns": 2, "a_ns": 1}),
        "status": "completed",
        "started_at_ns": T,
    }
    return TrialRecorded(**(given | fields))


@pytest.fixture
def store(tmp_path: pathlib.Path) -> Iterator[Ledger]:
    with open_ledger(tmp_path / "oakledger.duckdb", origin="test/one") as opened:
        yield opened


def test_an_append_numbers_events_densely_and_names_the_tree(store: Ledger) -> None:
    events = [trial(i) for i in range(5)]
    result = store.append(events[:3])
    assert (result.new, result.known, result.checkpoint.size) == (3, 0, 3)
    result = store.append([events[1], *events[3:], events[4]])
    assert (result.new, result.known, result.checkpoint.size) == (2, 2, 5)
    rows = store.con.execute("SELECT origin, seq, event_id, payload FROM events ORDER BY seq").fetchall()
    assert rows == [("test/one", i, event_id(e), canonical(e).decode()) for i, e in enumerate(events)]
    tree = Frontier()
    tree.extend(bytes.fromhex(event_id(e)) for e in events)
    assert result.checkpoint.root == tree.root()
    assert store.checkpoint() == result.checkpoint


def test_typed_columns_are_those_of_the_payload(store: Ledger) -> None:
    event = trial(0, repetition=3)
    store.append([event])
    row = store.con.execute(
        "SELECT kind, kind_version, campaign, lane, scenario, scenario_version, subject, trial, repetition, "
        "status, started_at_ns, recorded_at_ns, condition_key, verdict FROM events"
    ).fetchone()
    key = canonical_sha256(event.condition)
    assert row == ("trial_recorded", 1, "c", "agent", "s", 1, "git", "t0", 3, "completed", T, T, key, None)


def test_an_empty_batch_is_fine(store: Ledger) -> None:
    empty = store.append([])
    assert (empty.new, empty.known, empty.checkpoint.size) == (0, 0, 0)
    store.append([trial(0)])
    assert store.append([]).checkpoint.size == 1
    assert store.append([trial(0)]).checkpoint.size == 1


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"metrics": {"wall_ns": 1.5}}, "a float"),
        ({"trial": "a b"}, "^trial: does not have the form"),
        ({"status": "fine"}, "^status: "),
        ({"recorded_at_ns": 5}, "^recorded_at_ns: a time before 2015"),
        ({"status_code": object()}, "not an event"),
        ({"process_key": "\ud800"}, "not an event"),
        ({"repetition": 2**70}, "."),
    ],
)
def test_a_struct_made_in_python_is_held_to_the_same_rules(
    store: Ledger, fields: dict[str, Any], reason: str
) -> None:
    with pytest.raises(BadEventError, match=reason):
        store.append([trial(0), trial(1, **fields)])
    assert store.checkpoint().size == 0


def test_the_same_producer_key_with_other_content_is_an_error_that_shows_both(store: Ledger) -> None:
    store.append([trial(0), trial(1)])
    with pytest.raises(ProducerKeyConflictError, match=r"run-1 ordinal 1 .*completed.* - new .*timeout"):
        store.append([trial(2), trial(1, status="timeout")])
    assert store.checkpoint().size == 2
    assert store.append([trial(2)]).new == 1


def test_every_conflict_is_found_and_can_be_left_out(store: Ledger) -> None:
    store.append([trial(0), trial(1)])
    batch = [
        trial(5),
        trial(0, status="error"),
        trial(1),
        trial(6),
        trial(6, status="error"),
        trial(1, status="timeout"),
        trial(5),
    ]
    with Staging() as staging:
        for event in batch:
            staging.add_event(event)
        with pytest.raises(StagedConflictError) as refused:
            store.append_staged(staging)
        assert [c.number for c in refused.value.conflicts] == [1, 4, 5]
        assert store.checkpoint().size == 2
        result = store.append_staged(staging, leave_out_conflicts=True)
    assert [c.number for c in result.conflicts] == [1, 4, 5]
    assert (result.new, result.known) == (2, 2)
    seqs = store.con.execute("SELECT trial, status FROM events ORDER BY seq").fetchall()
    assert seqs == [(f"t{n}", "completed") for n in (0, 1, 5, 6)]


def test_a_key_that_is_both_known_and_new_with_other_contents_keeps_the_known_one(store: Ledger) -> None:
    store.append([trial(0)])
    with Staging() as staging:
        for event in (trial(0, status="error"), trial(0), trial(0, status="timeout")):
            staging.add_event(event)
        result = store.append_staged(staging, leave_out_conflicts=True)
    assert [c.number for c in result.conflicts] == [0, 2]
    assert (result.new, result.known) == (0, 1)


def test_events_enter_in_the_order_of_their_numbers_from_any_part(store: Ledger) -> None:
    events = [trial(i) for i in range(6)]
    with Staging() as staging:
        part = staging.new_part()
        lines = [staged_line(i * 10, canonical(e), e.source, e.ordinal) for i, e in enumerate(events)]
        pathlib.Path(part).write_bytes(b"".join(lines[::2][::-1]))
        staging.count += 3
        staging.write(b"".join(lines[1::2]), 3, 0)
        assert store.append_staged(staging).new == 6
    got = store.con.execute("SELECT trial FROM events ORDER BY seq").fetchall()
    assert got == [(e.trial,) for e in events]


@pytest.mark.parametrize(
    ("numbers", "known", "dense"),
    [
        ([4, 8, 12, 16, 20, 24], 0, True),
        ([0, 1, 2, 3, 4, 5], 0, True),
        ([7, 8, 9, 10, 11, 12], 1, False),
        ([4, 8, 12, 16, 20, 28], 0, False),  # a hole
        ([4, 8, 9, 16, 20, 24], 0, False),  # a fact between two lines
        ([4, 7, 11, 16, 20, 24], 0, False),
    ],
)
def test_numbers_with_holes_or_known_events_give_dense_positions_too(
    store: Ledger, monkeypatch: pytest.MonkeyPatch, numbers: list[int], known: int, dense: bool
) -> None:
    events = [trial(i) for i in range(6)]
    store.append(events[2 : 2 + known])
    said: list[str | None] = []
    original = ledger.store._position_by_number
    monkeypatch.setattr(
        ledger.store, "_position_by_number", lambda *given: said.append(original(*given)) or said[-1]
    )
    with Staging() as staging:
        lines = [
            staged_line(n, canonical(e), e.source, e.ordinal) for n, e in zip(numbers, events, strict=True)
        ]
        staging.write(b"".join(lines[3:] + lines[:3]), 6, 0)
        result = store.append_staged(staging)
    assert [position is not None for position in said] == [dense]
    assert (result.new, result.known) == (6 - known, known)
    order = events[2 : 2 + known] + [e for i, e in enumerate(events) if not 2 <= i < 2 + known]
    got = store.con.execute("SELECT seq, event_id FROM events ORDER BY seq").fetchall()
    assert got == [(n, event_id(e)) for n, e in enumerate(order)]
    tree = Frontier()
    tree.extend(bytes.fromhex(event_id(e)) for e in order)
    assert result.checkpoint.root == tree.root()


def test_an_append_leaves_no_table_and_no_setting_behind(store: Ledger) -> None:
    settings = "SELECT current_setting('memory_limit'), current_setting('preserve_insertion_order')"
    before = store.con.execute(settings).fetchone()
    store.append([trial(0)])
    with pytest.raises(ProducerKeyConflictError):
        store.append([trial(0, status="error")])
    assert store.con.execute(settings).fetchone() == before
    assert store.con.execute("SELECT table_name FROM duckdb_tables() WHERE temporary").fetchall() == []


def test_texts_that_look_like_separators_and_nulls_stay_what_they_are(store: Ledger) -> None:
    nasty = ["\x01", "\x02", "\\N", "NULL", '""', "a,b\t'\"", "\u2028\n\r", "é😀", "\0"]
    events = [
        TrialInvalidated(
            source="s",
            ordinal=i,
            recorded_at_ns=T,
            campaign="NULL",
            trial="null",
            who="x",
            why=text,
        )
        for i, text in enumerate(nasty)
    ]
    assert store.append(events).new == len(nasty)
    rows = store.con.execute("SELECT payload, campaign, trial FROM events ORDER BY seq").fetchall()
    assert [json.loads(r[0])["why"] for r in rows] == nasty
    assert {r[1:] for r in rows} == {("NULL", "null")}


@pytest.mark.parametrize(
    ("statement", "says"),
    [
        ("UPDATE events SET campaign = 'x'", "events are append-only: to correct one, ingest a new event"),
        ("DELETE FROM events", "events are append-only: to take one out of the count"),
        ("TRUNCATE events", "append-only"),
        ("UPDATE checkpoints SET size = 9", "checkpoints are append-only"),
        ("DELETE FROM checkpoints", "checkpoints are append-only"),
    ],
)
def test_the_database_itself_refuses_to_edit(store: Ledger, statement: str, says: str) -> None:
    store.append([trial(0)])
    with pytest.raises(duckdb.Error, match=says):
        store.con.execute(statement)
    assert store.con.execute("SELECT count(*) FROM events").fetchone() == (1,)


@pytest.mark.parametrize(
    ("column", "value", "check"),
    [
        ("event_id", "'" + "0" * 64 + "'", r"event_id = sha256"),
        ("payload", "replace(payload, 'completed', 'timeout')", r"event_id = sha256"),
        ("campaign", "'d'", r"json_extract_string"),
        ("verdict", "'pass'", r"json_extract_string"),
        ("status", "NULL", r"json_extract_string"),
        ("kind_version", "2", r"json_extract_string"),
        ("condition_key", "NULL", r"condition_key IS NOT DISTINCT"),
    ],
)
def test_the_database_itself_holds_columns_to_the_payload(
    store: Ledger, column: str, value: str, check: str
) -> None:
    store.append([trial(0)])
    with pytest.raises(duckdb.ConstraintException, match=check):
        store.con.execute(f"INSERT INTO events SELECT * REPLACE (1 AS seq, {value} AS {column}) FROM events")


def test_a_batch_that_does_not_fit_on_the_disk_is_refused_before(
    store: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ledger.store.FREE_SPACE_MARGIN", 1 << 60)
    with pytest.raises(OakledgerError, match=r"MiB free and this batch needs .* nothing was written"):
        store.append([trial(0)])
    assert store.checkpoint().size == 0


def test_a_tree_head_that_does_not_fit_the_events_stops_the_append(store: Ledger) -> None:
    store.append([trial(0)])
    store.con.execute("INSERT INTO checkpoints SELECT * REPLACE (2 AS size) FROM checkpoints")
    with pytest.raises(LedgerDamagedError, match="has 1 events of its own and a checkpoint for 2"):
        store.append([trial(1)])


def test_the_python_api_makes_and_reopens_a_ledger(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "mine.duckdb"
    with ledger.open(path) as opened:
        origin = opened.origin
        assert opened.append([trial(0)]).new == 1
    with ledger.open(path) as opened:
        assert opened.origin == origin
        assert opened.append([trial(0), trial(1)]).new == 1
    with pytest.raises(LedgerOpenError, match="no ledger at"):
        ledger.open(tmp_path / "other.duckdb", create=False)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["mine.duckdb"]


def test_two_ledgers_have_two_origins(tmp_path: pathlib.Path) -> None:
    with ledger.open(tmp_path / "a.duckdb") as one, ledger.open(tmp_path / "b.duckdb") as two:
        assert one.origin != two.origin


def test_duckdb_draws_nothing_on_standard_output(tmp_path: pathlib.Path) -> None:
    """A program given by -c looks interactive to DuckDB, and a slow query would get its progress bar."""
    program = (
        "import sys; from ledger.store import open_ledger\n"
        "with open_ledger(sys.argv[1]) as opened:\n"
        "    sql = \"SELECT current_setting('enable_progress_bar')\"\n"
        "    print(opened.con.execute(sql).fetchone()[0])\n"
    )
    run = subprocess.run([sys.executable, "-c", program, str(tmp_path / "l.duckdb")], capture_output=True)
    assert (run.returncode, run.stdout, run.stderr) == (0, b"False\n", b"")


def test_a_view_in_the_place_of_a_table_is_not_read(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "l.duckdb"
    with open_ledger(path) as book:
        book.append([trial(0)])
    secret = tmp_path / "secret"
    secret.write_text("what-was-secret")
    with duckdb.connect(str(path)) as con:
        con.execute("CREATE TABLE kept AS FROM events; DROP TABLE events CASCADE")
        con.execute(
            "CREATE VIEW events AS "
            f"SELECT * REPLACE ((SELECT content FROM read_text('{secret}')) AS campaign) FROM kept"
        )
    for read_only in (True, False):
        with pytest.raises(LedgerDamagedError, match="lacks a table"):
            open_ledger(path, read_only=read_only)
    for command in (["status"], ["show", "c"], ["qualify", "--campaign", "c"], ["export", "--parquet", "x"]):
        done = subprocess.run(
            [sys.executable, "-m", "ledger.cli", "--ledger", str(path), *command],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 3 and "what-was-secret" not in done.stdout + done.stderr


def test_a_connection_fetches_no_extension(store: Ledger) -> None:
    settings = (
        "SELECT current_setting('autoload_known_extensions'), current_setting('autoinstall_known_extensions')"
    )
    assert store.con.execute(settings).fetchone() == (False, False)
    with pytest.raises(duckdb.Error):
        store.con.execute("SELECT * FROM read_text('https://127.0.0.1:1/x')")

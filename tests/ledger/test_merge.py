"""Merging: union of streams, idempotent, in any order, with everything an auditor needs kept."""

import itertools
import shutil
from pathlib import Path

import duckdb
import pytest

from ledger.audit import audit_ledger
from ledger.errors import LedgerDamagedError, OakledgerError, ProducerKeyConflictError
from ledger.events import TrialInvalidated
from ledger.merge import merge
from ledger.store import open_ledger

NOW = 1_750_000_000_000_000_000


def event(source, ordinal, why="broken machine"):
    return TrialInvalidated(
        source=source,
        ordinal=ordinal,
        recorded_at_ns=NOW,
        campaign="c",
        trial=f"t{ordinal}",
        who="me",
        why=why,
    )


def make(path, origin, source, count):
    with open_ledger(path, origin=origin) as ledger:
        ledger.append([event(source, i) for i in range(count)])
    return str(path)


def content(ledger):
    return ledger.con.execute("SELECT * FROM events ORDER BY origin, seq").fetchall()


def counted(ledger):
    return ledger.con.execute("SELECT event_id FROM ledger_events ORDER BY 1").fetchall()


def test_any_order_gives_the_same_ledger(tmp_path):
    parts = [
        make(tmp_path / f"{o}.duckdb", o, s, n)
        for o, s, n in [("b", "s1", 5), ("a", "s2", 7), ("c", "s1", 9)]
    ]
    seen = []
    for number, order in enumerate(itertools.permutations(parts)):
        with open_ledger(tmp_path / f"all{number}.duckdb", origin="z") as ledger:
            for other in order:
                assert merge(ledger, other).new > 0
            assert [merge(ledger, other).new for other in order] == [0, 0, 0]
            seen.append((content(ledger), counted(ledger)))
            # s1 0..4 are in both b and c: stored twice, counted once, and the copy of b counts
            assert len(seen[-1][0]) == 21
            assert len(seen[-1][1]) == 16
            assert ledger.con.execute("SELECT DISTINCT origin FROM duplicates").fetchall() == [("c",)]
    assert all(s == seen[0] for s in seen)


def test_earlier_checkpoints_stay(tmp_path):
    other = make(tmp_path / "b.duckdb", "b", "s", 3)
    with open_ledger(other) as ledger:
        ledger.append([event("s", 3)])
        heads = ledger.con.execute("SELECT * FROM checkpoints ORDER BY size").fetchall()
    with open_ledger(tmp_path / "a.duckdb", origin="a") as ledger:
        own = ledger.append([event("own", 0)]).checkpoint
        merge(ledger, other)
        assert (
            ledger.con.execute("SELECT * FROM checkpoints WHERE origin = 'b' ORDER BY size").fetchall()
            == heads
        )
        assert ledger.checkpoint() == own
        assert ledger.append([event("own", 1)]).checkpoint.size == 2


def test_an_event_of_another_origin_is_known(tmp_path):
    other = make(tmp_path / "b.duckdb", "b", "s", 3)
    with open_ledger(tmp_path / "a.duckdb", origin="a") as ledger:
        merge(ledger, other)
        result = ledger.append([event("s", i) for i in range(4)])
        assert (result.new, result.known) == (1, 3)


def test_a_key_conflict_across_origins_shows_both(tmp_path):
    other = make(tmp_path / "b.duckdb", "b", "s", 3)
    with open_ledger(tmp_path / "a.duckdb", origin="a") as ledger:
        ledger.append([event("s", 1, why="another story")])
        before = content(ledger)
        with pytest.raises(ProducerKeyConflictError, match=r"another story.*broken machine"):
            merge(ledger, other)
        assert content(ledger) == before


def test_a_forked_stream_is_refused(tmp_path):
    first = make(tmp_path / "b.duckdb", "b", "s", 3)
    fork = str(tmp_path / "fork.duckdb")
    shutil.copyfile(first, fork)
    with open_ledger(fork) as ledger:
        ledger.append([event("fork", 0)])
    with open_ledger(first) as ledger:
        ledger.append([event("first", 0)])
        with pytest.raises(LedgerDamagedError, match="seq 3"):
            merge(ledger, fork)


def test_a_longer_copy_brings_the_rest(tmp_path):
    first = make(tmp_path / "b.duckdb", "b", "s", 3)
    longer = str(tmp_path / "longer.duckdb")
    shutil.copyfile(first, longer)
    with open_ledger(longer) as ledger:
        head = ledger.append([event("s", 3), event("s", 4)]).checkpoint
    with open_ledger(first) as ledger:
        result = merge(ledger, longer)
        assert (result.new, result.known) == (2, 3)
        assert ledger.checkpoint() == head
        assert ledger.append([event("s", 5)]).checkpoint.size == 6


def rebuilt(path, *statements):
    """Do to a file what oakledger does not: with the guards out of the way."""
    with duckdb.connect(path) as con:
        for name in ("events_no_update", "events_no_delete"):
            con.execute(f"DROP TRIGGER {name} ON events")
        for statement in statements:
            con.execute(statement)


HOSTILE = {
    "a tail was cut off": ["DELETE FROM events WHERE seq = 2"],
    "an event came in past ingest": [
        "INSERT INTO events BY NAME SELECT * REPLACE (3 AS seq) FROM events WHERE seq = 0"
    ],
    "a payload that is no event": [
        "DELETE FROM events WHERE seq = 0",
        """
        INSERT INTO events
        (origin, seq, event_id, kind, kind_version, source, ordinal, recorded_at_ns, payload)
        SELECT 'b', 0, sha256(chr(0) || p), 'nonsense', 1, 's', 0, 1, p
        FROM (SELECT '{"kind":"nonsense/1","source":"s","ordinal":0,"recorded_at_ns":1}' AS p)""",
    ],
    "guards are gone": [],
    "the table is a view on something else": [
        "CREATE TABLE kept AS FROM events",
        "DROP TABLE events CASCADE",
        "CREATE VIEW events AS "
        "SELECT * REPLACE ((SELECT content FROM read_text('secret')) AS source) FROM kept",
    ],
}


@pytest.mark.parametrize("what", HOSTILE)
def test_a_ledger_that_does_not_verify_is_refused(tmp_path, monkeypatch, what):
    monkeypatch.chdir(tmp_path)
    Path("secret").write_text("a-secret-of-this-machine")
    other = make(tmp_path / "b.duckdb", "b", "s", 3)
    rebuilt(other, *HOSTILE[what])
    with open_ledger(tmp_path / "a.duckdb", origin="a") as ledger:
        ledger.append([event("own", 0)])
        before = content(ledger)
        with pytest.raises(LedgerDamagedError) as refused:
            merge(ledger, other)
        assert "secret-of" not in str(refused.value)
        assert content(ledger) == before
        assert audit_ledger(ledger).ok
        assert merge(ledger, make(tmp_path / "c.duckdb", "c", "s3", 2)).new == 2


def test_views_of_another_version_do_no_harm(tmp_path):
    other = make(tmp_path / "b.duckdb", "b", "s", 3)
    with duckdb.connect(other) as con:
        con.execute(
            "CREATE OR REPLACE VIEW cells AS SELECT error('ran') AS x; "
            "DROP VIEW trials; CREATE VIEW y AS SELECT 1"
        )
    with open_ledger(tmp_path / "a.duckdb", origin="a") as ledger:
        assert merge(ledger, other).new == 3
        assert audit_ledger(ledger).ok


def test_a_ledger_is_not_merged_into_itself(tmp_path):
    path = make(tmp_path / "b.duckdb", "b", "s", 3)
    link = tmp_path / "link.duckdb"
    link.symlink_to(path)
    with open_ledger(path) as ledger, pytest.raises(OakledgerError, match="name another one"):
        merge(ledger, str(link))

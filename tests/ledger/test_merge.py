"""Merging: union of streams, idempotent, in any order, with everything an auditor needs kept."""

import itertools
import shutil

import pytest

from ledger.errors import LedgerDamagedError, ProducerKeyConflictError
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

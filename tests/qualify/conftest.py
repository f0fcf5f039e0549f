"""Makes `campaigns` importable, and evaluates many campaigns at once."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path

import duckdb
import pytest

sys.path.insert(0, str(Path(__file__).parent))

from ledger import sqlfiles, views
from ledger.events import AnyEvent
from ledger.store import Ledger


def memory_ledger() -> Ledger:
    """A ledger in memory, without stored views."""
    con = duckdb.connect()
    con.execute(sqlfiles.read("000_schema.sql"))
    con.execute("INSERT INTO ledger_meta VALUES ('schema_version', '1'), ('origin', 'test/origin')")
    return Ledger(":memory:", con, read_only=False)


def evaluate(batches: Iterable[list[AnyEvent]]) -> duckdb.DuckDBPyConnection:
    """Put batches into one ledger in memory and return a connection with all views over all campaigns."""
    book = memory_ledger()
    book.append([event for batch in batches for event in batch])
    cursor = book.con.cursor()
    cursor.execute("ATTACH ':memory:' AS all_campaigns")
    cursor.execute("USE all_campaigns")
    for table in ("events", "duplicates", "checkpoints"):
        cursor.execute(f"CREATE VIEW {table} AS SELECT * FROM memory.main.{table}")
    views.build(cursor, None, upto="299")
    return cursor


@pytest.fixture(scope="session")
def in_memory():
    """The function `memory_ledger`."""
    return memory_ledger


@pytest.fixture(scope="session")
def evaluated():
    """The function `evaluate`."""
    return evaluate

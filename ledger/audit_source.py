"""What an audit reads: the tables of one file, whatever has been done to them.

The tables are read through temporary views that cast every column to its proper type and yield null where a
cast or a column fails, so that a table of another shape is a finding and not a crash. The connection's search
path lies outside the file, so that no macro, view or type in the file is ever used by the audit.
"""

from __future__ import annotations

import os
from contextlib import suppress

import duckdb

from ledger.store import _SCALARS

_EVENT_COLUMNS: tuple[tuple[str, str], ...] = (
    ("origin", "VARCHAR"),
    ("seq", "BIGINT"),
    ("event_id", "VARCHAR"),
    ("kind", "VARCHAR"),
    ("kind_version", "INTEGER"),
    *_SCALARS,
    ("condition_key", "VARCHAR"),
    ("payload", "VARCHAR"),
)
_TABLES: dict[str, tuple[tuple[str, str], ...]] = {
    "events": _EVENT_COLUMNS,
    "checkpoints": (("origin", "VARCHAR"), ("size", "BIGINT"), ("root", "VARCHAR"), ("frontier", "VARCHAR")),
    "duplicates": (("origin", "VARCHAR"), ("seq", "BIGINT")),
    "ledger_meta": (("key", "VARCHAR"), ("value", "VARCHAR")),
}


def outside(con: duckdb.DuckDBPyConnection) -> None:
    """Move a connection's search path out of the file, so that nothing in the file shadows a function."""
    con.execute("ATTACH IF NOT EXISTS ':memory:' AS oakledger_audit (READ_WRITE)")
    con.execute("USE oakledger_audit")


class Source:
    """The tables of a ledger file behind `audited_events`, `audited_checkpoints`, and so on."""

    def __init__(self, con: duckdb.DuckDBPyConnection, path: str) -> None:
        self._con = con
        self.path = path
        self.database = _database_name(con, path)
        self._open: list[duckdb.DuckDBPyConnection] = []
        self._views: str | None = None

    def cursor(self) -> duckdb.DuckDBPyConnection:
        """Return a connection of its own, in a read-only transaction, with the `audited_*` views."""
        cursor = self._con.cursor()
        self._open.append(cursor)
        outside(cursor)
        if self._views is None:
            self._views = "; ".join(self._view(cursor, *table) for table in _TABLES.items())
        cursor.execute(self._views)
        cursor.execute("BEGIN TRANSACTION READ ONLY")
        return cursor

    def _view(self, con: duckdb.DuckDBPyConnection, table: str, columns: tuple[tuple[str, str], ...]) -> str:
        present = dict(columns_of(con, self.database, table))
        head = f"CREATE OR REPLACE TEMP VIEW audited_{table} AS SELECT "
        if not present:
            empty = ", ".join(f"NULL::{kind} AS {_quoted(name)}" for name, kind in columns)
            return f"{head} 0::BIGINT AS row, {empty} WHERE false"
        cast = ", ".join(
            (f"TRY_CAST({_quoted(name)} AS {kind})" if name in present else f"NULL::{kind}")
            + f" AS {_quoted(name)}"
            for name, kind in columns
        )
        row = "rowid" if "rowid" not in present else "row_number() OVER () - 1"
        return f"{head} {row} AS row, {cast} FROM {_quoted(self.database)}.main.{table}"

    def close(self) -> None:
        """Close the connections handed out; the one given to the constructor stays open."""
        for cursor in self._open:
            with suppress(duckdb.Error):
                cursor.execute("ROLLBACK")
            with suppress(duckdb.Error):
                cursor.close()
        with suppress(duckdb.Error):
            self._con.execute("DETACH oakledger_audit")


def columns_of(con: duckdb.DuckDBPyConnection, database: str, table: str) -> list[tuple[str, str]]:
    """Return the columns of a table as (name, type); none when it is not there or is no table.

    Not from duckdb_columns(), which binds every view of the file to say what its columns are.
    """
    found = con.execute(
        "SELECT 1 FROM duckdb_tables() WHERE database_name = ? AND schema_name = 'main' AND table_name = ?",
        [database, table],
    ).fetchone()
    if found is None:
        return []
    # The name of a table is one of ours or comes from the catalogue, and is quoted.
    query = con.execute(f"SELECT * FROM {_quoted(database)}.main.{_quoted(table)} LIMIT 0")  # noqa: S608
    return [(str(column[0]), str(column[1])) for column in query.description or ()]


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _database_name(con: duckdb.DuckDBPyConnection, path: str) -> str:
    real = os.path.realpath(path)
    rows = con.execute("PRAGMA database_list").fetchall()
    for _, name, file in rows:
        if file and os.path.realpath(str(file)) == real:
            return str(name)
    raise ValueError(f"{path} is not open in this connection")

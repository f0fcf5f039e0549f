"""The store: one DuckDB 2 file with append-only events (design section 5).

A writer holds the file for the length of one transaction; others wait with a deadline and are told who holds
it. An append stages canonical bytes in a file that DuckDB reads in one go, drops what is known, numbers the
rest, extends the tree and commits: all or nothing, and durable before it returns.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import re
import secrets
import shutil
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import duckdb

from ledger import sqlfiles, views
from ledger.decode import validated
from ledger.errors import LedgerDamagedError, LedgerOpenError, OakledgerError, ProducerKeyConflictError
from ledger.events import AnyEvent
from ledger.frontier import EMPTY_ROOT, Frontier
from ledger.scratch import scratch
from ledger.staging import Staging

#: Version of the tables. A file with a larger one was written by a newer oakledger and is refused.
SCHEMA_VERSION = 1

#: Bytes that must stay free beside what an append is expected to write.
FREE_SPACE_MARGIN = 64 << 20

#: How often bytes of a staged batch are on disk at the same time, at most: staging, write-ahead log, table.
_SPACE_FACTOR = 3

#: What one append may use of memory, in DuckDB's buffers. More does not make it faster.
APPEND_MEMORY = 384 << 20

#: What the key index of the events takes while it is extended, in bytes an event; all of it is in memory.
INDEX_BYTES = 100

#: Events whose index fits into APPEND_MEMORY.
_INDEX_FREE = 1_000_000

#: How many producer key conflicts are shown with the texts of both events.
_SHOWN_CONFLICTS = 100

# JSON path of each typed column that is a plain scalar of the payload, in column order after kind.
_SCALARS: tuple[tuple[str, str], ...] = (
    ("source", "VARCHAR"),
    ("ordinal", "BIGINT"),
    ("recorded_at_ns", "BIGINT"),
    ("campaign", "VARCHAR"),
    ("lane", "VARCHAR"),
    ("scenario", "VARCHAR"),
    ("scenario_version", "INTEGER"),
    ("subject", "VARCHAR"),
    ("trial", "VARCHAR"),
    ("repetition", "BIGINT"),
    ("status", "VARCHAR"),
    ("started_at_ns", "BIGINT"),
    ("verdict", "VARCHAR"),
    ("reader_event_id", "VARCHAR"),
    ("outcome", "VARCHAR"),
    ("reason", "VARCHAR"),
)


@dataclass(frozen=True)
class Checkpoint:
    """A tree head: the first `size` events of `origin` have this RFC 6962 root (32 bytes)."""

    origin: str
    size: int
    root: bytes


@dataclass(frozen=True)
class KeyConflict:
    """A staged event whose producer key is known with other content; texts of both, cut when long."""

    number: int
    source: str
    ordinal: int
    known: str
    new: str

    def __str__(self) -> str:
        return (
            f"source {self.source} ordinal {self.ordinal} came twice with different content: "
            f"known {self.known} - new {self.new}: "
            "give the new event its own ordinal, or a source name unique to its run"
        )


class StagedConflictError(ProducerKeyConflictError):
    """Some staged events have a producer key that is known with other content; `conflicts` has them all."""

    def __init__(self, conflicts: list[KeyConflict]) -> None:
        super().__init__(str(conflicts[0]))
        self.conflicts = conflicts


@dataclass(frozen=True)
class AppendResult:
    """What an append did: events that are new, events that were known, and the tree head after it.

    `conflicts` are the events that were left out, when the caller asked for that.
    """

    new: int
    known: int
    checkpoint: Checkpoint
    conflicts: tuple[KeyConflict, ...] = ()


def _staged_table(paths: list[str]) -> str:
    quoted = ", ".join("'" + path.replace("'", "''") + "'" for path in paths)
    return (
        f"read_csv([{quoted}], columns = {{'n': 'BIGINT', 'event_id': 'VARCHAR', 'source': 'VARCHAR', "
        "'ordinal': 'BIGINT', 'payload': 'VARCHAR'}, delim = chr(1), quote = '', escape = '', comment = '', "
        "header = false, auto_detect = false, max_line_size = 4194304, nullstr = chr(2))"
    )


def _process_name(pid: str) -> str:
    try:
        with open(f"/proc/{pid}/comm", encoding="utf-8", errors="replace") as f:
            return "".join(c if c.isprintable() else "?" for c in f.read().strip())
    except OSError:
        return "unknown program"


def check_header(path: str) -> None:
    """Refuse what is not a DuckDB file before DuckDB sees it.

    Raises LedgerOpenError: missing, a directory, no regular file, no DuckDB file.
    """
    try:
        if os.path.isdir(path):
            raise LedgerOpenError(
                f"{path} is a directory: name a ledger file, for example {path}/oakledger.duckdb"
            )
        if not os.path.exists(path):
            raise LedgerOpenError(
                f"no ledger at {path}: give --ledger PATH, or make one with oakledger ingest"
            )
        if not os.path.isfile(path):
            raise LedgerOpenError(f"{path} is no regular file: name a ledger file")
        with open(path, "rb") as f:
            head = f.read(12)
    except OSError as e:
        raise LedgerOpenError(
            f"{path} cannot be read ({e.strerror}): check the path and its permissions"
        ) from e
    if head[8:12] != b"DUCK":
        raise LedgerOpenError(f"{path} is no DuckDB file: name a ledger that oakledger made")


def connect(
    path: str, *, read_only: bool, lock_timeout_s: float = 30.0, config: dict[str, Any] | None = None
) -> duckdb.DuckDBPyConnection:
    """Open a DuckDB file, waiting up to `lock_timeout_s` seconds for another process that holds it.

    Raises LedgerOpenError when it stays held (the message names the process) or cannot be written, and
    LedgerDamagedError when DuckDB finds the file damaged.
    """
    give_up = time.monotonic() + lock_timeout_s
    pause = 0.01
    while True:
        try:
            con = duckdb.connect(path, read_only=read_only, config=config or {})
            # DuckDB draws on standard output when it takes a process for an interactive one.
            con.execute("SET enable_progress_bar = false")
            # What a hostile file calls for is not fetched: extensions reach the network.
            con.execute("SET autoload_known_extensions = false; SET autoinstall_known_extensions = false")
            return con
        except duckdb.IOException as e:
            text = str(e)
            if "Could not set lock" not in text and "Conflicting lock" not in text:
                raise _open_error(path, e) from e
            if time.monotonic() >= give_up:
                held = re.search(r"PID (\d+)", text)
                who = f"process {held[1]} ({_process_name(held[1])})" if held else "another process"
                raise LedgerOpenError(
                    f"{path} is held by {who} and was not released within {lock_timeout_s:g} s: "
                    "wait for it to finish or raise --lock-timeout"
                ) from e
        except duckdb.Error as e:
            raise _open_error(path, e) from e
        time.sleep(pause)
        pause = min(pause * 1.5, 0.2)


def _open_error(path: str, error: duckdb.Error) -> OakledgerError:
    text = " ".join(str(error).split())
    low = text.lower()
    if "permission denied" in low or "read-only" in low or "cannot open file" in low:
        return LedgerOpenError(f"{path} cannot be opened ({text[:200]}): check its permissions")
    if "newer version" in low or "version number" in low:
        return LedgerOpenError(f"{path} was written by another DuckDB version ({text[:200]}): update duckdb")
    return LedgerDamagedError(
        f"{path} does not open as a ledger ({text[:200]}): "
        "restore it from a copy and compare that with a kept checkpoint"
    )


class Ledger:
    """An open ledger. Use `open_ledger`, and as a context manager."""

    def __init__(self, path: str, con: duckdb.DuckDBPyConnection, *, read_only: bool) -> None:
        self.path = path
        self.con = con
        self.read_only = read_only
        self.origin = self._meta("origin")

    def _meta(self, key: str) -> str:
        row = self.con.execute("SELECT value FROM ledger_meta WHERE key = ?", [key]).fetchone()
        if row is None:
            raise LedgerDamagedError(f"{self.path} has no {key} in ledger_meta: it is no whole ledger")
        return str(row[0])

    def __enter__(self) -> Ledger:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self.con.close()

    @contextlib.contextmanager
    def transaction(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """Run a block as one transaction: all or nothing."""
        self.con.execute("BEGIN TRANSACTION")
        try:
            yield self.con
        except BaseException:
            with contextlib.suppress(duckdb.Error):
                self.con.execute("ROLLBACK")
            raise
        self.con.execute("COMMIT")

    def checkpoint(self, origin: str | None = None) -> Checkpoint:
        """Return the newest tree head of an origin (default: this ledger's own)."""
        origin = origin or self.origin
        row = self.con.execute(
            "SELECT size, root FROM checkpoints WHERE origin = ? ORDER BY size DESC LIMIT 1", [origin]
        ).fetchone()
        if row is None:
            return Checkpoint(origin, 0, EMPTY_ROOT)
        return Checkpoint(origin, int(row[0]), bytes.fromhex(row[1]))

    def has_campaign(self, name: str) -> bool:
        """Return whether any event but a decision mentions a campaign."""
        row = self.con.execute(
            "SELECT 1 FROM events WHERE campaign = ? AND kind <> 'qualification_decided' LIMIT 1", [name]
        ).fetchone()
        return row is not None

    def append(self, events: Iterable[AnyEvent]) -> AppendResult:
        """Append event structs as one transaction; known events are skipped, an empty batch is fine.

        Structs made in Python have not been validated, so that is done here. Raises BadEventError for one
        that is not valid, ProducerKeyConflictError when a (source, ordinal) is known with other content, and
        OakledgerError when the disk has no room.
        """
        with Staging() as staging:
            for event in events:
                staging.add(validated(event), event.source, event.ordinal)
            return self.append_staged(staging)

    def append_staged(self, staging: Staging, *, leave_out_conflicts: bool = False) -> AppendResult:
        """Append a staged batch as one transaction. Raises as `append`.

        With `leave_out_conflicts` the events whose producer key is known with other content are left out and
        returned; without it the first of them is raised, with all of them as the error's `conflicts`.
        """
        if staging.count == 0:
            return AppendResult(0, 0, self.checkpoint())
        staging.flush()
        self._check_free_space(staging.bytes)
        limit = append_memory(self._count() + staging.count)
        self.con.execute(f"SET memory_limit = '{limit}B'; SET preserve_insertion_order = false")
        try:
            with self.transaction() as con:
                new, conflicts = self._append_in_transaction(con, staging, leave_out_conflicts)
        except duckdb.Error as e:
            raise self._write_error(e) from e
        finally:
            with contextlib.suppress(duckdb.Error):
                self.con.execute(
                    "DROP TABLE IF EXISTS staged; DROP TABLE IF EXISTS fresh; "
                    "DROP TABLE IF EXISTS conflicting; DROP TABLE IF EXISTS known; "
                    "RESET memory_limit; RESET preserve_insertion_order"
                )
        known = staging.count - new - len(conflicts)
        return AppendResult(new, known, self.checkpoint(), tuple(conflicts))

    def _count(self) -> int:
        row = self.con.execute("SELECT count(*) FROM events").fetchone()
        return int(row[0]) if row else 0

    def _write_error(self, error: duckdb.Error) -> OakledgerError:
        text = " ".join(str(error).split())[:300]
        if "No space left" in text:
            return OakledgerError(
                f"no space left while writing {self.path}: free some and ingest again, nothing was lost"
            )
        return OakledgerError(f"{self.path} refused the batch ({text}): nothing was written")

    def _check_free_space(self, staged_bytes: int) -> None:
        folder = os.path.dirname(os.path.abspath(self.path))
        need = staged_bytes * _SPACE_FACTOR + FREE_SPACE_MARGIN
        free = shutil.disk_usage(folder).free
        if free < need:
            raise OakledgerError(
                f"{folder} has {free >> 20} MiB free and this batch needs {need >> 20} MiB: "
                "free some space and ingest again, nothing was written"
            )

    def _append_in_transaction(
        self, con: duckdb.DuckDBPyConnection, staging: Staging, leave_out_conflicts: bool
    ) -> tuple[int, list[KeyConflict]]:
        table = _staged_table(staging.paths)
        con.execute(
            f"CREATE OR REPLACE TEMP TABLE staged AS SELECT n, event_id, source, ordinal FROM {table}"  # noqa: S608 - our own temporary files
        )
        staged = _Staged.of(con)
        conflicts = self._key_conflicts(con, table, staged)
        if conflicts and not leave_out_conflicts:
            raise StagedConflictError(conflicts)
        position = None if conflicts else _position_by_number(con, staged)
        if position is None:
            con.execute(
                "CREATE OR REPLACE TEMP TABLE fresh AS "
                "SELECT n, row_number() OVER (ORDER BY n) - 1 AS position, event_id FROM "
                "(SELECT event_id, min(n) AS n FROM staged "
                " WHERE event_id NOT IN (SELECT kept FROM known) "
                " AND n NOT IN (SELECT n FROM conflicting) GROUP BY event_id)"
            )
            position, ids = "position", "fresh"
            rows = f"(SELECT n, payload FROM {table}) JOIN fresh USING (n)"  # noqa: S608
        else:
            rows, ids = table, "staged"
        counted = con.execute(f"SELECT count(*) FROM {ids}").fetchone()  # noqa: S608 - one of two names
        new = int(counted[0]) if counted else 0
        if new == 0:
            return 0, conflicts
        frontier = self._frontier(con)
        paths = ", ".join(f"'$.{name}'" for name in ("kind", *(c for c, _ in _SCALARS)))
        columns = ", ".join(name for name, _ in _SCALARS)
        values = ", ".join(
            f"v[{i}]" if kind == "VARCHAR" else f"v[{i}]::{kind}"
            for i, (_, kind) in enumerate(_SCALARS, start=2)
        )
        con.execute(
            "INSERT INTO events "  # noqa: S608 - names are our own constants
            f"(origin, seq, event_id, kind, kind_version, {columns}, condition_key, payload) "
            f"SELECT ?, ? + position, event_id, split_part(v[1], '/', 1), split_part(v[1], '/', 2)::INTEGER, "
            f"{values}, sha256(payload -> '$.condition'), payload FROM ("
            f"SELECT {position} AS position, event_id, payload, json_extract_string(payload, [{paths}]) AS v "
            f"FROM {rows})",
            [self.origin, frontier.size],
        )
        leaves = con.execute(f"SELECT event_id FROM {ids} ORDER BY n")  # noqa: S608
        while batch := leaves.fetchmany(20_480):
            frontier.extend(map(bytes.fromhex, chain.from_iterable(batch)))
        con.execute(
            "INSERT INTO checkpoints (origin, size, root, frontier) VALUES (?, ?, ?, ?)",
            [self.origin, frontier.size, frontier.root().hex(), frontier.encode()],
        )
        return new, conflicts

    def _frontier(self, con: duckdb.DuckDBPyConnection) -> Frontier:
        row = con.execute(
            "SELECT size, frontier FROM checkpoints WHERE origin = ? ORDER BY size DESC LIMIT 1",
            [self.origin],
        ).fetchone()
        counted = con.execute(
            "SELECT coalesce(max(seq) + 1, 0) FROM events WHERE origin = ?", [self.origin]
        ).fetchone()
        size = int(counted[0]) if counted else 0
        known = int(row[0]) if row else 0
        if known != size:
            raise LedgerDamagedError(
                f"{self.path} has {size} events of its own and a checkpoint for {known}: run oakledger audit"
            )
        try:
            return Frontier.decode(known, row[1]) if row else Frontier()
        except ValueError as e:
            raise LedgerDamagedError(
                f"{self.path} has a damaged tree frontier ({e}): run oakledger audit"
            ) from e

    def _key_conflicts(
        self, con: duckdb.DuckDBPyConnection, table: str, staged: _Staged
    ) -> list[KeyConflict]:
        """Find the staged events whose producer key has other content (design section 4).

        What the ledger knows counts, else what was staged first.
        """
        # Producer keys are shorter than ids, and numbers that lie together are found without a full scan.
        con.execute(
            "CREATE OR REPLACE TEMP TABLE known AS "
            "SELECT s.n, s.source, s.ordinal, s.event_id, e.event_id AS kept FROM staged s "
            "JOIN events e ON e.source = s.source AND e.ordinal = s.ordinal"
        )
        con.execute("CREATE OR REPLACE TEMP TABLE conflicting AS FROM known WHERE event_id <> kept")
        # An event id stands for one key, so as many keys as ids means that no key has two of them.
        if staged.ids != staged.keys:
            con.execute(
                "INSERT INTO conflicting "
                "SELECT s.n, s.source, s.ordinal, s.event_id, k.kept FROM staged s JOIN ("
                " SELECT source, ordinal, min_by(event_id, n) AS kept FROM staged"
                " WHERE n NOT IN (SELECT n FROM conflicting)"
                " GROUP BY source, ordinal HAVING min(event_id) <> max(event_id)"
                ") k ON k.source = s.source AND k.ordinal = s.ordinal "
                "WHERE s.event_id <> k.kept AND s.n NOT IN (SELECT n FROM conflicting)"
            )
        found = con.execute(
            "SELECT n, any_value(source), any_value(ordinal), any_value(event_id), min(kept) "
            "FROM conflicting GROUP BY n ORDER BY n"
        ).fetchall()
        if not found:
            return []
        shown = found[:_SHOWN_CONFLICTS]
        ids = [event_id for row in shown for event_id in row[3:5]]
        texts = dict(
            con.execute(
                f"SELECT event_id, payload FROM {table} WHERE event_id IN (SELECT unnest(?)) "  # noqa: S608
                "UNION ALL SELECT event_id, payload FROM events WHERE event_id IN (SELECT unnest(?))",
                [ids, ids],
            ).fetchall()
        )
        return [
            KeyConflict(
                int(n),
                source,
                int(ordinal),
                _excerpt(texts.get(kept, f"event {kept}")),
                _excerpt(texts.get(event_id, f"event {event_id}")),
            )
            for n, source, ordinal, event_id, kept in found
        ]


class _Staged(NamedTuple):
    """What is staged: events, their first and last number, and how many ids and producer keys they have."""

    events: int
    first: int
    last: int
    ids: int
    keys: int

    @classmethod
    def of(cls, con: duckdb.DuckDBPyConnection) -> _Staged:
        row = con.execute(
            "SELECT count(*), min(n), max(n), (SELECT count(*) FROM (SELECT DISTINCT event_id FROM staged)), "
            "(SELECT count(*) FROM (SELECT DISTINCT source, ordinal FROM staged)) FROM staged"
        ).fetchone()
        assert row is not None
        return cls(*row)


def _position_by_number(con: duckdb.DuckDBPyConnection, staged: _Staged) -> str | None:
    """Return the position of a staged event among the new ones as SQL over its number n.

    That can be said when every event is new, none came twice and the numbers have no holes, as in a file of
    nothing but good events; null when it cannot. It saves the join with the table of new events.
    """
    known = con.execute("SELECT 1 FROM known LIMIT 1").fetchone()
    span, steps = staged.last - staged.first, max(staged.events - 1, 1)
    if known or staged.ids != staged.events or span % steps:
        return None
    step = max(span, 1) // steps
    odd = con.execute("SELECT count(*) FROM staged WHERE (n - ?) % ? <> 0", [staged.first, step]).fetchone()
    return f"(n - {staged.first}) // {step}" if odd == (0,) else None


def append_memory(events: int) -> int:
    """Return DuckDB's memory limit in bytes for an append after which a ledger has so many events."""
    return APPEND_MEMORY + INDEX_BYTES * max(0, events - _INDEX_FREE)


def _excerpt(payload: str, limit: int = 600) -> str:
    return payload if len(payload) <= limit else payload[:limit] + "..."


def _create_views(con: duckdb.DuckDBPyConnection) -> None:
    """Store the shipped views unbound: binding each through all the views below it takes seconds."""
    for view in views.shipped():
        con.execute(views.stored(view))


@functools.cache
def _views_stored(shipped: tuple[views.View, ...]) -> str:
    """Return, a line a view, its name and the digest of the statement that stores it."""
    return "\n".join(
        f"{view.name} {hashlib.sha256(views.stored(view).encode()).hexdigest()}" for view in shipped
    )


def _create(con: duckdb.DuckDBPyConnection, origin: str | None) -> None:
    con.execute("BEGIN TRANSACTION")
    con.execute(sqlfiles.read("000_schema.sql"))
    _create_views(con)
    # 64 random bits keep the origins of separate machines apart without coordination.
    con.execute(
        "INSERT INTO ledger_meta VALUES "
        "('schema_version', ?), ('origin', ?), ('views_sha256', ?), ('views', ?)",
        [
            str(SCHEMA_VERSION),
            origin or f"oakledger/{secrets.token_hex(8)}",
            sqlfiles.views_sha256(),
            stored_views(),
        ],
    )
    con.execute("COMMIT")


def stored_views() -> str:
    """Return what a ledger says of its views that has this package's: a line a view."""
    return _views_stored(views.shipped())


def _views_of(con: duckdb.DuckDBPyConnection) -> str | None:
    row = con.execute("SELECT value FROM ledger_meta WHERE key = 'views'").fetchone()
    return None if row is None else str(row[0])


def has_shipped_views(con: duckdb.DuckDBPyConnection) -> bool:
    """Return whether a ledger says that its views are those of this package, and not of another version."""
    return _views_of(con) == stored_views()


def _refresh_views(con: duckdb.DuckDBPyConnection) -> None:
    """Bring the views of an older package up to the shipped ones; views are no evidence.

    A view that the older package shipped and this one does not is dropped: the audit knows no others.
    """
    if has_shipped_views(con):
        return
    con.execute("BEGIN TRANSACTION")
    _create_views(con)
    names = {view.name for view in views.shipped()}
    for line in (_views_of(con) or "").splitlines():
        if (name := line.split(" ")[0]) not in names:
            con.execute('DROP VIEW IF EXISTS "' + name.replace('"', '""') + '"')
    con.execute(
        "INSERT OR REPLACE INTO ledger_meta VALUES ('views_sha256', ?), ('views', ?)",
        [sqlfiles.views_sha256(), stored_views()],
    )
    con.execute("COMMIT")


def open_ledger(
    path: str | os.PathLike[str],
    *,
    read_only: bool = False,
    create: bool = True,
    origin: str | None = None,
    lock_timeout_s: float = 30.0,
    config: dict[str, Any] | None = None,
) -> Ledger:
    """Open a ledger file, making it when it does not exist (unless `create` is false or `read_only`).

    `origin` names the stream of a ledger made here; by default a random one. Raises LedgerOpenError and
    LedgerDamagedError with what to do next.
    """
    path = os.fspath(path)
    folder = os.path.dirname(os.path.abspath(path))
    exists = os.path.lexists(path)
    if exists or read_only or not create:
        check_header(path)
    elif not os.path.isdir(folder):
        raise LedgerOpenError(f"{folder} is no directory: make it first, or give --ledger another path")
    if not read_only and not os.access(path if exists else folder, os.W_OK):
        raise LedgerOpenError(f"{path} cannot be written: check its permissions, or work on a copy")
    if not exists and not read_only:
        _make_file(path, origin, lock_timeout_s)
    con = connect(path, read_only=read_only, lock_timeout_s=lock_timeout_s, config=config)
    try:
        _check_schema(path, con)
        if not read_only:
            _refresh_views(con)
        return Ledger(path, con, read_only=read_only)
    except BaseException:
        con.close()
        raise


def _make_file(path: str, origin: str | None, lock_timeout_s: float) -> None:
    """Make a whole ledger under another name and link it into place: nobody ever opens half of one."""
    where = os.path.dirname(os.path.abspath(path))
    try:
        with scratch(where) as folder:
            draft = os.path.join(folder, "ledger.duckdb")
            con = connect(draft, read_only=False, lock_timeout_s=lock_timeout_s)
            try:
                _create(con, origin)
                con.execute("CHECKPOINT")
            finally:
                con.close()
            with contextlib.suppress(FileExistsError):  # another process was quicker: use its file
                os.link(draft, path)
    except (OSError, duckdb.Error) as e:
        text = " ".join(str(e).split())[-200:]
        raise LedgerOpenError(
            f"no ledger could be made at {path} ({text}): check the space and permissions of {where}"
        ) from e


def _check_schema(path: str, con: duckdb.DuckDBPyConnection) -> None:
    try:
        row = con.execute("SELECT value FROM ledger_meta WHERE key = 'schema_version'").fetchone()
    except duckdb.CatalogException as e:
        raise LedgerOpenError(
            f"{path} is a DuckDB file but no ledger: name a file that oakledger made"
        ) from e
    except duckdb.Error as e:
        raise _open_error(path, e) from e
    if row is None or not str(row[0]).isdigit():
        raise LedgerDamagedError(f"{path} does not say its schema version: it is no whole ledger")
    if int(row[0]) > SCHEMA_VERSION:
        raise LedgerOpenError(
            f"{path} was written by a newer oakledger "
            f"(ledger schema {row[0]}, this one knows {SCHEMA_VERSION}): update oakledger"
        )
    # A view in the place of a table would run whatever its author wrote, with the rights of who asks.
    tables = con.execute(
        "SELECT count(*) FROM duckdb_tables() WHERE database_name = current_database() "
        "AND schema_name = 'main' AND table_name IN ('events', 'checkpoints', 'duplicates', 'ledger_meta')"
    ).fetchone()
    if tables != (4,):
        raise LedgerDamagedError(f"{path} lacks a table of a ledger: run oakledger audit, it says which")


def default_path() -> Path:
    """Return the ledger path in force without --ledger: OAKLEDGER, else oakledger.duckdb here."""
    return Path(os.environ.get("OAKLEDGER") or "oakledger.duckdb")

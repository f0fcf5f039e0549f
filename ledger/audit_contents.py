"""Does each event's row hold together? One row of `events` is checked by its own text alone.

`event_id` must be the leaf hash of the payload (RFC 6962 section 2.1), every typed column what the payload
says, and the payload the canonical bytes of an event that this package knows.
"""

# ruff: noqa: S608 - the queries are made of constants of this module

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, get_args

import duckdb
import msgspec

from ledger.audit_finding import Finding, Findings
from ledger.audit_source import Source
from ledger.audit_worker import COLUMN_END, NULL, ROW_END, VALUE, Chunk, Worker
from ledger.decode import decode
from ledger.errors import BadEventError
from ledger.events import AnyEvent, leaf_hash
from ledger.store import _SCALARS

#: The typed columns that hold a scalar of the payload under the same name.
SCALAR_COLUMNS = tuple(name for name, _ in _SCALARS)

#: Columns of a row as `check_row` takes it, after origin and seq.
ROW_COLUMNS = ("event_id", "payload", "kind", "kind_version", "condition_key", *SCALAR_COLUMNS)


def check_row(row: tuple[Any, ...]) -> Iterator[Finding]:
    """Yield what is wrong with one row of `origin, seq` and ROW_COLUMNS, all as text but seq.

    Codes: `event_id`, `payload`, `newer_version`, `not_canonical`, `columns`, `origin`, `seq`.
    """
    origin, seq, event_id, payload = row[:4]

    def finding(code: str, detail: str) -> Finding:
        return Finding(code, detail, origin, seq, event_id)

    if origin is None:
        yield finding("origin", "origin is null")
    if seq is None or seq < 0:
        yield finding("seq", "seq is no number from 0 on")
    if payload is None:
        yield finding("payload", "payload is null")
        return
    data = payload.encode("utf-8", "surrogatepass")
    leaf = leaf_hash(data).hex()
    if event_id != leaf:
        yield finding("event_id", f"event_id is not the hash of the payload, which is {leaf}")
    try:
        _, canonical = decode(data)
        if canonical != data:
            yield finding("not_canonical", "payload is not the canonical text of its event")
    except BadEventError as e:
        if _is_newer(data):
            yield finding("newer_version", f"payload was written by a newer oakledger: {e}")
        else:
            yield finding("payload", f"payload is no known event: {e}")
    yield from (finding("columns", text) for text in _column_differences(data, row))


def _column_differences(data: bytes, row: tuple[Any, ...]) -> Iterator[str]:
    try:
        fields = msgspec.json.decode(data)
        parts = msgspec.json.decode(data, type=_Parts)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return  # reported as a bad payload
    if not isinstance(fields, dict):
        return
    name, _, version = str(fields.get("kind")).partition("/")
    expected: dict[str, str | None] = {"kind": name, "kind_version": version, "condition_key": None}
    if parts.condition is not msgspec.UNSET:
        expected["condition_key"] = hashlib.sha256(bytes(parts.condition)).hexdigest()
    for column in SCALAR_COLUMNS:
        expected[column] = _as_text(fields.get(column))
    wrong = [
        f"{column} is {_show(value)}, the payload says {_show(expected[column])}"
        for column, value in zip(ROW_COLUMNS[2:], row[4:], strict=True)
        if value != expected[column]
    ]
    if wrong:
        yield "; ".join(wrong)


class _Parts(msgspec.Struct):
    kind: str = ""
    condition: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET


#: Newest known version of each kind.
_NEWEST: dict[str, int] = {}
for _tag in (str(struct.__struct_config__.tag) for struct in get_args(AnyEvent)):
    _name, _, _version = _tag.partition("/")
    _NEWEST[_name] = max(int(_version), _NEWEST.get(_name, 0))


def _is_newer(data: bytes) -> bool:
    """Return whether a payload says that it is a later version of a kind that is known here."""
    try:
        name, _, version = msgspec.json.decode(data, type=_Parts).kind.partition("/")
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return False
    return name in _NEWEST and version.isdecimal() and len(version) < 10 and int(version) > _NEWEST[name]


def _as_text(value: object) -> str | None:
    """Return a JSON value as the database's json_extract_string gives it."""
    if value is None or isinstance(value, str):
        return value
    return msgspec.json.encode(value).decode()


def _show(value: str | None) -> str:
    if value is None:
        return "null"
    return repr(value if len(value) <= 80 else value[:80] + "...")


#: Rows checked at a time.
CHUNK = 4096

#: Rows from which on it pays to start processes for the texts.
WORKERS_FROM = 40_000

_ROWS = (
    "SELECT origin, seq, event_id, payload, "
    + ", ".join(f"{name}::VARCHAR" for name in ROW_COLUMNS[2:])
    + " FROM audited_events WHERE row >= ? AND row < ? ORDER BY row"
)

_COLUMNS = ", ".join(
    f"coalesce('{VALUE}' || {name}, '{NULL}')"
    for name in ("kind", "kind_version", *SCALAR_COLUMNS, "condition_key")
)

#: A chunk in one row, and how many of its events have no place or no text.
_CHUNK = (
    "SELECT count(*), encode(string_agg(payload, chr(10))), encode(string_agg(event_id, '')), "
    f"encode(string_agg(concat_ws(chr({ord(COLUMN_END)}), {_COLUMNS}), chr({ord(ROW_END)}))), "
    "count(*) FILTER (WHERE origin IS NULL OR seq IS NULL OR seq < 0 OR payload IS NULL OR event_id IS NULL) "
    "FROM audited_events WHERE row >= ? AND row < ?"
)


@contextmanager
def check_contents(source: Source, findings: Findings, *, deep: bool) -> Iterator[None]:
    """Check every row while the block runs; all of them are checked when it ends.

    Chunks of rows are checked as a whole, in processes of their own when there are many. A chunk that does
    not hold is gone through row by row, so that every bad event is named.
    """
    con = source.cursor()
    last = con.execute("SELECT max(row) FROM audited_events").fetchone() if deep else None
    end = int(last[0]) + 1 if last and last[0] is not None else 0
    chunks = _Chunks(end)
    if end < WORKERS_FROM:
        yield
        _check_chunks(con, chunks, findings, Chunk.holds)
        return
    workers = [Worker() for _ in range(min(8, len(os.sched_getaffinity(0))))]
    try:
        with ThreadPoolExecutor(len(workers)) as pool:
            jobs = [
                pool.submit(_check_chunks, source.cursor(), chunks, findings, worker.holds)
                for worker in workers
            ]
            try:
                yield
            except BaseException:
                chunks.stop()
                raise
            for job in jobs:
                job.result()
    finally:
        for worker in workers:
            worker.close()


class _Chunks:
    """Hands out the first rows of chunks to several threads."""

    def __init__(self, end: int) -> None:
        self._left = iter(range(0, end, CHUNK))
        self._lock = threading.Lock()

    def __iter__(self) -> _Chunks:
        return self

    def __next__(self) -> int:
        with self._lock:
            return next(self._left)

    def stop(self) -> None:
        """Hand out no more."""
        with self._lock:
            self._left = iter(range(0))


def _check_chunks(
    con: duckdb.DuckDBPyConnection,
    chunks: _Chunks,
    findings: Findings,
    hold: Callable[[Chunk], bool],
) -> None:
    try:
        for first in chunks:
            if not _chunk_holds(con, first, hold):
                for row in con.execute(_ROWS, [first, first + CHUNK]).fetchall():
                    findings.extend(check_row(row))
    except BaseException:
        chunks.stop()
        raise


def _chunk_holds(con: duckdb.DuckDBPyConnection, first: int, hold: Callable[[Chunk], bool]) -> bool:
    count, payloads, ids, columns, bad = con.execute(_CHUNK, [first, first + CHUNK]).fetchone() or (0,) * 5
    return not count or (not bad and hold(Chunk(count, payloads, ids, columns)))

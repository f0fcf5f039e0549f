"""Opening a hostile `.oak/oak.db`: link-free private copy of a quiescent file, and SQLite with its teeth
drawn.

Standard library only; used by the isolated script `oak_sqlite_reader.py`. Nothing here writes into, locks
or changes the subject's repository: SQLite only ever sees the copy, read-only and immutable, and the
copy's name is gone before the first row is read. What the file says is not believed: no view, trigger,
virtual table or generated column is tolerated anywhere, rows are found by scans that no index can
misdirect, and every value's storage class is looked at.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import stat
import threading
import urllib.parse
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

try:
    import sqlite3
except ImportError:  # An interpreter built without SQLite: reported as a missing instrument.
    sqlite3 = None  # type: ignore[assignment]

if TYPE_CHECKING:
    from reader import scoped_read as core

MAX_STORE_BYTES = 8 * 1024**3
"""Largest database that is copied, in bytes."""

HAS_SQLITE = sqlite3 is not None
"""Whether this interpreter can open a database at all."""

_COPY_BYTES = 1 << 20
_PROGRESS_OPCODES = 20_000
_MAX_SCHEMA_ROWS = 10_000
_MAX_LENGTH = 1_000_000_000  # SQLite's own default limit of one value.
_LENGTH_MARGIN = 2 << 20

_SQLITE_HEADER = b"SQLite format 3\0"

REQUIRED_TABLES: Mapping[str, Sequence[str]] = {
    "schema_migrations": ("version", "applied_at", "succeeded"),
    "metadata": ("key", "value"),
    "branches": (
        "name",
        "description",
        "parent_branch",
        "status",
        "created_at",
        "close_reason",
        "description_pending",
        "description_generation",
    ),
    "branch_heads": ("branch_name", "head_hash"),
    "commits": (
        "hash",
        "branch_name",
        "parent_hash",
        "manifest_hash",
        "author",
        "message",
        "timestamp",
        "merge_parent_hash",
    ),
    "trees": ("hash", "created_at", "content"),
    "blobs": ("hash", "content", "size", "codec"),
}
"""Tables and columns that the pinned format has, and that a store must have."""

OPTIONAL_TABLES: Mapping[str, Sequence[str]] = {
    "tree_entries": ("tree_hash", "name", "kind", "hash", "mode"),
    "chunks": ("hash", "content", "size"),
    "blob_chunks": ("blob_hash", "chunk_hash", "chunk_index", "offset", "size"),
}
"""Tables that a store may lack; one that is there has these columns."""


class Damaged(Exception):
    """SQLite calls the file malformed."""


# --- The private copy -----------------------------------------------------------------------------


def copy_store(
    scoped: Any, repo: str, budget: core.Budget, report: core.Report, cleanup: contextlib.ExitStack
) -> str:
    """Copy `REPO/.oak/oak.db` into a new private directory and return the copy's path.

    `scoped` is the loaded `scoped_read` module. Raises its `Stop`: shape of the store (exit 1), then
    quiescence, the marker of an interrupted clone, and the size bound (77). No link below REPO is
    followed and nothing but plain files is opened.
    """
    stop = scoped.Stop
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    root = os.open(repo, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    cleanup.callback(os.close, root)
    _expect(stop, root, ".oak", stat.S_ISDIR)
    directory = _open(stop, root, ".oak", flags | os.O_DIRECTORY)
    cleanup.callback(os.close, directory)
    _expect(stop, directory, "oak.db", stat.S_ISREG)
    source = _open(stop, directory, "oak.db", flags)
    cleanup.callback(os.close, source)
    before = os.fstat(source)
    if not stat.S_ISREG(before.st_mode):
        raise stop("store_not_regular", ".oak/oak.db is not a plain file")
    report.hard_linked = before.st_nlink > 1
    _quiescent(stop, directory)
    if _lstat(directory, "CLONE_IN_PROGRESS") is not None:
        raise stop("clone_in_progress", ".oak/CLONE_IN_PROGRESS is there; finish or repeat the clone")
    if before.st_size > MAX_STORE_BYTES:
        raise stop("bound_store_bytes", f".oak/oak.db is larger than {MAX_STORE_BYTES} bytes")
    target = os.path.join(scoped.temporary_directory(cleanup), "oak.db")
    with open(target, "xb", buffering=0) as stream:
        left = before.st_size
        while left >= 0:
            budget.check()
            data = os.read(source, _COPY_BYTES)
            if not data:
                break
            left -= len(data)
            view = memoryview(data)
            while view:
                view = view[stream.write(view) :]
    after = os.fstat(source)
    named = _lstat(directory, "oak.db")
    if left != 0 or _identity(before) != _identity(after) or named is None or not _same(named, after):
        raise stop("store_changed", ".oak/oak.db changed while it was copied; read again when Oak is idle")
    _quiescent(stop, directory)
    return target


def _lstat(directory: int, name: str) -> os.stat_result | None:
    try:
        return os.stat(name, dir_fd=directory, follow_symlinks=False)
    except FileNotFoundError:
        return None


def _expect(stop: Any, directory: int, name: str, kind: Any) -> None:
    shown = ".oak" if name == ".oak" else f".oak/{name}"
    found = _lstat(directory, name)
    if found is None:
        raise stop("store_missing", f"{shown} does not exist")
    if stat.S_ISLNK(found.st_mode):
        raise stop("store_linked", f"{shown} is a symbolic link")
    if not kind(found.st_mode):
        raise stop("store_not_regular", f"{shown} is of the wrong file type")


def _open(stop: Any, directory: int, name: str, flags: int) -> int:
    shown = ".oak" if name == ".oak" else f".oak/{name}"
    try:
        return os.open(name, flags, dir_fd=directory)
    except FileNotFoundError:
        raise stop("store_missing", f"{shown} does not exist") from None
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise stop("store_linked", f"{shown} is a symbolic link") from None
        if error.errno in (errno.ENOTDIR, errno.ENXIO):
            raise stop("store_not_regular", f"{shown} is of the wrong file type") from None
        raise


def _quiescent(stop: Any, directory: int) -> None:
    """A WAL or journal with anything in it holds a truth that the database file lacks, or one it must
    forget.
    """
    for name in ("oak.db-wal", "oak.db-journal"):
        found = _lstat(directory, name)
        if found is None:
            continue
        if not stat.S_ISREG(found.st_mode):
            raise stop("not_quiescent", f".oak/{name} is no plain file")
        if found.st_size:
            raise stop("not_quiescent", f".oak/{name} is not empty; let Oak finish and close the repository")


def _identity(found: os.stat_result) -> tuple[int, ...]:
    return (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)


def _same(one: os.stat_result, other: os.stat_result) -> bool:
    return (one.st_dev, one.st_ino) == (other.st_dev, other.st_ino)


# --- SQLite ---------------------------------------------------------------------------------------


def check_header(scoped: Any, path: str) -> None:
    """Refuse what is no SQLite database before SQLite sees it: magic, page size, format versions."""
    with open(path, "rb") as stream:
        header = stream.read(100)
    page_size = int.from_bytes(header[16:18], "big")
    page_size = 65536 if page_size == 1 else page_size
    problem = None
    if not header:
        problem = "is empty"
    elif len(header) < 100 or header[:16] != _SQLITE_HEADER:
        problem = "is no SQLite database, or an encrypted one"
    elif page_size < 512 or page_size & (page_size - 1) or not {header[18], header[19]} <= {1, 2}:
        problem = "has an impossible SQLite header"
    if problem:
        raise scoped.Stop("unrecognised_format", f".oak/oak.db {problem}")


class Database:
    """One read-only connection to the private copy. Every row is a tuple; text and blobs both come as bytes.

    All methods raise `Damaged` when SQLite calls the file malformed, and `Stop` for the deadline.
    """

    def __init__(self, scoped: Any, path: str, budget: core.Budget, cleanup: contextlib.ExitStack) -> None:
        """Open the copy, remove its name, and take away every ability but reading rows."""
        self._scoped = scoped
        self._budget = budget
        self.tables: dict[str, list[str]] = {}
        self.is_recognised = False
        """Set once HEAD and its root tree have verified: damage met after that makes the store invalid."""
        uri = f"file:{urllib.parse.quote(path)}?mode=ro&immutable=1"
        connection = sqlite3.connect(uri, uri=True, isolation_level=None, check_same_thread=False)
        cleanup.callback(connection.close)
        self._connection = connection
        connection.text_factory = bytes
        length = min(_MAX_LENGTH, budget.bounds.max_object_bytes + _LENGTH_MARGIN)
        connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, length)
        connection.setlimit(sqlite3.SQLITE_LIMIT_TRIGGER_DEPTH, 1)
        connection.setlimit(sqlite3.SQLITE_LIMIT_WORKER_THREADS, 0)
        self.batch = min(10_000, connection.getlimit(sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER))
        connection.set_progress_handler(self._late, _PROGRESS_OPCODES)
        # The handler is not asked during one long step, as in an integrity check: the timer reaches that.
        timer = threading.Timer(max(budget.remaining_ns() / 1e9, 0.0), connection.interrupt)
        timer.daemon = True
        cleanup.callback(timer.cancel)
        timer.start()
        for pragma in ("trusted_schema=OFF", "cell_size_check=ON", "temp_store=MEMORY", "mmap_size=0"):
            self.rows(f"PRAGMA {pragma}")
        self.all("SELECT count(*) FROM sqlite_master")
        os.unlink(path)
        connection.set_authorizer(_authorize)

    def _late(self) -> int:
        return int(self._budget.remaining_ns() < 0)

    def rows(self, sql: str, parameters: Sequence[Any] = ()) -> Iterator[tuple[Any, ...]]:
        """The rows of a statement, one in memory at a time."""
        try:
            cursor = self._connection.execute(sql, parameters)
        except (sqlite3.Error, UnicodeDecodeError) as error:
            raise self._translate(error) from None
        return self._fetch(cursor)

    def _fetch(self, cursor: sqlite3.Cursor) -> Iterator[tuple[Any, ...]]:
        while True:
            try:
                row = cursor.fetchone()
            except (sqlite3.Error, UnicodeDecodeError) as error:
                raise self._translate(error) from None
            if row is None:
                return
            yield row

    def all(self, sql: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """All rows of a statement that yields few."""
        return list(self.rows(sql, parameters))

    def by_keys(self, select: str, table: str, key: str, keys: Sequence[str]) -> Iterator[tuple[Any, ...]]:
        """Rows of `table` whose text column `key` is exactly one of `keys`, by scans that use no index.

        The unary plus and the collation keep the declared type and collation of the column out of the
        comparison.
        """
        for start in range(0, len(keys), self.batch):
            some = keys[start : start + self.batch]
            marks = ",".join("?" * len(some))
            sql = f"SELECT {select} FROM {table} NOT INDEXED WHERE +{key} COLLATE BINARY IN ({marks})"  # noqa: S608
            yield from self.rows(sql, some)

    def _translate(self, error: Exception) -> Exception:
        # A message of SQLite that quotes broken text comes as a UnicodeDecodeError.
        stop = self._scoped.Stop
        if self._budget.remaining_ns() < 0:
            return self._budget.deadline_stop()
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        name = getattr(error, "sqlite_errorname", type(error).__name__)
        if code == sqlite3.SQLITE_INTERRUPT:
            return stop("instrument_failed", "the read was interrupted")  # type: ignore[no-any-return]
        if code == sqlite3.SQLITE_TOOBIG or isinstance(error, sqlite3.DataError):
            return self._budget.object_stop("a value in the database")
        if code == sqlite3.SQLITE_NOMEM:
            return stop("memory", "SQLite is out of memory")  # type: ignore[no-any-return]
        if code in (sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_FULL):
            return stop("read_error", f"SQLite could not read its copy ({name})")  # type: ignore[no-any-return]
        if code == sqlite3.SQLITE_AUTH and self.is_recognised:
            # Statements of this reader are allowed; the reader was told to stop inside the authorizer.
            return stop("instrument_failed", "the read was interrupted")  # type: ignore[no-any-return]
        if self.is_recognised:
            return stop("store_damaged", f".oak/oak.db is damaged ({name})")  # type: ignore[no-any-return]
        return Damaged(name)

    # --- Schema ---

    def check_schema(self) -> None:
        """Ordinary tables and indices only, and those of the pinned format. Raises
        `Stop("unrecognised_format")`.
        """
        stop = self._scoped.Stop

        def refuse(what: str) -> Exception:
            return stop("unrecognised_format", f".oak/oak.db {what}")  # type: ignore[no-any-return]

        columns = "CAST(type AS TEXT), CAST(name AS TEXT), typeof(rootpage), rootpage, CAST(sql AS TEXT)"
        listed = self.all(f"SELECT {columns} FROM sqlite_master LIMIT ?", (_MAX_SCHEMA_ROWS + 1,))  # noqa: S608
        if len(listed) > _MAX_SCHEMA_ROWS:
            raise refuse(f"declares more than {_MAX_SCHEMA_ROWS} tables and indices")
        tables = []
        for kind, name, root_class, root, sql in listed:
            if kind in (b"view", b"trigger"):
                raise refuse(f"holds a {kind.decode('ascii')}, which Oak never makes")
            if kind == b"index":
                continue
            if kind != b"table":
                raise refuse("has a schema row of an unknown type")
            if root_class != b"integer" or root < 1 or _VIRTUAL.match(sql or b""):
                raise refuse("holds a virtual table, which Oak never makes")
            try:
                tables.append(name.decode("utf-8"))
            except (AttributeError, UnicodeDecodeError):
                raise refuse("has a table whose name is not UTF-8") from None
        for name in tables:
            self.tables[name] = self._columns(name, refuse)
        for name, pinned in {**REQUIRED_TABLES, **OPTIONAL_TABLES}.items():
            if name not in self.tables:
                if name in REQUIRED_TABLES:
                    raise refuse(f"lacks the table {name}")
                continue
            for column in pinned:
                if column not in self.tables[name]:
                    raise refuse(f"lacks the column {name}.{column}")

    def _columns(self, table: str, refuse: Any) -> list[str]:
        quoted = '"' + table.replace('"', '""') + '"'
        columns = []
        for row in self.rows(f"PRAGMA table_xinfo({quoted})"):
            name, hidden = row[1], row[6]
            if hidden:
                raise refuse("has a generated or hidden column, which Oak never makes")
            columns.append(name.decode("utf-8", "replace"))
        if not columns:
            raise refuse("has a table without columns")
        return columns

    def is_sound(self) -> bool:
        """Whether SQLite's `quick_check` finds nothing wrong with the file."""
        try:
            return self.all("PRAGMA quick_check(1)") == [(b"ok",)]
        except Damaged:
            return False


_VIRTUAL = re.compile(rb"\s*CREATE(?:\s|/\*.*?\*/|--[^\n]*\n)+VIRTUAL\b", re.IGNORECASE | re.DOTALL)


def _authorize(action: int, first: str | None, second: str | None, *rest: str | None) -> int:
    """Reading rows, three pragmas, and functions that reach nothing; all else is denied."""
    if action in (sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ):
        return sqlite3.SQLITE_OK
    if action == sqlite3.SQLITE_PRAGMA and first in ("table_xinfo", "quick_check"):
        return sqlite3.SQLITE_OK
    if action == sqlite3.SQLITE_FUNCTION and second not in ("load_extension", "fts3_tokenizer"):
        return sqlite3.SQLITE_OK
    return sqlite3.SQLITE_DENY

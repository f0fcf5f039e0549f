"""Hostile databases: what is no plain file, not quiescent, of a schema that lies, or broken."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import oak_store
import pytest
from oak_store import SAMPLE, SCRIPT, Store, edited, h, make, outcome, read, script

from reader import oak_database, oak_sqlite_reader, scoped_read


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    return make(tmp_path / "repo").close()


def db_of(repo: Path) -> Path:
    return repo / ".oak" / "oak.db"


def snapshot(folder: Path) -> dict[str, tuple[int, int, bytes | None]]:
    """Everything below a folder: type, modification time, bytes."""
    seen = {}
    for path in sorted(folder.rglob("*")):
        found = path.lstat()
        data = path.read_bytes() if path.is_file() and not path.is_symlink() else None
        seen[str(path.relative_to(folder))] = (found.st_mode, found.st_mtime_ns, data)
    return seen


# --- Not a plain file -----------------------------------------------------------------------------


def no_oak(repo: Path) -> None:
    shutil.rmtree(repo / ".oak")


def linked_db(repo: Path) -> None:
    db_of(repo).rename(repo / "elsewhere")
    db_of(repo).symlink_to(repo / "elsewhere")


def linked_oak(repo: Path) -> None:
    (repo / ".oak").rename(repo / "elsewhere")
    (repo / ".oak").symlink_to("elsewhere")


def socket_db(repo: Path) -> None:
    db_of(repo).unlink()
    here = os.getcwd()
    os.chdir(repo / ".oak")
    try:
        with socket.socket(socket.AF_UNIX) as server:
            server.bind("oak.db")
    finally:
        os.chdir(here)


def replace_db(make_it: Callable[[Path], object]) -> Callable[[Path], None]:
    def change(repo: Path) -> None:
        db_of(repo).unlink()
        make_it(db_of(repo))

    return change


def replace_oak(make_it: Callable[[Path], object]) -> Callable[[Path], None]:
    def change(repo: Path) -> None:
        shutil.rmtree(repo / ".oak")
        make_it(repo / ".oak")

    return change


SHAPES: dict[str, tuple[Callable[[Path], None], str]] = {
    "no .oak": (no_oak, "store_missing"),
    "no oak.db": (lambda repo: db_of(repo).unlink(), "store_missing"),
    "linked oak.db": (linked_db, "store_linked"),
    "linked .oak": (linked_oak, "store_linked"),
    "dangling oak.db": (replace_db(lambda path: path.symlink_to("nowhere")), "store_linked"),
    "dangling .oak": (replace_oak(lambda path: path.symlink_to("nowhere")), "store_linked"),
    "oak.db linked to itself": (replace_db(lambda path: path.symlink_to("oak.db")), "store_linked"),
    "linked device": (replace_db(lambda path: path.symlink_to("/dev/zero")), "store_linked"),
    "FIFO": (replace_db(os.mkfifo), "store_not_regular"),
    "socket": (socket_db, "store_not_regular"),
    "directory": (replace_db(Path.mkdir), "store_not_regular"),
    ".oak is a file": (replace_oak(Path.touch), "store_not_regular"),
    ".oak is a FIFO": (replace_oak(os.mkfifo), "store_not_regular"),
}


@pytest.mark.parametrize("case", SHAPES)
def test_shape(repo: Path, case: str) -> None:
    change, reason = SHAPES[case]
    change(repo)
    before = snapshot(repo) if case != "linked device" else {}
    assert outcome(read(repo)) == (1, reason)
    assert not before or snapshot(repo) == before


def test_a_missing_store_is_not_created(repo: Path) -> None:
    db_of(repo).unlink()
    status, report, _ = script(repo)
    assert (status, report["reason"], report["outcome"]) == (1, "store_missing", "failed")
    assert list((repo / ".oak").iterdir()) == []


def test_a_hard_link_is_only_noted(repo: Path) -> None:
    assert read(repo)["hard_linked"] is False
    os.link(db_of(repo), repo / "second")
    report = read(repo)
    assert (outcome(report), report["hard_linked"]) == ((0, None), True)


def test_repo_may_be_a_link(repo: Path) -> None:
    (repo.parent / "alias").symlink_to(repo)
    assert outcome(read(repo.parent / "alias")) == (0, None)


def test_unreadable_file(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.open

    def refuse(path: str, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        if path == "oak.db":
            raise PermissionError(13, "Permission denied", path)
        return real(path, flags, mode, dir_fd=dir_fd)

    monkeypatch.setattr(oak_database.os, "open", refuse)
    assert outcome(read(repo)) == (77, "read_error")


# --- Not quiescent --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["oak.db-wal", "oak.db-journal"])
@pytest.mark.parametrize(
    ("make_it", "expected"),
    [
        (lambda path: path.write_bytes(b"x"), (77, "not_quiescent")),
        (lambda path: path.write_bytes(b""), (0, None)),
        (lambda path: path.symlink_to("nowhere"), (77, "not_quiescent")),
        (lambda path: path.mkdir(), (77, "not_quiescent")),
        (lambda path: os.mkfifo(path), (77, "not_quiescent")),
    ],
)
def test_side_files(
    repo: Path, name: str, make_it: Callable[[Path], None], expected: tuple[int, str | None]
) -> None:
    make_it(repo / ".oak" / name)
    before = snapshot(repo)
    assert outcome(read(repo)) == expected
    assert snapshot(repo) == before


def test_a_shared_memory_file_alone_is_no_matter(repo: Path) -> None:
    (repo / ".oak" / "oak.db-shm").write_bytes(b"\0" * 32768)
    assert outcome(read(repo)) == (0, None)


def test_committed_data_in_the_wal(repo: Path) -> None:
    """A real writer that has not checkpointed: the file alone would show an old truth."""
    writer = sqlite3.connect(db_of(repo), isolation_level=None)
    writer.execute("UPDATE metadata SET value='other' WHERE key='repo_name'")
    assert (repo / ".oak" / "oak.db-wal").stat().st_size
    before = snapshot(repo)
    assert outcome(read(repo)) == (77, "not_quiescent")
    assert snapshot(repo) == before
    writer.close()
    assert outcome(read(repo)) == (0, None)


def test_a_hot_journal_is_not_rolled_back(repo: Path) -> None:
    with edited(repo) as db:
        db.execute("PRAGMA cache_size=1")
        db.execute("BEGIN")
        db.execute("DELETE FROM blobs")
        copy = repo.parent / "hot"
        shutil.copytree(repo, copy)
        db.execute("ROLLBACK")
    assert (copy / ".oak" / "oak.db-journal").exists()
    before = snapshot(copy)
    assert outcome(read(copy)) == (77, "not_quiescent")
    assert snapshot(copy) == before


def test_an_exclusive_lock_does_not_stop_the_reader(repo: Path) -> None:
    with edited(repo) as db:
        db.execute("BEGIN EXCLUSIVE")
        assert outcome(read(repo)) == (0, None)
        db.execute("ROLLBACK")


def test_interrupted_clone(repo: Path) -> None:
    (repo / ".oak" / "CLONE_IN_PROGRESS").symlink_to("nowhere")
    assert outcome(read(repo)) == (77, "clone_in_progress")


def appended(path: Path, real: Callable[[int, int], bytes]) -> Callable[[int, int], bytes]:
    done = []

    def step(descriptor: int, size: int) -> bytes:
        if not done:
            done.append(1)
            with path.open("ab") as stream:
                stream.write(b"\0" * 4096)
        return real(descriptor, size)

    return step


def swapped(path: Path, real: Callable[[int, int], bytes]) -> Callable[[int, int], bytes]:
    done = []

    def step(descriptor: int, size: int) -> bytes:
        if not done:
            done.append(1)
            shutil.copy(path, path.with_name("new"))
            path.with_name("new").rename(path)
        return real(descriptor, size)

    return step


def unlinked(path: Path, real: Callable[[int, int], bytes]) -> Callable[[int, int], bytes]:
    def step(descriptor: int, size: int) -> bytes:
        path.unlink(missing_ok=True)
        return real(descriptor, size)

    return step


def journalled(path: Path, real: Callable[[int, int], bytes]) -> Callable[[int, int], bytes]:
    def step(descriptor: int, size: int) -> bytes:
        path.with_name("oak.db-wal").write_bytes(b"frames")
        return real(descriptor, size)

    return step


@pytest.mark.parametrize(
    ("trick", "reason"),
    [
        (appended, "store_changed"),
        (swapped, "store_changed"),
        (unlinked, "store_changed"),
        (journalled, "not_quiescent"),
    ],
)
def test_changes_while_copying(
    repo: Path, monkeypatch: pytest.MonkeyPatch, trick: Callable[..., object], reason: str
) -> None:
    monkeypatch.setattr(oak_database.os, "read", trick(db_of(repo), os.read))
    assert outcome(read(repo)) == (77, reason)


def test_store_size_bound(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    size = db_of(repo).stat().st_size
    monkeypatch.setattr(oak_database, "MAX_STORE_BYTES", size)
    assert outcome(read(repo)) == (0, None)
    monkeypatch.setattr(oak_database, "MAX_STORE_BYTES", size - 1)
    assert outcome(read(repo)) == (77, "bound_store_bytes")


def test_a_sparse_giant_is_not_copied(repo: Path) -> None:
    os.truncate(db_of(repo), 1 << 40)
    started = time.monotonic()
    assert outcome(read(repo)) == (77, "bound_store_bytes")
    assert time.monotonic() - started < 5


# --- A schema that lies ---------------------------------------------------------------------------


SCHEMAS = {
    "view in place of a table": "ALTER TABLE blobs RENAME TO b; CREATE VIEW blobs AS SELECT * FROM b",
    "endless view": "CREATE VIEW v AS WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM c)"
    " SELECT x FROM c",
    "trigger": "CREATE TRIGGER t AFTER INSERT ON blobs BEGIN DELETE FROM blobs; END",
    "rtree": "CREATE VIRTUAL TABLE v USING rtree(a, b, c)",
    "fts5": "CREATE VIRTUAL TABLE v USING fts5(a)",
    "generated column": "CREATE TABLE v (a, b AS (a + 1))",
    "stored generated column": "CREATE TABLE v (a, b AS (zeroblob(1000000000)) STORED)",
    "table missing": "DROP TABLE branches",
    "commits missing": "DROP TABLE commits",
    "column missing": "ALTER TABLE blobs DROP COLUMN codec",
    "column renamed": "ALTER TABLE trees RENAME COLUMN content TO contents",
    "optional table without column": "ALTER TABLE chunks RENAME COLUMN size TO length",
    "table renamed": "ALTER TABLE metadata RENAME TO metadata2",
}


@pytest.mark.parametrize("case", SCHEMAS)
def test_schemas_that_are_not_pinned(repo: Path, case: str) -> None:
    with edited(repo) as db:
        try:
            db.executescript(SCHEMAS[case])
        except sqlite3.OperationalError as error:
            pytest.skip(f"this SQLite cannot build the case: {error}")
    started = time.monotonic()
    assert outcome(read(repo)) == (77, "unrecognised_format")
    assert time.monotonic() - started < 10


@pytest.mark.parametrize(
    "sql",
    [
        "CREATE TABLE extra (a INTEGER PRIMARY KEY, b) WITHOUT ROWID",
        "ALTER TABLE blobs ADD COLUMN extra",
        "CREATE INDEX more ON blobs(size)",
        "DROP INDEX idx_commits_branch",
        "DROP TABLE stat_cache",
        "DROP TABLE chunks; DROP TABLE blob_chunks",
        'CREATE TABLE "odd ""name" ("a b")',
        "CREATE TABLE virtual_table (a)",
        "ANALYZE",
        "VACUUM",
        "PRAGMA user_version=7; PRAGMA application_id=9",
    ],
)
def test_schemas_that_are_no_matter(repo: Path, sql: str) -> None:
    with edited(repo) as db:
        db.executescript(sql)
    assert outcome(read(repo)) == (0, None)


@pytest.mark.parametrize(
    "old_new",
    [
        ("hash TEXT PRIMARY KEY", "hash BLOB PRIMARY KEY"),
        ("hash TEXT PRIMARY KEY", "hash TEXT COLLATE NOCASE PRIMARY KEY"),
        ("hash TEXT PRIMARY KEY", "hash PRIMARY KEY"),
        ("size INTEGER NOT NULL", "size"),
        ("content BLOB", "content"),
    ],
)
def test_declared_types_do_not_matter(tmp_path: Path, old_new: tuple[str, str]) -> None:
    store = Store(tmp_path / "repo", schema=oak_store.SCHEMA.replace(*old_new))
    store.commit(store.files(SAMPLE))
    assert outcome(read(store.close())) == (0, None)


def test_without_rowid(tmp_path: Path) -> None:
    schema = oak_store.SCHEMA
    for table in ("blobs", "trees", "commits", "metadata", "branch_heads", "branches", "chunks"):
        start = schema.index(f"CREATE TABLE {table} (")
        end = schema.index(";", start)
        schema = schema[:end] + " WITHOUT ROWID" + schema[end:]
    store = Store(tmp_path / "repo", schema=schema)
    store.commit(store.files(SAMPLE))
    assert outcome(read(store.close(), "--deep")) == (0, None)


@pytest.mark.parametrize("page_size", [512, 1024, 32768, 65536])
@pytest.mark.parametrize("encoding", ["UTF-8", "UTF-16le", "UTF-16be"])
def test_page_size_and_encoding_do_not_matter(tmp_path: Path, page_size: int, encoding: str) -> None:
    files = {**SAMPLE, "dir/\u00e9\U0001f600": b"unicode"}
    store = make(tmp_path / "repo", files, page_size=page_size, encoding=encoding)
    assert outcome(read(store.close())) == (0, None)


def test_an_index_that_lies_misleads_nobody(tmp_path: Path) -> None:
    """The index of the key of `blobs` becomes that of an empty table: a look-up by index would find
    nothing.
    """
    store = make(tmp_path / "repo")
    store.run("CREATE TABLE decoy (hash TEXT PRIMARY KEY)")
    store.schema(
        "UPDATE sqlite_master SET rootpage="
        "(SELECT rootpage FROM sqlite_master WHERE name='sqlite_autoindex_decoy_1')"
        " WHERE name='sqlite_autoindex_blobs_1'"
    )
    store.db.execute("COMMIT")
    store.db.close()
    with sqlite3.connect(store.path) as check:
        assert check.execute("SELECT count(*) FROM blobs WHERE hash=?", (h(b"hello\n"),)).fetchone() == (0,)
    report = read(tmp_path / "repo", "--manifest", "-")
    assert report["exit_status"] in (0, 3)
    assert report["exit_status"] == 3 or len(report["entries"]) == len(SAMPLE)


SCHEMA_LIES = {
    "root page swapped": "UPDATE sqlite_master SET rootpage="
    "(SELECT rootpage FROM sqlite_master WHERE name='trees')"
    " WHERE name='blobs'",
    "root page of the schema": "UPDATE sqlite_master SET rootpage=1 WHERE name='blobs'",
    "root page beyond the end": "UPDATE sqlite_master SET rootpage=99999 WHERE name='blobs'",
    "root page 0": "UPDATE sqlite_master SET rootpage=0 WHERE name='blobs'",
    "root page text": "UPDATE sqlite_master SET rootpage='x' WHERE name='blobs'",
    "garbage sql": "UPDATE sqlite_master SET sql='CREATE TABLE blobs (((' WHERE name='blobs'",
    "no sql": "UPDATE sqlite_master SET sql=NULL WHERE name='blobs'",
    "virtual with a comment": "UPDATE sqlite_master SET"
    " sql='CREATE /**/ VIRTUAL TABLE blobs USING fts5(hash)'"
    " WHERE name='blobs'",
    "unknown type": "UPDATE sqlite_master SET type='thing' WHERE name='stat_cache'",
    "view with a root page": "UPDATE sqlite_master SET type='view', sql='CREATE VIEW blobs AS SELECT 1'"
    " WHERE name='blobs'",
    "name not UTF-8": "UPDATE sqlite_master SET name=CAST(x'ff' AS TEXT), tbl_name=CAST(x'ff' AS TEXT),"
    " sql=CAST('CREATE TABLE \"'||CAST(x'ff' AS TEXT)||'\" (a)' AS TEXT) WHERE name='stat_cache'",
}


@pytest.mark.parametrize("case", SCHEMA_LIES)
def test_schema_rows_that_lie(tmp_path: Path, case: str) -> None:
    store = make(tmp_path / "repo")
    store.schema(SCHEMA_LIES[case])
    store.db.execute("COMMIT")
    store.db.close()
    report = read(tmp_path / "repo")
    assert report["exit_status"] in (3, 77)
    assert report["reason"] in ("unrecognised_format", "store_damaged", "tree_mismatch", "blob_mismatch")


def test_a_great_many_tables(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with sqlite3.connect(db_of(repo)) as db:
        (count,) = db.execute("SELECT count(*) FROM sqlite_master").fetchone()
    db.close()
    monkeypatch.setattr(oak_database, "_MAX_SCHEMA_ROWS", count)
    assert outcome(read(repo)) == (0, None)
    monkeypatch.setattr(oak_database, "_MAX_SCHEMA_ROWS", count - 1)
    assert outcome(read(repo)) == (77, "unrecognised_format")


# --- Values that lie ------------------------------------------------------------------------------


def test_millions_of_rows_do_not_matter(tmp_path: Path) -> None:
    store = make(tmp_path / "repo")
    store.run(
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i<300000)"
        " INSERT INTO blobs SELECT printf('%064x', i), x'00', 1, 0 FROM n"
    )
    store.run(
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i<300000)"
        " INSERT INTO metadata SELECT 'key'||i, 'value' FROM n"
    )
    started = time.monotonic()
    assert outcome(read(store.close(), "--path", "hello.txt")) == (0, None)
    assert time.monotonic() - started < 20


def test_a_huge_value_out_of_scope_is_not_loaded(tmp_path: Path) -> None:
    store = make(tmp_path / "repo")
    store.run("INSERT INTO blobs VALUES (?, zeroblob(50000000), 50000000, 0)", "0" * 64)
    store.run("INSERT INTO trees (hash, content) VALUES (?, zeroblob(50000000))", "0" * 64)
    repo = store.close()
    assert outcome(read(repo, "--max-object-bytes", "10000")) == (0, None)


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("UPDATE trees SET content=zeroblob(40000000)", (77, "bound_object_bytes")),
        ("UPDATE blobs SET content=zeroblob(40000000), codec=1 WHERE size=600", (77, "bound_object_bytes")),
        ("UPDATE blobs SET content=zeroblob(40000000), codec=0 WHERE size=600", (3, "size_mismatch")),
        ("UPDATE blobs SET size=9000000000000000000 WHERE size=600", (77, "bound_object_bytes")),
        ("UPDATE commits SET message=printf('%.40000000c', 'x')", (77, "bound_object_bytes")),
        ("UPDATE metadata SET value=printf('%.40000000c', 'x') WHERE key='current_branch'", None),
    ],
)
def test_huge_values(tmp_path: Path, sql: str, expected: tuple[int, str] | None) -> None:
    store = make(tmp_path / "repo")
    store.run(sql)
    report = read(store.close(), "--max-object-bytes", "1000000")
    if expected is None:
        assert report["exit_status"] in (1, 77)
    else:
        assert outcome(report) == expected


def test_out_of_scope_text_that_is_not_utf8(tmp_path: Path) -> None:
    store = make(tmp_path / "repo")
    store.run("INSERT INTO blobs VALUES (CAST(x'fffe' AS TEXT), 'a', 'b', 'c')")
    store.run("INSERT INTO metadata VALUES (CAST(x'ff' AS TEXT), CAST(x'ff' AS TEXT))")
    columns = "hash, branch_name, manifest_hash, author, timestamp"
    store.run(f"INSERT INTO commits ({columns}) VALUES (x'ff', 1, 2, 3, 4)")
    store.run("INSERT INTO branches (name, parent_branch) VALUES (CAST(x'ff' AS TEXT), x'ff')")
    assert outcome(read(store.close(), "--deep")) == (0, None)


def test_null_keys_do_not_matter(tmp_path: Path) -> None:
    store = make(tmp_path / "repo")
    for table in ("blobs", "trees"):
        store.run(f"UPDATE {table} SET hash=NULL WHERE 0")
    store.run("INSERT INTO blobs VALUES (NULL, x'', 0, 0)")
    store.run("INSERT INTO trees (hash) VALUES (NULL)")
    store.run("INSERT INTO commits (branch_name, manifest_hash, author, timestamp) VALUES ('', '', '', '')")
    assert outcome(read(store.close(), "--deep")) == (0, None)


# --- A broken file --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\0" * 100,
        b"SQLite format 3\0",
        b"not a database" * 1000,
        os.urandom(8192),
        b"SQLite format 3\0" + b"\0" * 8000,
    ],
)
def test_no_database(repo: Path, data: bytes) -> None:
    db_of(repo).write_bytes(data)
    assert outcome(read(repo)) == (77, "unrecognised_format")


@pytest.mark.parametrize(
    ("offset", "data"),
    [
        (16, b"\x00\x03"),
        (16, b"\x00\x00"),
        (18, b"\x07"),
        (19, b"\x03"),
        (0, b"s"),
        (20, b"\xff"),
        (21, b"\x41"),
        (44, b"\0\0\0\7"),
        (56, b"\0\0\0\7"),
    ],
)
def test_headers(repo: Path, offset: int, data: bytes) -> None:
    with db_of(repo).open("r+b") as stream:
        stream.seek(offset)
        stream.write(data)
    assert outcome(read(repo)) == (77, "unrecognised_format")


def test_trailing_bytes_are_no_damage(repo: Path) -> None:
    for extra in (1, 100, 4096, 10_000):
        with db_of(repo).open("ab") as stream:
            stream.write(b"x" * extra)
        assert outcome(read(repo)) == (0, None)


def page_of(repo: Path, table: str) -> tuple[int, int]:
    with sqlite3.connect(f"file:{db_of(repo)}?mode=ro&immutable=1", uri=True) as db:
        (page,) = db.execute("SELECT rootpage FROM sqlite_master WHERE name=?", (table,)).fetchone()
        (size,) = db.execute("PRAGMA page_size").fetchone()
    return (page - 1) * size, size


def test_damage_beside_a_verified_head(repo: Path) -> None:
    """A page of a table that nobody asks for is garbage: the store is damaged, and HEAD proves the format."""
    offset, size = page_of(repo, "change_sets")
    with db_of(repo).open("r+b") as stream:
        stream.seek(offset)
        stream.write(b"\xff" * size)
    assert outcome(read(repo)) == (3, "store_damaged")


@pytest.mark.parametrize(
    "table", ["commits", "trees", "metadata", "branch_heads", "schema_migrations", "sqlite_autoindex_x"]
)
def test_damage_that_hides_head(repo: Path, table: str) -> None:
    if table == "sqlite_autoindex_x":
        offset, size = 100, 200
    else:
        offset, size = page_of(repo, table)
    with db_of(repo).open("r+b") as stream:
        stream.seek(offset)
        stream.write(b"\xff" * size)
    assert outcome(read(repo)) == (77, "unrecognised_format")


def test_damaged_blobs(repo: Path) -> None:
    offset, size = page_of(repo, "blobs")
    with db_of(repo).open("r+b") as stream:
        stream.seek(offset)
        stream.write(b"\xff" * size)
    assert outcome(read(repo)) == (3, "store_damaged")


def test_a_tree_of_pages_in_a_circle(tmp_path: Path) -> None:
    store = make(tmp_path / "repo", page_size=512)
    for number in range(300):
        store.blob(b"%d" % number)
    repo = store.close()
    offset, _ = page_of(repo, "blobs")
    page = offset // 512 + 1
    with db_of(repo).open("r+b") as stream:
        stream.seek(offset + 8)
        stream.write(page.to_bytes(4, "big"))
        stream.seek(offset + 12)
        first = int.from_bytes(stream.read(2), "big")
        stream.seek(offset + first)
        stream.write(page.to_bytes(4, "big"))
    started = time.monotonic()
    assert outcome(read(repo))[0] in (3, 77)
    assert time.monotonic() - started < 10


# --- Reach and traces -----------------------------------------------------------------------------


def test_what_the_connection_may_do(repo: Path) -> None:
    budget = scoped_read.Budget(scoped_read.Bounds())
    with scoped_read.contextlib.ExitStack() as cleanup:
        copy = repo.parent / "copy.db"
        shutil.copy(db_of(repo), copy)
        db = oak_database.Database(scoped_read, str(copy), budget, cleanup)
        assert not copy.exists()
        for sql in (
            "ATTACH '/tmp/x.db' AS x",
            "CREATE TEMP TABLE t (a)",
            "INSERT INTO metadata VALUES ('a', 'b')",
            "PRAGMA writable_schema=ON",
            "PRAGMA journal_mode=DELETE",
            "SELECT load_extension('x')",
            "VACUUM INTO '/tmp/x.db'",
            "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM c) SELECT x FROM c",
            "BEGIN",
        ):
            with pytest.raises(oak_database.Damaged):
                db.all(sql)
        assert db.all("SELECT count(*) FROM commits") == [(1,)]


def test_reading_leaves_no_trace(repo: Path, tmp_path: Path) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    before = snapshot(repo)
    for options in ((), ("--deep",), ("--max-object-bytes", "1"), ("--deadline", "0"), ("--path", "none")):
        script(repo, *options, env={"TMPDIR": str(scratch)})
        assert list(scratch.iterdir()) == []
    assert snapshot(repo) == before


def test_nothing_is_left_when_the_deadline_strikes(tmp_path: Path) -> None:
    """At many moments: in the copy, in SQLite, in the codec, while writing."""
    store = make(tmp_path / "repo", {f"f{number}": os.urandom(30_000) for number in range(60)})
    repo = store.close()
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    seen = set()
    for step in range(7):
        deadline = f"{0.01 * 2.2**step:.3f}"
        dest = tmp_path / "dest"
        started = time.monotonic()
        status, report, _ = script(repo, dest, "--deadline", deadline, env={"TMPDIR": str(scratch)})
        seen.add(report["reason"])
        assert (status, report["reason"]) in ((77, "deadline"), (0, None))
        assert report["duration_ns"] < float(deadline) * 1e9 + 1e9
        assert time.monotonic() - started < float(deadline) + 10
        assert list(scratch.iterdir()) == []
        assert dest.exists() == (status == 0)
        shutil.rmtree(dest, ignore_errors=True)
    assert "deadline" in seen


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_told_to_stop(tmp_path: Path, number: signal.Signals) -> None:
    store = make(tmp_path / "repo", {"f": random.Random(1).randbytes(20_000_000)})
    repo = store.close()
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    command = [sys.executable, "-I", str(SCRIPT), str(repo), str(tmp_path / "dest")]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={"TMPDIR": str(scratch)}
    )
    limit = time.monotonic() + 30
    while not list(scratch.iterdir()) and time.monotonic() < limit:
        time.sleep(0.01)
    process.send_signal(number)
    out, err = process.communicate(timeout=30)
    assert (process.returncode, json.loads(out)["reason"]) == (77, "instrument_failed")
    assert err.count(b"\n") == 1
    assert list(scratch.iterdir()) == [] and not (tmp_path / "dest").exists()


def test_the_environment_and_the_directory_change_nothing(repo: Path, tmp_path: Path) -> None:
    hostile = tmp_path / "hostile"
    hostile.mkdir()
    for name in ("sqlite3", "hashlib", "scoped_read", "oak_format", "blake3", "json"):
        (hostile / f"{name}.py").write_text("raise SystemExit('planted')\n")
    environment = {"PYTHONPATH": str(hostile), "PYTHONSTARTUP": str(hostile / "json.py"), "OAK_REMOTE": "x"}
    status, _, _ = script(repo, env=environment, cwd=hostile)
    assert status == 0


def test_native_without_its_packages(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "zstandard", None)
    assert outcome(read(repo, "--backend", "native")) == (77, "instrument_missing")


def test_python_without_sqlite(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(oak_database, "HAS_SQLITE", False)
    assert outcome(read(repo)) == (77, "instrument_missing")


def test_memory_limit(tmp_path: Path) -> None:
    """A process that may not have the memory says so."""
    store = make(tmp_path / "repo", {"f": b"\0" * 150_000_000})
    repo = store.close()
    limited = "import resource, runpy, sys; resource.setrlimit(resource.RLIMIT_AS, (200 << 20,) * 2);"
    limited += (
        f"sys.argv = [{str(SCRIPT)!r}, {str(repo)!r}]; runpy.run_path(sys.argv[0], run_name='__main__')"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-c", limited], capture_output=True, timeout=120, check=False
    )
    assert b"Traceback" not in done.stderr
    assert (done.returncode, json.loads(done.stdout)["reason"]) == (77, "memory")


def test_the_reader_is_standard_library_only() -> None:
    """Everything that the pure backend loads comes with Python or lies beside the script."""
    code = (
        "import sys, runpy, io, contextlib\n"
        f"sys.argv = [{str(SCRIPT)!r}, '/nonexistent']\n"
        "with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):\n"
        "    try: runpy.run_path(sys.argv[0], run_name='__main__')\n"
        "    except SystemExit: pass\n"
        "files = {n: getattr(m, '__file__', None) or '' for n, m in list(sys.modules.items())}\n"
        "print([name for name, file in files.items() if 'site-packages' in file])"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code], capture_output=True, check=True, timeout=60
    )
    assert done.stdout.strip() == b"[]"
    names = {os.path.basename(name) for name in oak_sqlite_reader.READER.code_files}
    assert names == {"oak_sqlite_reader.py", "oak_database.py", "oak_format.py", "scoped_read.py"}

"""Builds Oak stores of the pinned format, right or wrong on purpose, and reads them with the isolated reader.

The schema is that of a database with the 15 migrations up to `0014_change_captures`. Hashes and frames
come from the blake3 and zstandard packages where they are installed, so that they are not the reader's own.
"""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from reader import oak_sqlite_reader, scoped_read

try:
    from blake3 import blake3
except ImportError:
    from reader import pureblake3

    def h(data: bytes) -> str:
        return pureblake3.digest(data).hex()

else:

    def h(data: bytes) -> str:
        return blake3(data).hexdigest()


try:
    import zstandard
except ImportError:

    def frame(data: bytes, content_size: bool = False) -> bytes:
        """Raw blocks only, with the header that Oak writes."""
        blocks = [data[start : start + 65536] for start in range(0, len(data), 65536)] or [b""]
        last = len(blocks) - 1
        coded = [
            (len(block) << 3 | (number == last)).to_bytes(3, "little") + block
            for number, block in enumerate(blocks)
        ]
        return bytes.fromhex("28b52ffd0058") + b"".join(coded)

else:

    def frame(data: bytes, content_size: bool = False) -> bytes:
        return zstandard.ZstdCompressor(level=3, write_content_size=content_size).compress(data)


SCRIPT = Path(oak_sqlite_reader.__file__)
EMPTY = "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262"
TIME = "2026-07-04T08:25:15.778307+00:00"
AUTHOR = "Ada <ada@example.com>"
BRANCH = "ada-3f2a8b"

SCHEMA = """
CREATE TABLE schema_migrations (version TEXT PRIMARY KEY,
    applied_at TEXT NOT NULL DEFAULT (datetime('now')), succeeded INTEGER NOT NULL DEFAULT 1);
CREATE TABLE blobs (hash TEXT PRIMARY KEY, content BLOB NOT NULL, size INTEGER NOT NULL,
    codec INTEGER NOT NULL DEFAULT 0);
CREATE TABLE chunks (hash TEXT PRIMARY KEY, content BLOB NOT NULL, size INTEGER NOT NULL);
CREATE TABLE blob_chunks (blob_hash TEXT NOT NULL, chunk_hash TEXT NOT NULL, chunk_index INTEGER NOT NULL,
    offset INTEGER NOT NULL, size INTEGER NOT NULL, PRIMARY KEY (blob_hash, chunk_index));
CREATE TABLE trees (hash TEXT PRIMARY KEY, created_at TEXT NOT NULL DEFAULT (datetime('now')), content BLOB);
CREATE TABLE tree_entries (tree_hash TEXT NOT NULL, name TEXT NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('tree', 'blob')), hash TEXT NOT NULL,
    mode TEXT NOT NULL DEFAULT 'regular', PRIMARY KEY (tree_hash, name),
    FOREIGN KEY (tree_hash) REFERENCES trees(hash));
CREATE TABLE branches (name TEXT PRIMARY KEY, description TEXT, parent_branch TEXT,
    status TEXT NOT NULL DEFAULT 'open', created_at TEXT NOT NULL DEFAULT (datetime('now')),
    close_reason TEXT, description_pending INTEGER NOT NULL DEFAULT 0,
    description_generation INTEGER NOT NULL DEFAULT 0);
CREATE TABLE commits (hash TEXT PRIMARY KEY, branch_name TEXT NOT NULL, parent_hash TEXT,
    manifest_hash TEXT NOT NULL, author TEXT NOT NULL, message TEXT, timestamp TEXT NOT NULL,
    merge_parent_hash TEXT);
CREATE INDEX idx_commits_branch ON commits(branch_name);
CREATE INDEX idx_commits_parent ON commits(parent_hash);
CREATE INDEX idx_commits_timestamp ON commits(timestamp);
CREATE INDEX idx_commits_merge_parent ON commits(merge_parent_hash) WHERE merge_parent_hash IS NOT NULL;
CREATE TABLE commit_files (id INTEGER PRIMARY KEY AUTOINCREMENT, commit_hash TEXT NOT NULL,
    path TEXT NOT NULL, change_type TEXT NOT NULL, old_blob_hash TEXT, new_blob_hash TEXT, old_path TEXT,
    FOREIGN KEY (commit_hash) REFERENCES commits(hash));
CREATE INDEX idx_commit_files_commit ON commit_files(commit_hash);
CREATE TABLE branch_heads (branch_name TEXT PRIMARY KEY, head_hash TEXT NOT NULL,
    FOREIGN KEY (head_hash) REFERENCES commits(hash));
CREATE TABLE tags (name TEXT PRIMARY KEY, commit_hash TEXT NOT NULL,
    created_at TEXT NOT NULL DEFAULT (datetime('now')), FOREIGN KEY (commit_hash) REFERENCES commits(hash));
CREATE TABLE metadata (key TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE stat_cache (path TEXT PRIMARY KEY, mtime_ns INTEGER NOT NULL,
    ctime_ns INTEGER NOT NULL DEFAULT 0, size INTEGER NOT NULL, blob_hash TEXT NOT NULL);
CREATE TABLE branch_description_clock (singleton INTEGER PRIMARY KEY CHECK (singleton = 1),
    generation INTEGER NOT NULL CHECK (generation >= 0));
CREATE TABLE change_sets (change_id TEXT PRIMARY KEY, schema_version INTEGER NOT NULL,
    object_format TEXT NOT NULL, base_tree_hash TEXT NOT NULL, result_tree_hash TEXT NOT NULL,
    scope_kind TEXT NOT NULL, scope_paths_json TEXT NOT NULL, descriptor_json TEXT NOT NULL,
    created_at TEXT NOT NULL);
CREATE TABLE change_captures (capture_id TEXT PRIMARY KEY,
    change_id TEXT NOT NULL REFERENCES change_sets(change_id), format_version INTEGER NOT NULL,
    repo_owner TEXT NOT NULL, repo_name TEXT NOT NULL, origin TEXT, source_branch TEXT NOT NULL,
    base_commit_hash TEXT, captured_at TEXT NOT NULL);
CREATE INDEX idx_change_captures_change_id ON change_captures(change_id);
"""

MODES = {"regular": "100644", "executable": "100755", "symlink": "120000"}


class File(NamedTuple):
    """A file to commit: content (a link's target) and Oak's mode text."""

    content: bytes
    mode: str = "regular"


def tree_bytes(entries: Sequence[tuple[str, bytes | str, str, str]]) -> bytes:
    """Canonical bytes of (kind, name, hash, mode), in the order given."""
    lines = []
    for kind, name, object_id, mode in entries:
        raw = name.encode() if isinstance(name, str) else name
        lines.append(b"\t".join((kind.encode(), raw, object_id.encode(), mode.encode())))
    return b"\n".join(lines)


def commit_hash(*fields: str) -> str:
    return h("\n".join(fields).encode())


class Store:
    """A repository directory with `.oak/oak.db`, open for writing until `close`."""

    def __init__(
        self, repo: Path, *, page_size: int = 4096, schema: str = SCHEMA, encoding: str = "UTF-8"
    ) -> None:
        self.repo = repo
        self.path = repo / ".oak" / "oak.db"
        self.path.parent.mkdir(parents=True)
        self.db = sqlite3.connect(self.path, isolation_level=None)
        self.db.execute(f"PRAGMA page_size={page_size}")
        self.db.execute(f"PRAGMA encoding='{encoding}'")
        self.db.execute("PRAGMA synchronous=OFF")
        self.db.execute("PRAGMA journal_mode=MEMORY").fetchall()
        self.db.executescript(schema)
        for version in oak_sqlite_reader.MIGRATIONS:
            self.db.execute("INSERT INTO schema_migrations (version) VALUES (?)", (version,))
        self.db.execute("INSERT INTO branch_description_clock VALUES (1, 0)")
        self.db.execute("INSERT INTO branches (name, parent_branch) VALUES (?, 'main')", (BRANCH,))
        self.set("repo_name", "repo")
        self.set("current_branch", BRANCH)
        self.db.execute("BEGIN")

    def set(self, key: str, value: str) -> None:
        self.db.execute("INSERT OR REPLACE INTO metadata VALUES (?, ?)", (key, value))

    def blob(self, data: bytes, *, codec: int | None = None) -> str:
        packed = frame(data)
        if codec is None:
            codec = int(len(packed) < len(data))
        content = packed if codec == 1 else data
        row = (h(data), content, len(data), codec)
        self.db.execute("INSERT OR REPLACE INTO blobs VALUES (?, ?, ?, ?)", row)
        return h(data)

    def chunked(self, data: bytes, sizes: Sequence[int], *, whole: bool = False) -> str:
        """The blob as chunks of these sizes; with a complete row as well when `whole`."""
        blob = h(data)
        offset = 0
        for index, size in enumerate(sizes):
            part = data[offset : offset + size]
            self.db.execute("INSERT OR REPLACE INTO chunks VALUES (?, ?, ?)", (h(part), part, len(part)))
            row = (blob, h(part), index, offset, len(part))
            self.db.execute("INSERT INTO blob_chunks VALUES (?, ?, ?, ?, ?)", row)
            offset += size
        if whole:
            self.blob(data)
        return blob

    def tree(
        self, entries: Sequence[tuple[str, bytes | str, str, str]], *, legacy: bool = False, sort: bool = True
    ) -> str:
        if sort:
            entries = sorted(entries, key=lambda e: e[1].encode() if isinstance(e[1], str) else e[1])
        return self.raw_tree(tree_bytes(entries), entries if legacy else None)

    def raw_tree(self, data: bytes, legacy: Sequence[tuple[str, bytes | str, str, str]] | None = None) -> str:
        """Any bytes as a tree, under their true hash."""
        if legacy is None:
            self.db.execute(
                "INSERT OR REPLACE INTO trees (hash, content) VALUES (?, ?)", (h(data), frame(data))
            )
        else:
            self.db.execute("INSERT OR REPLACE INTO trees (hash) VALUES (?)", (h(data),))
            for kind, name, object_id, mode in legacy:
                mode = "regular" if kind == "tree" else mode
                row = (h(data), name, kind, object_id, mode)
                self.db.execute("INSERT OR REPLACE INTO tree_entries VALUES (?, ?, ?, ?, ?)", row)
        return h(data)

    def files(self, files: Mapping[str, File | bytes], *, legacy: bool = False) -> str:
        """Blobs and trees for these paths; the root tree's hash."""
        nested: dict[str, Any] = {}
        for path, item in files.items():
            node = nested
            *above, name = path.split("/")
            for part in above:
                node = node.setdefault(part, {})
            node[name] = item if isinstance(item, File) else File(item)
        return self._directory(nested, legacy)

    def _directory(self, node: Mapping[str, Any], legacy: bool) -> str:
        entries: list[tuple[str, bytes | str, str, str]] = []
        for name, item in node.items():
            if isinstance(item, File):
                if item.content or item.mode == "symlink":
                    self.blob(item.content)
                entries.append(("blob", name, h(item.content), item.mode))
            else:
                entries.append(("tree", name, self._directory(item, legacy), "tree"))
        return self.tree(entries, legacy=legacy)

    def commit(
        self,
        root: str,
        *,
        parent: str | None = None,
        merge: str | None = None,
        branch: str = BRANCH,
        message: str | None = None,
        time: str = TIME,
        author: str = AUTHOR,
        stored_time: str | None = None,
        legacy: bool = False,
        head: bool = True,
    ) -> str:
        fields = [branch, parent or "", *([] if legacy else [merge or ""]), root, author, message or "", time]
        commit = commit_hash(*fields)
        row = (commit, branch, parent, root, author, message, stored_time or time, merge)
        self.db.execute("INSERT INTO commits VALUES (?, ?, ?, ?, ?, ?, ?, ?)", row)
        if head:
            self.db.execute("INSERT OR REPLACE INTO branch_heads VALUES (?, ?)", (branch, commit))
            self.set("head", commit)
        return commit

    def run(self, sql: str, *parameters: Any) -> None:
        self.db.execute(sql, parameters)

    def close(self, *, wal: bool = True) -> Path:
        """Commit, and leave the file as a clean close of Oak does: WAL mode, no side files. The
        repository.
        """
        self.db.execute("COMMIT")
        if wal:
            self.db.execute("PRAGMA journal_mode=WAL").fetchall()
        self.db.close()
        return self.repo

    def schema(self, sql: str) -> None:
        """Rewrite the schema behind SQLite's back; the store must be closed after it."""
        self.db.execute("COMMIT")
        self.db.execute("PRAGMA writable_schema=ON")
        self.db.execute(sql)
        self.db.execute("PRAGMA writable_schema=OFF")
        self.db.execute("BEGIN")


SAMPLE: dict[str, File | bytes] = {
    "hello.txt": b"hello\n",
    "dir/inner.txt": b"inner\n",
    "dir/deep/x": b"hello\n" * 100,
    "link": File(b"hello.txt", "symlink"),
    "run.sh": File(b"#!/bin/sh\necho hi\n", "executable"),
    "empty": b"",
}


def make(repo: Path, files: Mapping[str, File | bytes] | None = None, **options: Any) -> Store:
    """A store with one commit of `files` at HEAD, still open."""
    store = Store(repo, **options)
    store.commit(store.files(SAMPLE if files is None else files))
    return store


@contextlib.contextmanager
def edited(repo: Path) -> Iterator[sqlite3.Connection]:
    """A connection that changes a closed store as Oak never would."""
    db = sqlite3.connect(repo / ".oak" / "oak.db", isolation_level=None)
    db.execute("PRAGMA journal_mode=DELETE").fetchall()
    db.execute("PRAGMA ignore_check_constraints=ON")
    yield db
    db.close()


def read(repo: Path | str, *options: str) -> dict[str, Any]:
    """The report of one read in this process; `stderr` holds the one line that the script would print."""
    argv = [*map(str, options), "--", str(repo)]
    report, stop = scoped_read.run(oak_sqlite_reader.READER, argv)
    result: dict[str, Any] = json.loads(report.render(stop))
    assert result["exit_status"] in (0, 1, 2, 3, 77)
    return result


def write(repo: Path, dest: Path, *options: str) -> dict[str, Any]:
    """The same with a destination."""
    report, stop = scoped_read.run(oak_sqlite_reader.READER, [*options, "--", str(repo), str(dest)])
    result: dict[str, Any] = json.loads(report.render(stop))
    return result


def script(
    *arguments: str | os.PathLike[str], timeout: float = 60, **options: Any
) -> tuple[int, dict[str, Any], str]:
    """Exit status, report and standard error of the isolated script in a process of its own."""
    command = [sys.executable, "-I", str(SCRIPT), *map(os.fspath, arguments)]
    done = subprocess.run(command, capture_output=True, timeout=timeout, check=False, **options)
    stderr = done.stderr.decode()
    assert "Traceback" not in stderr
    assert stderr.count("\n") == (1 if done.returncode else 0)
    return done.returncode, json.loads(done.stdout), stderr


def outcome(report: Mapping[str, Any]) -> tuple[int, str | None]:
    """Exit status and reason."""
    return report["exit_status"], report["reason"]


def paths(report: Mapping[str, Any]) -> list[str]:
    """Paths of the entries."""
    return [entry["path"] for entry in report["entries"]]

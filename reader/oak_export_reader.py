"""The Oak reader that believes the subject: what `oak export` says HEAD holds.

Used only when it is asked for (`OAK_BENCH_OAK_COMMITTED_READER=export`). The evidence is the subject's own
and its class says so (`subject_export`); nothing here is re-hashed against the store, and no other reader
ever falls back to this one. Run as ``python -I reader/oak_export_reader.py REPO ...`` with the subject's
program as an absolute path in ``OAK_BENCH_OAK_SUBJECT``; options and report are those of
``docs/reader-report.md``, with the program as ``instrument``.

The subject is run on a private copy of the store, in a scratch directory, with an environment built from
nothing: ``oak export --tree-only --at HEAD``. What it writes is then read like a foreign directory: no link
is followed and only plain files, directories and links are taken.
"""
# ruff: noqa: E402 - as a script, this file first makes its own directory importable as the package `reader`

from __future__ import annotations

import os
import sys

_HERE = os.path.dirname(os.path.abspath(__file__))

if __name__ == "__main__":
    import importlib.util

    _spec = importlib.util.spec_from_file_location(
        "reader", os.path.join(_HERE, "__init__.py"), submodule_search_locations=[_HERE]
    )
    assert _spec is not None and _spec.loader is not None
    sys.modules["reader"] = importlib.util.module_from_spec(_spec)
    _spec.loader.exec_module(sys.modules["reader"])
    sys.exit(importlib.import_module("reader.oak_export_reader").main())

import contextlib
import hashlib
import json
import re
import selectors
import stat
import subprocess
from collections.abc import Iterator, Mapping, Sequence

from reader import oak_database, scoped_read
from reader.instrument import end_group
from reader.scoped_read import (
    MODE_EXECUTABLE,
    MODE_LINK,
    MODE_REGULAR,
    MODE_TREE,
    Budget,
    Options,
    Reader,
    Report,
    Snapshot,
    Stop,
    TreeEntry,
)

VERSION = "1"
VARIABLE = "OAK_BENCH_OAK_SUBJECT"
"""Environment variable with the absolute path of the subject's program."""

_MAX_RECEIPT_BYTES = 1 << 20
_ID = re.compile(r"[0-9a-f]{64}\Z")


def open_export(options: Options, report: Report, budget: Budget, cleanup: contextlib.ExitStack) -> Snapshot:
    """Have the subject export HEAD, and present what it wrote."""
    if options.bounds.deep:
        raise Stop("usage", "an export holds no history to verify: --deep needs the reader of the store")
    program = os.environ.get(VARIABLE, "")
    if not os.path.isabs(program) or not os.path.isfile(program) or not os.access(program, os.X_OK):
        raise Stop("instrument_missing", f"{VARIABLE} names no program; give the subject's absolute path")
    copy = oak_database.copy_store(scoped_read, options.repo, budget, report, cleanup)
    scratch = scoped_read.temporary_directory(cleanup)
    repo = os.path.join(scratch, "repo")
    os.makedirs(os.path.join(repo, ".oak"), 0o700)
    os.rename(copy, os.path.join(repo, ".oak", "oak.db"))
    receipt = _export(program, repo, scratch, budget)
    head = receipt.get("commit")
    if not isinstance(head, str) or not _ID.match(head):
        raise Stop("instrument_failed", "the subject exported no commit that it names")
    report.head = head
    report.format = {"name": "oak-export"}
    return Snapshot(_Directory(os.path.join(scratch, "out"), budget), "")


def _export(program: str, repo: str, scratch: str, budget: Budget) -> dict[str, object]:
    bounds = budget.bounds
    command = [
        program, "export", "--tree-only", "--at", "HEAD", os.path.join(scratch, "out"), "--json",
        "--max-files", str(bounds.max_entries), "--max-bytes", str(bounds.max_total_bytes),
    ]  # fmt: skip
    home = os.path.join(scratch, "home")
    os.mkdir(home, 0o700)
    child = subprocess.Popen(
        command,
        cwd=repo,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={"HOME": home, "TMPDIR": scratch, "LC_ALL": "C.UTF-8", "OAK_NO_UPDATE_CHECK": "1"},
        start_new_session=True,
    )
    try:
        out = _collect(child, budget)
        status = child.wait(timeout=max(0.1, budget.remaining_ns() / 1e9))
    except subprocess.TimeoutExpired:
        raise budget.deadline_stop() from None
    finally:
        end_group(child)
    try:
        receipt = json.loads(out)
    except (ValueError, RecursionError):
        receipt = None
    if status != 0 or not isinstance(receipt, dict) or receipt.get("status") != "verified":
        raise Stop(
            "instrument_failed", f"the subject's export ended with status {status} and no verified tree"
        )
    return receipt


def _collect(child: subprocess.Popen[bytes], budget: Budget) -> bytes:
    assert child.stdout is not None
    out = bytearray()
    with selectors.DefaultSelector() as selector:
        selector.register(child.stdout, selectors.EVENT_READ)
        while True:
            if not selector.select(max(0.0, budget.remaining_ns() / 1e9)):
                raise budget.deadline_stop()
            block = os.read(child.stdout.fileno(), 1 << 16)
            if not block:
                return bytes(out)
            out += block
            if len(out) > _MAX_RECEIPT_BYTES:
                raise Stop("instrument_failed", "the subject's receipt does not end")


class _Directory:
    """An exported directory as a store: an id is the path below it."""

    def __init__(self, root: str, budget: Budget) -> None:
        self._root = root
        self._budget = budget

    def _path(self, name: str) -> str:
        return os.path.join(self._root, name) if name else self._root

    def read_trees(self, ids: Sequence[str]) -> Iterator[tuple[str, Sequence[TreeEntry] | Stop]]:
        for name in ids:
            self._budget.check()
            entries = []
            with os.scandir(self._path(name)) as found:
                for item in found:
                    below = f"{name}/{item.name}" if name else item.name
                    entries.append(TreeEntry(os.fsencode(item.name), _mode(item), below))
            yield name, sorted(entries)

    def blob_sizes(self, ids: Sequence[str]) -> Mapping[str, int | None]:
        return {name: os.lstat(self._path(name)).st_size for name in ids}

    def read_blobs(self, ids: Sequence[str]) -> Iterator[tuple[str, bytes | Stop]]:
        for name in ids:
            path = self._path(name)
            try:
                found = os.lstat(path)
                self._budget.admit(found.st_size, "a file of the export")
                if stat.S_ISLNK(found.st_mode):
                    content = os.fsencode(os.readlink(path))
                else:
                    with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC), "rb") as stream:
                        content = stream.read(found.st_size + 1)
            except Stop as stop:
                yield name, stop
                continue
            self._budget.charge(len(content))
            yield name, content

    def judge(self, stop: Stop) -> Stop:
        return stop

    def verify_history(self) -> Iterator[Stop]:
        return iter(())


def _mode(item: os.DirEntry[str]) -> int:
    mode = item.stat(follow_symlinks=False).st_mode
    if stat.S_ISLNK(mode):
        return MODE_LINK
    if stat.S_ISDIR(mode):
        return MODE_TREE
    if not stat.S_ISREG(mode):
        raise Stop("instrument_failed", "the subject exported something that is no file, directory or link")
    return MODE_EXECUTABLE if mode & 0o111 else MODE_REGULAR


def instrument() -> dict[str, str] | None:
    """Name and SHA-256 of the subject's program, for the report; None where it cannot be read."""
    program = os.environ.get(VARIABLE, "")
    try:
        with open(program, "rb") as stream:
            digest = hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError:
        return None
    return {"name": os.path.basename(program), "sha256": digest}


READER = Reader(
    name="oak_export_reader",
    version=VERSION,
    vcs="oak",
    prog="oak_export_reader.py",
    description="What the subject's own `oak export` says that HEAD holds.",
    backends=("export",),
    default_backend="export",
    code_files=tuple(
        os.path.join(_HERE, name)
        for name in ("oak_export_reader.py", "scoped_read.py", "oak_database.py", "instrument.py")
    ),
    open=open_export,
)


def main(argv: Sequence[str] | None = None) -> int:
    """Read, print the report with the instrument, and return the exit status."""
    report, stop = scoped_read.run(READER, sys.argv[1:] if argv is None else argv, alarm=argv is None)
    text = report.render(stop)
    sys.stdout.write(f'{text[:-1]},"instrument":{json.dumps(instrument())}}}\n')
    sys.stdout.flush()
    if stop is None:
        return 0
    sys.stderr.write(f"{report.reader}: {stop.reason}: {stop.detail}\n")
    return stop.exit_status

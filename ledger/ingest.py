"""Ingest: files of events or harness rows into the ledger, a transaction a file (design section 5).

A file is checked to its end before any of it counts. What is staged then enters as one transaction, durable
before it is reported, and events that are known are skipped; so a retry after any crash is safe, and the same
file twice is the same ledger.
"""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from typing import IO

from ledger import checkpoints
from ledger.checking import NUMBERS_PER_LINE, Checked, Helpers, check, helper_count
from ledger.errors import LedgerDamagedError, OakledgerError
from ledger.inputs import Block, Found, Input, InputFile, PipeCopy, UnreadableError, shown
from ledger.rejects import Rejects
from ledger.staging import Staging
from ledger.store import AppendResult, Checkpoint, Ledger, StagedConflictError

#: Blocks of a file that are checked in this process before helpers are started for the rest.
_BLOCKS_WITHOUT_HELPERS = 3

#: A ledger that has been held so long is let go between two files, so that others get a turn.
_HOLD_S = 1.0

#: Larger files are checked without holding the ledger.
_CHECK_WHILE_HELD_BYTES = 4 << 20


@dataclass(frozen=True)
class FileResult:
    """What became of one file.

    `state` is `ingested` (all of it, or with keep_going what was good), `refused` (bad lines, nothing of it
    ingested) or `unreadable` (not read as a whole, nothing of it ingested; `reason` says why). What came by a
    pipe and was not ingested is kept in the file `kept_in`.
    """

    path: str
    state: str
    lines: int = 0
    new: int = 0
    known: int = 0
    rejected: int = 0
    reason: str | None = None
    kept_in: str | None = None


@dataclass
class Summary:
    """What became of all files; `checkpoint` is the tree head after the last transaction."""

    files: list[FileResult] = field(default_factory=list)
    checkpoint: Checkpoint | None = None
    rejects_file: str | None = None

    @property
    def new(self) -> int:
        """Events that are in the ledger now and were not before."""
        return sum(f.new for f in self.files)

    @property
    def known(self) -> int:
        """Events that the ledger had, or that came twice."""
        return sum(f.known for f in self.files)

    @property
    def rejected(self) -> int:
        """Bad lines."""
        return sum(f.rejected for f in self.files)

    @property
    def unreadable(self) -> int:
        """Files that could not be read."""
        return sum(f.state == "unreadable" for f in self.files)


class Ingest:
    """Takes files in, one after the other. Use as a context manager.

    `open_ledger` opens the ledger for writing, waiting for others as long as it sees fit. `progress` is
    called with the bytes read of the file at hand and its size.
    """

    def __init__(
        self,
        open_ledger: Callable[[], Ledger],
        rejects: Rejects,
        *,
        keep_going: bool = False,
        progress: Callable[[str, int, int], None] = lambda path, done, size: None,
    ) -> None:
        self._open = open_ledger
        self._rejects = rejects
        self._keep_going = keep_going
        self._progress = progress
        self._held: Ledger | None = None
        self._held_since = 0.0
        self.summary = Summary()

    def __enter__(self) -> Ingest:
        self.ledger()  # a ledger that cannot be used is told before the files are read
        return self

    def __exit__(self, *_: object) -> None:
        self._release()
        self._rejects.close()
        self.summary.rejects_file = self._rejects.path

    def run(self, found: Found) -> Summary:
        """Take in the files. Raises the errors of the ledger; what was taken in before stays."""
        for source in found.files:
            if source.how == "pipe":
                self._pipe(source)
            else:
                self.summary.files.append(self._take(source, source.path))
        return self.summary

    def _take(self, source: Input, name: str) -> FileResult:
        try:
            return self._file(source, name)
        except UnreadableError as e:
            self._rejects.add(name, None, str(e))
            return FileResult(name, "unreadable", reason=str(e))
        except OSError as e:
            folder = tempfile.gettempdir()
            raise OakledgerError(
                f"{shown(name)} could not be staged in {folder} ({e.strerror}): "
                "make room there or set TMPDIR, and ingest again, nothing of it was written"
            ) from e

    def _pipe(self, source: Input) -> None:
        self._release()
        with contextlib.ExitStack() as stack:
            if source.path == "-":
                stream: IO[bytes] = sys.stdin.buffer
            else:
                stream = stack.enter_context(open(source.path, "rb"))
            copy = stack.enter_context(PipeCopy(stream))
            try:
                result = self._take(Input(copy.path, "file"), source.path)
            except OakledgerError as e:
                e.args = (f"{e}; what came by the pipe is kept in {copy.keep()}",)
                raise
            if result.state != "ingested":
                result = replace(result, kept_in=copy.keep())
        self.summary.files.append(result)

    def _file(self, source: Input, name: str) -> FileResult:
        with InputFile(source) as opened, Staging() as staging:
            if opened.size > _CHECK_WHILE_HELD_BYTES or self._held_too_long():
                self._release()
            lines = 0
            bad = 0
            for checked in self._check(opened, staging, name):
                lines += checked.lines
                bad += len(checked.rejects)
                for reject in checked.rejects:
                    self._rejects.add(name, reject.line, reject.reason, reject.text)
            opened.refuse_change()
            if bad and not self._keep_going:
                return FileResult(name, "refused", lines=lines, rejected=bad)
            try:
                appended = self._append(staging)
            except StagedConflictError as e:
                for conflict in e.conflicts:
                    self._rejects.add(name, conflict.number // NUMBERS_PER_LINE, str(conflict))
                return FileResult(name, "refused", lines=lines, rejected=bad + len(e.conflicts))
            for conflict in appended.conflicts:
                self._rejects.add(name, conflict.number // NUMBERS_PER_LINE, str(conflict))
        rejected = bad + len(appended.conflicts)
        return FileResult(name, "ingested", lines, appended.new, appended.known, rejected)

    def _check(self, opened: InputFile, staging: Staging, name: str) -> Iterator[Checked]:
        """Check a file's blocks, in order, and stage what is good."""
        now_ns = time.time_ns()
        seen: set[str] = set()
        blocks = self._watched(opened, name)
        for checked in (check(block, now_ns) for block in islice(blocks, _BLOCKS_WITHOUT_HELPERS)):
            staging.write(checked.staged, checked.events, checked.payload_bytes)
            _stage_facts(checked, staging, seen)
            yield checked
        following = next(blocks, None)
        if following is None:
            return
        parts = [staging.new_part() for _ in range(helper_count())]
        with Helpers(parts, now_ns) as helpers:
            for checked in helpers.check(chain([following], blocks)):
                staging.count += checked.events
                staging.bytes += checked.payload_bytes
                _stage_facts(checked, staging, seen)
                yield checked

    def _watched(self, opened: InputFile, name: str) -> Iterator[Block]:
        for block in opened.blocks():
            yield block
            self._progress(name, opened.position, opened.size)

    def _append(self, staging: Staging) -> AppendResult:
        ledger = self.ledger()
        result = ledger.append_staged(staging, leave_out_conflicts=self._keep_going)
        if self.summary.checkpoint != result.checkpoint:
            checkpoints.keep(ledger.path, result.checkpoint)
            self.summary.checkpoint = result.checkpoint
        return result

    def ledger(self) -> Ledger:
        """Return the ledger, opening it when it is not held."""
        if self._held is None:
            ledger = self._open()
            try:
                refuse_lost_events(ledger)
            except BaseException:
                ledger.close()
                raise
            self._held = ledger
            self._held_since = time.monotonic()
        return self._held

    def _held_too_long(self) -> bool:
        return self._held is not None and time.monotonic() - self._held_since > _HOLD_S

    def _release(self) -> None:
        if self._held is not None:
            self._held.close()
            self._held = None


def _stage_facts(checked: Checked, staging: Staging, seen: set[str]) -> None:
    """Stage what rows said about environments and subjects, the first time it is said in the file."""
    for fact in checked.facts:
        if fact.says not in seen:
            seen.add(fact.says)
            staging.write(fact.staged, 1, fact.payload_bytes)


def refuse_lost_events(ledger: Ledger) -> None:
    """Raise LedgerDamagedError when the ledger is smaller than its newest kept checkpoint.

    That is how a lost tail of the write-ahead log shows. Appending would bury the loss under new events.
    """
    current = ledger.checkpoint()
    stem = checkpoints.file_name(Checkpoint(ledger.origin, 0, current.root)).rpartition("@")[0] + "@"
    folder = checkpoints.folder(ledger.path)
    try:
        names = [n for n in os.listdir(folder) if n.startswith(stem) and n.endswith(".checkpoint")]
    except FileNotFoundError:
        return
    if not names:
        return
    note = checkpoints.read_note(os.path.join(folder, max(names)))
    if note.checkpoint.size > current.size:
        raise LedgerDamagedError(
            f"{ledger.path} has {current.size} events of its own and a kept checkpoint knows "
            f"{note.checkpoint.size}: events were lost, restore a copy and ingest their files again"
        )

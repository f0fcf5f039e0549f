"""Checking the texts of events in a process of its own, so that an audit uses every processor.

The parent sends a chunk as four 8-byte little-endian numbers, the count of events and the lengths of what
follows: the payloads, parted by newlines; their ids in hex, without anything between; and their typed
columns. The answer is one byte. Nothing else goes either way, and the parent closes its end when it is done.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import struct
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from operator import attrgetter
from typing import Any

HEADER = struct.Struct("<QQQQ")
YES, NO = b"1", b"0"

# How typed columns are written in one text: a mark before each value, another one for null, and what parts
# columns and rows. No field of an event can hold the separators; a column that does makes one part too many.
VALUE, NULL, COLUMN_END, ROW_END = "=", "-", "\x01", "\x03"

#: Tells the C library of Linux to keep freed memory: giving back and fetching again the same few megabytes
#: for every chunk would cost more than checking it.
_KEEP_MEMORY = {"MALLOC_MMAP_THRESHOLD_": "33554432", "MALLOC_TRIM_THRESHOLD_": "134217728"}


@dataclass(frozen=True)
class Chunk:
    """Consecutive rows of the table, as texts.

    `columns` are, for each row, kind, version, the scalars of the payload in the order of
    `ledger.audit_contents.SCALAR_COLUMNS`, and condition_key.
    """

    count: int
    payloads: bytes
    ids: bytes
    columns: bytes

    def holds(self) -> bool:
        """Return whether ids, payloads and columns of every row hold together.

        Each id must be the leaf hash of its payload, each payload a canonical known event, and the columns
        what it says. A false answer says only that the chunk deserves a closer look, row by row.
        """
        from ledger.decode_many import decode_in_batches

        text = self.payloads
        lines = text.split(b"\n")
        if len(lines) != self.count:
            return False
        if b"N" in text and b'"None"' in text:  # one letter is found many times faster than four
            return False
        sha256 = hashlib.sha256
        if "".join([sha256(b"\0" + line).hexdigest() for line in lines]).encode() != self.ids:
            return False
        columns: list[str] = []
        describe = _describers()
        for events in decode_in_batches(lines):
            if events is None:
                return False
            columns += [describe[type(event)](event) for event in events]
            del events  # before the next batch comes into being: its memory is warm
        # A null of an event was written as Python does; a text None was ruled out above.
        said = ROW_END.join(columns).replace(f"{COLUMN_END}{VALUE}None", f"{COLUMN_END}{NULL}")
        return said.encode() == self.columns


@cache
def _describers() -> dict[type[Any], Callable[[Any], str]]:
    """Return, for each type of event, what writes the columns that its row must have."""
    from ledger.decode_many import TYPES

    return {kind: _describer(kind) for kind in TYPES}


def _describer(kind: type[Any]) -> Callable[[Any], str]:
    from ledger.audit_contents import SCALAR_COLUMNS
    from ledger.events import canonical

    name, _, version = str(kind.__struct_config__.tag).partition("/")
    present = [column for column in SCALAR_COLUMNS if column in kind.__struct_fields__]
    form = COLUMN_END.join(
        [
            VALUE + name,
            VALUE + version,
            *(f"{VALUE}%s" if column in present else NULL for column in SCALAR_COLUMNS),
            "",
        ]
    )
    values: Callable[[Any], tuple[Any, ...]] = attrgetter(*present)
    if "condition" not in kind.__struct_fields__:
        form += NULL
        return lambda event: form % values(event)
    keys: dict[bytes, str] = {}

    def describe(event: Any) -> str:
        condition = canonical(event.condition)
        key = keys.get(condition)
        if key is None:
            if len(keys) >= 4096:
                keys.clear()
            key = keys[condition] = hashlib.sha256(condition).hexdigest()
        return f"{form % values(event)}{VALUE}{key}"

    return describe


class Worker:
    """A child process that answers whether chunks hold. Use from one thread."""

    def __init__(self) -> None:
        code = "import sys; sys.path[:] = sys.argv[1:]; from ledger.audit_worker import main; main()"
        self._process = subprocess.Popen(
            [sys.executable, "-c", code, *(os.path.abspath(p) for p in sys.path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, **_KEEP_MEMORY},
        )
        if sys.platform == "linux" and self._process.stdin is not None:
            with suppress(OSError):  # more than the system allows: the usual size will do
                fcntl.fcntl(self._process.stdin, fcntl.F_SETPIPE_SZ, 1 << 20)

    def holds(self, chunk: Chunk) -> bool:
        """Ask the child. When it is gone, for example for want of memory, answer here."""
        assert self._process.stdin is not None and self._process.stdout is not None
        parts = (chunk.payloads, chunk.ids, chunk.columns)
        try:
            self._process.stdin.write(HEADER.pack(chunk.count, *map(len, parts)))
            for part in parts:
                self._process.stdin.write(part)
            self._process.stdin.flush()
            answer = self._process.stdout.read(1)
        except OSError:
            answer = b""
        return answer == YES if answer else chunk.holds()

    def close(self) -> None:
        """End the child."""
        assert self._process.stdin is not None and self._process.stdout is not None
        with suppress(OSError):
            self._process.stdin.close()
        self._process.stdout.close()
        try:
            self._process.wait(timeout=1)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def main() -> None:
    """Answer chunks from standard input until it ends."""
    source, target = sys.stdin.buffer, sys.stdout.buffer
    with suppress(KeyboardInterrupt, BrokenPipeError):
        while len(head := source.read(HEADER.size)) == HEADER.size:
            count, *lengths = HEADER.unpack(head)
            payloads, ids, columns = (source.read(length) for length in lengths)
            target.write(YES if Chunk(count, payloads, ids, columns).holds() else NO)
            target.flush()

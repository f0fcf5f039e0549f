"""Staging files: events on their way into a ledger, in a form that DuckDB reads in one go.

One line an event: its number, event id, source, ordinal and canonical payload. Nothing here needs DuckDB, so
that the helper processes of `ledger.checking` start quickly and stay small.
"""

from __future__ import annotations

import contextlib
import os

from ledger.events import AnyEvent, canonical, leaf_hash
from ledger.scratch import scratch


def staged_line(number: int, payload: bytes, source: str, ordinal: int) -> bytes:
    """Return one event as a staging file has it.

    The separator is U+0001, which JSON text escapes, and names do not have.
    """
    event_id = leaf_hash(payload).hex()
    return f"{number}\x01{event_id}\x01{source}\x01{ordinal}\x01".encode() + payload + b"\n"


class Staging:
    """Canonical events on their way into a ledger, in private temporary files.

    Use as a context manager; `add` takes canonical bytes that have been validated. Events are numbered, by
    the caller or in order, and enter the ledger in the order of their numbers.
    """

    def __init__(self, directory: str | None = None) -> None:
        with contextlib.ExitStack() as opened:
            self._folder = opened.enter_context(scratch(directory))
            self.paths = [os.path.join(self._folder, "staged")]
            self._file = opened.enter_context(open(self.paths[0], "wb", buffering=1 << 20))
            self._opened = opened.pop_all()
        self.count = 0
        self.bytes = 0

    def add(self, payload: bytes, source: str, ordinal: int) -> None:
        """Stage one event under the next number."""
        self.write(staged_line(self.count, payload, source, ordinal), 1, len(payload))

    def write(self, lines: bytes, count: int, payload_bytes: int) -> None:
        """Stage events as `staged_line` made them; the caller numbers them."""
        self._file.write(lines)
        self.count += count
        self.bytes += payload_bytes

    def new_part(self) -> str:
        """Make a further file, for `staged_line` texts that another process appends.

        The caller adds what is in it to `count` and `bytes`.
        """
        part = os.path.join(self._folder, f"part-{len(self.paths)}")
        open(part, "xb").close()
        self.paths.append(part)
        return part

    def add_event(self, event: AnyEvent) -> None:
        """Stage an event struct that is known to be valid."""
        self.add(canonical(event), event.source, event.ordinal)

    def flush(self) -> None:
        """Hand everything staged so far to the operating system."""
        self._file.flush()

    def close(self) -> None:
        """Remove the files."""
        self._opened.close()

    def __enter__(self) -> Staging:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

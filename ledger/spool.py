"""Spool files: how a harness hands events over without touching the ledger (design section 5).

A spool is written under a temporary name that `oakledger ingest` does not look at, brought to disk, and only
then renamed: whoever sees the file sees all of it. A crash leaves a temporary file and nothing else.
"""

from __future__ import annotations

import os
import secrets
import time
from typing import Any

from ledger.decode import event_from_mapping
from ledger.errors import BadEventError, OakledgerError
from ledger.events import canonical, leaf_hash

SUFFIX = ".ndjson"


class Spool:
    """A spool file under construction. Use as a context manager; leaving it without error publishes the file.

    `source` names this run of the producer; by default it is made unique. Ordinals are given from
    `first_ordinal` up. After an error nothing is published. A spool without events publishes no file.
    """

    def __init__(
        self, directory: str | os.PathLike[str], *, source: str | None = None, first_ordinal: int = 0
    ) -> None:
        self.source = source or f"spool/{secrets.token_hex(16)}"
        self.ordinal = first_ordinal
        self.directory = os.fspath(directory)
        token = secrets.token_hex(8)
        self._draft = os.path.join(self.directory, f".spool-{token}.tmp")
        self._final = os.path.join(self.directory, f"spool-{time.time_ns()}-{token}{SUFFIX}")
        #: Identity of the event written last, for an event that names it.
        self.last_event_id: str | None = None
        #: Where the published file is; None before, and for a spool without events.
        self.path: str | None = None
        try:
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
            self._file = os.fdopen(os.open(self._draft, flags, 0o666), "wb", buffering=1 << 16)
        except OSError as e:
            raise OakledgerError(
                f"{self.directory} takes no spool file ({e.strerror}): check the directory"
            ) from e

    def add(self, **fields: Any) -> int:
        """Write one event, given by its fields with `kind`, and return its ordinal.

        `source`, `ordinal` and (unless given) `recorded_at_ns` are filled in. Raises BadEventError for an
        invalid event, which is then not written and takes no ordinal.
        """
        for name in ("source", "ordinal"):
            if name in fields:
                raise BadEventError(f"{name} is numbered by the spool: leave it out")
        envelope = {"source": self.source, "ordinal": self.ordinal, "recorded_at_ns": time.time_ns()}
        payload = canonical(event_from_mapping({**envelope, **fields}))
        self._file.write(payload + b"\n")
        self.last_event_id = leaf_hash(payload).hex()
        self.ordinal += 1
        return self.ordinal - 1

    def publish(self) -> str | None:
        """Bring the file to disk under its final name and return that; None without events."""
        self._file.flush()
        written = self._file.tell()
        os.fsync(self._file.fileno())
        self._file.close()
        if written == 0:
            os.unlink(self._draft)
            return None
        os.rename(self._draft, self._final)
        folder = os.open(self.directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
        self.path = self._final
        return self.path

    def discard(self) -> None:
        """Drop what was written."""
        self._file.close()
        if self.path is None and os.path.lexists(self._draft):
            os.unlink(self._draft)

    def __enter__(self) -> Spool:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self.publish()
        else:
            self.discard()

"""The rejects file: every bad line with its file, its number, the reason, and the line itself.

NDJSON, one object a bad line: `file`, `line` (null when the whole file was refused), `reason`, and the line
as `text`, or as `bytes_b64` when it is not UTF-8; `cut` says that a longer line was cut. It exists only when
there is something to say, and appears whole or not at all.
"""

from __future__ import annotations

import base64
import os
import secrets
from typing import IO, Any

import msgspec

from ledger.errors import OakledgerError
from ledger.events import MAX_EVENT_BYTES
from ledger.inputs import shown

#: How many rejects are remembered in words.
SHOWN = 5


class Rejects:
    """Writes a rejects file. Use as a context manager; `path` is None until something was rejected."""

    def __init__(self, target: str) -> None:
        self._target = os.path.abspath(target)
        folder, name = os.path.split(self._target)
        self._draft = os.path.join(folder, f".{name}.{secrets.token_hex(8)}.tmp")
        self._file: IO[bytes] | None = None
        self.path: str | None = None
        self.count = 0
        #: The first few as one line each, for a person.
        self.first: list[str] = []

    def add(self, file: str, line: int | None, reason: str, text: bytes = b"") -> None:
        """Report one bad line, or with `line` None a whole file."""
        record: dict[str, Any] = {"file": shown(file), "line": line, "reason": reason}
        if text:
            kept = text[:MAX_EVENT_BYTES]
            try:
                record["text"] = kept.decode("utf-8")
            except UnicodeDecodeError:
                record["bytes_b64"] = base64.b64encode(kept).decode()
            if len(kept) < len(text):
                record["cut"] = True
        try:
            if self._file is None:
                # Rejected lines may hold anything: nobody else needs to read them.
                fd = os.open(self._draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
                self._file = os.fdopen(fd, "wb")
            self._file.write(msgspec.json.encode(record) + b"\n")
        except OSError as e:
            raise self._error(e) from e
        self.count += 1
        if len(self.first) < SHOWN:
            self.first.append(reason if line is None else f"{shown(file)} line {line}: {reason}")

    def close(self) -> None:
        """Give the file its name, if there is one."""
        if self._file is None:
            return
        try:
            self._file.flush()
            os.fsync(self._file.fileno())
            self._file.close()
            os.replace(self._draft, self._target)
        except OSError as e:
            raise self._error(e) from e
        self._file = None
        self.path = self._target

    def _error(self, error: OSError) -> OakledgerError:
        return OakledgerError(
            f"the rejects file {shown(self._target)} cannot be written ({error.strerror}): "
            "give --rejects another path"
        )

    def __enter__(self) -> Rejects:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

"""A private copy of a ledger for queries that nobody has vetted.

A read-only DuckDB connection is no sandbox: SQL can detach the ledger, attach the same file writable
and change it. So such SQL only ever sees a copy in a private directory, opened read-only, without
access to files and with its settings locked.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator

import duckdb

from ledger.errors import OakledgerError
from ledger.scratch import scratch
from ledger.store import FREE_SPACE_MARGIN, check_header, connect, open_ledger

_HARDENED = {
    "enable_external_access": "false",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
}


@contextlib.contextmanager
def snapshot(path: str, *, lock_timeout_s: float = 30.0) -> Iterator[duckdb.DuckDBPyConnection]:
    """Yield a hardened read-only connection to a private copy of the ledger; the copy is removed afterwards.

    Raises LedgerOpenError and LedgerDamagedError as `open_ledger`, and OakledgerError when there is no room.
    """
    check_header(path)
    with scratch() as folder:
        copy = os.path.join(folder, "ledger.duckdb")
        # An open reader keeps every writer out, so the file and its log are copied at one moment.
        with open_ledger(path, read_only=True, lock_timeout_s=lock_timeout_s):
            for suffix in ("", ".wal"):
                if os.path.exists(path + suffix):
                    _copy(path + suffix, copy + suffix)
        con = connect(copy, read_only=True, config=_HARDENED)
        try:
            con.execute("SET lock_configuration = true")
            yield con
        finally:
            con.close()


def _copy(source: str, target: str) -> None:
    need = os.path.getsize(source) + FREE_SPACE_MARGIN
    folder = os.path.dirname(target)
    if shutil.disk_usage(folder).free < need:
        raise OakledgerError(
            f"a snapshot needs {need >> 20} MiB and {folder} has less: set TMPDIR to a disk with room"
        )
    shutil.copyfile(source, target)

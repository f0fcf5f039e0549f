"""The ledger: immutable events in a DuckDB file, with an RFC 6962 hash tree over them.

`ledger.open(path).append(events)` is the Python API for harnesses; `ledger.spool.Spool` writes spool files
for `oakledger ingest` without touching the ledger.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ledger.store import Ledger


def open(path: str | os.PathLike[str], **options: Any) -> Ledger:
    """Open a ledger, making it when it does not exist. Options and errors as `ledger.store.open_ledger`."""
    from ledger.store import open_ledger

    return open_ledger(path, **options)

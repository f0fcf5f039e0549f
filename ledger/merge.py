"""Merging ledgers by union (design section 5).

Every origin is a stream with its own numbers and its own tree, so a merge copies what is missing and never
renumbers: it is idempotent, the order of merges does not matter, and every earlier checkpoint stays valid.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

import duckdb

from ledger.audit import audit_ledger
from ledger.errors import LedgerDamagedError, OakledgerError, ProducerKeyConflictError
from ledger.store import Ledger, check_header, open_ledger


@dataclass(frozen=True)
class MergeResult:
    """What a merge did: events copied, events already here, origins seen in the other ledger."""

    new: int
    known: int
    origins: int


#: The counted copy of an event held by several origins is that of the smallest origin name, so that the
#: choice does not depend on the order of merges.
REBUILD_DUPLICATES = """
CREATE OR REPLACE TEMP TABLE rebuilt AS
SELECT origin, seq FROM (
    SELECT origin, seq, row_number() OVER (PARTITION BY event_id ORDER BY origin, seq) AS copy FROM events
) WHERE copy > 1;
DELETE FROM duplicates WHERE (origin, seq) NOT IN (SELECT origin, seq FROM rebuilt);
INSERT INTO duplicates SELECT origin, seq FROM rebuilt ANTI JOIN duplicates USING (origin, seq);
DROP TABLE rebuilt;
"""


def merge(ledger: Ledger, other_path: str, *, lock_timeout_s: float = 30.0) -> MergeResult:
    """Take all events and checkpoints of another ledger into this one, in one transaction.

    The other one is audited first: events cannot be taken out again, so one that does not verify would spoil
    this ledger for good. Raises LedgerDamagedError when it does not, or when a stream that both have differs
    (one of them was changed), ProducerKeyConflictError when a producer key names different events,
    OakledgerError when both are one file, and the errors of opening.
    """
    check_header(other_path)
    if os.path.samefile(ledger.path, other_path):
        raise OakledgerError(f"{other_path} is the ledger to merge into: name another one")
    with open_ledger(other_path, read_only=True, lock_timeout_s=lock_timeout_s):
        pass  # refuses what is no ledger, damaged, or of a newer schema
    quoted = other_path.replace("'", "''")
    con = ledger.con
    con.execute(f"ATTACH '{quoted}' AS other (READ_ONLY)")
    try:
        # Attached, the file is held: nobody changes it between the audit and the merge.
        _refuse_unless_verified(Ledger(other_path, con, read_only=True))
        with ledger.transaction():
            return _merge(con, ledger.path, other_path)
    except duckdb.Error as e:
        text = " ".join(str(e).split())[:300]
        raise OakledgerError(f"{other_path} could not be merged ({text}): nothing was written") from e
    finally:
        con.execute("DETACH other")


def _refuse_unless_verified(other: Ledger) -> None:
    """Audit another ledger, and raise LedgerDamagedError unless all that is taken from it verifies.

    Its views are not taken, so those of another version of this package do no harm.
    """
    found = [f for f in audit_ledger(other).findings if not f.code.endswith("_view")]
    if found:
        more = f" and {len(found) - 1} more" if len(found) > 1 else ""
        raise LedgerDamagedError(
            f"{other.path} does not verify ({found[0].code}: {found[0].place()}: {found[0].detail}{more}): "
            "nothing was written, run oakledger audit on it"
        )


def _merge(con: duckdb.DuckDBPyConnection, path: str, other_path: str) -> MergeResult:
    row = con.execute(
        "SELECT o.origin, o.seq FROM other.events o JOIN events e USING (origin, seq) "
        "WHERE o.event_id <> e.event_id ORDER BY ALL LIMIT 1"
    ).fetchone()
    if row is not None:
        raise LedgerDamagedError(
            f"{path} and {other_path} differ at {row[0]} seq {row[1]}: one was changed, or both were "
            "appended to after one was copied from the other; run oakledger audit on both"
        )
    row = con.execute(
        "SELECT o.origin, o.size FROM other.checkpoints o JOIN checkpoints c USING (origin, size) "
        "WHERE o.root <> c.root ORDER BY ALL LIMIT 1"
    ).fetchone()
    if row is not None:
        raise LedgerDamagedError(
            f"{path} and {other_path} have different checkpoints of {row[0]} at size {row[1]}: "
            "run oakledger audit on both"
        )
    row = con.execute(
        "SELECT o.source, o.ordinal, e.payload, o.payload FROM other.events o "
        "JOIN events e ON e.source = o.source AND e.ordinal = o.ordinal AND e.event_id <> o.event_id LIMIT 1"
    ).fetchone()
    if row is not None:
        raise ProducerKeyConflictError(
            f"source {row[0]} ordinal {row[1]} has different content: here {row[2][:600]} - in {other_path} "
            f"{row[3][:600]}: a source name must be unique to one producer run"
        )
    counted = con.execute(
        "SELECT count(*), count(*) FILTER (WHERE e.seq IS NULL), count(DISTINCT o.origin) "
        "FROM other.events o LEFT JOIN events e USING (origin, seq)"
    ).fetchone()
    total, new, origins = counted or (0, 0, 0)
    if new:
        con.execute(
            "INSERT INTO events BY NAME SELECT o.* FROM other.events o "
            "ANTI JOIN events e USING (origin, seq) ORDER BY origin, seq"
        )
    con.execute(
        "INSERT INTO checkpoints BY NAME "
        "SELECT o.* FROM other.checkpoints o ANTI JOIN checkpoints c USING (origin, size)"
    )
    con.execute(REBUILD_DUPLICATES)
    return MergeResult(new=int(new), known=int(total) - int(new), origins=int(origins))

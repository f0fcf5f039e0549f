"""From imported files to canonical events: sources, campaigns, times of recording, checks.

The same file gives the same events on every machine where it says when it was written. Where it does not, the
time of the first import stands, which the ledger is asked for; so importing again is still no new event.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from ledger.checking import FUTURE_NS
from ledger.decode import decode, event_from_mapping
from ledger.errors import BadEventError, OakledgerError, ProducerKeyConflictError
from ledger.events import canonical
from ledger.importers import importer
from ledger.importers.shared import ForeignFile, ForeignFileError, Imported
from ledger.inputs import shown
from ledger.staging import Staging
from ledger.store import AppendResult, Ledger


@dataclass(frozen=True)
class Taken:
    """One foreign file on its way: path, SHA-256, what it said, and the source and campaign it gets."""

    path: str
    sha256: str
    source: str
    campaign: str
    imported: Imported


@dataclass(frozen=True)
class Event:
    """One canonical event with its producer key."""

    payload: bytes
    source: str
    ordinal: int


def take(tool: str, path: str, campaign: str | None, subject: str | None) -> Taken:
    """Read one file. Raises ForeignFileError when it cannot be imported."""
    file = ForeignFile(path)
    imported = importer(tool).read(file, subject)
    source = f"import/{tool}/{file.sha256}"
    if campaign is not None:
        source += f"/{hashlib.sha256(campaign.encode()).hexdigest()[:16]}"
    return Taken(path, file.sha256, source, campaign or f"import/{tool}/{file.short}", imported)


def events(taken: Iterable[Taken], ledger: Ledger | None) -> Iterator[Event]:
    """Return the events of the files in order, each held to every bound of its kind.

    `ledger` is asked when a file that does not say its time was imported before. Raises ForeignFileError with
    the place in the file that an invalid event was made from.
    """
    now = time.time_ns()
    for file in taken:
        recorded = file.imported.recorded_at_ns
        if recorded is None:
            recorded = (ledger and _recorded(ledger, file.source)) or now
        if recorded > now + FUTURE_NS:
            raise ForeignFileError(
                f"{shown(file.path)} is dated more than a day ahead: check this machine's clock"
            )
        for ordinal, draft in enumerate(file.imported.drafts):
            envelope = {
                "source": file.source,
                "ordinal": ordinal,
                "recorded_at_ns": recorded,
                "campaign": file.campaign,
            }
            try:
                payload = canonical(event_from_mapping({**draft.fields, **envelope}))
                # Canonical bytes are decoded as ingest would decode them: what is written can be read.
                decode(payload)
            except BadEventError as e:
                where = f": {draft.place}" if draft.place else ""
                raise ForeignFileError(
                    f"{shown(file.path)}{where}: no event holds it ({e}): check the file"
                ) from None
            yield Event(payload, file.source, ordinal)


def unsaid(taken: Iterable[Taken]) -> bool:
    """Say whether a file does not tell when it was written, so that a ledger has to be asked."""
    return any(file.imported.recorded_at_ns is None for file in taken)


def stage(staging: Staging, taken: Iterable[Taken], ledger: Ledger | None) -> None:
    """Stage the events of all files. Raises as `events`."""
    for event in events(taken, ledger):
        staging.add(event.payload, event.source, event.ordinal)


def append(ledger: Ledger, staging: Staging) -> AppendResult:
    """Append what was staged as one transaction.

    Raises the errors of the ledger, and ProducerKeyConflictError when a file was imported into the campaign
    before and said something else then (another --subject, or another importer).
    """
    try:
        return ledger.append_staged(staging)
    except ProducerKeyConflictError as e:
        raise ProducerKeyConflictError(
            "a file was imported into this campaign before, with other content (another --subject, or "
            f"another version of oakledger): import it into a campaign of another name; {e}"
        ) from e


def write(path: str, made: Iterable[Event]) -> int:
    """Write events as NDJSON to a new file, whole or not at all, and return their number."""
    if os.path.lexists(path):
        raise OakledgerError(f"{shown(path)} exists: name a new file, nothing is overwritten")
    draft = f"{path}.{secrets.token_hex(8)}.tmp"
    count = 0
    try:
        with open(draft, "xb") as f:
            for event in made:
                f.write(event.payload + b"\n")
                count += 1
            f.flush()
            os.fsync(f.fileno())
        os.link(draft, path)  # unlike a rename it does not overwrite a file that came meanwhile
    except OSError as e:
        raise OakledgerError(f"{shown(path)} cannot be written ({e.strerror}): check the folder") from e
    finally:
        if os.path.lexists(draft):
            os.unlink(draft)
    return count


def _recorded(ledger: Ledger, source: str) -> int | None:
    row = ledger.con.execute("SELECT min(recorded_at_ns) FROM events WHERE source = ?", [source]).fetchone()
    return None if row is None or row[0] is None else int(row[0])

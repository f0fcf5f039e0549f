"""The audit: does this ledger file say what its events said when they were appended?

Guards in the file stop accidents; what somebody does to the file on purpose shows here. The audit takes
nothing in the file on trust: it hashes every payload again, decodes it, compares every typed column with it,
counts the numbers of every origin, folds every tree, compares its roots with the checkpoints in the file,
with those kept beside it and with those given, and compares guards and views with the shipped ones. It lists
everything that it finds, not the first.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import duckdb

from ledger import checkpoints as notes
from ledger import sqlfiles
from ledger.audit_catalog import check_catalogue
from ledger.audit_contents import check_contents
from ledger.audit_finding import MAX_FINDINGS, Finding, Findings
from ledger.audit_identity import check_copies, check_producer_keys
from ledger.audit_source import Source
from ledger.audit_tree import Claim, OriginTree, check_numbers, fold, is_sha256, origins
from ledger.checkpoints import CheckpointError, Note, PublicKey, SignatureError
from ledger.errors import EXIT_LEDGER, EXIT_OK, LedgerDamagedError, LedgerOpenError
from ledger.scratch import scratch
from ledger.store import SCHEMA_VERSION, Checkpoint, Ledger, check_header, connect, stored_views

__all__ = ["AuditReport", "Finding", "audit_ledger"]

#: Memory that DuckDB may use in an audit that opens the file itself; the rest goes to temporary files.
MEMORY_LIMIT = "384MiB"


@dataclass(frozen=True)
class AuditReport:
    """What an audit found. `findings` holds the first MAX_FINDINGS of them, `counts` counts all by code."""

    path: str
    events: int
    heads: tuple[Checkpoint, ...]
    findings: tuple[Finding, ...]
    counts: dict[str, int]
    checkpoints_compared: int
    deep: bool
    duration_ns: int
    views_sha256: str = field(default_factory=sqlfiles.views_sha256)

    @property
    def ok(self) -> bool:
        """Whether the ledger verifies."""
        return not self.counts

    @property
    def exit_status(self) -> int:
        """0 when it verifies, 3 when it does not."""
        return EXIT_OK if self.ok else EXIT_LEDGER

    def as_json(self) -> dict[str, Any]:
        """Return the report as one JSON object, roots in hex."""
        return {
            "ledger": self.path,
            "verifies": self.ok,
            "deep": self.deep,
            "events": self.events,
            "origins": [{"origin": h.origin, "size": h.size, "root": h.root.hex()} for h in self.heads],
            "checkpoints_compared": self.checkpoints_compared,
            "views_sha256": self.views_sha256,
            "duration_ns": self.duration_ns,
            "finding_count": sum(self.counts.values()),
            "counts": dict(sorted(self.counts.items())),
            "findings": [
                {
                    "code": f.code,
                    "origin": f.origin,
                    "seq": f.seq,
                    "event_id": f.event_id,
                    "detail": f.detail,
                }
                for f in self.findings
            ],
        }


def audit_ledger(
    target: str | os.PathLike[str] | Ledger,
    *,
    checkpoints: Iterable[str | os.PathLike[str] | Note | Checkpoint] = (),
    public_key: PublicKey | None = None,
    kept: bool = True,
    deep: bool = True,
    lock_timeout_s: float = 30.0,
    max_findings: int = MAX_FINDINGS,
) -> AuditReport:
    """Audit a ledger file, or a ledger that is open already, and return what was found.

    `checkpoints` are files or values to compare with besides the rows in the file and, unless `kept` is
    false, those kept beside it. With `public_key`, given checkpoints must carry its signature; when none are
    given, a kept one must. `deep` false leaves out the contents (hashes, typed columns, decoding) and is no
    audit: it says only whether tree, guards and checkpoints agree.

    Raises LedgerOpenError when the file cannot be opened or is no ledger, LedgerDamagedError when DuckDB
    refuses it as damaged, and CheckpointError when a given file is no checkpoint.
    """
    started = time.monotonic_ns()
    given = [_given(c) for c in checkpoints]
    options = (given, public_key, kept, deep, max_findings, started)
    if isinstance(target, Ledger):
        return _audit_or_damaged(target.con, target.path, *options)
    path = os.fspath(target)
    check_header(path)
    con = connect(path, read_only=True, lock_timeout_s=lock_timeout_s)
    with scratch() as folder:
        try:
            con.execute(f"SET memory_limit = '{MEMORY_LIMIT}'")
            con.execute("SET temp_directory = '" + folder.replace("'", "''") + "'")
            return _audit_or_damaged(con, path, *options)
        finally:
            con.close()


def _audit_or_damaged(con: duckdb.DuckDBPyConnection, path: str, *options: Any) -> AuditReport:
    """Audit, and say that the file is damaged when DuckDB cannot read it to the end."""
    try:
        return _audit(con, path, *options)
    except duckdb.Error as e:
        text = " ".join(str(e).split())[:300]
        raise LedgerDamagedError(
            f"{path} cannot be read to its end ({text}): "
            "restore it from a copy and compare that with a kept checkpoint"
        ) from e


def _given(checkpoint: str | os.PathLike[str] | Note | Checkpoint) -> tuple[str, Note]:
    if isinstance(checkpoint, Note):
        return "the checkpoint given", checkpoint
    if isinstance(checkpoint, Checkpoint):
        return "the checkpoint given", notes.make_note(checkpoint)
    path = os.fspath(checkpoint)
    return path, notes.read_note(path)


def _audit(
    con: duckdb.DuckDBPyConnection,
    path: str,
    given: list[tuple[str, Note]],
    public_key: PublicKey | None,
    kept: bool,
    deep: bool,
    max_findings: int,
    started: int,
) -> AuditReport:
    findings = Findings(max_findings)
    source = Source(con, path)
    try:
        main = source.cursor()
        meta = _check_meta(main, source, findings)
        other = meta.get("views") not in (None, stored_views())
        findings.extend(check_catalogue(main, source.database, of_another_version=other))
        claims = _Claims(findings)
        claims.add_rows(main)
        beside = list(notes.kept(path)) if kept else []
        claims.add_kept(beside)
        claims.add_given(given)
        if public_key is not None:
            _check_signatures(given, beside, public_key, findings)
        counted = main.execute("SELECT count(*) FROM audited_events").fetchone()
        events = int(counted[0]) if counted else 0
        heads: list[Checkpoint] = []
        with check_contents(source, findings, deep=deep):
            _check_trees(main, claims, findings, heads)
            findings.extend(check_producer_keys(main, events))
            findings.extend(check_copies(main, events))
    finally:
        source.close()
    return AuditReport(
        path=path,
        events=events,
        heads=tuple(heads),
        findings=tuple(sorted(findings.kept, key=_order)),
        counts=dict(findings.counts),
        checkpoints_compared=claims.count,
        deep=deep,
        duration_ns=time.monotonic_ns() - started,
    )


def _order(finding: Finding) -> tuple[bool, str, int, str, str]:
    """Findings about the file first, then by place."""
    seq = -1 if finding.seq is None else finding.seq
    return finding.origin is not None, finding.origin or "", seq, finding.code, finding.detail


def _check_meta(con: duckdb.DuckDBPyConnection, source: Source, findings: Findings) -> dict[str, str]:
    """Check what a file says of itself, and return it."""
    meta = dict(con.execute("SELECT key, value FROM audited_ledger_meta").fetchall())
    if not meta and not con.execute("SELECT 1 FROM audited_checkpoints LIMIT 1").fetchone():
        present = con.execute(
            "SELECT count(*) FROM duckdb_tables() WHERE database_name = ? AND table_name IN "
            "('events', 'checkpoints', 'ledger_meta')",
            [source.database],
        ).fetchone()
        if present == (0,) and not os.path.isdir(notes.folder(source.path)):
            raise LedgerOpenError(
                f"{source.path} is a DuckDB file but no ledger: name a file that oakledger made"
            )
    version = str(meta.get("schema_version"))
    if version.isascii() and version.isdigit():
        if int(version) > SCHEMA_VERSION:
            raise LedgerOpenError(
                f"{source.path} was written by a newer oakledger "
                f"(ledger schema {version}, this one knows {SCHEMA_VERSION}): update oakledger"
            )
    else:
        findings.add(Finding("meta", "ledger_meta does not say the schema version"))
    if not meta.get("origin"):
        findings.add(Finding("meta", "ledger_meta does not say the origin: nothing can be appended"))
    return meta


class _Claims:
    """Everything that says which root an origin had at a size."""

    def __init__(self, findings: Findings) -> None:
        self.findings = findings
        self.by_origin: dict[str, dict[int, list[Claim]]] = {}
        self.newest_row: dict[str, int] = {}
        self.count = 0

    def _add(self, head: Checkpoint, claim: Claim) -> None:
        self.by_origin.setdefault(head.origin, {}).setdefault(head.size, []).append(claim)
        self.count += 1

    def add_rows(self, con: duckdb.DuckDBPyConnection) -> None:
        """Take in the rows of `checkpoints`."""
        rows = con.execute(
            "SELECT origin, size, root, frontier FROM audited_checkpoints ORDER BY origin, size"
        )
        for origin, size, root, frontier in rows.fetchall():
            if origin is None or size is None or size < 0 or not is_sha256(root) or frontier is None:
                self.findings.add(
                    Finding(
                        "checkpoint_row",
                        f"a row of checkpoints is malformed: size {size} root {root}",
                        origin,
                    )
                )
                continue
            self.newest_row[origin] = size
            self._add(
                Checkpoint(origin, size, bytes.fromhex(root)),
                Claim("checkpoint_row", f"the row of checkpoints for size {size}", root, frontier),
            )

    def add_kept(self, beside: list[tuple[str, Note | CheckpointError]]) -> None:
        """Take in the checkpoints kept beside the file."""
        for path, note in beside:
            if isinstance(note, CheckpointError):
                self.findings.add(Finding("kept_checkpoint", f"a kept checkpoint cannot be read: {note}"))
            else:
                head = note.checkpoint
                self._add(head, Claim("kept_checkpoint", path, head.root.hex()))

    def add_given(self, given: list[tuple[str, Note]]) -> None:
        """Take in the checkpoints that the caller has."""
        for where, note in given:
            head = note.checkpoint
            self._add(head, Claim("given_checkpoint", where, head.root.hex()))


def _check_signatures(
    given: list[tuple[str, Note]],
    beside: list[tuple[str, Note | CheckpointError]],
    key: PublicKey,
    findings: Findings,
) -> None:
    verified = 0
    signed = [
        (where, note)
        for where, note in beside
        if isinstance(note, Note)
        and any(s.name == key.name and s.key_id == key.key_id for s in note.signatures)
    ]
    for where, note in [*given, *signed]:
        try:
            notes.verify_signature(note, key, where)
            verified += 1
        except SignatureError as e:
            findings.add(Finding("signature", str(e), note.checkpoint.origin))
    if not given and not verified:
        findings.add(Finding("signature", f"no checkpoint kept beside the ledger is signed by {key.name}"))


def _check_trees(
    con: duckdb.DuckDBPyConnection, claims: _Claims, findings: Findings, heads: list[Checkpoint]
) -> None:
    sizes = {origin: (rows, last) for origin, rows, last in origins(con)}
    for origin in sorted(sizes.keys() | claims.by_origin.keys()):
        rows, last = sizes.get(origin, (0, -1))
        tree = OriginTree(origin, rows)
        findings.extend(fold(con, tree, last + 1, claims.by_origin.get(origin, {})))
        if tree.frontier.size != rows or last + 1 != rows:
            findings.extend(check_numbers(con, origin))
        else:
            heads.append(Checkpoint(origin, rows, tree.frontier.root()))
        covered = claims.newest_row.get(origin, 0)
        if covered < rows:
            findings.add(
                Finding(
                    "uncovered",
                    f"{rows} events and the newest row of checkpoints covers {covered}: "
                    "the rest came in past oakledger ingest",
                    origin,
                )
            )

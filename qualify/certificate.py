"""Certificates: a decision as one file that can be checked with the ledger or without it.

A certificate repeats the recorded decision (event `qualification_decided`) and carries what shows it:

* the decision event in full, with its inclusion proof in the tree of a checkpoint taken afterwards,
* the declaration of the campaign in full, with its inclusion proof in the tree that the decision was made on,
* the consistency proof from the checkpoint that the decision was made on to the one taken afterwards.

So a reader knows, without the ledger, that this decision was recorded in this tree, that it is about this
plan, and that the tree was only added to in between. What proofs cannot show is that the rules were evaluated
rightly: whoever has the ledger evaluates them again, on the events that there were (`again`).
docs/certificate.md has the format.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Literal, TypeVar

import duckdb
import msgspec
from msgspec import Meta, Struct

from ledger import checkpoints as notes
from ledger import proofs, sqlfiles
from ledger.checkpoints import Note, PublicKey
from ledger.decode import decode
from ledger.errors import EXIT_NEGATIVE, BadEventError, LedgerDamagedError, OakledgerError
from ledger.events import (
    CampaignDeclared,
    Event,
    OriginHead,
    QualificationDecided,
    RuleResult,
    canonical_sha256,
)
from ledger.merkle import ProofError
from ledger.proofs import ConsistencyProof, Hash, InclusionProof
from ledger.scratch import scratch
from ledger.store import Checkpoint, Ledger
from qualify.decision import LIMITS
from qualify.rules import rules

E = TypeVar("E", bound=Event)

#: Name and version of the format.
DOCUMENT: Literal["oakledger-certificate/1"] = "oakledger-certificate/1"

#: Largest certificate that is read: two events of the largest size, every character escaped, and the rest.
MAX_CERTIFICATE_BYTES = 3 * proofs.MAX_PROOF_BYTES


class CertificateError(OakledgerError):
    """A certificate that does not show what it says."""

    exit_status = EXIT_NEGATIVE


class Proofs(Struct, frozen=True, forbid_unknown_fields=True):
    """What shows the decision without the ledger."""

    decision: Annotated[
        InclusionProof, Meta(description="The decision event, in the tree of a checkpoint taken after it.")
    ]
    declaration: Annotated[
        InclusionProof | None,
        Meta(
            description="The declaration, in a tree that the decision was made on; null: none was declared."
        ),
    ]
    decided_on: Annotated[
        ConsistencyProof,
        Meta(description="From the checkpoint that the decision was made on to the one taken after it."),
    ]


class Certificate(Struct, frozen=True, forbid_unknown_fields=True):
    """A decision on a campaign and what shows it."""

    document: Annotated[
        Literal["oakledger-certificate/1"], Meta(description="Name and version of the format.")
    ]
    campaign: Annotated[str, Meta(description="The campaign.", max_length=200)]
    decision: Annotated[
        Literal["qualified", "diagnostic"],
        Meta(description="qualified: no rule is violated; diagnostic: the comparison may not be published."),
    ]
    exit_status: Annotated[int, Meta(description="Exit status of oakledger qualify: 0 or 1.")]
    plan_sha256: Annotated[Hash | None, Meta(description="Digest of the plan; null: none was declared.")]
    rules: Annotated[tuple[RuleResult, ...], Meta(description="Every rule and its state.", max_length=64)]
    checkpoint: Annotated[OriginHead, Meta(description="The tree that the decision was made on.")]
    other_checkpoints: Annotated[
        tuple[OriginHead, ...],
        Meta(description="Trees of other origins that the ledger held then.", max_length=1000),
    ]
    views_sha256: Annotated[Hash, Meta(description="Digest of the SQL that decided.")]
    package_version: Annotated[str, Meta(description="Version of oakledger that decided.", max_length=500)]
    event_id: Annotated[Hash, Meta(description="Id of the recorded decision.")]
    declaration_event_id: Annotated[
        Hash | None, Meta(description="Id of the declaration; null: none was declared.")
    ]
    limits: Annotated[tuple[str, ...], Meta(description="What a qualification does not say.", max_length=64)]
    proofs: Proofs


@dataclass(frozen=True)
class Checked:
    """A certificate whose proofs hold, the checkpoint taken after the decision, and what is to be said."""

    certificate: Certificate
    note: Note
    remarks: tuple[str, ...]


_decoder = msgspec.json.Decoder(Certificate)


def schema() -> dict[str, object]:
    """Return the JSON Schema of a certificate."""
    return msgspec.json.schema(Certificate)


def make(ledger: Ledger, event_id: str, key: notes.PrivateKey | None = None) -> Certificate:
    """Make the certificate of a decision that the ledger has recorded.

    With a key, the checkpoint taken after the decision is signed; without one, a signed checkpoint that was
    kept beside the ledger is used where there is one of that size. Raises OakledgerError when the event is
    not there or no decision.
    """
    inclusion, head = proofs.prove_inclusion(ledger, event_id, origin=ledger.origin)
    decided = _decode(inclusion.event, QualificationDecided, f"event {event_id}")
    note = _note(ledger, head, key)
    on = _head(decided)
    declaration = _declaration(ledger, decided)
    consistency, _ = proofs.prove_consistency(ledger, notes.make_note(on), size=head.size)
    return Certificate(
        document=DOCUMENT,
        campaign=decided.campaign,
        decision=decided.decision,
        exit_status=decided.exit_status,
        plan_sha256=decided.plan_sha256,
        rules=decided.rules,
        checkpoint=OriginHead(on.origin, on.size, on.root.hex()),
        other_checkpoints=decided.other_checkpoints,
        views_sha256=decided.views_sha256,
        package_version=decided.package_version,
        event_id=event_id,
        declaration_event_id=None if declaration is None else proofs.verify(declaration).event_id,
        limits=LIMITS,
        proofs=Proofs(
            decision=_inclusion(proofs.with_note(inclusion, note)),
            declaration=declaration,
            decided_on=_consistency(proofs.with_note(consistency, note)),
        ),
    )


def _inclusion(proof: proofs.Proof) -> InclusionProof:
    assert isinstance(proof, InclusionProof)
    return proof


def _consistency(proof: proofs.Proof) -> ConsistencyProof:
    assert isinstance(proof, ConsistencyProof)
    return proof


def _note(ledger: Ledger, head: Checkpoint, key: notes.PrivateKey | None) -> Note:
    if key is not None:
        return notes.make_note(head, key)
    path = os.path.join(notes.folder(ledger.path), notes.file_name(head))
    if os.path.isfile(path):
        note = notes.read_note(path)
        if note.checkpoint == head:
            return note
    return notes.make_note(head)


def _head(decided: QualificationDecided) -> Checkpoint:
    return Checkpoint(
        decided.checkpoint_origin, decided.checkpoint_size, bytes.fromhex(decided.checkpoint_root)
    )


def _declaration(ledger: Ledger, decided: QualificationDecided) -> InclusionProof | None:
    """Prove the declaration that counted: the earliest of the campaign in the trees decided on."""
    if decided.plan_sha256 is None:
        return None
    on = _head(decided)
    sizes = {on.origin: on.size, **{h.origin: h.size for h in decided.other_checkpoints}}
    rows = ledger.con.execute(
        "SELECT event_id, origin, seq FROM events WHERE campaign = ? AND kind = 'campaign_declared' "
        "AND sha256(payload -> '$.plan') = ? ORDER BY recorded_at_ns, event_id, origin <> ?, origin",
        [decided.campaign, decided.plan_sha256, on.origin],
    ).fetchall()
    for event_id, origin, seq in rows:
        if seq < sizes.get(origin, 0):
            return proofs.prove_inclusion(ledger, event_id, size=sizes[origin], origin=origin)[0]
    raise LedgerDamagedError(
        f"{ledger.path} has no declaration with the plan that was decided on: run oakledger audit"
    )


def encode(certificate: Certificate) -> bytes:
    """Return a certificate as it is written to a file: indented JSON with a final newline."""
    return msgspec.json.format(msgspec.json.encode(certificate), indent=2) + b"\n"


def parse(data: bytes, where: str = "the certificate") -> Certificate:
    """Read a certificate. Raises CertificateError saying what is wrong, with `where` it was."""
    try:
        return _decoder.decode(data)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as e:
        text = "".join(c if c.isprintable() else "?" for c in str(e)[:200])
        raise CertificateError(f"{where} is no certificate of this oakledger: {text}") from None


def _decode(text: str, kind: type[E], where: str) -> E:
    """Decode the canonical text of an event of a kind. Raises CertificateError."""
    try:
        event, payload = decode(text.encode())
    except BadEventError as e:
        raise CertificateError(f"{where} holds an event that is none: {e}") from None
    if payload != text.encode() or not isinstance(event, kind):
        raise CertificateError(f"{where} holds another event than a {kind.__name__} in canonical form")
    return event


def verify(certificate: Certificate, where: str = "the certificate") -> Checked:
    """Verify a certificate by what is in it, without any ledger. Raises CertificateError.

    Whether the checkpoint in it is the ledger's is another question: `verify_signature` and comparing it with
    one that was kept elsewhere answer it.
    """
    try:
        decision = proofs.verify(certificate.proofs.decision, where)
        consistency = proofs.verify(certificate.proofs.decided_on, where)
    except ProofError as e:
        raise CertificateError(str(e)) from None
    if decision.note != consistency.note:
        raise CertificateError(f"the proofs in {where} end in two different checkpoints")
    decided = _decode(certificate.proofs.decision.event, QualificationDecided, where)
    if decision.event_id != certificate.event_id:
        raise CertificateError(f"{where} names another event than the decision in it")
    _compare(certificate, decided, where)
    assert consistency.older is not None
    if consistency.older.checkpoint != _head(decided):
        raise CertificateError(f"{where} is consistent with another checkpoint than the one decided on")
    if certificate.proofs.decision.index < decided.checkpoint_size:
        raise CertificateError(f"{where} has a decision that its own checkpoint covers")
    _check_rules(certificate, where)
    _check_declaration(certificate, decided, where)
    remarks = []
    if certificate.views_sha256 != sqlfiles.views_sha256():
        remarks.append(
            f"oakledger {certificate.package_version} decided with SQL {certificate.views_sha256[:16]}, "
            f"which is not the SQL of this oakledger ({sqlfiles.views_sha256()[:16]})"
        )
    return Checked(certificate, decision.note, tuple(remarks))


def _compare(certificate: Certificate, decided: QualificationDecided, where: str) -> None:
    """Refuse a certificate that says anything else than the event in it."""
    for name in (
        "campaign",
        "decision",
        "exit_status",
        "plan_sha256",
        "rules",
        "other_checkpoints",
        "views_sha256",
        "package_version",
    ):
        if getattr(certificate, name) != getattr(decided, name):
            raise CertificateError(f"{where} says another {name} than the recorded decision in it")
    on = _head(decided)
    if certificate.checkpoint != OriginHead(on.origin, on.size, on.root.hex()):
        raise CertificateError(f"{where} says another checkpoint than the recorded decision in it")
    if not certificate.limits:
        raise CertificateError(f"{where} does not say what a qualification does not say")


def _check_rules(certificate: Certificate, where: str) -> None:
    """Refuse a decision that its own rules do not bear out."""
    missing = {r.id for r in rules()} - {r.rule for r in certificate.rules}
    if missing:
        raise CertificateError(f"{where} lacks rule {sorted(missing)[0]}: not every rule was evaluated")
    bad = [r for r in certificate.rules if r.violations > 0 or r.state == "violated"]
    right = ("diagnostic", 1) if bad else ("qualified", 0)
    if (certificate.decision, certificate.exit_status) != right:
        raise CertificateError(
            f"{where} says {certificate.decision} with exit status {certificate.exit_status}, and its rules "
            f"({len(bad)} violated) make it {right[0]}"
        )


def _check_declaration(certificate: Certificate, decided: QualificationDecided, where: str) -> None:
    proof = certificate.proofs.declaration
    if decided.plan_sha256 is None:
        if proof is not None or certificate.declaration_event_id is not None:
            raise CertificateError(f"{where} has a declaration, and the decision knew of none")
        return
    if proof is None:
        raise CertificateError(f"{where} lacks the declaration of the plan that was decided on")
    try:
        verified = proofs.verify(proof, where)
    except ProofError as e:
        raise CertificateError(str(e)) from None
    declared = _decode(proof.event, CampaignDeclared, where)
    if verified.event_id != certificate.declaration_event_id:
        raise CertificateError(f"{where} names another event than the declaration in it")
    if declared.campaign != certificate.campaign or canonical_sha256(declared.plan) != decided.plan_sha256:
        raise CertificateError(f"{where} has a declaration of another campaign or plan")
    head = verified.note.checkpoint
    known = [certificate.checkpoint, *certificate.other_checkpoints]
    if OriginHead(head.origin, head.size, head.root.hex()) not in known:
        raise CertificateError(f"{where} has a declaration in a tree that the decision was not made on")


def compare_checkpoint(checked: Checked, trusted: Note, where: str, given: str) -> None:
    """Hold the checkpoint in a certificate against one from elsewhere. Raises CertificateError.

    Equal sizes must have equal roots; a trusted checkpoint of another size shows nothing by itself.
    """
    ends = [checked.note.checkpoint, _checkpoint(checked.certificate.checkpoint)]
    if trusted.checkpoint in ends:
        return
    for end in ends:
        if (end.origin, end.size) == (trusted.checkpoint.origin, trusted.checkpoint.size):
            raise CertificateError(
                f"{where} and {given} have different roots for {end.size} events: one is false"
            )
    head = checked.note.checkpoint
    raise CertificateError(
        f"{where} rests on checkpoints of {head.origin} at sizes {ends[1].size} and {head.size}, {given} is "
        f"of {trusted.checkpoint.origin} at size {trusted.checkpoint.size}: ask for a consistency proof, or "
        "verify against the ledger"
    )


def _checkpoint(head: OriginHead) -> Checkpoint:
    return Checkpoint(head.origin, head.size, bytes.fromhex(head.root))


def verify_signature(checked: Checked, key: PublicKey, where: str = "the certificate") -> None:
    """Verify that the checkpoint in a certificate is signed by a key. Raises SignatureError."""
    notes.verify_signature(checked.note, key, f"the checkpoint in {where}")


def verify_in_ledger(checked: Checked, ledger: Ledger, where: str = "the certificate") -> Checked:
    """Verify that an audited ledger holds what a certificate rests on. Raises CertificateError.

    Returns it with a remark when the campaign was decided on again later: the older answer still stands as
    what was said then.
    """
    certificate = checked.certificate
    heads = [
        checked.note.checkpoint,
        _checkpoint(certificate.checkpoint),
        *map(_checkpoint, certificate.other_checkpoints),
    ]
    for head in heads:
        newest = ledger.checkpoint(head.origin).size
        if head.size > newest:
            raise CertificateError(
                f"{where} knows {head.size} events of {head.origin}, {ledger.path} has {newest}: it is of "
                "another ledger, or this one has lost events"
            )
        if proofs.tree_head(ledger, head.origin, head.size).root != head.root:
            raise CertificateError(
                f"the first {head.size} events of {head.origin} in {ledger.path} have another root than in "
                f"{where}: it is of another ledger"
            )
    later = ledger.con.execute(
        "SELECT count(*), arg_max(payload ->> '$.decision', seq) FROM events WHERE origin = ? AND seq > ? "
        "AND campaign = ? AND kind = 'qualification_decided'",
        [checked.note.checkpoint.origin, certificate.proofs.decision.index, certificate.campaign],
    ).fetchone()
    if later is None or not later[0]:
        return checked
    remark = f"the campaign was decided on {later[0]} time(s) more after this, last as {later[1]}"
    return Checked(certificate, checked.note, (*checked.remarks, remark))


def again(checked: Checked, ledger: Ledger, where: str = "the certificate") -> None:
    """Evaluate all rules again, on the events that the decision was made on. Raises CertificateError.

    Events that came later play no part. The SQL must be the SQL that decided.
    """
    from qualify.decision import decide

    certificate = checked.certificate
    if certificate.views_sha256 != sqlfiles.views_sha256():
        raise CertificateError(
            f"{where} was decided by oakledger {certificate.package_version} with other SQL: evaluate it "
            "again with that version"
        )
    with _as_it_was(ledger, certificate) as then:
        decision = decide(then, certificate.campaign)
    told = decision.event()
    found = tuple(msgspec.convert(r, RuleResult) for r in told["rules"])
    if found != certificate.rules or decision.word != certificate.decision:
        differing = [a.rule for a, b in zip(certificate.rules, found, strict=False) if a != b]
        raise CertificateError(
            f"{where} says {certificate.decision}; evaluated again on the same events it is {decision.word} "
            f"(differing: {', '.join(differing) or 'none'})"
        )


@contextlib.contextmanager
def _as_it_was(ledger: Ledger, certificate: Certificate) -> Iterator[Ledger]:
    """Give a copy, in a temporary file, of what a ledger held at the checkpoints of a certificate."""
    heads = [certificate.checkpoint, *certificate.other_checkpoints]
    with scratch() as folder:
        path = os.path.join(folder, "then.duckdb")
        _copy(ledger.con.cursor(), path, heads)
        with duckdb.connect(path) as con:
            yield Ledger(path, con, read_only=True)


def _copy(cursor: duckdb.DuckDBPyConnection, path: str, heads: list[OriginHead]) -> None:
    """Write the tables that a decision reads, as they were at these tree heads."""
    row = cursor.execute("SELECT current_database()").fetchone()
    assert row is not None
    source = '"' + str(row[0]).replace('"', '""') + '".main'
    cursor.execute("ATTACH '" + path.replace("'", "''") + "' AS then_held (READ_WRITE)")
    try:
        cursor.execute("CREATE TABLE then_held.heads (origin VARCHAR, size BIGINT, root VARCHAR)")
        cursor.executemany(
            "INSERT INTO then_held.heads VALUES (?, ?, ?)", [[h.origin, h.size, h.root] for h in heads]
        )
        cursor.execute(
            "CREATE TABLE then_held.events AS SELECT e.* FROM "  # noqa: S608 - our own database name
            f"{source}.events e JOIN then_held.heads h ON h.origin = e.origin AND e.seq < h.size"
        )
        # Of an event that several origins have, the copy of the smallest name counts (ledger.merge).
        cursor.execute(
            "CREATE TABLE then_held.duplicates AS SELECT origin, seq FROM then_held.events "
            "QUALIFY row_number() OVER (PARTITION BY event_id ORDER BY origin, seq) > 1"
        )
        cursor.execute(
            "CREATE TABLE then_held.checkpoints AS "
            "SELECT origin, size, root, NULL::VARCHAR AS frontier FROM then_held.heads WHERE size > 0"
        )
        cursor.execute("CREATE TABLE then_held.ledger_meta (key VARCHAR, value VARCHAR)")
        cursor.execute("INSERT INTO then_held.ledger_meta VALUES ('origin', ?)", [heads[0].origin])
    finally:
        cursor.execute("DETACH then_held")
        cursor.close()

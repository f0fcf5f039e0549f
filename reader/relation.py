"""How a reader is related to the subject that it judges, and what its evidence may be called.

Design section 6: evidence is `independent` only where the reader shares neither binary nor code with the
subject. Hashes record identity, they certify nothing: different bytes do not make a copy, a wrapper or
another build of the same program independent. Where an operator vouches for an instrument, that is their
assertion and recorded as such (`docs/evidence-classes.md` has the table and the reasons).

Pure functions over facts; nothing is read or run here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

Value = Literal["independent", "subject_binary", "subject_export", "unqualified"]
Basis = Literal[
    "own_code",
    "identical_bytes",
    "operator_assertion",
    "shared_code",
    "script_instrument",
    "unknown_bytes",
    "subject_output",
]

_SHA256 = re.compile(r"[0-9a-f]{64}\Z")
_DEPTH = re.compile(r"committed_(?:tree|payload)(?:\+tests)?(?:\+worktree)?\Z")

_OWN_CODE = frozenset({("git_object_reader", "pure"), ("oak_sqlite_reader", "pure")})
_SUBJECT_OUTPUT = frozenset({("oak_export_reader", "export")})
_SHARED_LIBRARIES = frozenset({("oak_sqlite_reader", "native")})
_INSTRUMENT = frozenset({("git_instrument_reader", "git")})


@dataclass(frozen=True)
class Relation:
    """A reader's relation to the subject.

    `value` is the recorded relation; `unqualified` means that nothing shows independence and nobody vouches
    for it, and is no class that a comparison may rest on. `basis` is the code of the rule that decided,
    `detail` the same in words. `qualified_by` and `because` are an operator's assertion as it was given,
    whether it decided or not.
    """

    value: Value
    basis: Basis
    detail: str
    qualified_by: str | None = None
    because: str | None = None


def relation(
    reader: str,
    backend: str,
    instrument_sha256: str | None,
    subject_sha256: str | None,
    qualified_by: str | None = None,
    because: str | None = None,
    *,
    instrument_is_script: bool = False,
) -> Relation:
    """Decide the relation of a reader to a subject.

    `reader` and `backend` are those of the reader's report. `instrument_sha256` and `subject_sha256` are
    hashes of the two binaries after resolving links, in lower-case hex; None where they are not known (only
    looked at for a reader that runs an instrument). `instrument_is_script`: the instrument is a script, so
    that its hash does not cover the program that it may run. An assertion is `qualified_by` together with
    `because`.

    Raises ValueError for a reader that does not exist, a malformed hash, half an assertion or one that is
    blank or not one printable line.
    """
    _check_assertion(qualified_by, because)
    for digest in (instrument_sha256, subject_sha256):
        if digest is not None and not _SHA256.match(digest):
            raise ValueError("a SHA-256 is 64 lower-case hexadecimal digits")
    value, basis, detail = _decide(
        (reader, backend), instrument_sha256, subject_sha256, qualified_by is not None, instrument_is_script
    )
    return Relation(value, basis, detail, qualified_by, because)


def _decide(
    pair: tuple[str, str], instrument: str | None, subject: str | None, asserted: bool, is_script: bool
) -> tuple[Value, Basis, str]:
    if pair in _SUBJECT_OUTPUT:
        return "subject_export", "subject_output", "the evidence is what the subject itself wrote out"
    if pair in _OWN_CODE:
        return "independent", "own_code", "the reader runs no code of the subject and none that it shares"
    if pair in _SHARED_LIBRARIES:
        if asserted:
            return "independent", "operator_assertion", "an operator vouches for the libraries that it shares"
        return (
            "unqualified",
            "shared_code",
            "the reader's codec packages wrap libraries that the subject links",
        )
    if pair not in _INSTRUMENT:
        raise ValueError(f"there is no reader {pair[0]!r} with backend {pair[1]!r}")
    if instrument is None or subject is None:
        # Without both hashes nobody can say that they differ, an operator included.
        which = "the subject" if instrument is not None else "the instrument"
        return "unqualified", "unknown_bytes", f"the bytes of {which} are not known"
    if instrument == subject:
        return "subject_binary", "identical_bytes", "the instrument's bytes are the subject's"
    if is_script:
        return "unqualified", "script_instrument", "the instrument is a script: its hash names no program"
    if asserted:
        return "independent", "operator_assertion", "an operator vouches for the instrument"
    return "unqualified", "shared_code", "another build of the subject's program, vouched for by nobody"


def _check_assertion(qualified_by: str | None, because: str | None) -> None:
    if (qualified_by is None) != (because is None):
        raise ValueError("an assertion needs both: who qualifies the instrument, and why")
    for text in (qualified_by, because):
        if text is not None and (not text.strip() or not text.isprintable()):
            raise ValueError(
                "who qualifies the instrument, and why, must each be one line that says something"
            )


def evidence_label(found: Relation, depth: str) -> str:
    """The correctness class of evidence of that depth, e.g. `subject_binary_committed_tree`.

    `depth` is `committed_tree` or `committed_payload`, followed by `+tests` and `+worktree` where those were
    judged. A label that begins with `unqualified_` is no class of design section 6 and equals none. Raises
    ValueError for another depth.
    """
    if not _DEPTH.match(depth):
        raise ValueError(f"there is no evidence depth {depth!r}")
    return f"{found.value}_{depth}"

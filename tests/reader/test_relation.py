"""The relation of a reader to the subject: every configuration, and that no trick makes one independent."""

from __future__ import annotations

import itertools

import pytest

from reader.relation import Relation, evidence_label, relation

A, B = "a" * 64, "b" * 64
WHO, WHY = "ops@example.invalid", "built from other sources, reviewed"


def test_own_code_is_independent_of_every_subject() -> None:
    for reader, subject in itertools.product(("git_object_reader", "oak_sqlite_reader"), (None, A)):
        found = relation(reader, "pure", None, subject)
        assert (found.value, found.basis) == ("independent", "own_code")


def test_identical_bytes_are_the_subject_whatever_anybody_says() -> None:
    assert relation("git_instrument_reader", "git", A, A).value == "subject_binary"
    found = relation("git_instrument_reader", "git", A, A, WHO, WHY)
    assert (found.value, found.basis) == ("subject_binary", "identical_bytes")
    assert (found.qualified_by, found.because) == (WHO, WHY)


def test_other_bytes_alone_are_not_independent() -> None:
    """A copy with one byte changed, a wrapper in C, another build: all of them have other bytes."""
    found = relation("git_instrument_reader", "git", B, A)
    assert (found.value, found.basis) == ("unqualified", "shared_code")


def test_an_assertion_makes_other_bytes_independent_and_is_recorded() -> None:
    found = relation("git_instrument_reader", "git", B, A, WHO, WHY)
    assert found == Relation(
        "independent", "operator_assertion", "an operator vouches for the instrument", WHO, WHY
    )


def test_a_script_cannot_be_vouched_for() -> None:
    """Its hash does not say which program it runs: that may be the subject's."""
    for assertion in ((None, None), (WHO, WHY)):
        found = relation("git_instrument_reader", "git", B, A, *assertion, instrument_is_script=True)
        assert (found.value, found.basis) == ("unqualified", "script_instrument")
    same = relation("git_instrument_reader", "git", A, A, instrument_is_script=True)
    assert same.value == "subject_binary"


@pytest.mark.parametrize(("instrument", "subject"), [(None, A), (A, None), (None, None)])
def test_unknown_bytes_are_never_independent(instrument: str | None, subject: str | None) -> None:
    for assertion in ((None, None), (WHO, WHY)):
        found = relation("git_instrument_reader", "git", instrument, subject, *assertion)
        assert (found.value, found.basis) == ("unqualified", "unknown_bytes")


def test_export_is_the_subjects_word_whatever_anybody_says() -> None:
    for assertion in ((None, None), (WHO, WHY)):
        found = relation("oak_export_reader", "export", None, None, *assertion)
        assert (found.value, found.basis) == ("subject_export", "subject_output")


def test_native_codecs_share_libraries_with_the_subject() -> None:
    assert relation("oak_sqlite_reader", "native", None, A).value == "unqualified"
    found = relation("oak_sqlite_reader", "native", None, A, WHO, WHY)
    assert (found.value, found.basis) == ("independent", "operator_assertion")


@pytest.mark.parametrize(
    ("reader", "backend"),
    [
        ("git_instrument_reader", "pure"),
        ("git_object_reader", "git"),
        ("oak_export_reader", "pure"),
        ("", ""),
        ("x", "git"),
    ],
)
def test_a_reader_that_does_not_exist_is_an_error(reader: str, backend: str) -> None:
    with pytest.raises(ValueError, match="there is no reader"):
        relation(reader, backend, A, B)


@pytest.mark.parametrize(
    "assertion", [(WHO, None), (None, WHY), ("", WHY), (WHO, " "), ("two\nlines", WHY), (WHO, "\x1b[31m")]
)
def test_half_an_assertion_is_an_error(assertion: tuple[str | None, str | None]) -> None:
    with pytest.raises(ValueError, match=r"assertion|qualifies"):
        relation("git_instrument_reader", "git", A, B, *assertion)


@pytest.mark.parametrize("digest", ["A" * 64, "a" * 63, "a" * 64 + "\n", "", "g" * 64])
def test_a_malformed_hash_is_an_error(digest: str) -> None:
    with pytest.raises(ValueError, match="SHA-256"):
        relation("git_instrument_reader", "git", digest, A)
    with pytest.raises(ValueError, match="SHA-256"):
        relation("git_instrument_reader", "git", A, digest)


def test_labels_are_those_of_the_source_text() -> None:
    same = relation("git_instrument_reader", "git", A, A)
    assert evidence_label(same, "committed_tree") == "subject_binary_committed_tree"
    assert evidence_label(same, "committed_payload") == "subject_binary_committed_payload"
    own = relation("git_object_reader", "pure", None, A)
    assert evidence_label(own, "committed_tree+tests") == "independent_committed_tree+tests"
    both = "committed_payload+tests+worktree"
    assert evidence_label(own, both) == f"independent_{both}"
    assert evidence_label(relation("oak_export_reader", "export", None, None), "committed_tree") == (
        "subject_export_committed_tree"
    )


@pytest.mark.parametrize(
    "depth", ["", "committed", "committed_tree+worktree+tests", "committed_tree\n", "unmeasured"]
)
def test_other_depths_are_an_error(depth: str) -> None:
    with pytest.raises(ValueError, match="depth"):
        evidence_label(relation("git_object_reader", "pure", None, None), depth)


def test_independent_needs_own_code_or_an_assertion_over_known_different_bytes() -> None:
    """Over every combination of facts."""
    pairs = (
        ("git_object_reader", "pure"),
        ("git_instrument_reader", "git"),
        ("oak_sqlite_reader", "pure"),
        ("oak_sqlite_reader", "native"),
        ("oak_export_reader", "export"),
    )
    hashes = (None, A, B)
    for pair, instrument, subject, asserted, script in itertools.product(
        pairs, hashes, hashes, (False, True), (False, True)
    ):
        assertion = (WHO, WHY) if asserted else (None, None)
        found = relation(*pair, instrument, subject, *assertion, instrument_is_script=script)
        if found.value != "independent":
            continue
        assert pair[1] == "pure" or asserted
        if pair[1] == "git":
            assert instrument is not None and subject is not None and instrument != subject and not script

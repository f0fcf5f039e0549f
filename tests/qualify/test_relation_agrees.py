"""SQL derives what reader/relation.py decides: the same independence from the same recorded facts.

The reader records its relation when it runs, and the views derive it again from the facts; two opinions would
make every honest row an overclaim or let a dishonest one through.
"""

from __future__ import annotations

import batch
import pytest
import sqlmutants as q

from reader.relation import relation

#: From the least to the most.
RANKS = ("unqualified", "subject_export", "subject_binary", "independent")


@pytest.fixture(scope="module")
def derived(tmp_path_factory):
    """What the view says of each combination of facts: trial name -> (independence, class, overclaimed)."""
    path = tmp_path_factory.mktemp("relations") / "r.duckdb"
    with batch.loaded(path, [q.relations()]) as ledger, batch.workspace(ledger) as con:
        rows = con.execute(
            "SELECT trial, independence, correctness_class, overclaimed FROM correctness_classes"
        ).fetchall()
    return {trial: rest for trial, *rest in rows}


def test_every_combination_agrees(derived):
    seen = set()
    for facts in q.COMBINATIONS:
        independence, klass, overclaimed = derived[facts.trial]
        try:
            found = relation(
                facts.reader,
                facts.backend,
                facts.instrument_sha256,
                facts.subject_sha256,
                facts.qualified_by,
                facts.qualified_because,
            ).value
        except ValueError:
            # No such reader, or half an assertion: nothing that a reader of ours would record.
            assert independence != "independent" or facts.own
            continue
        if facts.same_bytes and found == "independent":
            # Stricter than the reader, which runs no code of the subject: equal bytes are equal bytes.
            found = "subject_binary"
        # The lesser of what the facts say and what was recorded counts, and more than the facts is a finding.
        assert independence == min(found, facts.recorded, key=RANKS.index), facts
        assert overclaimed == (RANKS.index(facts.recorded) > RANKS.index(found))
        assert klass == (None if independence == "unqualified" else f"{independence}_committed_tree")
        seen.add(independence)
    assert seen == set(RANKS)
    assert len(q.COMBINATIONS) > 200

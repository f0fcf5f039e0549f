"""Does every event count once, and does every producer key name one event?

Grouping all ids or keys at once would need memory in proportion to the ledger, so it is done by parts of a
hash. Equal values have equal hashes: a part without a repeated hash has no repeated value, and in the others
the values themselves are compared.
"""

# ruff: noqa: S608 - the queries are made of constants of this module

from __future__ import annotations

from collections.abc import Iterator

import duckdb

from ledger.audit_finding import Finding

#: Rows that one part groups, about.
PART_ROWS = 2_000_000

_REPEATED = (
    "SELECT hash({key}) FROM audited_events WHERE hash({key}) % {parts} = {part} "
    "GROUP BY 1 HAVING count(*) > 1"
)

_CONFLICTS = """
WITH suspect AS (SELECT * FROM audited_events WHERE hash(source, ordinal) IN ({repeated})),
bad AS (
    SELECT source, ordinal, list_sort(list(DISTINCT event_id)) AS ids FROM suspect
    GROUP BY source, ordinal HAVING count(DISTINCT event_id) > 1
)
SELECT origin, seq, event_id, source, ordinal, ids FROM suspect JOIN bad USING (source, ordinal)
ORDER BY source, ordinal, origin, seq
"""

_COPIES = """
SELECT origin, seq, event_id, first_origin, first_seq FROM (
    SELECT origin, seq, event_id,
        row_number() OVER copies AS copy,
        first(origin) OVER copies AS first_origin, first(seq) OVER copies AS first_seq
    FROM audited_events WHERE hash(event_id) IN ({repeated})
    WINDOW copies AS (PARTITION BY event_id ORDER BY origin, seq)
) WHERE copy > 1
"""


def check_producer_keys(con: duckdb.DuckDBPyConnection, rows: int) -> Iterator[Finding]:
    """Yield the events whose (source, ordinal) names another event too (design section 4).

    Code: `producer_key`.
    """
    for repeated in _parts(con, "source, ordinal", rows):
        found = con.execute(_CONFLICTS.format(repeated=repeated))
        while batch := found.fetchmany(1000):
            for origin, seq, event_id, source, ordinal, ids in batch:
                others = [i for i in ids if i != event_id]
                more = f" and {len(others) - 3} more" if len(others) > 3 else ""
                yield Finding(
                    "producer_key",
                    f"source {source} ordinal {ordinal} also names event {', '.join(others[:3])}{more}",
                    origin,
                    seq,
                    event_id,
                )


def check_copies(con: duckdb.DuckDBPyConnection, rows: int) -> Iterator[Finding]:
    """Yield events that one origin has twice, and differences between the copies and `duplicates`.

    The copies of an event but the first, by origin name and seq, are what `duplicates` must hold: the views
    leave those out. Codes: `duplicate_event`, `not_in_duplicates`, `wrong_in_duplicates`.
    """
    expected = 0
    for repeated in _parts(con, "event_id", rows):
        query = _COPIES.format(repeated=repeated)
        within = con.execute(f"SELECT * FROM ({query}) WHERE origin = first_origin ORDER BY ALL")
        while batch := within.fetchmany(1000):
            for origin, seq, event_id, _, first_seq in batch:
                yield Finding(
                    "duplicate_event", f"the same event is seq {first_seq} already", origin, seq, event_id
                )
        absent = con.execute(
            f"SELECT origin, seq, event_id FROM ({query}) ANTI JOIN audited_duplicates USING (origin, seq) "
            "ORDER BY ALL"
        )
        while batch := absent.fetchmany(1000):
            for origin, seq, event_id in batch:
                expected -= 1
                yield Finding(
                    "not_in_duplicates",
                    "is a copy that the table duplicates does not name: it counts twice",
                    origin,
                    seq,
                    event_id,
                )
        counted = con.execute(f"SELECT count(*) FROM ({query})").fetchone()
        expected += int(counted[0]) if counted else 0
    named = con.execute("SELECT count(*) FROM audited_duplicates").fetchone()
    if named is not None and named[0] != expected:
        yield from _wrongly_named(con, rows)


def _wrongly_named(con: duckdb.DuckDBPyConnection, rows: int) -> Iterator[Finding]:
    """Yield the rows of `duplicates` that name no copy; only asked for when there are some."""
    con.execute("CREATE OR REPLACE TEMP TABLE expected_copies (origin VARCHAR, seq BIGINT)")
    for repeated in _parts(con, "event_id", rows):
        con.execute(
            f"INSERT INTO expected_copies SELECT origin, seq FROM ({_COPIES.format(repeated=repeated)})"
        )
    found = con.execute(
        "SELECT origin, seq FROM audited_duplicates ANTI JOIN expected_copies USING (origin, seq) "
        "ORDER BY ALL"
    )
    while batch := found.fetchmany(1000):
        for origin, seq in batch:
            yield Finding(
                "wrong_in_duplicates",
                "the table duplicates names this event, which is no copy of another: it is not counted",
                origin,
                seq,
            )


def _parts(con: duckdb.DuckDBPyConnection, key: str, rows: int) -> Iterator[str]:
    """Yield, for each part that has any, the query of its repeated hashes."""
    parts = rows // PART_ROWS + 1
    for part in range(parts):
        repeated = _REPEATED.format(key=key, parts=parts, part=part)
        if con.execute(f"{repeated} LIMIT 1").fetchone() is not None:
            yield repeated

"""Are the numbers of an origin dense, and do its checkpoints stand on its events?

The ids of an origin are folded once, from leaf 0 on, into the frontier of an RFC 6962 tree; wherever a known
checkpoint has its size, the root at that point is compared with it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import duckdb

from ledger.audit_finding import Finding
from ledger.frontier import Frontier

#: Leaves read at a time.
WINDOW = 65_536

#: Ranges of missing or repeated numbers that are named for one origin.
_MAX_GAPS = 1000


@dataclass
class Claim:
    """A root that something says an origin had at a size; `code` names the finding if it had not."""

    code: str
    where: str
    root: str
    frontier: str | None = None


@dataclass
class OriginTree:
    """What folding one origin gave: how many events it has, and the largest dense beginning with its root."""

    origin: str
    rows: int
    frontier: Frontier = field(default_factory=Frontier)


def leaves(
    con: duckdb.DuckDBPyConnection, origin: str, start: int, end: int
) -> Iterator[tuple[int, list[bytes]]]:
    """Yield (first leaf, leaf hashes) of consecutive pieces of an origin from `start` to before `end`.

    Ends at the first place where the numbers are not dense or an id is no SHA-256 in hex.
    """
    for first in range(start, end, WINDOW):
        last = min(first + WINDOW, end)
        row = con.execute(
            "SELECT count(*), count(DISTINCT seq), string_agg(event_id, '' ORDER BY seq), "
            "count(*) FILTER (WHERE event_id IS NULL OR strlen(event_id) <> 64) "
            "FROM audited_events WHERE origin = ? AND seq >= ? AND seq < ?",
            [origin, first, last],
        ).fetchone()
        rows, distinct, text, malformed = row or (0, 0, "", 0)
        if rows == distinct == last - first and not malformed and _is_hex(text):
            raw = bytes.fromhex(text)
            yield first, [raw[i : i + 32] for i in range(0, len(raw), 32)]
            continue
        yield first, list(_dense_beginning(con, origin, first, last))
        return


def _dense_beginning(con: duckdb.DuckDBPyConnection, origin: str, first: int, last: int) -> Iterator[bytes]:
    """Yield the leaf hashes up to the first that cannot be used."""
    rows = con.execute(
        "SELECT seq, event_id FROM audited_events "
        "WHERE origin = ? AND seq >= ? AND seq < ? ORDER BY seq, event_id",
        [origin, first, last],
    ).fetchall()
    expected = first
    for i, (seq, event_id) in enumerate(rows):
        repeated = i + 1 < len(rows) and rows[i + 1][0] == seq
        if seq != expected or repeated or not is_sha256(event_id):
            return
        yield bytes.fromhex(event_id)
        expected += 1


def _is_hex(text: str) -> bool:
    return text.isascii() and not text.encode().translate(None, b"0123456789abcdef")


def is_sha256(text: object) -> bool:
    """Return whether a value is a SHA-256 in lower-case hex."""
    return isinstance(text, str) and len(text) == 64 and not text.strip("0123456789abcdef")


def origins(con: duckdb.DuckDBPyConnection) -> list[tuple[str, int, int]]:
    """Return (origin, rows, largest seq) of each origin in the events, by name."""
    return con.execute(
        "SELECT origin, count(*), coalesce(max(seq), -1) FROM audited_events "
        "WHERE origin IS NOT NULL GROUP BY origin ORDER BY origin"
    ).fetchall()


def check_numbers(con: duckdb.DuckDBPyConnection, origin: str) -> Iterator[Finding]:
    """Yield the gaps and repetitions in an origin's numbers. Codes: `gap`, `duplicate_seq`."""
    gaps = con.execute(
        "SELECT before + 1, seq - 1 FROM ("
        "SELECT seq, lag(seq, 1, -1::BIGINT) OVER (ORDER BY seq) AS before "
        "FROM (SELECT DISTINCT seq FROM audited_events WHERE origin = ? AND seq >= 0)"
        ") WHERE seq > before + 1 ORDER BY seq LIMIT ?",
        [origin, _MAX_GAPS],
    ).fetchall()
    for first, last in gaps:
        what = f"event {first} is missing" if first == last else f"events {first} to {last} are missing"
        yield Finding("gap", what, origin, first)
    repeated = con.execute(
        "SELECT seq, count(*), string_agg(event_id, ' ' ORDER BY event_id) FROM audited_events "
        "WHERE origin = ? AND seq IS NOT NULL GROUP BY seq HAVING count(*) > 1 ORDER BY seq LIMIT ?",
        [origin, _MAX_GAPS],
    ).fetchall()
    for seq, count, ids in repeated:
        yield Finding("duplicate_seq", f"{count} events have this number: {str(ids)[:700]}", origin, seq)


def fold(
    con: duckdb.DuckDBPyConnection, tree: OriginTree, end: int, claims: dict[int, list[Claim]]
) -> Iterator[Finding]:
    """Fold an origin's first `end` leaves, comparing each claim at its size; `tree` holds the result."""
    frontier = tree.frontier
    sizes = sorted(claims)
    at = 0
    while at < len(sizes) and sizes[at] == 0:
        yield from _compare(tree.origin, frontier, claims[0])
        at += 1
    for first, piece in leaves(con, tree.origin, 0, end):
        done = 0
        while at < len(sizes) and sizes[at] <= first + len(piece):
            upto = sizes[at] - first
            frontier.extend(piece[done:upto])
            done = upto
            yield from _compare(tree.origin, frontier, claims[sizes[at]])
            at += 1
        frontier.extend(piece[done:])
    for size in sizes[at:]:
        for claim in claims[size]:
            if size > tree.rows:
                yield Finding(
                    claim.code,
                    f"{claim.where} knows {size} events and the ledger has {tree.rows}: events were lost",
                    tree.origin,
                )
            else:
                yield Finding(
                    claim.code,
                    f"{claim.where} covers {size} events and only the first {frontier.size} can be folded",
                    tree.origin,
                )


def _compare(origin: str, frontier: Frontier, claims: list[Claim]) -> Iterator[Finding]:
    root = frontier.root().hex()
    for claim in claims:
        if claim.root != root:
            yield Finding(
                claim.code,
                f"{claim.where} has root {claim.root} for the first {frontier.size} events, "
                f"which have {root}: history was changed",
                origin,
            )
        elif claim.frontier is not None and claim.frontier != frontier.encode():
            yield Finding(
                claim.code, f"{claim.where} has a frontier that does not belong to its root", origin
            )

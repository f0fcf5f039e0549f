"""What the page shows, as plain rows: every one the answer of a query that the page prints."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import duckdb

from ledger import views
from ledger.errors import LedgerDamagedError
from ledger.store import Ledger
from qualify.decision import Decision
from qualify.report.queries import queries

Row = dict[str, Any]

#: Event lines that the page lists in all: enough for ten thousand trials, and a page well under 5 MB.
LISTED_EVENTS = 16_000

#: The cells that are drawn. A plan may have more; the page then says how many are left out.
DRAWN_CELLS = 600


@dataclass(frozen=True)
class Answer:
    """A query as it was asked, and its rows."""

    name: str
    title: str
    sql: str
    rows: list[Row]


@dataclass(frozen=True)
class Data:
    """All that a page is made of. `limit` is how many events of one outcome of one cell are listed."""

    decision: Decision
    answers: dict[str, Answer]
    limit: int

    def rows(self, name: str) -> list[Row]:
        """Return the rows of a query."""
        return self.answers[name].rows


def collect(ledger: Ledger, decision: Decision) -> Data:
    """Ask every query about the campaign of a decision, on the ledger that it was made on.

    Raises LedgerDamagedError when a view fails.
    """
    campaign = decision.campaign
    limit = _limit(decision)
    answers = {}
    try:
        with views.workspace(ledger.con, campaign) as con:
            for query in queries():
                text = query.text(campaign, limit)
                cursor = con.execute(text)
                names = [d[0] for d in cursor.description or ()]
                rows = [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]
                answers[query.name] = Answer(query.name, query.title, text, rows)
    except duckdb.Error as e:
        text = " ".join(str(e).split())[:300]
        raise LedgerDamagedError(
            f"the report's queries failed on {ledger.path} ({text}): run oakledger audit"
        ) from e
    for row in answers["failures"].rows:
        row["example"] = _first_failure(row.pop("example_checks"))
    for row in answers["environments"].rows:
        row["facts"] = json.loads(row["facts"])
    return Data(decision, answers, limit)


def _limit(decision: Decision) -> int:
    """Return how many events of one list are shown: all of them unless that makes the page too large."""
    slots = int(decision.facts["slots"] or 0)
    pairs = sum(int(p["pairs"]) for p in decision.tables["paired_outcomes"])
    if slots + pairs // 3 <= LISTED_EVENTS:
        return max(slots, 1)
    lists = 3 * len(decision.tables["cells"]) + 4 * len(decision.tables["paired_outcomes"])
    return max(LISTED_EVENTS // max(lists, 1), 3)


def _first_failure(checks: str | None) -> Row | None:
    """Return the first check of a verdict that did not pass, with texts for what it names."""
    for check in json.loads(checks) if checks else ():
        if check.get("result") != "pass":
            path = check.get("path")
            if isinstance(path, dict):
                check["path"] = f"base64:{path.get('path_b64')}"
            return dict(check)
    return None

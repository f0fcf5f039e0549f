"""All campaigns of a ledger evaluated at once, by the shipped SQL and the shipped decision.

`decide` builds the views anew for one campaign, which is right for a release check and slow for hundreds of
them. Every shipped view has a column `campaign` and keeps campaigns apart, so here each is built once over
all of them, and `decide` then asks for one campaign after the other. What this leaves out is shown to leave
nothing out: a test decides some of the campaigns both ways.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb

from ledger import views
from ledger.store import Ledger, open_ledger
from qualify import decision as qualify_decision

#: Columns of a rule view that say what was found; `detail` is prose for people.
FOUND = ("what", "binding", "scenario", "scenario_version", "condition_key", "subject", "trial", "event_ids")

#: Views of figures that a decision shows beside the rules (qualify.decision).
SHOWN = (
    "cells",
    "conditions",
    "condition_coverage",
    "class_pairs",
    "paired_outcomes",
    "claims",
    "set_aside",
    "reruns",
    "order_basis",
    "campaign_lanes",
    "campaigns",
)


def build(con: duckdb.DuckDBPyConnection, empty: str | None = None) -> None:
    """Make every shipped view a table over the relations `events`, `duplicates`, `checkpoints` of `con`.

    The view named `empty` is left without rows.
    """
    for one in views.shipped():
        limit = "LIMIT 0" if one.name == empty else ""
        con.execute(f"CREATE OR REPLACE TABLE {one.name} AS SELECT * FROM ({one.select}) {limit}")


def rule_views() -> list[str]:
    """Names of the rule views, in order."""
    return [one.name for one in views.shipped() if one.name.startswith("rule_")]


@contextlib.contextmanager
def loaded(path: Path, campaigns: list[list[Any]]) -> Iterator[Ledger]:
    """A ledger with the events of all campaigns, in one append."""
    with open_ledger(path) as ledger:
        ledger.append(event for events in campaigns for event in events)
        yield ledger


@contextlib.contextmanager
def workspace(
    ledger: Ledger, name: str = "batch", empty: str | None = None
) -> Iterator[duckdb.DuckDBPyConnection]:
    """An in-memory database with everything built over the whole ledger, but for the view named `empty`."""
    cursor = ledger.con.cursor()
    row = cursor.execute("SELECT current_database()").fetchone()
    assert row is not None
    cursor.execute(f"ATTACH ':memory:' AS {name}")
    cursor.execute(f"USE {name}")
    for table in ("events", "duplicates", "checkpoints"):
        cursor.execute(f'CREATE TABLE {table} AS SELECT * FROM "{row[0]}".main.{table}')
    build(cursor, empty)
    try:
        yield cursor
    finally:
        cursor.execute(f'USE "{row[0]}"')
        cursor.execute(f"DETACH {name}")
        cursor.close()


def decide(ledger: Ledger, con: duckdb.DuckDBPyConnection, campaign: str) -> qualify_decision.Decision:
    """The shipped decision on a campaign, over a workspace that holds all campaigns."""

    @contextlib.contextmanager
    def shared(*_: object) -> Iterator[duckdb.DuckDBPyConnection]:
        yield con

    kept = qualify_decision.views.workspace
    qualify_decision.views.workspace = shared  # type: ignore[assignment]
    try:
        return qualify_decision.decide(ledger, campaign)
    finally:
        qualify_decision.views.workspace = kept


def violated(decision: qualify_decision.Decision) -> dict[str, set[str]]:
    """The violated rules of a decision, and what each found."""
    return {r.rule.id: {v.what for v in r.violations} for r in decision.rules if r.violations}


def noted(decision: qualify_decision.Decision) -> dict[str, set[str]]:
    """The notes of a decision by rule: what is shown and refuses nothing."""
    return {
        r.rule.id: {v.what for v in r.found if not v.binding}
        for r in decision.rules
        if any(not v.binding for v in r.found)
    }


def rows(con: duckdb.DuckDBPyConnection, view: str) -> Counter[str]:
    """The content of a view as a multiset: lists sorted, null apart from the empty text, prose left out."""
    names = [d[0] for d in con.execute(f"SELECT * FROM {view} LIMIT 0").description or ()]
    parts = []
    for name in names:
        if name in ("detail", "why", "condition", "plan"):
            continue
        text = f"list_sort({name})" if name in ("event_ids", "declared_event_ids") else name
        parts.append(f"coalesce({text}::VARCHAR, chr(7))")
    found = con.execute(f"SELECT concat_ws('|', {', '.join(parts)}) FROM {view}")
    return Counter(r[0] for r in found.fetchall())

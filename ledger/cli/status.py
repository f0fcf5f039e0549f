"""`oakledger status`: what a ledger holds, in one look."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from ledger.cli.context import Context, json_option, pass_context, printable
from ledger.errors import LedgerDamagedError

if TYPE_CHECKING:
    from rich.console import Console

    from ledger.store import Ledger

Row = dict[str, Any]

#: Campaigns that the text output shows; --json has all.
SHOWN_CAMPAIGNS = 40

#: Columns of text that goes to a file or a pipe.
WIDTH = 160

#: One pass over the columns of `events`: no payload is read, so a million events take a blink.
_COUNTS = """
SELECT
    campaign,
    count(*) AS events,
    count(DISTINCT CASE WHEN kind = 'trial_recorded' THEN trial END) AS trials,
    count(*) FILTER (kind = 'reader_invoked') AS readings,
    count(*) FILTER (kind = 'oracle_judged') AS verdicts,
    count(*) FILTER (kind = 'trial_invalidated') AS invalidated,
    count(*) FILTER (kind = 'trial_replaced') AS replaced,
    min(started_at_ns) AS first_start_ns,
    max(started_at_ns) AS last_start_ns,
    max(CASE WHEN kind <> 'qualification_decided' THEN recorded_at_ns END) AS last_recorded_at_ns
FROM events AS e
WHERE NOT EXISTS (FROM duplicates AS d WHERE d.origin = e.origin AND d.seq = e.seq)
GROUP BY campaign
ORDER BY last_recorded_at_ns DESC NULLS LAST, campaign
"""

_KINDS = """
SELECT kind, count(*) AS events
FROM events AS e
WHERE NOT EXISTS (FROM duplicates AS d WHERE d.origin = e.origin AND d.seq = e.seq)
GROUP BY kind ORDER BY kind
"""

_PLANS = """
SELECT
    campaign,
    arg_min(payload ->> '$.plan.lane', (recorded_at_ns, event_id)) AS lane,
    min(recorded_at_ns) AS declared_at_ns,
    arg_min(
        (payload ->> '$.plan.trials_per_cell')::BIGINT * json_array_length(payload, '$.plan.subjects')
        * json_array_length(payload, '$.plan.scenarios') * json_array_length(payload, '$.plan.conditions'),
        (recorded_at_ns, event_id)
    ) AS planned
FROM events WHERE kind = 'campaign_declared' GROUP BY campaign
"""

_DECISIONS = """
SELECT campaign, arg_max(payload, (recorded_at_ns, event_id)) AS payload, count(*) AS decisions,
    arg_max(event_id, (recorded_at_ns, event_id)) AS event_id
FROM events WHERE kind = 'qualification_decided' GROUP BY campaign
"""

_LATER = """
SELECT count(*) FROM events WHERE origin = ? AND seq >= ? AND campaign = ? AND kind <> 'qualification_decided'
"""


@click.command()
@json_option
@pass_context
def status(context: Context, as_json: bool) -> None:
    """Show what the ledger holds: campaigns, events, the last checkpoint, the decisions.

    Nothing is verified and nothing decided: `oakledger audit` and `oakledger qualify` do that.

    Example: oakledger status
    """
    with context.open(read_only=True) as ledger, whole(ledger):
        found = summary(ledger)
    if as_json:
        context.print_json(found)
    else:
        _print(context.console, found)


@contextlib.contextmanager
def whole(ledger: Ledger) -> Iterator[None]:
    """Turn what DuckDB says about a file that is no whole ledger into one line with a next step."""
    import duckdb

    try:
        yield
    except duckdb.Error as e:
        text = " ".join(str(e).split())[:300]
        raise LedgerDamagedError(f"{ledger.path} cannot be read ({text}): run oakledger audit") from e


def summary(ledger: Ledger) -> Row:
    """Return what `oakledger status --json` prints."""
    from ledger import checkpoints as notes

    campaigns = _rows(ledger, _COUNTS)
    plans = {r.pop("campaign"): r for r in _rows(ledger, _PLANS)}
    decisions = {r["campaign"]: r for r in _rows(ledger, _DECISIONS)}
    unbound = 0
    listed = []
    for row in campaigns:
        if row["campaign"] is None:
            unbound = row["events"]
            continue
        row |= plans.get(row["campaign"], {"lane": None, "declared_at_ns": None, "planned": None})
        row["decision"] = _decision(ledger, decisions.get(row["campaign"]))
        listed.append(row)
    heads = []
    for row in _rows(
        ledger,
        "SELECT origin, max(size) AS size, arg_max(root, size) AS root FROM checkpoints GROUP BY origin "
        "ORDER BY origin",
    ):
        head = ledger.checkpoint(row["origin"])
        path = os.path.join(notes.folder(ledger.path), notes.file_name(head))
        heads.append({**row, "own": row["origin"] == ledger.origin, "kept": os.path.isfile(path)})
    kinds = {r["kind"]: r["events"] for r in _rows(ledger, _KINDS)}
    return {
        "ledger": ledger.path,
        "origin": ledger.origin,
        "bytes": os.path.getsize(ledger.path),
        "events": sum(kinds.values()),
        "kinds": kinds,
        "checkpoints": heads,
        "campaigns": listed,
        "events_of_no_campaign": unbound,
    }


def _rows(ledger: Ledger, query: str) -> list[Row]:
    cursor = ledger.con.execute(query)
    names = [d[0] for d in cursor.description or ()]
    return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]


def _decision(ledger: Ledger, row: Row | None) -> Row | None:
    """Return the last decision, with the number of events of the campaign that came after it."""
    if row is None:
        return None
    event = json.loads(row["payload"])
    later = ledger.con.execute(
        _LATER, [event["checkpoint_origin"], event["checkpoint_size"], row["campaign"]]
    ).fetchone()
    return {
        "decision": event["decision"],
        "decided_at_ns": event["recorded_at_ns"],
        "event_id": row["event_id"],
        "decisions": row["decisions"],
        "violated": [r["rule"] for r in event["rules"] if r["state"] == "violated"],
        "checkpoint_origin": event["checkpoint_origin"],
        "checkpoint_size": event["checkpoint_size"],
        "events_since": int(later[0]) if later else 0,
    }


def when(ns: int | None) -> str:
    """Return nanoseconds since 1970 as UTC, to the minute."""
    import datetime

    if ns is None:
        return "-"
    return f"{datetime.datetime.fromtimestamp(ns // 10**9, datetime.UTC):%Y-%m-%d %H:%M}"


def decision_text(decision: Row | None) -> tuple[str, str]:
    """Return a decision in words, and the style that may colour them."""
    if decision is None:
        return "not decided", "dim"
    word = "qualified" if decision["decision"] == "qualified" else "DIAGNOSTIC"
    style = "green" if decision["decision"] == "qualified" else "red"
    if decision["events_since"]:
        count = decision["events_since"]
        return f"{word}, {count} event{'s' if count != 1 else ''} since", "yellow"
    return word, style


def _print(console: Console, found: Row) -> None:
    from rich.table import Table
    from rich.text import Text

    if not console.is_terminal:
        console.width = WIDTH
    console.print(
        printable(f"{found['ledger']}: {found['events']:,} events, {found['bytes'] / 1e6:,.1f} MB"),
        markup=False,
    )
    for head in found["checkpoints"]:
        kept = (
            "kept beside the ledger" if head["kept"] else "not kept beside the ledger: oakledger checkpoint"
        )
        own = "" if head["own"] else " (merged)"
        console.print(
            printable(
                f"checkpoint {head['origin']}{own} size {head['size']:,} root {head['root'][:16]}, {kept}"
            ),
            markup=False,
        )
    if not found["campaigns"]:
        console.print("no campaign yet: oakledger campaign declare FILE.toml, or oakledger demo")
        return
    wide = console.width >= 100
    columns = [
        "campaign",
        "lane",
        "trials",
        "planned",
        *(("readings", "verdicts") if wide else ()),
        "decision",
    ]
    if wide:
        columns.insert(-1, "last event, UTC")
    table = Table(*columns, box=None, pad_edge=False)
    for column in table.columns:
        if column.header in ("trials", "planned", "readings", "verdicts"):
            column.justify = "right"
    table.columns[0].overflow = "fold"
    for c in found["campaigns"][:SHOWN_CAMPAIGNS]:
        word, style = decision_text(c["decision"])
        cells = [
            printable(c["campaign"]),
            c["lane"] or "not declared",
            f"{c['trials']:,}",
            "-" if c["planned"] is None else f"{c['planned']:,}",
        ]
        if wide:
            cells += [f"{c['readings']:,}", f"{c['verdicts']:,}", when(c["last_recorded_at_ns"])]
        table.add_row(*cells, Text(word, style=style))
    console.print()
    console.print(table)
    hidden = len(found["campaigns"]) - SHOWN_CAMPAIGNS
    if hidden > 0:
        console.print(f"and {hidden} more: --json has all")
    console.print("\nMore: oakledger show CAMPAIGN, oakledger qualify --campaign CAMPAIGN")

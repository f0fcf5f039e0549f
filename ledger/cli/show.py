"""`oakledger show`: one event, trial or campaign, with the chain of evidence that it is part of."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import click

from ledger.cli.context import Context, json_option, pass_context, printable
from ledger.cli.names import campaigns, complete_campaign, near
from ledger.cli.status import WIDTH, decision_text, summary, when, whole
from ledger.errors import EXIT_NEGATIVE, OakledgerError

if TYPE_CHECKING:
    import duckdb
    from rich.console import Console

    from ledger.store import Ledger
    from ledger.views import View

Row = dict[str, Any]

#: Shortest start of an event id that is looked for.
MIN_PREFIX = 4

#: Events of a trial, and rows of a list, that are shown.
SHOWN = 200

_RULE_VIEW = re.compile(r"rule_(\d\d)_(\w+)")
_VIOLATION = ("campaign", "what", "binding", "detail", "trial", "event_ids")

_PREFIX = re.compile(rf"[0-9a-f]{{{MIN_PREFIX},64}}")

#: Fields of the event that the text output leaves to --json.
_LONG = ("plan", "checks", "metrics", "condition", "bounds", "dependencies", "rules", "facts", "limits")


class NotFoundError(OakledgerError):
    """Nothing in the ledger has this name."""

    exit_status = EXIT_NEGATIVE


@click.command()
@click.argument("ref", metavar="EVENT|TRIAL|CAMPAIGN", shell_complete=complete_campaign)
@click.option("--rules", is_flag=True, help="Also evaluate the rules now and list violations that name it.")
@click.option(
    "--as",
    "kind",
    type=click.Choice(["event", "trial", "campaign"]),
    help="What the name is, where it could be several things.",
)
@json_option
@pass_context
def show(context: Context, ref: str, rules: bool, kind: str | None, as_json: bool) -> None:
    """Show an event (by the start of its id), a trial or a campaign, with the chain of evidence behind it.

    For a trial: what the harness recorded, what readers saw, what oracles said, the correctness class that
    follows, what was set aside, and what the rules said when the campaign was last decided on.

    Exit status: 0 shown; 1 there is no such thing; 2 usage.

    Example: oakledger show demo
    """
    with context.open(read_only=True) as ledger, whole(ledger):
        found = find(ledger, ref, kind)
        if rules:
            found["violations"] = _violations(ledger, found)
    if as_json:
        context.print_json(found)
    else:
        _print(context.console, found)


def find(ledger: Ledger, ref: str, kind: str | None = None) -> Row:
    """Return what `oakledger show --json` prints.

    Raises NotFoundError: nothing has this name (near misses are named), or several events start so.
    """
    con = ledger.con
    if kind in (None, "campaign") and ledger.has_campaign(ref):
        return _campaign(ledger, ref)
    if kind in (None, "trial"):
        rows = con.execute("SELECT DISTINCT campaign FROM events WHERE trial = ? LIMIT 20", [ref]).fetchall()
        if rows:
            return _trial(ledger, ref, sorted(str(r[0]) for r in rows))
    if kind in (None, "event") and _PREFIX.fullmatch(ref):
        rows = con.execute(
            "SELECT event_id, list(rowid) FROM events WHERE event_id >= ? AND event_id < ? "
            "GROUP BY event_id ORDER BY event_id LIMIT 6",
            [ref, ref + "g"],
        ).fetchall()
        ids = [str(r[0]) for r in rows]
        if len(ids) > 1:
            raise NotFoundError(
                f"{len(ids) if len(ids) < 6 else 'more than five'} events start with {ref}: "
                f"give more of one, for example {ids[0][:16]} or {ids[1][:16]}"
            )
        if ids:
            return _event(ledger, rows[0][1])
    names = campaigns(ledger) if kind in (None, "campaign") else []
    raise NotFoundError(_missing(con, ref, kind, names))


def _missing(con: duckdb.DuckDBPyConnection, ref: str, kind: str | None, names: list[str]) -> str:
    shown = repr(ref if len(ref) <= 200 else ref[:200] + "...")
    what = kind or "event, trial or campaign"
    hint = near(ref, names)
    if "did you mean" not in hint and kind != "campaign":
        rows = con.execute(
            "SELECT trial FROM (SELECT DISTINCT trial FROM events WHERE kind = 'trial_recorded') "
            "WHERE contains(trial, ?) ORDER BY length(trial), trial LIMIT 3",
            [ref],
        ).fetchall()
        if rows:
            hint = f": did you mean trial {' or '.join(str(r[0]) for r in rows)}?"
    if kind == "event" and not _PREFIX.fullmatch(ref):
        hint = f": an event id starts with at least {MIN_PREFIX} of the characters 0 to 9 and a to f"
    return f"no {what} {shown} in the ledger{hint}"


def _rowids(
    con: duckdb.DuckDBPyConnection, where: str, values: list[object], limit: int = SHOWN
) -> list[int]:
    """Return where events are, by their narrow columns alone; a payload is read for those that are shown."""
    rows = con.execute(
        f"SELECT rowid FROM events WHERE {where} ORDER BY rowid LIMIT {limit}",  # noqa: S608 - our own text
        values,
    ).fetchall()
    return [int(r[0]) for r in rows]


def _at(rowids: list[int]) -> str:
    """Return a FROM clause of some rows; joined, as `rowid IN (...)` would read the whole table."""
    return f"events JOIN (SELECT unnest({rowids!r}) AS here) ON events.rowid = here"


def _events(con: duckdb.DuckDBPyConnection, rowids: list[int]) -> list[Row]:
    """Return events with their payload, each once however many copies it has, oldest first."""
    if not rowids:
        return []
    cursor = con.execute(
        "SELECT event_id, kind, "  # noqa: S608 - our own text
        "list(struct_pack(origin := origin, seq := seq) ORDER BY origin, seq), "
        "any_value(payload), min(recorded_at_ns) AS recorded_at_ns, min(seq) AS seq "
        f"FROM {_at(rowids)} "
        "GROUP BY event_id, kind ORDER BY recorded_at_ns, seq",
    )
    return [
        {"event_id": i, "kind": k, "places": places, "event": json.loads(text)}
        for i, k, places, text, _, _ in cursor.fetchall()
    ]


def _event(ledger: Ledger, rowids: list[int]) -> Row:
    found: Row = {"what": "event", **_events(ledger.con, rowids)[0]}
    trial, campaign = found["event"].get("trial"), found["event"].get("campaign")
    found["chain"] = _trial(ledger, trial, [campaign]) if trial and campaign else None
    return found


def _trial(ledger: Ledger, trial: str, where: list[str]) -> Row:
    """Return a trial's events, what follows from them, and the last decision on its campaign."""
    con = ledger.con
    campaign = where[0]
    own = _rowids(con, "campaign = ? AND trial = ?", [campaign, trial])
    replacing = _rowids(
        con,
        "campaign = ? AND kind = 'trial_replaced' AND payload ->> '$.replacement' = ?",
        [campaign, trial],
    )
    return {
        "what": "trial",
        "trial": trial,
        "campaign": campaign,
        "other_campaigns": where[1:],
        "events": _events(con, own) + _events(con, replacing),
        "evidence": _evidence(ledger, campaign, trial, own),
        "decision": _last_decision(con, campaign),
    }


def _evidence(ledger: Ledger, campaign: str, trial: str, own: list[int]) -> list[Row]:
    """Return each verdict with its reading and class: the shipped views over the trial's own events.

    What a class follows from is in those events and the declaration: no other event of the campaign is read.
    """
    import duckdb

    declared = _rowids(ledger.con, "campaign = ? AND kind = 'campaign_declared'", [campaign])
    rows = ledger.con.execute(
        f"SELECT events.* FROM {_at([*own, *declared])} "  # noqa: S608 - numbers
        "WHERE NOT EXISTS (FROM duplicates AS d WHERE d.origin = events.origin AND d.seq = events.seq)"
    )
    names = ", ".join(
        f"{d[0]} {'BIGINT' if str(d[1]) in ('BIGINT', 'INTEGER') else 'VARCHAR'}"
        for d in rows.description or ()
    )
    data = rows.fetchall()
    needed = _needed()
    with duckdb.connect(":memory:", config={"threads": 1}) as con:
        con.execute(f"CREATE TABLE ledger_events ({names})")
        con.executemany(f"INSERT INTO ledger_events VALUES ({', '.join('?' * len(data[0]))})", data)  # noqa: S608
        for view in needed:
            con.execute(f"CREATE TABLE {view.name} AS {view.select}")
        cursor = con.execute(
            "SELECT event_id AS verdict_event_id, reader_event_id, verdict, reason, refused, independence, "
            "correctness_class FROM correctness_classes WHERE trial = ? ORDER BY event_id",
            [trial],
        )
        fields = [d[0] for d in cursor.description or ()]
        return [dict(zip(fields, row, strict=True)) for row in cursor.fetchall()]


def _needed() -> list[View]:
    """Return the view of the classes and what it is made of, in order, without the events themselves."""
    from ledger import views

    wanted = {*views.builds_on("correctness_classes"), "correctness_classes"}
    return [v for v in views.shipped() if v.name in wanted and v.file != views.SOURCE_FILE]


def _last_decision(con: duckdb.DuckDBPyConnection, campaign: str) -> Row | None:
    rows = _rowids(con, "kind = 'qualification_decided' AND campaign = ?", [campaign], limit=100_000)
    found = _events(con, rows)
    if not found:
        return None
    last = found[-1]
    return {
        "event_id": last["event_id"],
        "decision": last["event"]["decision"],
        "decided_at_ns": last["event"]["recorded_at_ns"],
        "rules": last["event"]["rules"],
    }


def _campaign(ledger: Ledger, name: str) -> Row:
    con = ledger.con
    row = next(c for c in summary(ledger)["campaigns"] if c["campaign"] == name)
    declared = _events(con, _rowids(con, "campaign = ? AND kind = 'campaign_declared'", [name]))
    cells = con.execute(
        "SELECT scenario, scenario_version, subject, count(DISTINCT trial) AS trials, "
        "count(*) AS records, count(*) FILTER (status = 'completed') AS completed, "
        "count(DISTINCT condition_key) AS conditions FROM events "
        "WHERE campaign = ? AND kind = 'trial_recorded' "
        "GROUP BY ALL ORDER BY scenario, scenario_version, subject LIMIT 1000",
        [name],
    )
    fields = [d[0] for d in cells.description or ()]
    table = [dict(zip(fields, r, strict=True)) for r in cells.fetchall()]
    verdicts = con.execute(
        "SELECT scenario, scenario_version, subject, verdict, count(*) FROM events "
        "WHERE campaign = ? AND kind = 'oracle_judged' AND trial IS NOT NULL GROUP BY ALL",
        [name],
    ).fetchall()
    for scenario, version, subject, verdict, count in verdicts:
        for line in table:
            if (line["scenario"], line["scenario_version"], line["subject"]) == (scenario, version, subject):
                line[f"verdicts_{verdict}"] = count
    return {
        "what": "campaign",
        **row,
        "declarations": declared,
        "cells": table,
        "decision": row["decision"],
        "rules": (_last_decision(con, name) or {}).get("rules"),
    }


def _violations(ledger: Ledger, found: Row) -> list[Row]:
    """Evaluate the shipped rule views over the campaign, and return the rows that name the thing shown."""
    from ledger import views

    campaign = found.get("campaign") or found.get("event", {}).get("campaign")
    if campaign is None:
        return []
    wanted, values = "true", []
    if found["what"] != "campaign":
        chain = found.get("chain") or found
        ids = [e["event_id"] for e in chain.get("events", ())] or [found["event_id"]]
        wanted = "list_has_any(event_ids, ?) OR list_contains(split(trial, ', '), ?)"
        values = [ids, chain.get("trial")]
    found_rows: list[Row] = []
    with views.workspace(ledger.con, campaign) as con:
        for view in views.shipped():
            named = _RULE_VIEW.fullmatch(view.name)
            if named is None:
                continue
            # Not every rule view is about trials; what a view has no column for is null.
            has = {d[0] for d in con.execute(f"SELECT * FROM {view.name} LIMIT 0").description or ()}  # noqa: S608
            columns = ", ".join(c if c in has else f"NULL AS {c}" for c in _VIOLATION)
            cursor = con.execute(
                f"SELECT what, binding, detail FROM (SELECT {columns} FROM {view.name}) "  # noqa: S608
                f"WHERE coalesce(campaign = ?, true) AND ({wanted}) "
                f"ORDER BY binding DESC, what, detail LIMIT {SHOWN}",
                [campaign, *values],
            )
            found_rows += [
                {
                    "rule": int(named[1]),
                    "rule_id": named[2],
                    "what": what,
                    "binding": binding,
                    "detail": detail,
                }
                for what, binding, detail in cursor.fetchall()
            ]
    return found_rows


def _print(console: Console, found: Row) -> None:
    if not console.is_terminal:
        console.width = WIDTH
    {"event": _print_event, "trial": _print_trial, "campaign": _print_campaign}[found["what"]](console, found)
    if "violations" in found:
        console.print(f"\nrules, evaluated now: {len(found['violations'])} rows name it")
        for v in found["violations"]:
            word = "violation" if v["binding"] else "note"
            console.print(
                printable(f"  {word} of rule {v['rule']}, {v['rule_id']}: {v['what']}: {v['detail']}"),
                markup=False,
            )


def _line(console: Console, name: str, value: object) -> None:
    if value is None or value == [] or value == {}:
        return
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    if name.endswith("_at_ns") and isinstance(value, int):
        text = f"{when(value)} UTC ({value})"
    console.print(printable(f"  {name:<22} {text}"), markup=False)


def _print_event(console: Console, found: Row) -> None:
    console.print(f"event {found['event_id']}", style="bold")
    _line(console, "kind", found["event"]["kind"])
    for place in found["places"]:
        _line(console, "in the ledger as", f"{place['origin']} number {place['seq']}")
    for name, value in found["event"].items():
        if name != "kind" and not (name in _LONG and len(json.dumps(value)) > 200):
            _line(console, name, value)
    left = [n for n in found["event"] if n in _LONG and len(json.dumps(found["event"][n])) > 200]
    if left:
        console.print(f"  --json has {', '.join(left)} too", style="dim")
    if found["chain"] is not None:
        console.print()
        _print_trial(console, found["chain"], found["event_id"])
    console.print(f"\nProof that it is in the tree: oakledger prove {found['event_id'][:16]}")


def _print_trial(console: Console, found: Row, marked: str | None = None) -> None:
    console.print(
        printable(f"trial {found['trial']} of campaign {found['campaign']}"), style="bold", markup=False
    )
    if found["other_campaigns"]:
        others = ", ".join(found["other_campaigns"])
        console.print(
            printable(f"  the same identity is also used in {others}: rule 2"), style="red", markup=False
        )
    evidence = {e["verdict_event_id"]: e for e in found["evidence"]}
    for e in found["events"]:
        event = e["event"]
        mark = ">" if e["event_id"] == marked else " "
        console.print(
            printable(f"{mark} {e['event_id'][:16]}  {e['kind']:<18} {_said(event)}"),
            markup=False,
            soft_wrap=False,
        )
        for check in event.get("checks") or ():
            if check.get("result") != "pass":
                console.print(printable(f"    {'':<16}  {_check(check)}"), markup=False)
        if e["event_id"] in evidence:
            console.print(printable(f"    {'':<16}  {_follows(evidence[e['event_id']])}"), markup=False)
    decision = found["decision"]
    if decision is None:
        console.print(
            printable(f"rules: not decided yet: oakledger qualify --campaign {found['campaign']}"),
            markup=False,
        )
        return
    violated = [r["rule"] for r in decision["rules"] if r["state"] == "violated"]
    text = f"violated: {', '.join(violated)}" if violated else "none violated"
    console.print(
        f"rules: {decision['decision']} on {when(decision['decided_at_ns'])} UTC, {text}; "
        "--rules evaluates them now",
        markup=False,
    )


def _said(event: Row) -> str:
    """Return an event of a trial in a few words."""
    kind = event["kind"].split("/")[0]
    if kind == "trial_recorded":
        where = f"{event['scenario']}@{event['scenario_version']}, {event['subject']}"
        repetition = "" if event.get("repetition") is None else f", repetition {event['repetition']}"
        code = f" ({event['status_code']})" if event.get("status_code") else ""
        return f"{event['status']}{code}: {where}{repetition}, started {when(event.get('started_at_ns'))}"
    if kind == "reader_invoked":
        head = f", HEAD {event['head'][:12]}" if event.get("head") else ""
        reason = f" ({event['reason']})" if event.get("reason") else ""
        reader = f"{event['reader']} {event['reader_version']}, {event['backend']}"
        return f"{event['outcome']}{reason}: {reader}{head}"
    if kind == "oracle_judged":
        reason = f" ({event['reason']})" if event.get("reason") else ""
        reader = f", on reading {event['reader_event_id'][:16]}" if event.get("reader_event_id") else ""
        return f"{event['verdict']}{reason}: oracle {event['oracle_version']} of {event['scenario']}{reader}"
    if kind == "trial_replaced":
        return f"{event['trial']} replaced by {event['replacement']}, {event['who']}: {event['why']}"
    if kind == "trial_invalidated":
        return f"{event['who']}: {event['why']}"
    return ""


def _check(check: Row) -> str:
    path = check.get("path")
    path = f"base64:{path['path_b64']}" if isinstance(path, dict) else path
    parts = [f"check {check['check']}: {check['result']}"]
    parts += [f"{n} {check[n]}" for n in ("reason", "expected", "found", "excerpt") if check.get(n)]
    if path:
        parts.insert(1, f"path {path}")
    return ", ".join(parts)


def _follows(evidence: Row) -> str:
    if evidence["refused"]:
        return f"=> does not count: {evidence['refused'].replace('_', ' ')}"
    if evidence["verdict"] == "unmeasured":
        return "=> unmeasured: neither success nor failure"
    if evidence["verdict"] == "fail":
        return f"=> a failure, seen by a reader that is {evidence['independence'].replace('_', ' ')}"
    none = "none: nobody says how the instrument relates to the subject, or how deep it was looked"
    return f"=> correctness class {evidence['correctness_class'] or none}"


def _print_campaign(console: Console, found: Row) -> None:
    from rich.table import Table
    from rich.text import Text

    console.print(printable(f"campaign {found['campaign']}"), style="bold", markup=False)
    word, style = decision_text(found["decision"])
    console.print(Text(f"  {'decision':<22} {word}", style=style))
    for name in (
        "lane",
        "declared_at_ns",
        "planned",
        "trials",
        "readings",
        "verdicts",
        "replaced",
        "invalidated",
    ):
        _line(console, name, found[name])
    for name in ("first_start_ns", "last_start_ns"):
        if found[name] is not None:
            _line(console, name.removesuffix("_ns").replace("_", " "), f"{when(found[name])} UTC")
    for e in found["declarations"]:
        _line(console, "declared by event", e["event_id"])
    if found["cells"]:
        figures = ("conditions", "trials", "records", "completed", "pass", "fail", "unmeasured")
        columns = ("scenario", "subject", *figures)
        table = Table(*columns, box=None, pad_edge=False)
        for column in table.columns[2:]:
            column.justify = "right"
        for c in found["cells"]:
            table.add_row(
                printable(f"{c['scenario']}@{c['scenario_version']}"),
                printable(c["subject"]),
                *(str(c[n]) for n in ("conditions", "trials", "records", "completed")),
                *(str(c.get(f"verdicts_{v}", 0)) for v in ("pass", "fail", "unmeasured")),
            )
        console.print("\nRecorded, before anything is set aside:")
        console.print(table)
    if found["rules"]:
        console.print("\nRules when it was last decided:")
        for r in found["rules"]:
            state = {"violated": "VIOLATED", "not_applicable": "does not apply"}.get(r["state"], r["state"])
            count = f", {r['violations']} violations" if r["violations"] else ""
            console.print(
                Text(f"  {r['rule']:<22} {state}{count}", style="red" if r["state"] == "violated" else "")
            )
    name = printable(found["campaign"])
    console.print(
        f"\nMore: oakledger qualify --campaign {name}, oakledger report --campaign {name} -o FILE.html",
        markup=False,
    )

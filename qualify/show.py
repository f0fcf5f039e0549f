"""The decision as text for people: a terminal, or the annotations of a CI run."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

from ledger.cli.context import printable
from qualify.decision import LIMITS, Decision, RuleState, Violation

if TYPE_CHECKING:
    from rich.console import Console

#: Violations of a rule, and event ids of a violation, that are shown on a terminal; --json has all.
SHOWN_VIOLATIONS = 8
SHOWN_EVENTS = 3

#: Columns of tables that go to a file or a pipe.
WIDTH = 160

_WORDS = {
    "holds": "holds",
    "violated": "VIOLATED",
    "information": "holds, with notes",
    "not_applicable": "does not apply",
}
_STYLES = {"holds": "green", "violated": "bold red", "information": "green", "not_applicable": "dim"}


def _where(v: Violation) -> str:
    parts = []
    if v.scenario is not None:
        parts.append(f"{v.scenario}@{v.scenario_version}")
    if v.subject is not None:
        parts.append(v.subject)
    if v.condition_key is not None:
        parts.append(f"condition {v.condition_key[:8]}")
    if v.trial is not None:
        names = v.trial.split(", ")
        parts.append(f"trial {', '.join(names[:2])}{' ...' if len(names) > 2 else ''}")
    return ", ".join(parts)


def line(v: Violation, events: int | None = SHOWN_EVENTS) -> str:
    """Return a violation as one line, with the first `events` event ids (null: all)."""
    where = _where(v)
    text = f"{v.what}{': ' if where else ''}{where}: {v.detail}"
    ids = v.event_ids if events is None else v.event_ids[:events]
    if ids:
        more = f" and {len(v.event_ids) - len(ids)} more" if len(ids) < len(v.event_ids) else ""
        text += f" [{', '.join(i if events is None else i[:16] for i in ids)}{more}]"
    return printable(text)


def terminal(console: Console, decision: Decision, event: str | None, describe: bool) -> None:
    """Print the whole answer."""
    from rich.table import Table
    from rich.text import Text

    if not console.is_terminal:
        console.width = WIDTH
    table = Table("", "rule", "state", "violations", title=None, box=None, pad_edge=False)
    table.columns[3].justify = "right"
    for state in decision.rules:
        table.add_row(
            str(state.rule.number),
            state.rule.title,
            Text(_WORDS[state.state] + _lane_note(decision, state), style=_STYLES[state.state]),
            str(len(state.violations)),
        )
    console.print(table)
    for state in decision.rules:
        _print_found(console, state)
    _print_cells(console, decision)
    _print_lists(console, decision)
    if describe:
        _print_pairs(console, decision)
    console.print("\nWhat this is not:")
    for limit in LIMITS:
        console.print(f"  {limit}", markup=False)
    head = decision.checkpoint
    console.print(
        f"\nOrder of the trials: {decision.facts['order_basis']}. Decided on checkpoint {head.origin} size "
        f"{head.size} root {head.root.hex()[:16]}"
        + (f", recorded as event {event[:16]}." if event else ", not recorded."),
        markup=False,
    )
    refused = [str(r.rule.number) for r in decision.rules if r.violations]
    name = printable(decision.campaign)
    if decision.qualified:
        console.print(Text(f"Campaign {name} is QUALIFIED: no rule is violated.", style="bold green"))
    else:
        console.print(
            Text(
                f"Campaign {name} is DIAGNOSTIC, not qualified: rule{'s' if len(refused) > 1 else ''} "
                f"{', '.join(refused)} violated.",
                style="bold red",
            )
        )


def _lane_note(decision: Decision, state: RuleState) -> str:
    if state.rule.lanes != "all" and not decision.facts["bound"]:
        return " (does not bind this lane)"
    return ""


def _print_found(console: Console, state: RuleState) -> None:
    for binding, word in ((True, "violations"), (False, "notes")):
        rows = [v for v in state.found if v.binding is binding]
        if not rows:
            continue
        shown = rows[:SHOWN_VIOLATIONS] if binding else rows[:2]
        console.print(f"\nRule {state.rule.number}, {state.rule.id}, {word}:", markup=False)
        for v in shown:
            console.print(f"  {line(v)}", markup=False)
        if len(rows) > len(shown):
            console.print(f"  and {len(rows) - len(shown)} more: --json has all", markup=False)


def _number(value: object) -> str:
    return "-" if value is None else f"{value:g}" if isinstance(value, float) else str(value)


def _print_cells(console: Console, decision: Decision) -> None:
    from rich.table import Table

    columns = {
        "planned": "planned",
        "measured": "measured",
        "passed": "passed",
        "failed_committed": "failed",
        "failed_before_head": "before HEAD",
        "unmeasured": "unmeasured",
        "harness_failure": "harness",
        "unlaunched": "unlaunched",
        "missing": "missing",
        "conflict": "conflict",
        "replaced": "replaced",
        "invalidated": "invalidated",
        "success_permille": "success per mille",
        "strict_success_permille": "strict",
    }
    rows = decision.tables["cells"]
    if not rows:
        return
    # What is zero in every cell is left out, except what the denominators are made of.
    keep = {"planned", "measured", "passed", "success_permille", "strict_success_permille"}
    used = [c for c in columns if c in keep or any(r[c] for r in rows)]
    table = Table("scenario", "subject", "condition", *(columns[c] for c in used), box=None, pad_edge=False)
    for column in table.columns[3:]:
        column.justify = "right"
    for r in rows:
        table.add_row(
            printable(f"{r['scenario']}@{r['scenario_version']}"),
            printable(r["subject"]),
            (r["condition_key"] or "-")[:8],
            *(_number(r[c]) for c in used),
        )
    console.print(
        "\nPlanned trials by outcome. strict: unmeasured by the subject's making counted as failed."
    )
    console.print(table)


def _print_lists(console: Console, decision: Decision) -> None:
    holes = [h for h in decision.tables["holes"] if not h["diagnostic"]]
    if holes:
        console.print(f"\nHoles in the coverage ({len(holes)}):")
        for h in holes[:SHOWN_VIOLATIONS]:
            console.print(
                printable(
                    f"  {h['scenario']}@{h['scenario_version']}, {h['subject']}, condition "
                    f"{h['condition_key'][:8]}: {h['recorded']} recorded, none measured"
                ),
                markup=False,
            )
    aside = decision.tables["set_aside"]
    if aside:
        console.print(f"\nSet aside ({len(aside)}):")
        for a in aside[:SHOWN_VIOLATIONS]:
            instead = f" by {a['replacement']}" if a["replacement"] else ""
            console.print(
                printable(
                    f"  {a['trial']} ({(a['fact_outcome'] or 'unknown').replace('_', ' ')}) "
                    f"{a['what']}{instead}, {a['who']}: {a['why']}"
                ),
                markup=False,
            )
        if len(aside) > SHOWN_VIOLATIONS:
            console.print(f"  and {len(aside) - SHOWN_VIOLATIONS} more: --json has all", markup=False)


def _print_pairs(console: Console, decision: Decision) -> None:
    from rich.table import Table

    from qualify.describe import mcnemar_exact

    table = Table(
        "scenario",
        "condition",
        "A",
        "B",
        "both",
        "only A",
        "only B",
        "neither",
        "not comparable",
        "before HEAD A",
        "B",
        "exact McNemar p",
        box=None,
        pad_edge=False,
    )
    for r in decision.tables["paired_outcomes"]:
        p = mcnemar_exact(r["only_a"], r["only_b"])
        table.add_row(
            printable(f"{r['scenario']}@{r['scenario_version']}"),
            r["condition_key"][:8],
            printable(r["subject_a"]),
            printable(r["subject_b"]) + (" (null)" if r["null_pair"] else ""),
            *(str(r[c]) for c in ("both", "only_a", "only_b", "neither", "not_comparable")),
            str(r["before_head_a"]),
            str(r["before_head_b"]),
            "-" if p is None else f"{p:.4f}",
        )
    console.print("\nPaired outcomes. A description: it permits no claim.")
    console.print(table)


def explanation(console: Console, decision: Decision, state: RuleState) -> None:
    """Print a rule: what it says, why, its SQL, and every violation with every event id."""
    rule = state.rule
    console.print(f"Rule {rule.number}, {rule.id}: {rule.title}", markup=False, style="bold")
    console.print(
        f"Binds: {rule.lanes} lanes. State: {_WORDS[state.state]}{_lane_note(decision, state)}.", markup=False
    )
    console.print("\n" + textwrap.fill(rule.why, 100), markup=False)
    console.print(f"\nView {rule.view} (sql/{rule.sql_file}):\n", markup=False)
    console.print(rule.sql, markup=False, highlight=False)
    counts = (len(state.violations), "violation"), (len(state.found) - len(state.violations), "note")
    console.print("\n" + ", ".join(f"{n} {word}{'' if n == 1 else 's'}" for n, word in counts))
    for v in state.found:
        console.print(f"  {'' if v.binding else 'note: '}{line(v, None)}", markup=False)


def explanation_json(state: RuleState) -> dict[str, Any]:
    """Return a rule with its text, its SQL and what it found."""
    return {
        **state.as_json(),
        "why": state.rule.why,
        "sql_file": f"sql/{state.rule.sql_file}",
        "sql": state.rule.sql,
    }


def github(decision: Decision) -> list[str]:
    """Return workflow commands of GitHub Actions: an error for each violation, a notice for the decision."""
    lines = []
    for state in decision.rules:
        title = f"oakledger rule {state.rule.number}: {state.rule.title}"
        lines += [
            f"::error title={_property(title)}::{_message(line(v))}"
            for v in state.violations[:SHOWN_VIOLATIONS]
        ]
        hidden = len(state.violations) - SHOWN_VIOLATIONS
        if hidden > 0:
            lines.append(f"::error title={_property(title)}::and {hidden} more violations")
    word = "qualified" if decision.qualified else "diagnostic, not qualified"
    level = "notice" if decision.qualified else "error"
    lines.append(f"::{level} title=oakledger::campaign {_message(printable(decision.campaign))} is {word}")
    return lines


def _message(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _message(text).replace(":", "%3A").replace(",", "%2C")

"""From plain rows to one HTML file.

The page has no script, and its own content policy forbids all of them, as it forbids every request. Text from
the ledger is escaped by the template engine, and what could steer a reader's eye (controls, marks that turn
the writing direction) is made visible first.
"""

from __future__ import annotations

import base64
import hashlib
import shlex
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from ledger import views
from ledger.checkpoints import checkpoint_text
from ledger.cli.context import printable
from ledger.errors import OakledgerError
from qualify.decision import LIMITS, Violation
from qualify.describe import mcnemar_exact
from qualify.report import words
from qualify.report.data import DRAWN_CELLS, Data, Row

if TYPE_CHECKING:
    from jinja2 import Environment

#: How the file begins: a file that does not is never written over.
MARK = b"<!doctype html>\n<!-- oakledger report -->\n"

#: Violations of a rule, event ids of a violation, and panels of metrics that the page shows.
SHOWN_VIOLATIONS = 200
SHOWN_EVENTS = 5
SHOWN_PANELS = 24


def environment() -> Environment:
    """Return the template engine: everything escaped, an unknown name is an error.

    Raises OakledgerError when Jinja2 is not installed, naming the extra.
    """
    try:
        import jinja2
        from markupsafe import Markup
    except ImportError as e:
        raise OakledgerError(
            "the report needs Jinja2, which is not installed: pip install 'oakledger[report]'"
        ) from e

    def visible(value: object) -> object:
        return printable(value) if isinstance(value, str) and not isinstance(value, Markup) else value

    env = jinja2.Environment(
        loader=jinja2.PackageLoader("qualify.report"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=visible,
    )
    env.filters.update(
        number=words.number,
        percent=words.percent,
        time=words.time,
        quantity=lambda value, metric: words.quantity(metric, value),
        sql=_several_lines,
    )
    return env


def _several_lines(text: str) -> object:
    """Escape a text that keeps its line breaks."""
    from markupsafe import Markup, escape

    return Markup("\n").join(escape(printable(line)) for line in text.split("\n"))


@cache
def _style() -> str:
    return (files("qualify.report") / "style.css").read_text(encoding="utf-8")


def render(data: Data, ledger_name: str) -> bytes:
    """Return the page: the same input gives the same bytes. Its commands call the file `ledger_name`."""
    template = environment().get_template("page.html")
    style = _style()
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    text = template.render(style=_raw(style), style_digest=digest, **context(data, ledger_name))
    return MARK + text.encode()


def _raw(text: str) -> object:
    from markupsafe import Markup

    return Markup(text)  # noqa: S704 - our own style sheet


def context(data: Data, ledger_name: str) -> dict[str, Any]:
    """Return what the templates use: rows with their labels, anchors and pictures."""
    from qualify.report.charts import Ids

    ids = Ids()
    decision = data.decision
    labels = words.condition_labels(data.rows("conditions"))
    cells = _cells(data, labels, ids)
    pairs = _pairs(data, labels, ids)
    return {
        "data": data,
        "decision": decision,
        "facts": decision.facts,
        "plan": data.rows("plan")[0],
        "refused": [r.rule.number for r in decision.rules if r.violations],
        "limits": LIMITS,
        "states": words.STATES,
        "rules": _rules(data),
        "labels": labels,
        "cells": cells[:DRAWN_CELLS],
        "cells_left_out": max(len(cells) - DRAWN_CELLS, 0),
        "cell_groups": _grouped(cells[:DRAWN_CELLS]),
        "totals": _totals(cells),
        "outcomes": words.OUTCOMES,
        "matrix": _matrix(data, labels, cells),
        "classes": _classes(data, labels, cells),
        "class_words": _class_words(data),
        "order": _order(data, ids),
        "pairs": pairs,
        "pair_groups": _grouped(pairs),
        "pair_words": words.PAIRS,
        "claims": _claims(data, labels, ids),
        "panels": _panels(data, labels, ids)[:SHOWN_PANELS],
        "panels_left_out": max(len(_panel_keys(data)) - SHOWN_PANELS, 0),
        "views": views.shipped(),
        "shown_violations": SHOWN_VIOLATIONS,
        "shown_events": SHOWN_EVENTS,
        "checkpoint_args": [shlex.quote(line) for line in checkpoint_text(decision.checkpoint).splitlines()],
        "commands": _commands(decision.campaign, ledger_name),
    }


def _rules(data: Data) -> list[Row]:
    found = []
    for state in data.decision.rules:
        binds = state.rule.lanes == "all" or bool(data.decision.facts["bound"])
        notes = [v for v in state.found if not v.binding]
        found.append(
            {
                "state": state,
                "rule": state.rule,
                "mark": words.STATES[state.state][0],
                "word": words.STATES[state.state][1] + ("" if binds else " (does not bind this lane)"),
                "violations": [_found(v) for v in state.violations[:SHOWN_VIOLATIONS]],
                "information": [_found(v) for v in notes[:SHOWN_VIOLATIONS]],
                "left_out": max(len(state.violations) - SHOWN_VIOLATIONS, 0)
                + max(len(notes) - SHOWN_VIOLATIONS, 0),
                "notes": len(notes),
            }
        )
    return found


def _found(violation: Violation) -> Row:
    ids = violation.event_ids
    return {
        "v": violation,
        "where": _where(violation),
        "ids": ids[:SHOWN_EVENTS],
        "more": max(len(ids) - SHOWN_EVENTS, 0),
    }


def _where(violation: Violation) -> str:
    parts = []
    if violation.scenario is not None:
        parts.append(f"{violation.scenario}@{violation.scenario_version}")
    if violation.subject is not None:
        parts.append(violation.subject)
    if violation.condition_key is not None:
        parts.append(f"condition {violation.condition_key[:8]}")
    if violation.trial is not None:
        names = violation.trial.split(", ")
        parts.append(f"trial {', '.join(names[:2])}{' ...' if len(names) > 2 else ''}")
    return ", ".join(parts)


def _key(row: Mapping[str, Any]) -> tuple[Any, ...]:
    return (row["scenario"], row["scenario_version"], row["condition_key"], row["subject"])


def _place(row: Mapping[str, Any]) -> tuple[Any, ...]:
    return (row["scenario"], row["scenario_version"], row["condition_key"])


def _cells(data: Data, labels: Mapping[str, str], ids: Any) -> list[Row]:
    """Every cell with its bar, its anchors and the events of each outcome."""
    from qualify.report.charts import bar

    events: dict[tuple[Any, ...], dict[str, list[Row]]] = defaultdict(lambda: defaultdict(list))
    for row in data.rows("slots"):
        events[_key(row)][row["outcome"]].append(row)
    diagnostic = {(r["scenario"], r["scenario_version"]): r["diagnostic"] for r in data.rows("scenarios")}
    cells = []
    for n, row in enumerate(data.rows("cells"), start=1):
        parts = [
            (outcome, word, int(row[words.CELL_COLUMNS[outcome]]))
            for outcome, (word, _) in words.OUTCOMES.items()
        ]
        label = labels.get(row["condition_key"], f"condition {row['condition_key'][:8]}")
        name = f"{row['subject']}, {words.scenario(row)}, {label}"
        cells.append(
            {
                **row,
                "anchor": f"cell-{n}",
                "name": name,
                "label": label,
                "diagnostic": diagnostic.get((row["scenario"], row["scenario_version"]), False),
                "parts": [p for p in parts if p[2]],
                "bar": bar(ids, f"Outcomes of {name}", parts, int(row["planned"]))
                if n <= DRAWN_CELLS
                else "",
                "events": events.get(_key(row), {}),
            }
        )
    return cells


def _grouped(cells: Sequence[Row]) -> list[list[Row]]:
    groups: dict[tuple[Any, ...], list[Row]] = defaultdict(list)
    for cell in cells:
        groups[_place(cell)].append(cell)
    return list(groups.values())


def _totals(cells: Sequence[Row]) -> Row:
    columns = ("planned", "recorded", "measured", "replaced", "invalidated", "surplus", "unplanned")
    totals: Row = {c: sum(int(cell[c]) for cell in cells) for c in columns}
    for outcome, column in words.CELL_COLUMNS.items():
        totals[outcome] = sum(int(cell[column]) for cell in cells)
    return totals


def _matrix(data: Data, labels: Mapping[str, str], cells: Sequence[Row]) -> Row:
    """Subjects by conditions by scenarios, with every hole."""
    anchors = {_key(c): c["anchor"] for c in cells[:DRAWN_CELLS]}
    subjects: dict[str, None] = {}
    lines: dict[tuple[Any, ...], Row] = {}
    holes: list[Row] = []
    diagnostic_holes: list[Row] = []
    for row in data.rows("coverage"):
        subjects.setdefault(row["subject"])
        line = lines.setdefault(
            _place(row),
            {
                "scenario": words.scenario(row),
                "label": labels.get(row["condition_key"], ""),
                "diagnostic": row["diagnostic"],
                "condition_planned": row["condition_planned"],
                "cells": {},
            },
        )
        state = "full" if row["covered"] and row["measured"] >= row["planned"] else "part"
        state = state if row["covered"] else "hole"
        entry = {**row, "state": state, "anchor": anchors.get(_key(row))}
        line["cells"][row["subject"]] = entry
        if state == "hole":
            hole = {**entry, "place": line["scenario"], "label": line["label"]}
            (diagnostic_holes if line["diagnostic"] else holes).append(hole)
    return {
        "subjects": list(subjects),
        "lines": list(lines.values())[:DRAWN_CELLS],
        "left_out": max(len(lines) - DRAWN_CELLS, 0),
        "holes": holes,
        "diagnostic_holes": diagnostic_holes,
    }


def _classes(data: Data, labels: Mapping[str, str], cells: Sequence[Row]) -> Row:
    """Classes of the successes, subject beside subject."""
    anchors = {_key(c): c["anchor"] for c in cells[:DRAWN_CELLS]}
    subjects = sorted(
        {r["subject"] for r in data.rows("classes")} | {r["subject"] for r in data.rows("subjects")}
    )
    lines: dict[tuple[Any, ...], Row] = {}
    for row in data.rows("classes"):
        line = lines.setdefault(
            _place(row),
            {
                "scenario": words.scenario(row),
                "label": labels.get(row["condition_key"], ""),
                "diagnostic": row["diagnostic"],
                "subjects": defaultdict(list),
            },
        )
        line["subjects"][row["subject"]].append({**row, "anchor": anchors.get(_key(row))})
    for line in lines.values():
        found = {r["correctness_class"] for rows in line["subjects"].values() for r in rows}
        line["same"] = len(found) == 1 and None not in found
    return {"subjects": subjects, "lines": list(lines.values())[:DRAWN_CELLS]}


def _class_words(data: Data) -> list[tuple[str, str]]:
    """The classes that occur, in words."""
    found = []
    for name in sorted({r["correctness_class"] for r in data.rows("classes") if r["correctness_class"]}):
        base, *extras = name.split("+")
        who = next(k for k in words.INDEPENDENCE if base.startswith(k))
        text = [words.INDEPENDENCE[who], words.DEPTH.get(base.removeprefix(who + "_"), "")]
        text += [words.DEPTH.get(f"+{extra}", "") for extra in extras]
        found.append((name, " ".join(t for t in text if t)))
    return found


def _order(data: Data, ids: Any) -> Row:
    """The observed order against the declared one."""
    from qualify.report.charts import Start, lane, mark_of, timeline

    rows = data.rows("order")
    subjects = sorted({r["subject"] for r in rows})
    wrong = {
        event
        for state in data.decision.rules
        if state.rule.id == "order"
        for v in state.found
        if v.what == "order_differs"
        for event in v.event_ids
    }
    result: Row = {"rows": rows, "subjects": subjects, "wrong": len(wrong), "picture": None, "places": {}}
    places: dict[str, dict[int, int]] = defaultdict(dict)
    for row in data.rows("places"):
        places[row["subject"]][int(row["place"])] = int(row["blocks"])
    result["places"] = dict(places)
    result["place_numbers"] = sorted({p for counts in places.values() for p in counts})
    result["tests"] = data.rows("order_tests")
    if not rows:
        return result
    first, last = rows[0]["started_at_ns"], rows[-1]["started_at_ns"]
    by_block = data.decision.facts["order_extent"] == "block"
    declared = rows[0]["position"] is not None
    column = "in_block" if by_block else "position"
    top = max((r[column] or 0) for r in rows) if declared else max(len(subjects) - 1, 0)
    starts = [
        Start(
            (r["started_at_ns"] - first) / max(last - first, 1),
            (r[column] if declared else subjects.index(r["subject"])) / max(top, 1),
            r["subject"],
            r["event_id"] in wrong,
        )
        for r in rows
    ]
    if not declared:
        upwards = "the subjects, one line each: no order was declared"
    elif by_block:
        upwards = "declared place in the block"
    else:
        upwards = "declared place in the campaign"
    said = (
        f"{rows[0]['starts']:,} first attempts from {words.time(first)} to {words.time(last)}; "
        f"time to the right, {upwards} upwards. "
        + (f"{len(wrong)} started out of the declared order." if declared else "There is no declared order.")
    )
    result |= {
        "picture": timeline(
            ids, "Observed order of the trials against the declared one", said, starts, subjects
        ),
        "upwards": upwards,
        "said": said,
        "declared": declared,
        "by_block": by_block,
        "marks": [(s, mark_of(subjects, s)) for s in subjects],
        "lanes": [
            {
                "subject": s,
                "starts": sum(x.subject == s for x in starts),
                "picture": lane(
                    ids,
                    f"When {s} ran",
                    "One tick a start, on the same time axis.",
                    [x for x in starts if x.subject == s],
                ),
            }
            for s in subjects
        ],
        "first": first,
        "last": last,
        "shown": len(rows),
        "starts": rows[0]["starts"],
        "top": top + 1,
    }
    return result


def _pairs(data: Data, labels: Mapping[str, str], ids: Any) -> list[Row]:
    from qualify.report.charts import bar

    events: dict[tuple[Any, ...], dict[str, list[Row]]] = defaultdict(lambda: defaultdict(list))
    for row in data.rows("pair_events"):
        events[(*_place(row), row["subject_a"], row["subject_b"])][row["pair"]].append(row)
    pairs = []
    for n, row in enumerate(data.rows("pairs")[:DRAWN_CELLS], start=1):
        name = f"{row['subject_a']} (A) and {row['subject_b']} (B)"
        place = f"{words.scenario(row)}, {labels.get(row['condition_key'], '')}"
        parts = [(f"pair-{p}", word, int(row[p])) for p, word in words.PAIRS.items()]
        pairs.append(
            {
                **row,
                "anchor": f"pair-{n}",
                "name": name,
                "place": place,
                "label": labels.get(row["condition_key"], ""),
                "parts": [(p, word, int(row[p])) for p, word in words.PAIRS.items()],
                "bar": bar(ids, f"Paired outcomes of {name}, {place}", parts, int(row["pairs"])),
                "p": mcnemar_exact(row["only_a"], row["only_b"]),
                "events": events.get((*_place(row), row["subject_a"], row["subject_b"]), {}),
            }
        )
    return pairs


def _claims(data: Data, labels: Mapping[str, str], ids: Any) -> list[Row]:
    """Every claim where it was measured: what it compares and its null, on one axis, with the noise floor."""
    from qualify.report.charts import axis_over, strip

    quantiles = {
        (r["claim"], *_place(r), r["role"], r["subject"], r["baseline"]): r["quantiles"]
        for r in data.rows("differences")
    }
    effects: dict[tuple[Any, ...], list[Row]] = defaultdict(list)
    for row in data.rows("effects"):
        effects[(row["claim"], *_place(row))].append(row)
    claims = []
    for row in data.rows("claims")[:DRAWN_CELLS]:
        floor = row["floor_permille"]
        size = row["size_permille"] * (-1 if row["direction"] == "lower" else 1)
        found = sorted(effects[(row["claim"], *_place(row))], key=lambda e: e["role"])
        values = [0.0, float(size), *((-floor, floor) if floor is not None else ())]
        for e in found:
            values += [e[c] for c in ("low_permille", "effect_permille", "high_permille") if e[c] is not None]
            values += quantiles.get((row["claim"], *_place(row), e["role"], e["subject"], e["baseline"]), [])
        axis = axis_over(values)
        lines = []
        for e in found:
            said = (
                f"median difference {words.percent(e['effect_permille'])}, interval "
                f"{words.percent(e['low_permille'])} to {words.percent(e['high_permille'])}, over "
                f"{e['pairs'] - e['unmeasured']} blocks"
            )
            estimate = None
            if e["effect_permille"] is not None:
                estimate = (e["low_permille"], e["effect_permille"], e["high_permille"])
            lines.append(
                {
                    **e,
                    "said": said,
                    "picture": strip(
                        ids,
                        f"{e['subject']} against {e['baseline']}",
                        said,
                        axis,
                        quantiles.get(
                            (row["claim"], *_place(row), e["role"], e["subject"], e["baseline"]), []
                        ),
                        noise=None if floor is None else (-floor, floor),
                        zero=0.0,
                        claimed=float(size) if e["role"] == "claim" else None,
                        estimate=estimate,
                    ),
                }
            )
        claims.append(
            {
                **row,
                "label": labels.get(row["condition_key"], ""),
                "lines": lines,
                "low": axis.low,
                "high": axis.high,
                "refused": _refused_claim(data, row),
            }
        )
    return claims


def _refused_claim(data: Data, row: Row) -> str:
    """Return what rule 11 has against the claims in a place, or on all of them; nothing is judged here."""
    rule = next(r for r in data.decision.rules if r.rule.id == "noise_floor")
    words_of_rule = dict.fromkeys(
        v.what.replace("_", " ")
        for v in rule.violations
        if v.scenario is None
        or (v.scenario, v.scenario_version, v.condition_key)
        == (row["scenario"], row["scenario_version"], row["condition_key"])
    )
    return ", ".join(words_of_rule)


def _panel_keys(data: Data) -> list[tuple[Any, ...]]:
    """Scenario, condition, operation and metric of every distribution, claimed metrics first."""
    claimed = {(r["metric"], r["operation"]) for r in data.rows("claims")}
    keys = dict.fromkeys(
        (r["scenario"], r["scenario_version"], r["condition_key"], r["operation"], r["metric"])
        for r in data.rows("metrics")
    )
    return sorted(keys, key=lambda k: (k[4], k[3]) not in claimed)


def _panels(data: Data, labels: Mapping[str, str], ids: Any) -> list[Row]:
    """Distributions of raw metrics, subject below subject on one axis."""
    from qualify.report.charts import axis_over, strip

    rows: dict[tuple[Any, ...], list[Row]] = defaultdict(list)
    for row in data.rows("metrics"):
        rows[
            (row["scenario"], row["scenario_version"], row["condition_key"], row["operation"], row["metric"])
        ].append(row)
    bands = {
        (r["scenario"], r["scenario_version"], r["condition_key"], r["operation"], r["metric"]): r
        for r in data.rows("claims")
        if r["floor_permille"] is not None
    }
    panels = []
    for key in _panel_keys(data)[:SHOWN_PANELS]:
        metric = key[4]
        claim = bands.get(key)
        base = next((r["median"] for r in rows[key] if claim and r["subject"] == claim["baseline"]), None)
        noise = None
        if claim is not None and base is not None:
            width = abs(base) * claim["floor_permille"] / 1000
            noise = (base - width, base + width)
        values = [float(q) for r in rows[key] for q in (r["quantiles"] or ())] + list(noise or ())
        if not values:
            continue
        axis = axis_over(values)
        lines = []
        for row in rows[key]:
            median = words.quantity(metric, row["median"])
            said = f"median {median}, {row['measured']} of {row['trials']} measured"
            lines.append(
                {
                    **row,
                    "said": said,
                    "picture": strip(
                        ids,
                        f"{metric} of {row['subject']}",
                        said,
                        axis,
                        row["quantiles"] or [],
                        noise=noise,
                    ),
                }
            )
        panels.append(
            {
                "metric": metric,
                "operation": key[3],
                "scenario": f"{key[0]}@{key[1]}",
                "label": labels.get(key[2], ""),
                "lines": lines,
                "low": axis.low,
                "high": axis.high,
                "claim": claim,
                "noise": noise,
            }
        )
    return panels


def _commands(campaign: str, ledger_name: str) -> dict[str, str]:
    """The exact commands that check the page, ready for a shell."""
    name = shlex.quote(campaign)
    tool = f"oakledger --ledger {shlex.quote(ledger_name)}"
    return {
        "audit": f"{tool} audit --checkpoint page.checkpoint",
        "qualify": f"{tool} qualify --campaign {name} --no-record",
        "explain": f"{tool} qualify --no-record --campaign {name} --explain",
        "report": f"{tool} report --campaign {name} -o again.html",
        "show": f"{tool} show",
        "sql": f"{tool} sql",
        "prove": f"{tool} prove",
        "database": ledger_name.replace("'", "''"),
    }

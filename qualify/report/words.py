"""Words and numbers as the page writes them."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping
from typing import Any

#: Outcome -> (word, what it is). In the order of the bars: the measured ones first.
OUTCOMES: dict[str, tuple[str, str]] = {
    "passed": ("passed", "measured: the task was done, as an oracle saw"),
    "failed_committed": ("failed", "measured: what was committed is not what the task asks for"),
    "failed_before_head": (
        "failed before HEAD",
        "measured: the run ended and had committed nothing that a reader could see; it counts as a failure",
    ),
    "unmeasured": ("unmeasured", "no reader or oracle could say"),
    "harness_failure": (
        "harness failure",
        "harness, machine or service failed: never counted as the agent's failure",
    ),
    "unlaunched": ("unlaunched", "the run never started"),
    "conflict": ("conflict", "facts contradict each other and no recorded rule decides"),
    "invalidated": ("invalidated", "somebody took it out of the count; it stays visible"),
    "missing": ("missing", "planned, and no event says anything about it"),
}

#: Column of `cells` for each outcome.
CELL_COLUMNS: dict[str, str] = {o: "slots_invalidated" if o == "invalidated" else o for o in OUTCOMES}

STATES: dict[str, tuple[str, str]] = {
    "holds": ("✓", "holds"),
    "violated": ("✕", "VIOLATED"),
    "information": ("✓", "holds, with notes"),
    "not_applicable": ("–", "does not apply"),
}

PAIRS: dict[str, str] = {
    "both": "both passed",
    "only_a": "only A passed",
    "only_b": "only B passed",
    "neither": "neither passed",
    "not_comparable": "not comparable",
}

#: What each part of a class proves and what it does not (design section 6).
INDEPENDENCE: dict[str, str] = {
    "independent": "The reader shares neither binary nor code with the subject.",
    "subject_binary": "The instrument is the subject's own binary: a fault of the subject may hide itself.",
    "subject_export": "The subject itself produced the evidence: its word, not an observation of it.",
    "unqualified": "Nobody says how the instrument relates to the subject: no class follows.",
}
DEPTH: dict[str, str] = {
    "committed_tree": "The exact set of committed paths and their bytes were compared.",
    "committed_payload": "Markers in the paths of the scope were looked for; other committed paths were not.",
    "answer": "An answer was compared; nothing committed was checked.",
    "+tests": "The retained test suite ran and passed.",
    "+worktree": "The worktree was checked too.",
}

_CONDITION_FACTS = (
    "agent",
    "agent_version",
    "model",
    "instruction_level",
    "track",
    "transport",
    "profile",
    "limits",
    "instruction_sha256",
    "environment_id",
)


def number(value: object) -> str:
    """Return a number as text, a dash for what is unmeasured."""
    if value is None:
        return "–"
    if isinstance(value, float):
        return f"{value:,.1f}".removesuffix(".0")
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    return str(value)


def percent(permille: float | None) -> str:
    """Return thousandths as a percentage."""
    if permille is None:
        return "–"
    return f"{round(permille / 10, 1) + 0.0:.1f} %"


def time(ns: int | None) -> str:
    """Return nanoseconds since 1970 as a UTC time to the second."""
    if ns is None:
        return "unknown"
    moment = datetime.datetime.fromtimestamp(ns // 1_000_000_000, datetime.UTC)
    return f"{moment:%Y-%m-%d %H:%M:%S} UTC"


def quantity(metric: str, value: float | None) -> str:
    """Return a metric's value in a unit that can be read; the unit is in the metric's name."""
    if value is None:
        return "unmeasured"
    scales: tuple[tuple[float, str], ...] = ((1, ""),)
    if metric.endswith("_ns"):
        scales = ((60e9, "min"), (1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1, "ns"))
    elif metric.endswith("_bytes"):
        scales = ((1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1, "B"))
    for factor, unit in scales:
        if abs(value) >= factor or factor == 1:
            scaled = value / factor
            digits = 0 if scaled == int(scaled) or abs(scaled) >= 100 else 1 if abs(scaled) >= 10 else 2
            return f"{scaled:,.{digits}f} {unit}".rstrip()
    raise AssertionError("the last scale is 1")


def scenario(row: Mapping[str, Any]) -> str:
    """Return scenario@version of a row."""
    return f"{row['scenario']}@{row['scenario_version']}"


def condition_labels(conditions: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """Name every condition by the facts in which the conditions differ, and the start of its key."""
    rows = list(conditions)
    differing = [f for f in _CONDITION_FACTS if len({str(r[f]) for r in rows}) > 1]
    labels = {}
    for row in rows:
        facts = [_fact(f, row[f]) for f in differing]
        key = str(row["condition_key"])[:8]
        labels[str(row["condition_key"])] = f"{', '.join(facts)} ({key})" if facts else f"condition {key}"
    return labels


def _fact(name: str, value: object) -> str:
    text = "none" if value is None else str(value)
    if name.endswith("_sha256") or name == "environment_id":
        text = text[:8]
    return text if name == "model" else f"{name.replace('_', ' ')} {text}"

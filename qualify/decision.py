"""The decision on a campaign: every rule evaluated, every violation listed, nothing decided in Python.

What a violation is, is said in SQL (`sql/2xx_*.sql`); here the rows are collected, and a campaign is
qualified when no binding row is left. Whatever goes wrong on the way is an error and never a yes: an unknown
campaign, a ledger that does not verify, a view that fails, a rule that is missing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import Any

import duckdb

from ledger import sqlfiles, views
from ledger.errors import EXIT_NEGATIVE, EXIT_OK, LedgerDamagedError, NoSuchCampaignError
from ledger.store import Checkpoint, Ledger
from qualify.rules import RULE_COUNT, Rule, rules

#: What a qualification does not say, whatever it says (seed, "Publication qualification").
LIMITS = (
    "It is no power analysis: thirty trials a cell are a mechanical minimum.",
    "It is no proof that tasks were sampled independently.",
    "It is no permission to claim a speed-up: intervals and tests describe, they permit nothing.",
    "It does not say that the study's own criteria are true: somebody attested them.",
)

#: Name and version of the JSON document.
DOCUMENT = "oakledger-qualification/1"

_VIOLATION_COLUMNS = (
    "what",
    "binding",
    "scenario",
    "scenario_version",
    "condition_key",
    "subject",
    "trial",
    "detail",
    "event_ids",
)


@dataclass(frozen=True)
class Violation:
    """One row of a rule view. Not binding: shown, but it refuses nothing."""

    what: str
    binding: bool
    scenario: str | None
    scenario_version: int | None
    condition_key: str | None
    subject: str | None
    trial: str | None
    detail: str
    event_ids: tuple[str, ...]

    def as_json(self) -> dict[str, Any]:
        """Return it as a JSON object."""
        return {name: getattr(self, name) for name in _VIOLATION_COLUMNS} | {
            "event_ids": list(self.event_ids)
        }


@dataclass(frozen=True)
class RuleState:
    """A rule and what it found. `state` is holds, violated, information or not_applicable."""

    rule: Rule
    state: str
    found: tuple[Violation, ...]

    @property
    def violations(self) -> list[Violation]:
        """What refuses."""
        return [v for v in self.found if v.binding]

    def as_json(self) -> dict[str, Any]:
        """Return it as a JSON object."""
        return {
            "number": self.rule.number,
            "id": self.rule.id,
            "title": self.rule.title,
            "view": self.rule.view,
            "lanes": self.rule.lanes,
            "state": self.state,
            "violations": [v.as_json() for v in self.found if v.binding],
            "information": [v.as_json() for v in self.found if not v.binding],
        }


@dataclass(frozen=True)
class Decision:
    """The whole answer. Tables are lists of row mappings, columns as in the views that they come from."""

    campaign: str
    plan_sha256: str | None
    rules: tuple[RuleState, ...]
    checkpoint: Checkpoint
    other_checkpoints: tuple[Checkpoint, ...]
    facts: dict[str, Any]
    tables: dict[str, list[dict[str, Any]]]
    views_sha256: str = field(default_factory=sqlfiles.views_sha256)
    package_version: str = field(default_factory=lambda: version("oakledger"))

    @property
    def qualified(self) -> bool:
        """Whether every rule was evaluated and none has a binding violation."""
        return len(self.rules) == RULE_COUNT and all(
            not r.violations and r.state != "violated" for r in self.rules
        )

    @property
    def word(self) -> str:
        """The word `qualified` or `diagnostic`."""
        return "qualified" if self.qualified else "diagnostic"

    @property
    def exit_status(self) -> int:
        """0 qualified, 1 diagnostic."""
        return EXIT_OK if self.qualified else EXIT_NEGATIVE

    def as_json(self, event: str | None = None) -> dict[str, Any]:
        """Return the JSON document (schema: qualify/qualification.schema.json).

        `event` is the id of the qualification_decided event, if one was recorded.
        """
        return {
            "document": DOCUMENT,
            "campaign": self.campaign,
            "decision": self.word,
            "exit_status": self.exit_status,
            "plan_sha256": self.plan_sha256,
            "checkpoint": _head_json(self.checkpoint),
            "other_checkpoints": [_head_json(c) for c in self.other_checkpoints],
            "views_sha256": self.views_sha256,
            "package_version": self.package_version,
            "event_id": event,
            "facts": self.facts,
            "rules": [r.as_json() for r in self.rules],
            **self.tables,
            "limits": list(LIMITS),
        }

    def event(self) -> dict[str, Any]:
        """Return the qualification_decided event, without its envelope."""
        return {
            "kind": "qualification_decided/1",
            "campaign": self.campaign,
            "decision": self.word,
            "exit_status": self.exit_status,
            "plan_sha256": self.plan_sha256,
            "checkpoint_origin": self.checkpoint.origin,
            "checkpoint_size": self.checkpoint.size,
            "checkpoint_root": self.checkpoint.root.hex(),
            "views_sha256": self.views_sha256,
            "package_version": self.package_version,
            "rules": [
                {"rule": r.rule.id, "state": r.state, "violations": len(r.violations)} for r in self.rules
            ],
            "other_checkpoints": [_head_json(c) for c in self.other_checkpoints],
        }


def _head_json(head: Checkpoint) -> dict[str, Any]:
    return {"origin": head.origin, "size": head.size, "root": head.root.hex()}


#: Tables of the answer: name -> query over the workspace, ordered, for campaign `?`.
_TABLES: dict[str, str] = {
    "cells": "SELECT * EXCLUDE (campaign) FROM cells WHERE campaign = ? "
    "ORDER BY scenario, scenario_version, condition_key, subject",
    "conditions": "SELECT * EXCLUDE (campaign, condition) FROM conditions WHERE campaign = ? "
    "ORDER BY planned DESC, condition_key",
    "holes": "SELECT scenario, scenario_version, condition_key, subject, diagnostic, planned, recorded, "
    "measured FROM condition_coverage WHERE campaign = ? AND NOT covered "
    "ORDER BY diagnostic, scenario, scenario_version, condition_key, subject",
    "classes": "SELECT * EXCLUDE (campaign) FROM class_pairs WHERE campaign = ? "
    "ORDER BY scenario, scenario_version, condition_key, subject, correctness_class",
    "paired_outcomes": "SELECT * EXCLUDE (campaign) FROM paired_outcomes WHERE campaign = ? "
    "ORDER BY scenario, scenario_version, condition_key, subject_a, subject_b",
    "claims": "SELECT * EXCLUDE (campaign) FROM claims WHERE campaign = ? "
    "ORDER BY claim, scenario, scenario_version, condition_key",
    "set_aside": "SELECT * EXCLUDE (campaign, diagnostic) FROM set_aside WHERE campaign = ? "
    "ORDER BY what, trial, event_id",
    "reruns": "SELECT * EXCLUDE (campaign) FROM reruns WHERE campaign = ? ORDER BY declared_at_ns, other",
}


def decide(ledger: Ledger, campaign: str) -> Decision:
    """Evaluate every rule for a campaign of an open ledger that has been audited.

    Raises NoSuchCampaignError when no event but a decision mentions it, and LedgerDamagedError when a view
    fails.
    """
    try:
        if not ledger.has_campaign(campaign):
            raise NoSuchCampaignError(
                f"no event in {ledger.path} mentions campaign {_shown(campaign)}: "
                'list them with oakledger sql "FROM plan_history"'
            )
        head, others = _heads(ledger)
        with views.workspace(ledger.con, campaign) as con:
            facts = _facts(con, campaign)
            states = tuple(_evaluate(con, rule, campaign, facts) for rule in rules())
            tables = {name: _rows(con, query, [campaign]) for name, query in _TABLES.items()}
    except duckdb.Error as e:
        text = " ".join(str(e).split())[:300]
        raise LedgerDamagedError(
            f"the rules could not be evaluated on {ledger.path} ({text}): "
            "no answer is given; run oakledger audit"
        ) from e
    for state in states:
        if state.rule.severity == "error" and state.violations:
            raise LedgerDamagedError(
                f"{ledger.path} does not hang together ({state.violations[0].detail}): "
                "no answer is given; run oakledger audit"
            )
    return Decision(campaign, facts.pop("plan_sha256"), states, head, others, facts, tables)


def _shown(text: str) -> str:
    return repr(text if len(text) <= 200 else text[:200] + "...")


def _heads(ledger: Ledger) -> tuple[Checkpoint, tuple[Checkpoint, ...]]:
    """Return the newest head of the ledger's own origin, and those of the others, sorted by origin."""
    rows = ledger.con.execute(
        "SELECT origin, max(size), arg_max(root, size) FROM checkpoints WHERE origin <> ? GROUP BY origin "
        "ORDER BY origin",
        [ledger.origin],
    ).fetchall()
    return ledger.checkpoint(), tuple(Checkpoint(o, int(s), bytes.fromhex(r)) for o, s, r in rows)


def _facts(con: duckdb.DuckDBPyConnection, campaign: str) -> dict[str, Any]:
    rows = _rows(
        con,
        "SELECT c.plan_sha256, c.declared_event_id, c.declared_at_ns, c.preregistered, c.trials_per_cell, "
        "c.slots::BIGINT AS slots, c.lane, l.lanes_met, l.bound, l.attempts, l.real_subjects, "
        "b.basis AS order_basis, c.order_algorithm, c.order_extent, c.order_seed, "
        "(SELECT count(*) FROM campaign_claims k WHERE k.campaign = c.campaign) AS claim_count "
        "FROM campaigns c JOIN campaign_lanes l USING (campaign) JOIN order_basis b USING (campaign) "
        "WHERE c.campaign = ?",
        [campaign],
    )
    if len(rows) != 1:
        raise LedgerDamagedError(
            f"campaign {_shown(campaign)} has {len(rows)} rows in `campaigns`: run oakledger audit"
        )
    return rows[0]


def _rows(con: duckdb.DuckDBPyConnection, query: str, values: Sequence[object]) -> list[dict[str, Any]]:
    cursor = con.execute(query, list(values))
    names = [d[0] for d in cursor.description or ()]
    return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]


def _evaluate(con: duckdb.DuckDBPyConnection, rule: Rule, campaign: str, facts: dict[str, Any]) -> RuleState:
    """Read one rule's rows. A row whose `binding` is null refuses, as one that says true."""
    rows = _rows(con, f"SELECT * FROM {rule.view} WHERE campaign = ? OR campaign IS NULL", [campaign])  # noqa: S608
    found = tuple(sorted((_violation(row) for row in rows), key=_place))
    return RuleState(rule, _state(rule, found, facts), found)


def _violation(row: dict[str, Any]) -> Violation:
    """Make a violation of a row; columns that a rule view does not have are null."""
    binding, ids = row.get("binding"), row.get("event_ids")
    return Violation(
        what=row["what"] or "unnamed",
        binding=binding is None or bool(binding),
        scenario=row.get("scenario"),
        scenario_version=row.get("scenario_version"),
        condition_key=row.get("condition_key"),
        subject=row.get("subject"),
        trial=row.get("trial"),
        detail=row.get("detail") or "no detail",
        event_ids=tuple(ids or ()),
    )


def _place(v: Violation) -> tuple[object, ...]:
    where = (v.scenario, v.condition_key, v.subject, v.trial)
    return (not v.binding, v.what, *(text or "" for text in where), v.scenario_version or 0, v.detail)


def _state(rule: Rule, found: tuple[Violation, ...], facts: dict[str, Any]) -> str:
    if any(v.binding for v in found):
        return "violated"
    if rule.lanes != "all" and not facts["bound"]:
        return "information"
    if rule.id == "noise_floor" and facts["claim_count"] == 0:
        return "not_applicable"
    return "information" if found else "holds"

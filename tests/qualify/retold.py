"""Attempts, classes and outcomes of attempts told again from the events, in plain Python.

What sql/130_attempts.sql, sql/135_correctness_classes.sql and sql/140_attempt_facts.sql say, with none of
their joins and groups. Rows are mappings with the columns of those views, keys that are hashes included.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any

from ledger.events import (
    AnyEvent,
    CampaignDeclared,
    ConflictRuleRecorded,
    OracleJudged,
    ReaderInvoked,
    TrialRecorded,
    canonical_sha256,
)

#: From the best status to the worst, and from the least relation to the most.
STATUSES = ("completed", "error", "timeout", "unlaunched", "harness_failure")
RELATIONS = ("unqualified", "subject_export", "subject_binary", "independent")

Row = dict[str, Any]
Hash = Callable[..., int]


def declarations(events: dict[str, AnyEvent]) -> dict[str, CampaignDeclared]:
    """The declaration of each campaign that counts: the first."""
    first: dict[str, tuple[int, str]] = {}
    for event_id, event in events.items():
        if isinstance(event, CampaignDeclared):
            when = (event.recorded_at_ns, event_id)
            first[event.campaign] = min(when, first.get(event.campaign, when))
    return {name: events[event_id] for name, (_, event_id) in first.items()}  # type: ignore[misc]


def scenarios(event: CampaignDeclared) -> dict[tuple[str, int], Row]:
    """The scenarios of a plan; of one that is listed twice what campaign_scenarios makes of it."""
    entries = defaultdict(list)
    for s in event.plan.scenarios:
        entries[s.scenario, s.scenario_version].append(s)
    return {
        name: {
            "oracle_version": min(s.oracle_version for s in listed),
            "fixture_version": min(s.fixture_version for s in listed),
            "contract_sha256": min((s.contract_sha256 for s in listed if s.contract_sha256), default=None),
            "evidence": min(s.evidence for s in listed),
            "tests": any(s.tests for s in listed),
            "worktree": any(s.worktree for s in listed),
            "diagnostic": all(s.diagnostic for s in listed),
            "entries": len(listed),
        }
        for name, listed in entries.items()
    }


def known(values: Iterable[Any]) -> list[Any]:
    """The values that are not null."""
    return [v for v in values if v is not None]


def attempts(events: dict[str, AnyEvent], hashed: Hash) -> dict[tuple[str, str], Row]:
    """What the records of each trial say together."""
    records: dict[tuple[str, str], list[tuple[str, TrialRecorded]]] = defaultdict(list)
    for event_id, event in sorted(events.items()):
        if isinstance(event, TrialRecorded):
            records[event.campaign, event.trial].append((event_id, event))
    out: dict[tuple[str, str], Row] = {}
    for (campaign, trial), found in records.items():
        event_id, first = found[0]
        runs = [e for _, e in found]

        def worst(name: str, runs: list[TrialRecorded] = runs) -> Any:
            told = [
                (STATUSES.index(e.status), getattr(e, name)) for e in runs if getattr(e, name) is not None
            ]
            return max(told)[1] if told else None

        out[campaign, trial] = {
            "campaign": campaign,
            "trial": trial,
            "event_id": event_id,
            "lane": first.lane,
            "scenario": first.scenario,
            "scenario_version": first.scenario_version,
            "subject": first.subject,
            "condition_key": canonical_sha256(first.condition),
            "repetition": next(iter(known(e.repetition for e in runs)), None),
            "status": max((e.status for e in runs), key=STATUSES.index),
            "status_code": worst("status_code"),
            "exit_code": worst("exit_code"),
            "reached_head": all(heads) if (heads := known(e.reached_head for e in runs)) else None,
            "started_at_ns": min(known(e.started_at_ns for e in runs), default=None),
            "ended_at_ns": max(known(e.ended_at_ns for e in runs), default=None),
            "fixture_version": min(known(e.fixture_version for e in runs), default=None),
            "binary_key": min(
                (hashed(b) for b in known(e.subject_binary_sha256 for e in runs)), default=None
            ),
            "records": len(runs),
        }
    return out


def independence(read: ReaderInvoked, binary: int | None, hashed: Hash) -> str:
    """What the facts of a reading say of its relation to the subject (docs/evidence-classes.md)."""
    instrument = read.instrument_sha256 and hashed(read.instrument_sha256)
    binaries = known((binary, read.subject_binary_sha256 and hashed(read.subject_binary_sha256)))
    same = None if not instrument or not binaries else instrument in binaries
    asserted = all(
        word is not None and word.strip(" ") for word in (read.qualified_by, read.qualified_because)
    )
    if read.backend == "export" or read.reader == "oak_export_reader":
        return "subject_export"
    if read.backend == "pure" and read.reader in ("oak_sqlite_reader", "git_object_reader"):
        return "subject_binary" if same else "independent"
    if read.backend == "git" and read.reader == "git_instrument_reader":
        if same:
            return "subject_binary"
        return "independent" if asserted and same is False else "unqualified"
    if read.backend == "native" and read.reader == "oak_sqlite_reader" and asserted:
        return "subject_binary" if same else "independent"
    return "unqualified"


def refusal(
    word: OracleJudged, run: Row | None, planned: Row | None, read: ReaderInvoked | None
) -> str | None:
    """Why a verdict does not count."""
    if run is None:
        return "no_trial"
    if (word.scenario, word.scenario_version) != (run["scenario"], run["scenario_version"]):
        return "other_scenario"
    if word.subject != run["subject"]:
        return "other_subject"
    if planned is None:
        return "scenario_not_planned"
    if word.oracle_version != planned["oracle_version"]:
        return "oracle_version"
    if word.fixture_version != planned["fixture_version"]:
        return "fixture_version"
    if planned["contract_sha256"] not in (None, word.contract_sha256):
        return "contract"
    if word.verdict == "unmeasured":
        return None
    if word.reader_event_id is None:
        return "without_reader"
    if read is None:
        return "reader_not_recorded"
    if read.trial != word.trial:
        return "reader_of_another_trial"
    if read.subject != run["subject"]:
        return "reader_of_another_subject"
    if word.manifest_sha256 not in (None, read.manifest_sha256):
        return "other_manifest"
    if word.verdict == "pass":
        well = read.outcome == "ok" and read.exit_status == 0 and read.reason is None
    else:
        seen = read.nonregular_count + read.oversize_count + read.colliding_count + read.missing_count
        well = read.outcome in ("ok", "failed", "invalid") or seen > 0
    return None if well else "reader_saw_nothing"


def classes(
    events: dict[str, AnyEvent],
    runs: dict[tuple[str, str], Row],
    reasons: dict[str, tuple[str, bool]],
    hashed: Hash,
) -> list[Row]:
    """Each verdict on a trial, and the evidence behind it."""
    plans = {name: scenarios(event) for name, event in declarations(events).items()}
    out = []
    for event_id, word in events.items():
        if not isinstance(word, OracleJudged) or word.trial is None or word.control is not None:
            continue
        run = runs.get((word.campaign or "", word.trial))
        planned = plans.get(word.campaign or "", {}).get((word.scenario, word.scenario_version))
        read = events.get(word.reader_event_id or "")
        if not isinstance(read, ReaderInvoked) or read.campaign != word.campaign or word.campaign is None:
            read = None
        depth = word.depth
        if depth is None and planned and planned["evidence"] == "answer" and word.answer == "pass":
            depth = "answer"
        facts = read and independence(read, run and run["binary_key"], hashed)
        told = read and facts and min(read.relation, facts, key=RELATIONS.index)
        reason = word.reason if word.reason is not None or read is None else read.reason
        bad_paths = read.nonregular_count + read.oversize_count + read.colliding_count if read else 0
        parts = [p for p in ("tests", "worktree") if getattr(word, p) == "pass"]
        where = {n: run and run[n] for n in ("scenario", "scenario_version", "condition_key", "subject")}
        out.append(
            {
                **{n: getattr(word, n) for n in ("campaign", "trial", "recorded_at_ns", "reader_event_id")},
                **{n: getattr(word, n) for n in ("verdict", "oracle_version", "tests", "worktree", "answer")},
                **where,
                "event_id": event_id,
                "reason": reason,
                "owner": reasons[reason][0]
                if reason in reasons
                else "subject"
                if word.verdict == "unmeasured"
                else None,
                "contract_key": hashed(word.contract_sha256),
                "depth": depth,
                "vcs": read and read.vcs,
                "reader_key": read
                and hashed(read.reader, read.reader_version, read.backend, read.code_sha256),
                "instrument_key": read and hashed(read.instrument_sha256, read.codec_sha256),
                "scope_key": read and hashed(read.scope_sha256),
                "refused": refusal(word, run, planned, read),
                "before_head": word.verdict == "fail"
                and read is not None
                and read.outcome == "failed"
                and reasons.get(read.reason or "", ("", False))[1],
                "contradicted": word.verdict == "pass"
                and read is not None
                and read.scope_sha256 is not None
                and bad_paths > 0,
                "independence": told,
                "relation": read and read.relation,
                "overclaimed": read is not None and told != read.relation,
                "correctness_class": None
                if told in (None, "unqualified") or depth is None
                else "+".join([f"{told}_{depth}", *parts]),
            }
        )
    return out


def facts(
    events: dict[str, AnyEvent],
    runs: dict[tuple[str, str], Row],
    verdicts: list[Row],
    reasons: dict[str, tuple[str, bool]],
    infrastructure: list[str],
) -> list[Row]:
    """What each attempt came to (docs/qualification.md)."""
    judged = defaultdict(list)
    for row in verdicts:
        judged[row["campaign"], row["trial"]].append(row)
    readings = defaultdict(list)
    rules = defaultdict(set)
    for event in events.values():
        if isinstance(event, ReaderInvoked):
            readings[event.campaign, event.trial].append(event)
        elif isinstance(event, ConflictRuleRecorded):
            rules[event.campaign, event.conflict].add(event.decision)
    return [
        {**run, **_outcome(run, judged[key], readings[key], rules, reasons, infrastructure)}
        for key, run in runs.items()
    ]


def _outcome(
    run: Row,
    words: list[Row],
    readings: list[ReaderInvoked],
    rules: dict[tuple[str, str], set[str]],
    reasons: dict[str, tuple[str, bool]],
    infrastructure: list[str],
) -> Row:
    count = [w for w in words if w["refused"] is None]
    passes = [w for w in count if w["verdict"] == "pass"]
    fails = [w for w in count if w["verdict"] == "fail"]
    unmeasured = [w for w in count if w["verdict"] == "unmeasured"]
    refused = len(words) - len(count)
    kinds = {w["correctness_class"] for w in passes}
    status, code = run["status"], run["status_code"]
    broken = run["exit_code"] in (126, 127) or any(re.fullmatch(p, code or "") for p in infrastructure)
    over = run["ended_at_ns"] is not None or run["exit_code"] is not None or status == "timeout"
    ran = run["started_at_ns"] is not None and over
    troubles = [
        (reasons.get(r.reason or "", ("subject",))[0], r.reason) for r in readings if r.outcome != "ok"
    ]
    no_head = any(r.outcome == "failed" and reasons.get(r.reason or "", ("", False))[1] for r in readings)
    conflict = _conflict(run, passes, fails, unmeasured, kinds)
    decided = rules.get((run["campaign"], f"pass_with_{status}"), set())
    decision = next(iter(decided)) if len(decided) == 1 else None
    if status in ("unlaunched", "harness_failure"):
        outcome = status
    elif conflict in ("pass_with_timeout", "pass_with_error") and decision:
        outcome = {"pass": "passed", "fail": "failed_committed"}[decision]
    elif conflict:
        outcome = "conflict"
    elif passes:
        outcome = "passed"
    elif broken:
        outcome = "harness_failure"
    elif fails and not all(w["before_head"] for w in fails):
        outcome = "failed_committed"
    elif not ran:
        outcome = "unmeasured"
    elif fails:
        outcome = "failed_before_head"
    elif words:
        outcome = "unmeasured"
    elif no_head or (run["reached_head"] is False and not readings):
        outcome = "failed_before_head"
    else:
        outcome = "unmeasured"
    # Null where nobody knows whether a HEAD was reached.
    booked = (
        True
        if fails
        else False
        if passes
        else None
        if run["reached_head"] is None
        else not run["reached_head"]
    )
    reason = owner = None
    if outcome == "unmeasured":
        said = [(w["owner"], w["reason"]) for w in unmeasured]
        listed = [max(s)[1] for s in ([t for t in told if t[1]] for told in (said, troubles)) if s]
        blank = "verdict_refused" if refused else "run_facts_missing" if booked else "no_verdict"
        reason = listed[0] if listed else blank
        owner = max(o for o, _ in said or troubles or [("harness", None)])
    return {
        "passes": len(passes),
        "fails": len(fails),
        "refused_verdicts": refused,
        "correctness_class": next(iter(kinds)) if len(kinds) == 1 else None,
        "infrastructure": broken,
        "ran": ran,
        "read_well": run["reached_head"] is False and any(r.outcome == "ok" for r in readings),
        "conflict": conflict,
        "decision": decision,
        "booked_as_failure": booked,
        "fact_outcome": outcome,
        "unmeasured_reason": reason,
        "unmeasured_owner": owner,
    }


def _conflict(
    run: Row, passes: list[Row], fails: list[Row], unmeasured: list[Row], kinds: set[str]
) -> str | None:
    if passes and run["status"] in ("unlaunched", "harness_failure"):
        return f"pass_with_{run['status']}"
    blamed = any(w["owner"] == "subject" for w in unmeasured)
    if (passes and fails) or ((passes or fails) and blamed) or len(kinds) > 1:
        return "verdicts_disagree"
    if any(w["contradicted"] or "fail" in (w["tests"], w["worktree"], w["answer"]) for w in passes):
        return "pass_against_its_evidence"
    if passes and run["reached_head"] is False:
        return "pass_without_head"
    if passes and run["status"] in ("timeout", "error"):
        return f"pass_with_{run['status']}"
    return None

"""The questions that the page asks the ledger, as the SQL that it also prints.

`$campaign` stands for the campaign as an SQL text and `$limit` for a bound on what is listed; both are filled in
before a question is asked, so what is printed runs as it stands: `oakledger sql "..."`.
"""

from __future__ import annotations

from dataclasses import dataclass

_CELL = "scenario, scenario_version, condition_key, subject"


@dataclass(frozen=True)
class Query:
    """A question: its name (an anchor in the page), what it answers, its SQL."""

    name: str
    title: str
    sql: str

    def text(self, campaign: str, limit: int) -> str:
        """Return the SQL for one campaign."""
        quoted = "'" + campaign.replace("'", "''") + "'"
        return self.sql.replace("$campaign", quoted).replace("$limit", str(limit))


QUERIES: tuple[Query, ...] = (
    Query(
        "plan",
        "The declaration that counts",
        "SELECT * EXCLUDE (plan, slots), slots::BIGINT AS slots FROM campaigns WHERE campaign = $campaign",
    ),
    Query(
        "subjects",
        "The subjects of the plan",
        "SELECT subject, null_of FROM campaign_subjects WHERE campaign = $campaign ORDER BY subject",
    ),
    Query(
        "scenarios",
        "The scenarios of the plan",
        "SELECT * EXCLUDE (campaign, entries) FROM campaign_scenarios WHERE campaign = $campaign\n"
        "ORDER BY scenario, scenario_version",
    ),
    Query(
        "conditions",
        "Every condition, planned or met",
        "SELECT * EXCLUDE (campaign, condition, same_but_environment) FROM conditions WHERE campaign = $campaign\n"
        "ORDER BY planned DESC, condition_key",
    ),
    Query(
        "coverage",
        "What was measured where",
        f"SELECT {_CELL}, diagnostic, condition_planned, planned, recorded, measured, covered\n"
        f"FROM condition_coverage WHERE campaign = $campaign ORDER BY {_CELL}",
    ),
    Query(
        "cells",
        "Planned trials of each cell by outcome",
        f"SELECT * EXCLUDE (campaign) FROM cells WHERE campaign = $campaign ORDER BY {_CELL}",
    ),
    Query(
        "slots",
        "The events behind each outcome",
        f"SELECT {_CELL}, repetition, outcome, trial, event_id, correctness_class, unmeasured_reason, verdicts\n"
        "FROM slot_outcomes\n"
        "LEFT JOIN (\n"
        "    SELECT campaign, trial, list(event_id ORDER BY event_id) AS verdicts\n"
        "    FROM correctness_classes GROUP BY campaign, trial\n"
        ") USING (campaign, trial)\n"
        "WHERE campaign = $campaign\n"
        f"QUALIFY row_number() OVER (PARTITION BY {_CELL}, outcome ORDER BY repetition) <= $limit\n"
        f"ORDER BY {_CELL}, outcome, repetition",
    ),
    Query(
        "other_attempts",
        "Attempts that speak for no planned trial",
        f"SELECT {_CELL}, slot_repetition AS repetition, role, fact_outcome, invalidated, unplanned_because, trial,\n"
        "    event_id\n"
        "FROM trial_outcomes WHERE campaign = $campaign AND role <> 'final' ORDER BY role, trial LIMIT $limit",
    ),
    Query(
        "classes",
        "Correctness classes of the successes",
        f"SELECT {_CELL}, diagnostic, correctness_class, successes FROM class_pairs WHERE campaign = $campaign\n"
        f"ORDER BY {_CELL}, correctness_class",
    ),
    Query(
        "failures",
        "Why trials failed or were not measured",
        "SELECT c.scenario, c.scenario_version, c.condition_key, c.subject, c.verdict, c.reason, c.owner, c.refused,\n"
        "    count(*) AS verdicts, min(c.event_id) AS example_event_id,\n"
        "    arg_min(e.payload -> '$.checks', c.event_id) AS example_checks\n"
        "FROM correctness_classes AS c\n"
        "JOIN ledger_events AS e ON e.event_id = c.event_id\n"
        "WHERE c.campaign = $campaign AND (c.verdict <> 'pass' OR c.refused IS NOT NULL)\n"
        "GROUP BY c.scenario, c.scenario_version, c.condition_key, c.subject, c.verdict, c.reason, c.owner, c.refused\n"
        "ORDER BY verdicts DESC, c.scenario, c.scenario_version, c.condition_key, c.subject, c.verdict, c.reason\n"
        "LIMIT 200",
    ),
    Query(
        "order",
        "First attempts by start time, with their declared places",
        "SELECT * FROM (\n"
        "    SELECT o.started_at_ns, u.subject, o.position, o.in_block, t.event_id,\n"
        "        row_number() OVER (ORDER BY o.started_at_ns, t.event_id) AS n, count(*) OVER () AS starts\n"
        "    FROM order_starts AS o\n"
        "    JOIN campaign_subjects AS u ON u.campaign = o.campaign AND u.n = o.subject_n\n"
        "    JOIN trial_outcomes AS t ON t.campaign = o.campaign AND t.slot = o.slot AND t.step = 0\n"
        "        AND t.role IN ('final', 'replaced')\n"
        "    WHERE o.campaign = $campaign\n"
        ")\n"
        "WHERE n % greatest(starts // 12000, 1) = 0 OR n = 1 ORDER BY n",
    ),
    Query(
        "places",
        "How often each subject started first, second, ... in its block",
        "SELECT u.subject, o.place, count(*) AS blocks\n"
        "FROM (\n"
        "    SELECT *, row_number() OVER (PARTITION BY block ORDER BY started_at_ns, subject_n) AS place\n"
        "    FROM order_starts WHERE campaign = $campaign\n"
        ") AS o\n"
        "JOIN campaign_subjects AS u ON u.campaign = o.campaign AND u.n = o.subject_n\n"
        "GROUP BY ALL ORDER BY u.subject, o.place",
    ),
    Query(
        "order_tests",
        "Exact tests of an order that nobody declared, the least likely first",
        "SELECT * EXCLUDE (campaign) FROM order_tests WHERE campaign = $campaign\n"
        "ORDER BY p, scenario NULLS FIRST, scenario_version, condition_key, subject_a, subject_b, test LIMIT 20",
    ),
    Query(
        "pairs",
        "Paired outcomes",
        "SELECT * EXCLUDE (campaign) FROM paired_outcomes WHERE campaign = $campaign\n"
        "ORDER BY scenario, scenario_version, condition_key, null_pair, subject_a, subject_b",
    ),
    Query(
        "pair_events",
        "The events behind the paired outcomes",
        "SELECT a.scenario, a.scenario_version, a.condition_key, a.subject AS subject_a, b.subject AS subject_b,\n"
        "    a.repetition, a.event_id AS event_a, b.event_id AS event_b,\n"
        "    CASE\n"
        "        WHEN NOT (a.measured AND b.measured) THEN 'not_comparable'\n"
        "        WHEN a.outcome = 'passed' AND b.outcome = 'passed' THEN 'both'\n"
        "        WHEN a.outcome = 'passed' THEN 'only_a'\n"
        "        WHEN b.outcome = 'passed' THEN 'only_b'\n"
        "        ELSE 'neither'\n"
        "    END AS pair\n"
        "FROM slot_outcomes AS a\n"
        "JOIN slot_outcomes AS b USING (campaign, scenario, scenario_version, condition_key, repetition)\n"
        "WHERE campaign = $campaign AND a.subject < b.subject\n"
        "QUALIFY row_number() OVER (\n"
        "    PARTITION BY a.scenario, a.scenario_version, a.condition_key, a.subject, b.subject, pair\n"
        "    ORDER BY a.repetition\n"
        ") <= $limit\n"
        "ORDER BY a.scenario, a.scenario_version, a.condition_key, subject_a, subject_b, pair, a.repetition",
    ),
    Query(
        "claims",
        "Claims beside what was measured and the noise floor",
        "SELECT * EXCLUDE (campaign) FROM claims WHERE campaign = $campaign\n"
        "ORDER BY claim, scenario, scenario_version, condition_key",
    ),
    Query(
        "effects",
        "Claimed and null comparisons with their intervals",
        "SELECT * EXCLUDE (campaign) FROM metric_effects WHERE campaign = $campaign\n"
        "ORDER BY claim, scenario, scenario_version, condition_key, role, subject, baseline",
    ),
    Query(
        "differences",
        "Differences block by block, in thousandths of the baseline, as 51 quantiles",
        "SELECT c.claim, c.scenario, c.scenario_version, c.condition_key, c.role, c.subject, c.baseline,\n"
        "    count(*) AS blocks,\n"
        "    quantile_disc(1000.0 * (a.value - b.value) / abs(b.value), [n / 50.0 FOR n IN range(51)]) AS quantiles\n"
        "FROM claim_comparisons AS c\n"
        "JOIN metric_values AS a\n"
        "    ON a.campaign = c.campaign AND a.scenario = c.scenario AND a.scenario_version = c.scenario_version\n"
        "    AND a.condition_key = c.condition_key AND a.subject = c.subject AND a.metric = c.metric\n"
        "    AND a.operation IS NOT DISTINCT FROM c.operation\n"
        "JOIN metric_values AS b\n"
        "    ON b.campaign = c.campaign AND b.scenario = c.scenario AND b.scenario_version = c.scenario_version\n"
        "    AND b.condition_key = c.condition_key AND b.subject = c.baseline AND b.metric = c.metric\n"
        "    AND b.operation IS NOT DISTINCT FROM c.operation AND b.repetition = a.repetition\n"
        "WHERE c.campaign = $campaign AND a.value IS NOT NULL AND b.value <> 0\n"
        "GROUP BY c.claim, c.scenario, c.scenario_version, c.condition_key, c.role, c.subject, c.baseline",
    ),
    Query(
        "metrics",
        "Metrics of the trials that passed",
        f"SELECT scenario, scenario_version, condition_key, operation, metric, subject, count(*) AS trials,\n"
        "    count(value) AS measured, quantile_disc(value, [n / 50.0 FOR n IN range(51)]) AS quantiles,\n"
        "    median(value) AS median\n"
        "FROM (\n"
        "    SELECT * EXCLUDE (metrics), (metrics ->> concat('$.', metric))::BIGINT AS value\n"
        "    FROM (\n"
        f"        SELECT s.scenario, s.scenario_version, s.condition_key, s.subject, t.operation, t.metrics,\n"
        "            unnest(json_keys(t.metrics)) AS metric\n"
        "        FROM slot_outcomes AS s\n"
        "        JOIN trials AS t ON t.campaign = s.campaign AND t.trial = s.trial\n"
        "        WHERE s.campaign = $campaign AND s.outcome = 'passed'\n"
        "    )\n"
        ")\n"
        "GROUP BY ALL ORDER BY scenario, scenario_version, condition_key, operation NULLS FIRST, metric, subject",
    ),
    Query(
        "set_aside",
        "Attempts that somebody took out of the count",
        "SELECT * EXCLUDE (campaign) FROM set_aside WHERE campaign = $campaign\n"
        "ORDER BY what, trial, event_id LIMIT 1000",
    ),
    Query(
        "readers",
        "Readers and instruments",
        "SELECT r.vcs, r.reader, r.reader_version, r.backend, r.code_sha256, r.codec_sha256, r.python_sha256,\n"
        "    r.instrument_name, r.instrument_version, r.instrument_sha256, r.relation, c.independence, r.qualified_by,\n"
        "    r.qualified_because, count(DISTINCT r.event_id) AS invocations, min(r.event_id) AS example_event_id\n"
        "FROM reader_invocations AS r\n"
        "LEFT JOIN correctness_classes AS c ON c.campaign = r.campaign AND c.reader_event_id = r.event_id\n"
        "WHERE r.campaign = $campaign\n"
        "GROUP BY ALL ORDER BY invocations DESC, example_event_id LIMIT 100",
    ),
    Query(
        "reader_outcomes",
        "What became of the reader invocations",
        "SELECT reader, backend, outcome, reason, count(*) AS invocations, min(event_id) AS example_event_id\n"
        "FROM reader_invocations WHERE campaign = $campaign GROUP BY ALL ORDER BY invocations DESC, example_event_id LIMIT 100",
    ),
    Query(
        "identities",
        "The binaries that ran",
        "SELECT subject, subject_binary_sha256, subject_version, subject_source_sha256, subject_dirty,\n"
        "    count(*) AS trials, min(event_id) AS example_event_id\n"
        "FROM trials WHERE campaign = $campaign GROUP BY ALL ORDER BY subject, trials DESC, example_event_id LIMIT 200",
    ),
    Query(
        "environments",
        "The environments of the conditions",
        "SELECT DISTINCT payload ->> '$.environment_id' AS environment_id, payload -> '$.facts' AS facts, event_id\n"
        "FROM ledger_events WHERE campaign = $campaign AND kind = 'environment_observed'\n"
        "ORDER BY environment_id, event_id LIMIT 100",
    ),
    Query(
        "criteria",
        "The study's own criteria and who attests them",
        "SELECT k.criterion, k.text_sha256, a.who, a.statement, a.text_sha256 = k.text_sha256 AS same_text,\n"
        "    a.event_id\n"
        "FROM campaign_criteria AS k\n"
        "LEFT JOIN attestations AS a USING (campaign, criterion)\n"
        "WHERE campaign = $campaign ORDER BY k.criterion, a.recorded_at_ns LIMIT 200",
    ),
    Query(
        "conflict_rules",
        "How conflicting facts were decided",
        "SELECT conflict, decision, who, why, event_id FROM conflict_rules WHERE campaign = $campaign\n"
        "ORDER BY recorded_at_ns, event_id LIMIT 100",
    ),
    Query(
        "reruns",
        "Other campaigns that measure the same",
        "SELECT * EXCLUDE (campaign) FROM reruns WHERE campaign = $campaign ORDER BY declared_at_ns, other LIMIT 200",
    ),
)
